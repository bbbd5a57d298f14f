"""Telling the service manager how it goes: sd_notify(3), without libsystemd.

Everything here is best effort. A service manager that is away, slow or of another kind never delays or stops the
daemon: messages go out without waiting, and `False` says that one did not.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping

MOST_OF_STATUS = 500
"""Characters of a status line."""


class Notifier:
    """The way to the service manager that started this process, if one did."""

    def __init__(
        self,
        environ: Mapping[str, str] = os.environ,
        *,
        pid: int | None = None,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Find the socket and the watchdog in the environment; `pid` None: this process."""
        self._address = _address(environ.get("NOTIFY_SOCKET", ""))
        self._monotonic_ns = monotonic_ns
        self.watchdog_s = _watchdog_s(environ, os.getpid() if pid is None else pid)

    @property
    def is_supervised(self) -> bool:
        """Whether somebody listens."""
        return self._address is not None

    def ready(self, status: str = "") -> bool:
        """The start, or the reload, is done."""
        return self._send("READY=1", *_status(status))

    def reloading(self) -> bool:
        """The configuration is being read again; `ready` ends it."""
        return self._send("RELOADING=1", f"MONOTONIC_USEC={self._monotonic_ns() // 1000}")

    def stopping(self, status: str = "") -> bool:
        """The end has begun."""
        return self._send("STOPPING=1", *_status(status))

    def status(self, text: str) -> bool:
        """One line for `systemctl status`."""
        return self._send(*_status(text))

    def watchdog(self) -> bool:
        """Still alive. To be sent at least every `watchdog_s` / 2 seconds, None: nobody asks for it."""
        return self._send("WATCHDOG=1")

    def _send(self, *assignments: str) -> bool:
        if self._address is None or not assignments:
            return False
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.settimeout(0)
                sender.sendto("\n".join(assignments).encode("utf-8", "replace"), self._address)
        except OSError:
            return False
        return True


def _address(text: str) -> str | None:
    """A path, or a name in the abstract namespace, which is written with an @ (sd_notify(3)); None for others."""
    if text.startswith("@"):
        return "\0" + text[1:]
    return text if text.startswith("/") else None


def _watchdog_s(environ: Mapping[str, str], pid: int) -> float | None:
    """Seconds after which a silent daemon is killed (sd_watchdog_enabled(3)), None without a watchdog for us."""
    interval = environ.get("WATCHDOG_USEC", "")
    meant = environ.get("WATCHDOG_PID", str(pid))
    if not (interval.isascii() and interval.isdecimal()) or meant != str(pid):
        return None
    return int(interval) / 1e6 if int(interval) > 0 else None


def _status(text: str) -> tuple[str, ...]:
    line = " ".join(text.split())[:MOST_OF_STATUS]
    return (f"STATUS={line}",) if line else ()
