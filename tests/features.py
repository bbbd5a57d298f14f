"""What this machine's kernel can do, found out by trying it once in a throwaway network namespace.

A feature that fails is believed missing only when the kernel's own configuration says so too: anything else
(a missing tool, a missing right, a broken probe) is no proof, and a test that is skipped for it fails in CI.
"""

from __future__ import annotations

import gzip
import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_VETH = "ip link add probe0 type veth peer name probe1"
_HTB = f"{_VETH} && tc qdisc add dev probe0 root handle 1: htb"

# Feature -> (kernel option, shell commands that succeed where it works).
_PROBES = {
    "netns": ("NET_NS", "true"),
    "veth": ("VETH", _VETH),
    "ifb": ("IFB", "ip link add probe0 type ifb"),
    "dummy": ("DUMMY", "ip link add probe0 type dummy"),
    "vxlan": ("VXLAN", "ip link add probe0 type vxlan id 1 dstport 4789"),
    "macvlan": ("MACVLAN", f"{_VETH} && ip link add link probe0 probe2 type macvlan"),
    "ipvlan": ("IPVLAN", f"{_VETH} && ip link add link probe0 probe2 type ipvlan"),
    "bond": ("BONDING", "ip link add probe0 type bond"),
    "tun": ("TUN", "ip tuntap add probe0 mode tun"),
    "bridge": ("BRIDGE", "ip link add probe0 type bridge"),
    "br-netfilter": (
        "BRIDGE_NETFILTER",
        "ip link add probe0 type bridge && test -e /proc/sys/net/bridge/bridge-nf-call-iptables",
    ),
    "htb": ("NET_SCH_HTB", _HTB),
    "tbf": ("NET_SCH_TBF", f"{_VETH} && tc qdisc add dev probe0 root tbf rate 1mbit burst 10k latency 50ms"),
    "fq": ("NET_SCH_FQ", f"{_VETH} && tc qdisc add dev probe0 root fq"),
    "fq_codel": ("NET_SCH_FQ_CODEL", f"{_VETH} && tc qdisc add dev probe0 root fq_codel"),
    "prio": ("NET_SCH_PRIO", f"{_VETH} && tc qdisc add dev probe0 root prio"),
    "flowtable": (
        "NF_FLOW_TABLE",
        f"{_VETH} && nft 'table ip x {{ flowtable f {{ hook ingress priority 0; devices = {{ probe0 }}; }}; }}'",
    ),
    "ip-vs": ("IP_VS", "test -e /proc/net/ip_vs"),
    "netem": ("NET_SCH_NETEM", f"{_VETH} && tc qdisc add dev probe0 root netem"),
    "clsact": ("NET_SCH_INGRESS", f"{_VETH} && tc qdisc add dev probe0 clsact"),
    "u32": ("NET_CLS_U32", f"{_HTB} && tc filter add dev probe0 parent 1: u32 match u32 0 0 flowid 1:1"),
    "cls-bpf": (
        "NET_CLS_BPF",
        f"{_HTB} && tc filter add dev probe0 parent 1: protocol all bpf bytecode '1,6 0 0 4294967295,' flowid 1:1",
    ),
    "nft": ("NF_TABLES_INET", "nft add table inet probe"),
    "nft-egress": (
        "NETFILTER_EGRESS",
        f"{_VETH} && nft 'table netdev x {{ chain c {{ type filter hook egress device probe0 priority 0; }}; }}'",
    ),
    "nft-fib": (
        "NFT_FIB_INET",
        "nft 'table inet probe { chain c { type filter hook postrouting priority 0; fib saddr type local; }; }'",
    ),
    "nft-socket": (
        "NFT_SOCKET",
        "nft 'table inet probe { chain c { type filter hook output priority 0; socket mark 1; }; }'",
    ),
    "bbr": ("TCP_CONG_BBR", "grep -qw bbr /proc/sys/net/ipv4/tcp_available_congestion_control"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Whether a feature works; `reason` says why not, `is_conclusive` that the kernel itself lacks it."""

    is_present: bool
    is_conclusive: bool = True
    reason: str = ""


@cache
def find(feature: str) -> Finding:
    """Try a feature of the table above, or `tool:NAME` for a program on PATH."""
    kind, _, name = feature.rpartition(":")
    if kind == "tool":
        if shutil.which(name):
            return Finding(is_present=True)
        return Finding(is_present=False, is_conclusive=False, reason=f"the program {name} is not installed")
    option, commands = _PROBES[feature]
    error = _attempt(commands)
    if error is None:
        return Finding(is_present=True)
    absence = _absence(option)
    return Finding(
        is_present=False,
        is_conclusive=absence is not None,
        reason=absence or f"{feature} does not work, though CONFIG_{option} may be there: {error}",
    )


def _attempt(commands: str) -> str | None:
    """None where the commands succeed in a new network namespace, else what they said."""
    unshare = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    done = subprocess.run(
        [*unshare, "sh", "-c", commands],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
        env={**os.environ, "PATH": path},
    )
    return None if done.returncode == 0 else done.stderr.strip() or f"exit status {done.returncode}"


def _absence(option: str) -> str | None:
    """Say that the kernel lacks an option, where its configuration can be read and does say so."""
    value = _kernel_options().get(f"CONFIG_{option}", "n") if _kernel_options() else None
    if value == "n":
        return f"this kernel is built without CONFIG_{option}"
    if value == "m" and not Path("/lib/modules", platform.release()).is_dir():
        return f"CONFIG_{option} is a module, and this kernel's modules are not installed"
    return None


@cache
def _kernel_options() -> dict[str, str]:
    for path in (Path("/proc/config.gz"), Path(f"/boot/config-{platform.release()}")):
        if path.is_file():
            raw = path.read_bytes()
            text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
            return dict(line.split("=", 1) for line in text.splitlines() if line.startswith("CONFIG_"))
    return {}
