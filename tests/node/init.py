"""The first process of a machine: `python init.py PLAN`. It mounts what is the machine's alone, then reaps.

It runs as process 1 of a new pid namespace, in new mount, cgroup, uts and ipc namespaces; when it ends, the kernel ends
every process of the machine, and its mounts go with the last of them. Nothing of the host is changed: what would be
written to /etc, /var and /opt goes to a tmpfs, /run is a folder of the plan's, and the kernel parameters that a kubelet
insists on are files of our own over the real ones.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CGROUPS = "/sys/fs/cgroup"
COVERED = ("/etc", "/var", "/opt")
EMPTY = ("/etc/cni", "/etc/kubernetes", "/var/lib/cni")
"""What a host that is a node itself has in them is not this machine's."""

# What pkg/kubelet/cm/container_manager_linux.go wants to find or write; they are no namespace's but the whole kernel's.
PARAMETERS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1000000,
    "kernel/keys/root_maxbytes": 25000000,
}


def main(plan: dict[str, Any]) -> None:
    folder = Path(plan["folder"])
    socket.sethostname(plan["hostname"])
    mount("-t", "proc", "proc", "/proc")
    mount("-t", "sysfs", "sysfs", "/sys")
    mount_cgroups(plan["hierarchies"])
    join_init(plan["hierarchies"])
    mount("-t", "bpf", "bpf", "/sys/fs/bpf")
    cover(folder)
    fix_parameters(folder)
    mount(
        "--make-rshared", "/"
    )  # a kubelet hands mounts on to its containers; no further than this namespace
    (folder / "ready").touch()
    reap()


def mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def mount_cgroups(hierarchies: Sequence[dict[str, str]]) -> None:
    """As they are mounted outside, seen from this cgroup namespace."""
    if any(one["folder"] for one in hierarchies):
        mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", CGROUPS)
    for one in hierarchies:
        place = Path(CGROUPS, one["folder"])
        place.mkdir(exist_ok=True)
        if one["options"]:
            mount("-t", "cgroup", "-o", one["options"], "cgroup", str(place))
        else:
            mount("-t", "cgroup2", "cgroup2", str(place))


def join_init(hierarchies: Sequence[dict[str, str]]) -> None:
    """Out of the root of the tree: version 2 gives controllers to children of cgroups without processes alone."""
    for one in hierarchies:
        place = Path(CGROUPS, one["folder"])
        (place / "init.scope/cgroup.procs").write_text("0", encoding="ascii")
        offered = place / "cgroup.controllers"
        if offered.exists():
            wanted = " ".join(f"+{name}" for name in offered.read_text(encoding="ascii").split())
            hand_on(place / "cgroup.subtree_control", wanted)


def hand_on(file: Path, wanted: str) -> None:
    """It is refused while the process outside that started this one is still in the root."""
    for _ in range(500):
        with contextlib.suppress(OSError):
            file.write_text(wanted, encoding="ascii")
            return
        time.sleep(0.01)
    file.write_text(wanted, encoding="ascii")


def cover(folder: Path) -> None:
    above = folder / "above"
    above.mkdir()
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(above))
    for place in COVERED:
        upper, work = above / f"upper{place}", above / f"work{place}"
        upper.mkdir(parents=True)
        work.mkdir(parents=True)
        mount("-t", "overlay", "-o", f"lowerdir={place},upperdir={upper},workdir={work}", "overlay", place)
    for place in EMPTY:
        Path(place).mkdir(parents=True, exist_ok=True)
        mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", place)
    (folder / "run").mkdir()
    mount("--bind", str(folder / "run"), "/run")
    for name, inner in (("kubelet", "/var/lib/kubelet"), ("pods-log", "/var/log/pods")):
        (folder / name).mkdir()
        Path(inner).mkdir(parents=True, exist_ok=True)
        mount("--bind", str(folder / name), inner)


def fix_parameters(folder: Path) -> None:
    for name, value in PARAMETERS.items():
        file = folder / "parameters" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n", encoding="ascii")
        mount("--bind", str(file), f"/proc/sys/{name}")


def reap() -> None:
    """For ever: whoever loses its parent here is this process's child."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    while True:
        signal.sigwait({signal.SIGCHLD})
        try:
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        except ChildProcessError:
            pass


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
