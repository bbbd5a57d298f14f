"""What a node is made of: Debian's packages, which `./dev` installs, and a kubelet built here once and kept."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.apiserver.gobuild import Unavailable, built
from tests.apiserver.programs import Programs, find_programs, linker_flags

KUBELET_SOURCES = Path(__file__).parent / "kubelet"
CNI_FOLDER = Path("/usr/lib/cni")

# Program and the Debian package that has it.
NEEDED = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "busybox": "busybox-static",
    "iptables": "iptables",
    "iperf3": "iperf3",
    "kubectl": "kubernetes-client",
}
PLUGINS = ("bridge", "ptp", "host-local", "bandwidth")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePrograms:
    """The programs that are built; all others are on PATH."""

    apiserver: Programs
    kubelet: Path


def find_node_programs(env: Mapping[str, str] = os.environ) -> NodePrograms:
    """The programs, built where need be. `Unavailable`, with one line that names what is missing, otherwise."""
    if os.geteuid() != 0 or not is_machines_root():
        raise Unavailable("a node needs the machine's root, not that of a user namespace")
    path = env.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = {package for name, package in NEEDED.items() if shutil.which(name, path=path) is None}
    if not all((CNI_FOLDER / name).exists() for name in PLUGINS):
        missing.add("containernetworking-plugins")
    if missing:
        raise Unavailable(f"packages are not installed: {' '.join(sorted(missing))}")
    kubelet = env.get("KUBELET_TEST_BINARY")
    return NodePrograms(
        apiserver=find_programs(env),
        kubelet=Path(kubelet)
        if kubelet
        else built(KUBELET_SOURCES, linker_flags=linker_flags(KUBELET_SOURCES), env=env),
    )


def is_machines_root() -> bool:
    """Whether all users are mapped, as in the first user namespace (user_namespaces(7))."""
    return Path("/proc/self/uid_map").read_text(encoding="ascii").split() == ["0", "0", "4294967295"]
