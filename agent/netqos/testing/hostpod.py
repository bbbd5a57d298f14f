"""A pod on the host's network: no namespace of its own, its processes are the node's, in a cgroup of their own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar

from netqos.errors import Unsupported
from netqos.host.cgroups import Cgroups
from netqos.testing.namespaces import Namespace, left_over, own_name
from netqos.testing.processes import Call

P = ParamSpec("P")
T = TypeVar("T")

_JOIN = 'echo $$ > "$1/cgroup.procs"; shift; exec "$@"'


class HostPod:
    """A cgroup of the node, with what starts programs in it; its addresses are the node's."""

    link = ""

    def __init__(self, name: str, node: Namespace) -> None:
        """Make the cgroup; `Unsupported` where there is no hierarchy of version 2 in which this process may."""
        tree = cgroup_tree()
        self.cgroup = tree / own_name(f"pod-{name}")
        self.name = node.name
        self.address, self.address6 = node.address, node.address6
        self._node = node
        try:
            self.cgroup.mkdir()
        except OSError as problem:
            raise Unsupported(f"no cgroup can be made: {problem.strerror}", subject=str(tree)) from problem

    @property
    def path(self) -> str:
        """The cgroup below the root of its hierarchy, as a configuration has it."""
        return f"/{self.cgroup.name}"

    def popen(
        self,
        argv: Sequence[str],
        *,
        stdout: int | IO[Any] = subprocess.DEVNULL,
        stderr: int | IO[Any] = subprocess.DEVNULL,
    ) -> subprocess.Popen[bytes]:
        """Start a program in the cgroup."""
        joined = ["sh", "-c", _JOIN, "sh", str(self.cgroup), *argv]
        return self._node.popen(joined, stdout=stdout, stderr=stderr)

    def fork(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Call[T]:
        """Start a function in a forked child in the cgroup."""

        def work() -> T:
            (self.cgroup / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
            return function(*args, **kwargs)

        return self._node.fork(work)

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """As `fork`, and its result."""
        return self.fork(function, *args, **kwargs).result()

    def remove(self) -> None:
        """Kill what runs in it and remove it."""
        remove_cgroup(self.cgroup)


def cgroup_tree() -> Path:
    """The root of the hierarchy of version 2; `Unsupported` where there is none."""
    tree = Cgroups().hierarchy.tree
    if tree is None:
        raise Unsupported("no cgroup v2 is mounted", subject="/sys/fs/cgroup")
    return tree


def sweep_cgroups() -> None:
    """Remove cgroups of this kind whose owner no longer runs."""
    with contextlib.suppress(Unsupported):
        for folder in left_over(cgroup_tree()):
            remove_cgroup(folder)


def remove_cgroup(folder: Path) -> None:
    """Kill the processes of a cgroup and those below it, and remove all of them; no error when it is gone already."""
    for place, _, _ in os.walk(folder, topdown=False):
        _remove_one(Path(place))


def _remove_one(folder: Path) -> None:
    for _ in range(200):  # killed processes leave it when they are reaped: 2 s at most
        try:
            pids = (folder / "cgroup.procs").read_text(encoding="ascii").split()
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.01)
        else:
            return
