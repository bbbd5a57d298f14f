"""Programs that are run to their end, and functions that run in a forked child."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Generic, NoReturn, TypeVar

from netqos.errors import NetqosError

T = TypeVar("T")


class CommandFailed(NetqosError):
    """A program or child ended badly; the message holds its command line and what it said."""


def tool_environment() -> dict[str, str]:
    """This process's environment, with the folders of the administrator's tools on PATH."""
    return {**os.environ, "PATH": os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"}


def run_tool(
    argv: Sequence[str], *, text: str | None = None, check: bool = True, timeout_s: float = 30
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; `text` is its input. `CommandFailed` unless it exits with 0 or `check` is off."""
    done = subprocess.run(
        list(argv),
        input=text or "",
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        env=tool_environment(),
    )
    if check and done.returncode != 0:
        said = done.stderr.strip() or done.stdout.strip()
        raise CommandFailed(f"exit status {done.returncode}: {said}", subject=" ".join(argv))
    return done


class Call(Generic[T]):
    """A function that runs in a forked child; its result comes back pickled."""

    def __init__(self, work: Callable[[], T]) -> None:
        """Fork; the child runs `work`, sends what came of it, and ends without its parent's cleanup."""
        self._reader, writer = os.pipe()
        self._answer = b""
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            # From 3.12 on a fork beside threads warns. The child takes none of its parent's locks.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            os.close(self._reader)
            _answer(writer, work)
        os.close(writer)

    @property
    def is_over(self) -> bool:
        """Whether the child was waited for."""
        return self._reader < 0

    def result(self, *, timeout_s: float = 120) -> T:
        """Wait for the end: the function's value, or its exception. After `TimeoutError` the child is killed."""
        if not self.is_over:
            try:
                self._read(time.monotonic() + timeout_s)
            except BaseException:
                self.kill()
                raise
            self._reap()
        if not self._answer:
            raise CommandFailed("the child ended without an answer", subject=f"process {self.pid}")
        succeeded, value = pickle.loads(self._answer)  # noqa: S301 - written by our own child
        if not succeeded:
            raise value
        answer: T = value
        return answer

    def kill(self) -> None:
        """End the child without asking for its result; no error when it is over."""
        if not self.is_over:
            os.kill(self.pid, signal.SIGKILL)
            self._reap()

    def _read(self, deadline_s: float) -> None:
        while True:
            ready, _, _ = select.select([self._reader], [], [], max(0.0, deadline_s - time.monotonic()))
            if not ready:
                raise TimeoutError(f"process {self.pid} has not answered in time")
            part = os.read(self._reader, 1 << 16)
            if not part:
                return
            self._answer += part

    def _reap(self) -> None:
        os.close(self._reader)
        self._reader = -1
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def _answer(writer: int, work: Callable[[], object]) -> NoReturn:
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the parent's to handle; it kills us
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(_outcome(work))
        sys.stdout.flush()
        sys.stderr.flush()
        status = 0
    finally:
        os._exit(status)


def _outcome(work: Callable[[], object]) -> bytes:
    try:
        return pickle.dumps((True, work()))
    except BaseException as problem:  # noqa: BLE001 - handed to the parent, which raises it
        told = "".join(traceback.format_exception(problem))
        try:
            problem.add_note(f"in the child:\n{told}")
            text = pickle.dumps((False, problem))
            pickle.loads(text)  # noqa: S301 - some exceptions can be written but not read
        except Exception:  # noqa: BLE001 - any failure to pickle has the same answer
            return pickle.dumps((False, CommandFailed(told, subject=type(problem).__name__)))
        return text
