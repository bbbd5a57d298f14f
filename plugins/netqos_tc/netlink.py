"""The sockets to the kernel: requests in, answers and errors out. Nothing is decided here.

A channel is bound to the network namespace in which it was made, is used by one thread at a time, and stays open for
the life of its owner. Every answer is read before a call returns. Dumps that the kernel marks as interrupted, and
requests that it calls busy, are repeated a bounded number of times.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from netqos.errors import NetqosError, Retryable, Unsupported
from netqos_tc import netmsg
from netqos_tc.netmsg import Message, Request, messages

_ROUTE: Final = 0
_NETFILTER: Final = 12
_SOL_NETLINK: Final = 270
_CAP_ACK: Final = 10
_EXT_ACK: Final = 11
_RECEIVE_BUFFER: Final = 4 * 1024 * 1024
_DATAGRAM: Final = 64 * 1024  # the kernel builds dumps in pieces of at most 32 KiB
_ATTEMPTS: Final = 8
_BATCH: Final = 64
_TIMEOUT_S: Final = 10.0
_BUSY: Final = frozenset({errno.EBUSY, errno.EAGAIN, errno.EINTR})


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Why the kernel refused a request: the errno and its own words, which may be empty."""

    code: int
    text: str = ""

    @property
    def name(self) -> str:
        """`EINVAL`, or the number where it has no name."""
        return errno.errorcode.get(self.code, str(self.code))

    @property
    def message(self) -> str:
        """For people."""
        words = os.strerror(self.code)
        return f"{words}: {self.text}" if self.text else words


class RequestRefused(NetqosError):
    """The kernel refused a request whose answer was needed."""

    def __init__(self, refused: Refused, what: str) -> None:
        """`what` is what was asked for."""
        super().__init__(f"{what}: {refused.message}")
        self.refused = refused


class Channel:
    """One netlink socket; the kernel tells others by its `port` who changed something."""

    def __init__(self, protocol: int) -> None:
        """Open it in the namespace of the calling thread; `Unsupported` where the kernel has no such protocol."""
        try:
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
        except OSError as problem:
            raise Unsupported(
                f"netlink protocol {protocol} cannot be opened: {problem.strerror}",
                hint="the kernel needs CONFIG_NETFILTER_NETLINK" if protocol == _NETFILTER else "",
            ) from problem
        self._socket.setsockopt(_SOL_NETLINK, _EXT_ACK, 1)
        self._socket.setsockopt(_SOL_NETLINK, _CAP_ACK, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        self._socket.settimeout(_TIMEOUT_S)
        self._socket.bind((0, 0))
        self.port: Final[int] = self._socket.getsockname()[0]
        self._sequence = 0
        self.writes = 0

    @classmethod
    def route(cls) -> Channel:
        """To the devices and their traffic control."""
        return cls(_ROUTE)

    @classmethod
    def netfilter(cls) -> Channel:
        """To nf_tables."""
        return cls(_NETFILTER)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def dump(self, request: Request) -> list[Message]:
        """All objects that a dump request asks for; `RequestRefused`, or `Retryable` when it never comes whole."""
        for _ in range(_ATTEMPTS):
            answers = self._dump_once(request)
            if answers is not None:
                return answers
        raise Retryable(f"a netlink dump was interrupted {_ATTEMPTS} times in a row")

    def get(self, request: Request) -> Message:
        """The one object that a request asks for; `RequestRefused` when it is not there."""
        answer = self.find(request)
        if answer is None:
            raise RequestRefused(Refused(code=errno.ENOENT), f"netlink request {request.type}")
        return answer

    def find(self, request: Request) -> Message | None:
        """As `get`; None where the kernel agrees but shows nothing (it hides a device's built-in qdisc)."""
        sequence = self._send([request], netmsg.ACK)
        answer: Message | None = None
        while True:
            for message in self._receive():
                if message.sequence != sequence:
                    continue
                self._raise_if_refused(message, request)
                if message.type == netmsg.ERROR:
                    return answer
                answer = message

    def write(self, requests: Sequence[Request], *, batch: int = _BATCH) -> list[Refused | None]:
        """Carry out requests in order, and go on after one that is refused; None for each that succeeded.

        The kernel carries out a batch within one call, so that a process killed meanwhile leaves all of it or none.
        """
        results: list[Refused | None] = []
        for start in range(0, len(requests), batch):
            results += self._write_batch(requests[start : start + batch])
        return results

    def transact(self, requests: Sequence[Request], *, begin: Request, end: Request) -> list[Refused | None]:
        """Carry out requests as one transaction; where one is refused, none has happened."""
        last = self._send([begin, *requests, end], netmsg.ACK)
        first = last - len(requests)
        results: dict[int, Refused | None] = {}
        while len(results) < len(requests):
            for message in self._receive():
                if message.type != netmsg.ERROR or not first - 1 <= message.sequence <= last:
                    continue
                code, text = netmsg.error_of(message)
                refused = Refused(code=code, text=text) if code else None
                if first <= message.sequence < last:
                    results[message.sequence] = refused
                elif refused is not None:
                    return [refused] * len(requests)
        if not any(results.values()):
            self.writes += len(requests)
        return [results[sequence] for sequence in range(first, last)]

    def _write_batch(self, requests: Sequence[Request]) -> list[Refused | None]:
        results = self._write_once(requests)
        for number, refused in enumerate(results):
            if refused is not None and refused.code in _BUSY:
                results[number] = self._write_again(requests[number])
        return results

    def _write_again(self, request: Request) -> Refused | None:
        refused: Refused | None = None
        for _ in range(_ATTEMPTS):
            (refused,) = self._write_once([request])
            if refused is None or refused.code not in _BUSY:
                break
        return refused

    def _write_once(self, requests: Sequence[Request]) -> list[Refused | None]:
        last = self._send(requests, netmsg.ACK)
        first = last - len(requests) + 1
        results: dict[int, Refused | None] = {}
        while len(results) < len(requests):
            for message in self._receive():
                if message.type == netmsg.ERROR and first <= message.sequence <= last:
                    code, text = netmsg.error_of(message)
                    results[message.sequence] = Refused(code=code, text=text) if code else None
        self.writes += sum(refused is None for refused in results.values())
        return [results[sequence] for sequence in range(first, last + 1)]

    def _dump_once(self, request: Request) -> list[Message] | None:
        """None when the kernel says that the objects changed meanwhile."""
        sequence = self._send([request], 0)
        answers: list[Message] = []
        is_whole = True
        while True:
            for message in self._receive():
                if message.sequence != sequence:
                    continue
                is_whole = is_whole and not message.flags & netmsg.DUMP_INTERRUPTED
                if message.type in {netmsg.ERROR, netmsg.DONE}:
                    if self._is_busy(message):
                        return None
                    self._raise_if_refused(message, request)
                    return answers if is_whole else None
                answers.append(message)

    def _send(self, requests: Sequence[Request], flags: int) -> int:
        """Send in one datagram; the sequence number of the last request."""
        if self._sequence > 2**31:
            self._sequence = 0
        frames = []
        for request in requests:
            self._sequence += 1
            frames.append(request.frame(self._sequence, flags=flags))
        self._socket.send(b"".join(frames))
        return self._sequence

    def _receive(self) -> list[Message]:
        try:
            return list(messages(self._socket.recv(_DATAGRAM)))
        except TimeoutError as problem:
            raise Retryable(f"the kernel gave no netlink answer within {_TIMEOUT_S:g} s") from problem
        except OSError as problem:  # ENOBUFS: some answers are lost, so everything is asked for again
            raise Retryable(f"netlink: {problem.strerror}") from problem

    @staticmethod
    def _is_busy(message: Message) -> bool:
        return len(message.body) >= 4 and netmsg.error_of(message)[0] in _BUSY

    @staticmethod
    def _raise_if_refused(message: Message, request: Request) -> None:
        if message.type not in {netmsg.ERROR, netmsg.DONE} or len(message.body) < 4:
            return
        code, text = netmsg.error_of(message)
        if code:
            raise RequestRefused(Refused(code=code, text=text), f"netlink request {request.type}")
