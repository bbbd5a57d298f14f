"""The process that keeps the node of `./dev node`: it holds a lock from before its start until its end.

What the state file tells counts only while the lock is held. So whatever ends a keeper, and at whatever moment, nothing
has to be mended before the next one; and of two that are started at once one is refused.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

from tests.apiserver.gobuild import ROOT

STATE = Path(os.environ.get("NETQOS_NODE_STATE") or ROOT / ".dev" / "node.json")
LOG = STATE.with_suffix(".log")
LOCK = STATE.with_suffix(".lock")
END_S = 60.0

_COMMAND = ("-m", "tests.node", "keep")


def launch() -> subprocess.Popen[bytes] | None:
    """Start a keeper; None where there is one already."""
    with LOCK.open("a+", encoding="ascii") as lock:
        if not _take(lock, fcntl.LOCK_EX):
            return None
        lock.truncate(0)
        STATE.unlink(missing_ok=True)
        with LOG.open("wb") as log:
            return subprocess.Popen(
                [sys.executable, *_COMMAND],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=[
                    lock.fileno()
                ],  # the lock is the keeper's as long as it lives, and no child's of it
            )


def enter() -> None:
    """Say as the keeper which process it is: who started it may be gone, and somebody has to end it."""
    with LOCK.open("r+", encoding="ascii") as lock:
        lock.truncate(0)
        lock.write(str(os.getpid()))


def tell(state: dict[str, str]) -> None:
    """Say as the keeper that the node is ready, and where what is."""
    fresh = STATE.with_suffix(".new")
    fresh.write_text(json.dumps(state), encoding="utf-8")
    fresh.rename(STATE)


def told() -> dict[str, str] | None:
    """What the keeper has told; None where there is none, or its node is not ready yet."""
    if is_there():
        with contextlib.suppress(OSError, ValueError):
            state: dict[str, str] = json.loads(STATE.read_text(encoding="utf-8"))
            return state
    return None


def is_there() -> bool:
    """Whether there is a keeper, at whatever stage."""
    try:
        with LOCK.open("r", encoding="ascii") as lock:
            return not _take(lock, fcntl.LOCK_SH)
    except FileNotFoundError:
        return False


def end() -> bool:
    """End the keeper, at whatever stage it is, by force where it takes more than a minute; whether there was one."""
    if not is_there():
        return False
    asked, end_s = False, time.monotonic() + END_S
    while is_there():
        pid = _pid()
        if pid is not None and (not asked or time.monotonic() > end_s):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL if asked else signal.SIGTERM)
            asked = True
        time.sleep(0.05)
    STATE.unlink(missing_ok=True)
    return True


def _pid() -> int | None:
    """The keeper's; None until it has begun."""
    with contextlib.suppress(OSError, ValueError):
        pid = int(LOCK.read_text(encoding="ascii"))
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if words[1:4] == [one.encode() for one in _COMMAND]:
            return pid
    return None


def _take(lock: IO[str], how: int) -> bool:
    try:
        fcntl.flock(lock, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
