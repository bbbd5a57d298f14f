"""Fixture trees that stand for /proc and /sys/fs/cgroup of a host, below a folder of the test's own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from netqos.host.cgroups import Cgroups


class FakeHost:
    """A host of plain folders: `cgroup` is its /sys/fs/cgroup, `proc` its /proc."""

    def __init__(self, folder: Path, mode: str = "v2") -> None:
        self.cgroup = folder / "cgroup root"  # a space, since mountinfo escapes it
        self.proc = folder / "proc"
        self._place_in_network("self", 1)
        self.mount(mode)

    def mount(self, mode: str) -> None:
        lines = [f"1 0 0:1 / {self._place()} rw - tmpfs tmpfs rw,mode=755"]
        if mode == "v2":
            lines += [f"2 1 0:2 / {self._place()} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"]
        if mode == "hybrid":
            lines += [f"3 1 0:3 / {self._place('unified')} rw - cgroup2 cgroup2 rw"]
        if mode in {"hybrid", "v1"}:
            lines += [
                f"4 1 0:4 / {self._place('systemd')} rw - cgroup cgroup rw,xattr,name=systemd",
                f"5 1 0:5 / {self._place('net_cls,net_prio')} rw - cgroup cgroup rw,net_cls,net_prio",
            ]
        self.tree = {"v2": self.cgroup, "hybrid": self.cgroup / "unified", "v1": self.cgroup / "systemd"}.get(
            mode, self.cgroup
        )
        self.tree.mkdir(parents=True, exist_ok=True)
        (self.proc / "self/mountinfo").write_text("\n".join(lines) + "\n")

    def make(self, *paths: str) -> None:
        """Cgroups, each with its parents."""
        for path in paths:
            (self.tree / path.lstrip("/")).mkdir(parents=True, exist_ok=True)

    def put(self, path: str, name: str, text: str) -> None:
        self.make(path)
        (self.tree / path.lstrip("/") / name).write_text(text)

    def run(self, path: str, *processes: int, network: int = 1) -> None:
        """Processes in a cgroup, each in the given network namespace (the test's own is 1)."""
        self.put(path, "cgroup.procs", "".join(f"{pid}\n" for pid in processes))
        for pid in processes:
            self._place_in_network(str(pid), network)

    def place_self(self, *lines: str) -> None:
        (self.proc / "self/cgroup").write_text("\n".join(lines) + "\n")

    def inode(self, path: str) -> int:
        return (self.tree / path.lstrip("/")).stat().st_ino

    def ids(self, paths: Iterable[str]) -> tuple[tuple[str, int], ...]:
        return tuple((path, self.inode(path)) for path in paths)

    def cgroups(self) -> Cgroups:
        return Cgroups(self.cgroup, proc_root=self.proc)

    def _place_in_network(self, process: str, network: int) -> None:
        """Files of /proc/PID/net are the same ones for all processes of a namespace."""
        file = self.proc / f"network-{network}"
        (self.proc / process / "net").mkdir(parents=True)
        file.touch()
        (self.proc / process / "net/dev").hardlink_to(file)

    def _place(self, name: str = "") -> str:
        return str(self.cgroup / name if name else self.cgroup).replace(" ", r"\040")
