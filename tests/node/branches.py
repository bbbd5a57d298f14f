"""A machine's own branch of every cgroup hierarchy that is mounted here: made, joined, emptied and removed.

A cgroup namespace that begins at the branch shows it as the whole tree, so a kubelet makes its `kubepods` there and
the machine's own tree gets one folder a hierarchy, whose name carries its owner (`netqos.testing.namespaces`).
"""

from __future__ import annotations

import contextlib
import shlex
from dataclasses import dataclass
from pathlib import Path

from netqos.testing.hostpod import remove_cgroup
from netqos.testing.namespaces import left_over

ROOT = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """One that is mounted at `folder` below /sys/fs/cgroup, empty where it is mounted there itself (version 2 alone).

    `options` name it in a mount of version 1: its controllers, or `name=systemd`; empty for version 2.
    """

    folder: str
    options: str

    @property
    def path(self) -> Path:
        """Where it is mounted."""
        return ROOT / self.folder


def hierarchies() -> tuple[Hierarchy, ...]:
    """All that are mounted at and below /sys/fs/cgroup, by proc_pid_mountinfo(5)."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        words, _, rest = line.partition(" - ")
        place, (kind, _, options) = Path(words.split()[4]), rest.split()
        if kind in {"cgroup", "cgroup2"} and place.is_relative_to(ROOT):
            named = (
                [one for one in options.split(",") if one not in {"rw", "xattr"}] if kind == "cgroup" else []
            )
            folder = "" if place == ROOT else str(place.relative_to(ROOT))
            found.append(Hierarchy(folder=folder, options=",".join(named)))
    return tuple(found)


class Branch:
    """The folders of one machine, `name` in every hierarchy."""

    def __init__(self, name: str) -> None:
        """None is made yet."""
        self.name = name
        self.hierarchies = hierarchies()

    def make(self) -> None:
        """Make them; OSError where this process may not. Those that are made already are for `remove` then."""
        for one in self.hierarchies:
            _make(one.path / self.name)

    def folders(self, inner: str = "") -> list[Path]:
        """A cgroup below the branch (`system.slice/kubelet.service`) in every hierarchy, made if need be."""
        found = [one.path / self.name / inner for one in self.hierarchies]
        for folder in found:
            folder.mkdir(parents=True, exist_ok=True)
        return found

    def drop(self, inner: str) -> None:
        """Remove a cgroup below the branch, with what runs in it."""
        for one in self.hierarchies:
            remove_cgroup(one.path / self.name / inner)

    def joining(self, inner: str = "") -> str:
        """A line of sh by which the shell joins that cgroup; with `exec "$@"` after it the command is in it."""
        return "".join(f"echo 0 > {shlex.quote(str(one))}/cgroup.procs; " for one in self.folders(inner))

    def remove(self) -> None:
        """Kill what is left in it and remove what is made of it."""
        for one in self.hierarchies:
            remove_cgroup(one.path / self.name)


def sweep_branches() -> None:
    """Remove branches whose owner is gone."""
    for one in hierarchies():
        for folder in left_over(one.path):
            remove_cgroup(folder)


def _make(folder: Path) -> None:
    """A new cpuset of version 1 takes no process until somebody writes its CPUs and memory (cpusets.rst)."""
    folder.mkdir()
    for name in ("cpuset.cpus", "cpuset.mems"):
        if (folder / name).exists() and not (folder / "cgroup.controllers").exists():
            (folder / name).write_text((folder.parent / name).read_text(encoding="ascii"), encoding="ascii")
            (folder / "cgroup.clone_children").write_text("1", encoding="ascii")
    (folder / "init.scope").mkdir()
    _hand_down(folder.parent)


def _hand_down(parent: Path) -> None:
    """A cgroup of version 2 has the controllers that its parent hands down; every container runtime has them do so."""
    offered = parent / "cgroup.controllers"
    for name in offered.read_text(encoding="ascii").split() if offered.exists() else ():
        with contextlib.suppress(OSError):  # taken by version 1, or by a real-time process
            (parent / "cgroup.subtree_control").write_text(f"+{name}", encoding="ascii")
