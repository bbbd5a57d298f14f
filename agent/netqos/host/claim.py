"""One daemon to a network namespace, whatever its paths: a claim that ends with the process that made it.

The claim is a listening Unix socket with an abstract name. Abstract names belong to the network namespace (unix(7)),
so that daemons of different namespaces do not meet, and they vanish with their process, also after `kill -9`.
"""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress

from netqos.errors import Fatal
from netqos.model.health import Finding, warning

NAME = "\0netqosd"


QUEUE = 64


class Claim:
    """Held until `close`. `findings` tells when somebody without the right to shape sits on the name.

    Whoever asks leaves a connection behind, so a holder that stays calls `answer` when `fileno` is readable.
    """

    def __init__(self, name: str = "") -> None:
        """`Fatal` when another daemon of this user or of root holds the claim. `name`: another one than `NAME`."""
        name = name or NAME
        self.findings: tuple[Finding, ...] = ()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            self._socket.bind(name)
            self._socket.listen(QUEUE)
        except OSError:
            self._socket.close()
            self.findings = (_held_by(_holder(name)),)

    def fileno(self) -> int:
        """Readable when somebody asked."""
        return self._socket.fileno()

    def answer(self) -> None:
        """Let go of those who asked, so that the queue never fills."""
        with suppress(OSError):
            while True:
                self._socket.accept()[0].close()

    def close(self) -> None:
        """Let the next one have it."""
        self._socket.close()


def _holder(name: str) -> tuple[int, int] | None:
    """(pid, uid) of the process that listens on the name, None when nobody does who answers."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0)
        try:
            probe.connect(name)
            pid, uid, _ = struct.unpack("3i", probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        except OSError:
            return (
                None  # gone, not listening, or a full queue: a daemon answers, so that its own is never full
            )
    return pid, uid


def _held_by(holder: tuple[int, int] | None) -> Finding:
    if holder is not None and holder[1] in {0, os.geteuid()}:
        raise Fatal(
            f"another netqosd shapes this network namespace (process {holder[0]})",
            hint="stop it first; `netqosctl status` asks it, if its socket is the default one",
        )
    who = (
        f"user {holder[1]} (process {holder[0]})" if holder is not None else "a process that does not answer"
    )
    return warning(
        "claim-taken",
        "netqosd",
        f"{who} holds the name by which a second daemon is recognised; going on without it",
        hint="find out why: nobody but netqosd needs the abstract socket @netqosd",
    )
