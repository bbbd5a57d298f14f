"""Rights, namespaces, kernel options, cgroups and versions of this host."""

from __future__ import annotations

import gzip
import platform
import sys
from pathlib import Path

import netqos
from netqos.cli.doctor.check import Check, Host, fail, of_findings, ok, unknown, warn
from netqos.host.cgroups import Cgroups

CAP_NET_ADMIN, CAP_SYS_ADMIN = 12, 21  # linux/capability.h

OPTIONS = (
    ("sch_htb", "NET_SCH_HTB", "shapes the levels"),
    ("bfifo", "NET_SCH_FIFO", "keeps queues short"),
    ("cls_u32", "NET_CLS_U32", "gives ARP, LLDP and DHCP a leaf of their own, and shapes ingress"),
    ("ifb", "IFB", "shapes ingress"),
    ("clsact", "NET_SCH_INGRESS", "shapes ingress"),
    ("act_mirred", "NET_ACT_MIRRED", "shapes ingress"),
    ("nf_tables", "NF_TABLES_INET", "classifies packets"),
    ("nft_fib", "NFT_FIB_INET", "tells the node's own packets"),
    ("nft_socket", "NFT_SOCKET", "tells packets by their cgroup"),
)


def versions(host: Host) -> list[Check]:
    """Who speaks here."""
    python = ".".join(map(str, sys.version_info[:3]))
    kernel = host.read("/proc/sys/kernel/osrelease") or platform.release()
    return [ok("versions", f"netqos {netqos.__version__}, Python {python}, Linux {kernel}")]


def rights(host: Host) -> list[Check]:
    """Whether the network may be configured from here."""
    status = host.read("/proc/self/status") or ""
    mask = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), None)
    if mask is None:
        return [unknown("rights", "/proc/self/status does not tell this process' capabilities")]
    held = int(mask, 16)
    if not held >> CAP_NET_ADMIN & 1:
        return [
            fail(
                "rights",
                "CAP_NET_ADMIN is missing",
                "run as root, or with CAP_NET_ADMIN on the node's network",
            )
        ]
    if not held >> CAP_SYS_ADMIN & 1:
        text = "CAP_NET_ADMIN is there, CAP_SYS_ADMIN is not: kernel features are tried less directly"
        return [ok("rights", text)]
    return [ok("rights", "the network may be configured")]


def user_namespaces(host: Host) -> list[Check]:
    """Whether the demo and the tests run without root."""
    name, hint = "user namespaces", "needed only for the demo without root"
    most = host.read("/proc/sys/user/max_user_namespaces")
    if most is None:
        return [warn(name, "this kernel has none (CONFIG_USER_NS)", hint)]
    if most == "0":
        return [warn(name, "switched off (user.max_user_namespaces is 0)", hint)]
    if host.read("/proc/sys/kernel/unprivileged_userns_clone") == "0":
        return [warn(name, "for root only (kernel.unprivileged_userns_clone is 0)", hint)]
    if host.read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
        return [
            warn(name, "restricted by AppArmor (kernel.apparmor_restrict_unprivileged_userns is 1)", hint)
        ]
    return [ok(name, "anybody may make them")]


def kernel_options(host: Host) -> list[Check]:
    """What the kernel was built with; the backends' own probes have the last word."""
    options = _options(host)
    if options is None:
        return [
            unknown("kernel options", "this kernel does not show its configuration (/proc/config.gz, /boot)")
        ]
    missing = [entry for entry in OPTIONS if options.get(f"CONFIG_{entry[1]}", "n") == "n"]
    if not missing:
        return [ok("kernel options", ", ".join(entry[0] for entry in OPTIONS))]
    return [
        warn(
            "kernel options", f"{module} is missing, which {purpose}", f"needs a kernel with CONFIG_{option}"
        )
        for module, option, purpose in missing
    ]


def _options(host: Host) -> dict[str, str] | None:
    release = host.read("/proc/sys/kernel/osrelease") or platform.release()
    packed = host.root / "proc/config.gz"
    try:
        text = gzip.decompress(packed.read_bytes()).decode()
    except (OSError, EOFError, ValueError):
        text = host.read(f"/boot/config-{release}") or ""
    found = dict(
        line.split("=", 1) for line in text.splitlines() if line.startswith("CONFIG_") and "=" in line
    )
    return found or None


def cgroups(host: Host, root: Path) -> list[Check]:
    """Which hierarchy is mounted, and whether workloads can be told by it."""
    found = Cgroups(root, proc_root=host.root / "proc")
    problems = found.findings()
    if problems:
        return of_findings("cgroups", problems)
    own = f", {len(found.critical())} critical units found"
    return [ok("cgroups", f"{found.hierarchy.mode.value} at {root}{own}")]
