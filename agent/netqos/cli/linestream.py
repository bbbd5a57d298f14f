"""A stream of JSON lines from the status socket, read without ever waiting longer than one wants to.

HTTP/1.0, so that the body comes as it is until the daemon closes, and a time-out loses nothing of it.
"""

from __future__ import annotations

import socket
import time

from netqos.cli.client import ANSWER_S, StatusClient, Unreachable

PIECE = 1 << 16
LONGEST_LINE = 8 << 20
LONGEST_HEAD = 1 << 16


class LineStream:
    """Lines of one answer as they come."""

    def __init__(self, client: StatusClient, target: str) -> None:
        """Ask for `target`; every refusal is the `Problem` that a single answer would be."""
        self._client = client
        self._rest = b""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._open(target)
        except BaseException:
            self._socket.close()
            raise

    def read(self, until_s: float) -> list[bytes]:
        """The whole lines that are there, each with its line break; none when nothing came until then (monotonic).

        `Unreachable` when the daemon has ended the stream.
        """
        while b"\n" not in self._rest:
            if not self._receive(until_s):
                return []
        lines, separator, self._rest = self._rest.rpartition(b"\n")
        return (lines + separator).splitlines(keepends=True)

    def close(self) -> None:
        """End the stream."""
        self._socket.close()

    def _open(self, target: str) -> None:
        self._socket.settimeout(ANSWER_S)
        try:
            self._socket.connect(self._client.path)
            self._socket.sendall(f"GET {target} HTTP/1.0\r\nHost: netqos\r\n\r\n".encode())
        except OSError as problem:
            raise self._client.unreachable(problem) from None
        until_s = time.monotonic() + ANSWER_S
        while b"\r\n\r\n" not in self._rest:
            if not self._receive(until_s):
                raise self._client.silent(ANSWER_S)
            if len(self._rest) > LONGEST_HEAD:
                raise self._client.garbage()
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        status = head.split(b" ", 2)[1:2]
        if not head.startswith(b"HTTP/1.") or not status or not status[0].isdigit():
            raise self._client.garbage()
        if status[0] != b"200":
            self._refused(int(status[0]), until_s)

    def _refused(self, status: int, until_s: float) -> None:
        try:
            while self._receive(until_s) and len(self._rest) < LONGEST_LINE:
                pass
        except Unreachable:
            pass
        self._client.check(status, self._rest)
        raise self._client.garbage()

    def _receive(self, until_s: float) -> bool:
        """Take what comes next; False when nothing did until then."""
        self._socket.settimeout(max(0.001, until_s - time.monotonic()))
        try:
            piece = self._socket.recv(PIECE)
        except TimeoutError:
            return False
        except OSError:
            piece = b""
        if not piece:
            hint = "see whether it runs: systemctl status netqosd"
            raise Unreachable("netqosd went away while it was answering", hint=hint)
        self._rest += piece
        if len(self._rest) > LONGEST_LINE + PIECE:
            raise self._client.garbage()
        return True
