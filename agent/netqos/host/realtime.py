"""All threads of this process before or among the other programs of the machine.

All of them and not the fast loop's alone: it needs the interpreter's lock, and whoever holds that must not be set aside
for another program meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import Final

_TASKS: Final = Path("/proc/self/task")
PRIORITY: Final = 1
"""The lowest of the real-time ones: before ordinary programs, behind everything else that is in a hurry."""


def go_before_others() -> str:
    """Run as real-time threads (SCHED_RR), those that begin later too; why that is not possible, else empty.

    It takes CAP_SYS_NICE or a limit of real-time priority (RLIMIT_RTPRIO), and processor time for real-time threads in
    the cgroup where the kernel divides that (CONFIG_RT_GROUP_SCHED).
    """
    problem = _schedule(os.SCHED_RR, PRIORITY)
    if problem:
        go_among_others()
    return problem


def go_among_others() -> None:
    """Run as ordinary threads again; everybody may."""
    _schedule(os.SCHED_OTHER, 0)


def name_thread() -> None:
    """Give the calling thread the name in the kernel (`top -H`, 15 characters of it) that it has in the interpreter."""
    thread = threading.current_thread()
    with contextlib.suppress(OSError):
        (_TASKS / str(threading.get_native_id()) / "comm").write_text(thread.name[:15], encoding="utf-8")


def _schedule(policy: int, priority: int) -> str:
    for task in _TASKS.iterdir():
        try:
            os.sched_setscheduler(int(task.name), policy, os.sched_param(priority))
        except ProcessLookupError:
            continue
        except OSError as problem:
            return problem.strerror or str(problem)
    return ""
