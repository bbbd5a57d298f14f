"""Network namespaces that belong to one process: made, entered, emptied and removed.

A namespace is a file in /run/netns, so that `ip`, `nsenter` and pyroute2 find it by name. The name carries the
identity of the process that made it; `sweep` removes those whose owner is gone, whatever ended it.

Entering is always by setns or `nsenter --net`. `ip netns exec` is not used: it mounts a new /sys, which hides the
cgroups and BPF objects of the machine. The price: /sys/class/net keeps showing the devices of the namespace in which
/sys was mounted. A program that reads it is started with `own_sysfs=True`, which gives it a mount namespace with a
fresh /sys that still has the machine's cgroups.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar

from netqos.testing.processes import Call, run_tool, tool_environment
from netqos.testing.usernamespace import must_end_with_us

P = ParamSpec("P")
T = TypeVar("T")

_FOLDER = Path("/run/netns")
_NAME = re.compile(r"nq-(?P<pid_space>\d+)-(?P<pid>\d+)-(?P<start>\d+)-\d+-.+")
_CLONE_NEWNET = 0x40000000  # include/uapi/linux/sched.h
_PR_SET_PDEATHSIG = 1  # include/uapi/linux/prctl.h
_numbers = itertools.count()

# Mounted aside and moved over /sys last, so that there is no moment without /sys. Where the kernel refuses (some
# containers mask parts of /sys), the program runs with the old view.
_OWN_SYSFS = """
aside=$1; shift
if mount -t sysfs netqos "$aside"; then
    for part in fs/cgroup fs/bpf; do mount --rbind "/sys/$part" "$aside/$part" || :; done
    mount --move "$aside" /sys
fi 2>/dev/null
exec "$@"
"""


class Foothold:
    """A network namespace at a path, whoever made it, and the processes started in it from here.

    `address` and `address6` are what others reach it by, empty where it has none. `link` is the node's end of a
    pod's veth pair, empty for others. What is started here is `tied`, where no sweep would find it: the kernel kills
    it when the thread that started it ends (prctl(2), PR_SET_PDEATHSIG).
    """

    def __init__(
        self, path: Path, *, address: str = "", address6: str = "", link: str = "", tied: bool = True
    ) -> None:
        """Nothing is started yet; `path` need not be in /run/netns."""
        self.path = path
        self._tied = tied
        self.address = address
        self.address6 = address6
        self.link = link
        self._started: list[subprocess.Popen[bytes]] = []
        self._calls: list[Call[Any]] = []
        self._aside: Path | None = None

    @property
    def name(self) -> str:
        """The last part of its path; `ip -n` knows those in /run/netns by it."""
        return self.path.name

    def command(self, argv: Sequence[str], *, own_sysfs: bool = False) -> list[str]:
        """The command line that runs `argv` inside; the process keeps its pid through all of it."""
        guard = ["setpriv", "--pdeathsig", "KILL"] if self._tied else []
        inside = [*guard, "nsenter", f"--net={self.path}", "--"]
        if own_sysfs:
            self._aside = self._aside or make_folder("sys")
            inside += ["unshare", "--mount", "--propagation", "private", "--"]
            inside += ["sh", "-c", _OWN_SYSFS, "sh", str(self._aside)]
        return [*inside, *argv]

    def run(
        self, argv: Sequence[str], *, text: str | None = None, check: bool = True, timeout_s: float = 30
    ) -> subprocess.CompletedProcess[str]:
        """Run a program inside to its end; `text` is its input. `CommandFailed` unless it exits with 0."""
        return run_tool(self.command(argv), text=text, check=check, timeout_s=timeout_s)

    def popen(
        self,
        argv: Sequence[str],
        *,
        stdout: int | IO[Any] = subprocess.DEVNULL,
        stderr: int | IO[Any] = subprocess.DEVNULL,
        env: Mapping[str, str] | None = None,
        own_sysfs: bool = False,
    ) -> subprocess.Popen[bytes]:
        """Start a program inside, in a session of its own; it is killed when the namespace goes."""
        process = subprocess.Popen(
            self.command(argv, own_sysfs=own_sysfs),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env={**tool_environment(), **(env or {})},
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function in a forked child inside; its (pickled) result, or its exception."""
        return self.fork(function, *args, **kwargs).result()

    def fork(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Call[T]:
        """Start a function in a forked child inside; its result is fetched later."""

        def work() -> T:
            if self._tied:
                _libc().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            with self.path.open("rb") as there:
                _enter(there.fileno())
            return function(*args, **kwargs)

        call = Call(work)
        self._calls = [other for other in self._calls if not other.is_over] + [call]
        return call

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """The calling thread, and no other, is inside meanwhile; sockets made now stay here for ever."""
        with Path("/proc/thread-self/ns/net").open("rb") as home, self.path.open("rb") as there:
            _enter(there.fileno())
            try:
                yield
            finally:
                _enter(home.fileno())

    def set_sysctls(self, values: Mapping[str, int | str]) -> None:
        """Write kernel parameters of this namespace, `net/ipv4/ip_forward` for instance."""
        self.call(_write_sysctls, values)

    def pids(self) -> tuple[int, ...]:
        """All processes inside, whoever started them."""
        return _pids_inside(self.path)

    def leave(self) -> None:
        """Kill what was started here, which may not have entered yet."""
        for call in self._calls:
            call.kill()
        for process in self._started:
            process.kill()
            process.wait(timeout=5)
        if self._aside:
            self._aside.rmdir()
            self._aside = None


class Namespace(Foothold):
    """One that is made here, with a name of its own in /run/netns, by which `sweep` finds it."""

    def __init__(
        self, role: str, *, address: str = "", address6: str = "", link: str = "", tied: bool = False
    ) -> None:
        """Make it, with its loopback up. `role` is a word for people: `wire`, `node`, `pod-web`."""
        super().__init__(
            _FOLDER / own_name(role),
            address=address,
            address6=address6,
            link=link,
            tied=tied or must_end_with_us(),
        )
        try:
            run_tool(["ip", "netns", "add", self.name])
            run_tool(["ip", "-n", self.name, "link", "set", "lo", "up"])
        except BaseException:  # an interruption too: nobody has got hold of it yet
            _remove(self.path)
            raise

    def remove(self) -> None:
        """Kill what runs inside and remove the namespace, its devices with it; no error when it is gone already."""
        try:
            self.leave()
        finally:
            _remove(self.path)


def make_folder(role: str) -> Path:
    """A private folder in the place for temporary files that `sweep` removes when its owner is gone."""
    return Path(tempfile.mkdtemp(prefix=own_name(role) + "-"))


@contextlib.contextmanager
def scratch_folder(role: str) -> Iterator[Path]:
    """The same for as long as the block runs."""
    folder = make_folder(role)
    try:
        yield folder
    finally:
        _remove_folder(folder)


def sweep() -> tuple[str, ...]:
    """Remove namespaces and folders of this kind whose owner no longer runs; the namespaces' names."""
    removed = tuple(path.name for path in left_over(_FOLDER))
    for name in removed:
        _remove(_FOLDER / name)
    sweep_folders()
    return removed


def sweep_folders() -> None:
    """The folders alone, and those of this user: what anybody may do."""
    for folder in left_over(Path(tempfile.gettempdir())):
        with contextlib.suppress(FileNotFoundError):  # another sweep was there first
            if folder.lstat().st_uid == os.geteuid():
                _remove_folder(folder)


def _remove_folder(folder: Path) -> None:
    for _ in range(20):  # a process that was killed may write there until it has ended: 1 s at most
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break
        time.sleep(0.05)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _enter(descriptor: int) -> None:
    if _libc().setns(descriptor, _CLONE_NEWNET) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"setns: {os.strerror(code)}")


def _write_sysctls(values: Mapping[str, int | str]) -> None:
    for name, value in values.items():
        Path("/proc/sys", name).write_text(str(value), encoding="ascii")


def _pid_space() -> int:
    return Path("/proc/self/ns/pid").stat().st_ino


def _start_time(pid: int) -> int | None:
    """Field 22 of /proc/PID/stat, in clock ticks since boot: with the pid it names a process for ever (proc(5))."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[19])


def own_name(role: str) -> str:
    """A name that no other process uses, by which `sweep` knows whether its owner lives."""
    return f"nq-{_pid_space()}-{os.getpid()}-{_start_time(os.getpid())}-{next(_numbers)}-{role}"


def left_over(folder: Path) -> list[Path]:
    """What of a folder carries such a name whose owner is gone."""
    found = folder.glob("nq-*") if folder.is_dir() else ()
    return sorted(path for path in found if _is_left_over(path.name))


def _is_left_over(name: str) -> bool:
    """Whether its owner is gone. Owners in another pid namespace cannot be seen from here: theirs stay."""
    found = _NAME.fullmatch(name)
    if found is None or int(found["pid_space"]) != _pid_space():
        return False
    return _start_time(int(found["pid"])) != int(found["start"])


def _pids_inside(path: Path) -> tuple[int, ...]:
    try:
        place = path.stat()
    except OSError:
        return ()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                other = (entry / "ns/net").stat()
                if (other.st_dev, other.st_ino) == (place.st_dev, place.st_ino):
                    found.append(int(entry.name))
    return tuple(sorted(found))


def _remove(path: Path) -> None:
    for _ in range(200):  # a process may fork while we look: 2 s at most
        pids = [pid for pid in _pids_inside(path) if pid != os.getpid()]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not pids:
            break
        time.sleep(0.01)
    run_tool(["ip", "netns", "del", path.name], check=False)
