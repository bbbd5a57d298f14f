"""Cgroups of units, pods and of what keeps this node reachable, as paths and ids.

A cgroup that is not there yet is no error: the answer is None, and the next question may find it. Nothing is
remembered but where a unit was found, and that is checked each time, so a cgroup that was made anew has its new id.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from netqos.host.cgrouptree import Hierarchy, Mode, detect
from netqos.host.podcgroups import is_pods_root, pod_paths, pod_uid
from netqos.model.health import Finding, info, warning
from netqos.model.ids import CgroupPath, PodUid
from netqos.model.inputs import KubernetesQos

CRITICAL_UNITS = (
    *("ssh.service", "sshd.service", "system-ssh.slice", "system-sshd.slice"),
    *("kubelet.service", "k3s.service", "k3s-agent.service", "rke2-server.service", "rke2-agent.service"),
    *("k0scontroller.service", "k0sworker.service", "snap.microk8s.daemon-kubelite.service"),
    *("containerd.service", "crio.service", "docker.service", "cri-docker.service"),
    "snap.microk8s.daemon-containerd.service",
)
"""Whoever sits in these must reach the node, and the node its registry and API server, whatever pods do (contract 8).
The slices hold a unit for each connection where sshd is started by its socket."""

_UNIT = re.compile(r"[A-Za-z0-9:_.@\\-]+")
_UNIT_KINDS = frozenset({"service", "scope", "slice", "socket", "mount", "swap"})
_MOST_FOLDERS = 2000
_MOST_TRIED = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Cgroup:
    """A cgroup that is there. `id` is what the kernel and nft know it by, None in cgroup v1.

    `inner` are (path, id) of those below it, where it is too near to the root to be matched itself
    (`Hierarchy.begins_at`); sorted by path.
    """

    path: CgroupPath
    id: int | None
    inner: tuple[tuple[CgroupPath, int], ...] = ()


class Cgroups:
    """Answers from the tree as it is now."""

    def __init__(self, root: Path = Path("/sys/fs/cgroup"), *, proc_root: Path = Path("/proc")) -> None:
        """Find out which hierarchy is mounted; it does not change while the host runs."""
        self._proc_root = proc_root
        self._root = root
        self._found: dict[str, CgroupPath] = {}
        self._own: CgroupPath | None = None
        self._looked_for_own = False
        self.hierarchy: Hierarchy = detect(root, proc_root=proc_root)

    def locate(self, path: CgroupPath) -> Cgroup | None:
        """The cgroup at this path, None while there is none."""
        folder = self._folder(path)
        try:
            if folder is None or not folder.is_dir():
                return None
            inode = folder.stat().st_ino
        except OSError:
            return None
        if self.hierarchy.mode is Mode.LEGACY:
            return Cgroup(path=path, id=None)
        return Cgroup(path=path, id=inode, inner=tuple(sorted(self._inner(path))))

    def unit(self, name: str) -> CgroupPath | None:
        """Where a unit of the system's service manager runs, None while it does not."""
        return self.units((name,)).get(name)

    def units(self, names: Iterable[str]) -> Mapping[str, CgroupPath]:
        """Where units run, by the names asked for; those that do not run are left out.

        A name without a suffix is a service's. One walk through the slices serves all of them (about a millisecond).
        """
        wanted = {name: _unit_name(name) for name in names}
        lost = {unit for unit in wanted.values() if unit and not self._is_still_there(unit)}
        if lost:
            self._search(lost)
        return {name: self._found[unit] for name, unit in wanted.items() if unit in self._found}

    def pod(self, uid: PodUid, qos: KubernetesQos | None = None) -> CgroupPath | None:
        """A pod's cgroup with either driver; with both trees present the one that has processes. None: not yet."""
        return self._pod_below(self._pod_roots(), uid, qos)

    def pods(self, wanted: Mapping[PodUid, KubernetesQos | None]) -> Mapping[PodUid, Cgroup]:
        """The cgroups of many pods, as `pod`, by one look at the trees; those that are not there are left out."""
        roots = self._pod_roots() if wanted else []
        paths = {uid: self._pod_below(roots, uid, qos) for uid, qos in wanted.items()} if roots else {}
        found = {uid: self.locate(path) for uid, path in paths.items() if path is not None}
        return {uid: one for uid, one in found.items() if one is not None}

    def own(self) -> CgroupPath | None:
        """The cgroup of this very process, where it is its own: not the root, not somebody's login session.

        In a container /proc tells the path below the container's own cgroup alone; then it is the pod's, which is
        looked for by this process' number.
        """
        try:
            lines = (self._proc_root / "self/cgroup").read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError):
            return None
        path = next((line.removeprefix("0::") for line in lines if line.startswith("0::/")), "/")
        if path == "/":
            return self._own_pods()
        if ".." in path.split("/") or path.startswith("/user.slice/"):
            return None
        return CgroupPath(path)

    def critical(self) -> tuple[tuple[CgroupPath, int], ...]:
        """(path, id) of every cgroup that keeps the node reachable, this process included; sorted by path."""
        paths = set(self.units(CRITICAL_UNITS).values())
        own = self.own()
        if own is not None:
            paths.add(own)
        located = [self.locate(path) for path in sorted(paths)]
        return tuple((one.path, one.id) for one in located if one is not None and one.id is not None)

    def is_elsewhere(self, path: CgroupPath) -> bool:
        """Whether its processes are in another network namespace: then packets lose its mark on the way (case E5)."""
        here = self._network("self")
        for pid in self._some_processes(path):
            there = self._network(str(pid))
            if there is not None:
                return here is not None and there != here
        return False

    def is_hidden(self, path: CgroupPath) -> bool:
        """Whether it has processes that this one cannot see: `is_elsewhere` cannot tell of them.

        cgroup.procs numbers those outside the reader's pid namespace 0 (cgroup-v2.rst).
        """
        folder = self._folder(path)
        try:
            return folder is not None and "0" in (folder / "cgroup.procs").read_text(encoding="ascii").split()
        except (OSError, ValueError):
            return False

    def tells_packets(self) -> bool:
        """Whether a packet's cgroup can be told: by the tree of version 2, or by a net_cls that may be written."""
        net_cls = self.hierarchy.net_cls
        if self.hierarchy.mode is Mode.LEGACY:
            return net_cls is not None and os.access(net_cls / "net_cls.classid", os.W_OK)
        return self.hierarchy.mode in {Mode.UNIFIED, Mode.HYBRID}

    def findings(self) -> tuple[Finding, ...]:
        """What this host's cgroups cannot do for us."""
        subject = str(self._root)
        match self.hierarchy.mode:
            case Mode.NONE:
                found = warning(
                    "cgroup-missing",
                    subject,
                    "no cgroups are mounted here; nothing can be told apart by cgroup",
                    hint="mount the host's /sys/fs/cgroup, or set paths.cgroup",
                )
                return (found,)
            case Mode.LEGACY:
                by_class = "packets are told apart by net_cls.classid, where nobody else has written it"
                found = info(
                    "cgroup-v1-only",
                    subject,
                    "only cgroup v1 is mounted; "
                    + (by_class if self.tells_packets() else "packets cannot be told apart by cgroup"),
                    hint="match workloads by their addresses, or boot with systemd.unified_cgroup_hierarchy=1",
                )
                return (found,)
            case Mode.UNIFIED | Mode.HYBRID:
                if self.hierarchy.is_whole:
                    return ()
                return (_only_a_part(subject) if self.own() is None else _node_in_a_container(subject),)

    def _folder(self, path: str) -> Path | None:
        """None for a path that leaves the tree."""
        tree = self.hierarchy.tree
        parts = path.split("/")
        if tree is None or not path.startswith("/") or ".." in parts or "\0" in path:
            return None
        return tree.joinpath(*parts[1:])

    def _inner(self, path: str) -> Iterator[tuple[CgroupPath, int]]:
        """Those below it that are deep enough to be matched, the nearest to it; none where it is so itself."""
        front = [path] if path.count("/") < self.hierarchy.begins_at else []
        for here in front:
            for name in self._names(here):
                inner = f"{here}/{name}"
                folder = self._folder(inner)
                if inner.count("/") < self.hierarchy.begins_at and len(front) < _MOST_TRIED:
                    front.append(inner)
                elif folder is not None:
                    with contextlib.suppress(OSError):
                        yield CgroupPath(inner), folder.stat().st_ino

    def _is_still_there(self, unit: str) -> bool:
        path = self._found.get(unit)
        if path is not None and self.locate(path) is not None:
            return True
        self._found.pop(unit, None)
        return False

    def _search(self, units: set[str]) -> None:
        # systemd puts a _ before names that could be taken for a file of the kernel's (cg_escape in cgroup-util.c).
        names = {spelling: unit for unit in units for spelling in (unit, f"_{unit}")}
        for path in self._slices():
            unit = names.get(path.rsplit("/", 1)[1])
            if unit is not None:
                self._found.setdefault(unit, CgroupPath(path))

    def _slices(self) -> Iterator[str]:
        """Every folder in a slice, nearest to the root first; not what is below a service, scope or pod."""
        front = [""]
        seen = 0
        while front and seen < _MOST_FOLDERS:
            deeper: list[str] = []
            for parent in front:
                for name in self._names(parent):
                    seen += 1
                    yield f"{parent}/{name}"
                    if name.endswith(".slice") and not is_pods_root(name):
                        deeper.append(f"{parent}/{name}")
            front = deeper

    def _names(self, parent: str) -> list[str]:
        folder = self._folder(parent or "/")
        if folder is None:
            return []
        try:
            with os.scandir(folder) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        except OSError:
            return []

    def _pod_below(self, roots: list[str], uid: PodUid, qos: KubernetesQos | None) -> CgroupPath | None:
        if "/" in uid or uid.startswith("."):
            return None
        found = [path for root in roots for path in pod_paths(root, uid, qos) if self.locate(path)]
        if len(found) < 2:
            return found[0] if found else None
        return next((path for path in found if self._is_populated(path)), found[0])

    def _own_pods(self) -> CgroupPath | None:
        """The pod's cgroup that this process is in: looked for once, for a process does not leave its container."""
        if not self._looked_for_own:
            self._looked_for_own = True
            pid = self._own_pid()
            self._own = next(
                (path for path in self._pod_cgroups() if pid in self._some_processes(path)), None
            )
        return self._own

    def _own_pid(self) -> int:
        """As /proc and cgroup.procs number it, which is by the namespace of who reads."""
        try:
            return int((self._proc_root / "self").readlink().name)
        except (OSError, ValueError):
            return os.getpid()

    def _pod_cgroups(self) -> Iterator[CgroupPath]:
        """Every pod's cgroup, of all classes."""
        for root in self._pod_roots():
            front = [root]
            for here in front:
                for name in self._names(here):
                    path = f"{here}/{name}"
                    if pod_uid(path) is not None:
                        yield CgroupPath(path)
                    elif len(front) < _MOST_TRIED:
                        front.append(path)

    def _pod_roots(self) -> list[str]:
        """The trees of pods, at the root or one below (--cgroup-root); systemd's first."""
        top = [f"/{name}" for name in self._names("")]
        below = [
            f"{parent}/{name}"
            for parent in top
            if not is_pods_root(parent[1:]) and parent not in {"/system.slice", "/user.slice"}
            for name in self._names(parent)
        ]
        roots = [path for path in (*top, *below) if is_pods_root(path.rsplit("/", 1)[1])]
        return sorted(roots, key=lambda path: (not path.endswith(".slice"), path))

    def _is_populated(self, path: CgroupPath) -> bool:
        folder = self._folder(path)
        try:
            return folder is not None and "populated 1" in (folder / "cgroup.events").read_text(
                encoding="ascii"
            )
        except (OSError, ValueError):
            return False

    def _some_processes(self, path: str) -> Iterator[int]:
        """Processes of the cgroup and of those below it, a few."""
        front = [path]
        for _ in range(_MOST_TRIED):
            if not front:
                return
            here = front.pop(0)
            folder = self._folder(here)
            if folder is not None:
                yield from _pids(folder / "cgroup.procs")
            front += [f"{here}/{name}" for name in self._names(here)]

    def _network(self, process: str) -> int | None:
        """Names a process's network namespace; None where the process is gone.

        /proc/PID/ns/net is for those who may trace the process. Files of /proc/PID/net are for everybody, and each
        namespace has inodes of its own for them (proc_register in fs/proc/generic.c).
        """
        try:
            return (self._proc_root / process / "net/dev").stat().st_ino
        except OSError:
            return None


def _unit_name(name: str) -> str | None:
    """The full name of a unit, None for what cannot be one."""
    if not _UNIT.fullmatch(name):
        return None
    return name if name.rpartition(".")[2] in _UNIT_KINDS else f"{name}.service"


def _pids(path: Path) -> list[int]:
    try:
        return [int(line) for line in path.read_text(encoding="ascii").split() if line != "0"]
    except (OSError, ValueError):
        return []


def _node_in_a_container(subject: str) -> Finding:
    """This process is a unit or a pod of what is visible: that is a whole node, whatever is around it."""
    return info(
        "cgroup-namespace",
        subject,
        "this node is itself in a container: the cgroups of its units and pods are visible, none of what is outside",
    )


def _only_a_part(subject: str) -> Finding:
    return warning(
        "cgroup-namespace",
        subject,
        "only a part of the cgroup tree is visible from this cgroup namespace; units and pods outside are not found",
        hint="run in the host's cgroup namespace, with the host's /sys/fs/cgroup mounted",
    )
