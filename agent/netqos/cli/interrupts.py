"""Ctrl-C while a command starts and while it ends: quiet, with exit code 130, nothing half done.

Python raises KeyboardInterrupt wherever it is, so also in the midst of an import, where a callback of the import
system may even swallow it. A command that still loads has made nothing yet: it can be left at once.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

INTERRUPTED = 130


class _Leaving:
    """The handler of a program that still loads."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        os.write(2, f"{self._name}: interrupted\n".encode())
        os._exit(INTERRUPTED)


def leave_at_once(name: str) -> None:
    """From here until `raise_as_usual`, Ctrl-C ends the process; `name` is the program's.

    A Ctrl-C that was held back over an exec (the demo does so) takes effect now. Where the signal is ignored, as it
    is for a background job of a shell, it stays so.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _Leaving(name))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def raise_as_usual() -> None:
    """The command begins its work: Ctrl-C raises KeyboardInterrupt, so that the work can be undone."""
    if isinstance(signal.getsignal(signal.SIGINT), _Leaving):
        signal.signal(signal.SIGINT, signal.default_int_handler)


def take_no_notice() -> None:
    """The command has ended: a Ctrl-C now would only disturb the interpreter's own end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
