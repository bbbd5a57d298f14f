"""A machine of its own for a node: namespaces of every kind but user, process 1, cgroups, /run, /etc and /var.

Everything ends with process 1, which the kernel kills when the thread that started it ends, however it ends. What is
left then is named after its owner and swept by the next start: one folder, one branch of each cgroup hierarchy, the
network namespaces.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from netqos.errors import NetqosError
from netqos.testing.namespaces import Namespace, own_name
from netqos.testing.processes import run_tool, tool_environment
from tests.node.branches import Branch

START_S = 15.0
SHELL_UNIT = "user.slice/shell.scope"

_INIT = Path(__file__).parent / "init.py"
_NEW = ("--pid", "--fork", "--kill-child=KILL", "--mount", "--uts", "--ipc", "--cgroup")
_ALL = ("--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--wd=/")


class Machine:
    """One machine on a folder and a network namespace; `start` it once, `stop` it in any case."""

    def __init__(self, folder: Path, network: Namespace, *, hostname: str) -> None:
        """Nothing runs yet. `folder` is the machine's disk: inside it has the same path, and its `run` is /run."""
        self.folder = folder
        self._network = network
        self._hostname = hostname
        self._branch: Branch | None = None
        self._keeper: subprocess.Popen[bytes] | None = None
        self._started: list[subprocess.Popen[bytes]] = []
        self.init = 0
        """Process 1, by its number outside."""

    def start(self) -> None:
        """Make the namespaces and wait until process 1 has mounted everything."""
        self._branch = Branch(own_name("machine"))
        self._branch.make()
        plan = {
            "folder": str(self.folder),
            "hostname": self._hostname,
            "hierarchies": [
                {"folder": one.folder, "options": one.options} for one in self._branch.hierarchies
            ],
        }
        enter = f'{self._branch.joining()} exec "$@"'
        command = ["setpriv", "--pdeathsig", "KILL", "sh", "-c", enter, "sh"]
        command += ["nsenter", f"--net={self._network.path}", "--", "unshare", *_NEW, "--"]
        command += [sys.executable, str(_INIT), json.dumps(plan)]
        with (self.folder / "init.log").open("ab") as log:
            self._keeper = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=tool_environment()
            )
        self.init = only_child(self._keeper)
        for folder in self._branch.folders(
            "init.scope"
        ):  # it has made the namespaces: out of the tree's root with it
            (folder / "cgroup.procs").write_text(str(self._keeper.pid), encoding="ascii")
        self._wait_ready()

    def command(self, argv: Sequence[str], *, unit: str = SHELL_UNIT) -> list[str]:
        """The command line that runs `argv` on the machine, in the cgroup of a unit (`system.slice/x.service`)."""
        assert self._branch is not None
        enter = f'{self._branch.joining(unit)} exec "$@"'
        tied = ["setpriv", "--pdeathsig", "KILL", "sh", "-c", enter, "sh"]
        return [*tied, *enter_command(self.init, argv)]

    def run(
        self, argv: Sequence[str], *, text: str | None = None, check: bool = True, timeout_s: float = 30
    ) -> subprocess.CompletedProcess[str]:
        """Run a program on the machine to its end; `text` is its input. `CommandFailed` unless it exits with 0."""
        return run_tool(self.command(argv), text=text, check=check, timeout_s=timeout_s)

    def popen(
        self,
        argv: Sequence[str],
        *,
        unit: str = SHELL_UNIT,
        output: int | IO[Any] = subprocess.DEVNULL,
        env: Mapping[str, str] | None = None,
    ) -> Process:
        """Start a program on the machine; it ends with it at the latest."""
        entering = subprocess.Popen(
            self.command(argv, unit=unit),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**tool_environment(), **(env or {})},
            start_new_session=True,
        )
        self._started = [one for one in self._started if one.poll() is None] + [entering]
        return Process(entering)

    def path(self, inner: str) -> Path:
        """A file of the machine, by its path there, for this process to open; without links that lead to the root."""
        return Path(f"/proc/{self.init}/root{inner.replace('/var/run/', '/run/', 1)}")

    def drop_unit(self, unit: str) -> None:
        """Remove the cgroup of a unit, as systemd does when it has ended; what is left in it is killed."""
        if self._branch is not None:
            self._branch.drop(unit)

    def outer_pid(self, pid: int) -> int:
        """A process of the machine as it is numbered here; LookupError where there is none of this number."""
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                status = (entry / "status").read_text(encoding="ascii", errors="replace")
                found = re.search(r"^NSpid:\s+(\d+)\s+(\d+)$", status, re.MULTILINE)
                if found is not None and int(found[2]) == pid and self._is_ours(entry):
                    return int(found[1])
        raise LookupError(f"no process {pid} on {self._hostname}")

    def _is_ours(self, entry: Path) -> bool:
        ours = Path(f"/proc/{self.init}/ns/pid").stat()
        return (entry / "ns/pid").stat().st_ino == ours.st_ino

    def cgroup_tree(self) -> Path:
        """The machine's tree of version 2, beside version 1 or alone, for this process to look into."""
        beside = self.path("/sys/fs/cgroup/unified")
        return beside if beside.is_dir() else beside.parent

    def cgroups(self) -> list[str]:
        """All cgroups of the machine, with their hierarchy in front."""
        assert self._branch is not None
        return sorted(
            f"{one.folder}:/{Path(place).relative_to(one.path / self._branch.name)}"
            for one in self._branch.hierarchies
            for place, _, _ in os.walk(one.path / self._branch.name)
        )

    def stop(self) -> None:
        """End every process of the machine and remove its cgroups; no error when it did not start."""
        if self._keeper is not None:
            self._keeper.kill()
            for one in (self._keeper, *self._started):
                one.wait()
            self._keeper = None
        if self._branch is not None:
            self._branch.remove()
            self._branch = None

    def _wait_ready(self) -> None:
        assert self._keeper is not None
        end_s = time.monotonic() + START_S
        while not (self.folder / "ready").exists():
            if self._keeper.poll() is not None or time.monotonic() > end_s:
                said = (self.folder / "init.log").read_text(encoding="utf-8", errors="replace")
                raise NetqosError(f"the machine did not start: {said[-2000:]}", subject=self._hostname)
            time.sleep(0.01)


def enter_command(init: int, argv: Sequence[str]) -> list[str]:
    """The command line that runs `argv` in all namespaces of a machine, by its process 1; in the caller's cgroup."""
    return ["nsenter", "--target", str(init), *_ALL, "--", *argv]


class Process:
    """A program on a machine. The process that entered for it waits for it and ends as it does."""

    def __init__(self, entering: subprocess.Popen[bytes]) -> None:
        """`entering` has been started just now."""
        self._entering = entering
        self._pid = 0

    @property
    def pid(self) -> int:
        """The program's own number, as it is seen from here."""
        self._pid = self._pid or only_child(self._entering)
        return self._pid

    def poll(self) -> int | None:
        """Its exit code, None while it runs."""
        return self._entering.poll()

    def send(self, number: int) -> None:
        """Send a signal to the program; nothing where it is over."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def stop(self, number: int = signal.SIGTERM, *, timeout_s: float = 20) -> int:
        """Send a signal and wait for the end, which is made where it does not come; its exit code."""
        self.send(number)
        try:
            return self._entering.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self.send(signal.SIGKILL)
            return self._entering.wait(timeout=5)


def only_child(parent: subprocess.Popen[bytes]) -> int:
    """The process that another has forked, once it has; `NetqosError` where it ended instead."""
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    for _ in range(500):
        with contextlib.suppress(OSError):
            found = children.read_text(encoding="ascii").split()
            if found:
                return int(found[0])
        if parent.poll() is not None:
            break
        time.sleep(0.01)
    raise NetqosError(f"ended with {parent.returncode} before it began", subject=str(parent.args))
