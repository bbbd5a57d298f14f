"""Other programs that shape, mark or reroute packets of this node."""

from __future__ import annotations

from netqos.cli.doctor.check import Check, Host, ok, warn

TERWAY = "/var/lib/terway/qos"
CILIUM = ("/sys/fs/bpf/tc/globals", "/sys/fs/bpf/cilium")


def others(host: Host) -> list[Check]:
    """One line for each that is there, or one that nobody is."""
    checks = [*_terway(host), *_cilium(host), *_bandwidth_plugin(host)]
    return checks or [ok("other agents", "no terway-qos, Cilium or CNI bandwidth plugin is seen")]


def _terway(host: Host) -> list[Check]:
    names = host.names(TERWAY)
    if "per_cgroup_bps_limit" in names:
        text = f"{TERWAY}/per_cgroup_bps_limit is there, which fights with the limits of pod.json"
        return [warn("other agents", text, "remove it, or leave the limits to it")]
    if names:
        text = f"terway-qos has a folder ({TERWAY}); it and the tc backend would shape the same packets"
        return [warn("other agents", text, "use one of them: backends: [terway], or stop terway-qos")]
    return []


def _cilium(host: Host) -> list[Check]:
    maps = [
        name
        for folder in CILIUM
        for name in host.names(folder)
        if "cilium" in name or folder.endswith("cilium")
    ]
    if not maps:
        return []
    text = "Cilium is here: with eBPF host routing, pods' packets pass no nft rule and count as unknown (L1)"
    return [
        warn(
            "other agents", text, "check the rate of the leaf `unknown`; bpf.hostLegacyRouting=true in Cilium"
        )
    ]


def _bandwidth_plugin(host: Host) -> list[Check]:
    for name in host.names("/etc/cni/net.d"):
        if '"bandwidth"' in (host.read(f"/etc/cni/net.d/{name}") or ""):
            text = f"the CNI chain /etc/cni/net.d/{name} has the bandwidth plugin: pods that it limits are left to it"
            return [ok("other agents", text)]
    return []
