"""Questions and answers over the paths of a rig, in exact numbers: so many datagrams of so many bytes each way.

One question waits for its answer before the next, so nothing is dropped however small the bandwidth is, and what
every device and class on the way must have counted is known to the byte.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from netqos.model.levels import Direction
from netqos.testing.paths import Path, Place, entered
from netqos.testing.processes import Call

_UDP = 8
_ETHERNET = 14
_SIZE = struct.Struct("=I")
_PIECE = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """So many questions and answers on one path, each with so many bytes of payload (4 at least)."""

    path: Path
    count: int
    question: int
    answer: int

    def pod_bytes(self, direction: Direction) -> int:
        """What the pod's device carries in a direction, in Ethernet bytes."""
        is_question = self.path.asked_by_pod == (direction is Direction.TX)
        payload = self.question if is_question else self.answer
        return self.count * (payload + _UDP + (20 if self.path.family == 4 else 40) + _ETHERNET)

    def uplink_bytes(self, direction: Direction) -> int:
        """What the uplink carries of it."""
        return self.pod_bytes(direction) + self.count * self.path.overhead


def talk(talks: Sequence[Talk], *, patience_s: float = 3.0) -> None:
    """Carry out all talks, those of each asker one after the other; `TimeoutError` names the path without an answer."""
    with _answering([one.path for one in talks]):
        askers: dict[int, tuple[Place, list[Talk]]] = {}
        for one in talks:
            askers.setdefault(id(one.path.asker), (one.path.asker, []))[1].append(one)
        calls = [place.fork(_ask_all, own, patience_s) for place, own in askers.values()]
        for call in calls:
            call.result(timeout_s=30)


def transfer(path: Path, size: int) -> float:
    """Send bytes over one TCP connection from the asker to the answerer; the seconds until all have arrived."""
    with entered(path.answerer):
        server = socket.create_server(
            (path.listens_at or path.target, path.port), family=_family(path), backlog=1
        )
    taking = path.answerer.fork(_take_all, server)
    server.close()
    try:
        return path.asker.call(_send_all, (path.target, path.port), size)
    finally:
        taking.kill()


@contextlib.contextmanager
def _answering(paths: Sequence[Path]) -> Iterator[None]:
    """Answerers at the far ends; each socket is bound before anybody asks."""
    places: dict[int, tuple[Place, dict[tuple[str, int], socket.socket]]] = {}
    calls: list[Call[None]] = []
    try:
        for path in paths:
            _place, bound = places.setdefault(id(path.answerer), (path.answerer, {}))
            where = (path.listens_at or path.target, path.port)
            if where not in bound:
                with entered(path.answerer):
                    bound[where] = socket.socket(_family(path), socket.SOCK_DGRAM)
                bound[where].bind(where)
        calls = [place.fork(_answer, list(bound.values())) for place, bound in places.values()]
        yield
    finally:
        for call in calls:
            call.kill()
        for _place, bound in places.values():
            for one in bound.values():
                one.close()


def _family(path: Path) -> socket.AddressFamily:
    return socket.AF_INET6 if path.family == 6 else socket.AF_INET


def _answer(sockets: Sequence[socket.socket]) -> None:
    """Each question begins with the size of its answer."""
    while True:
        for one in select.select(sockets, [], [])[0]:
            question, asker = one.recvfrom(_PIECE)
            (size,) = _SIZE.unpack_from(question)
            one.sendto(bytes(size), asker)


def _ask_all(talks: Sequence[Talk], patience_s: float) -> None:
    for one in talks:
        with socket.socket(_family(one.path), socket.SOCK_DGRAM) as asker:
            asker.settimeout(patience_s)
            if one.path.source:
                asker.bind((one.path.source, 0))
            asker.connect((one.path.target, one.path.port))
            question = _SIZE.pack(one.answer).ljust(one.question, b"\0")
            try:
                for _ in range(one.count):
                    asker.send(question)
                    asker.recv(_PIECE)
            except OSError as problem:
                raise TimeoutError(f"no answer {one.path.name}: {problem}") from problem


def _take_all(server: socket.socket) -> None:
    connection, _peer = server.accept()
    with connection:
        while connection.recv(_PIECE):
            pass
        connection.sendall(b"all")


def _send_all(where: tuple[str, int], size: int) -> float:
    began_s = time.monotonic()
    with socket.create_connection(where, timeout=30) as connection:
        connection.sendall(bytes(size))
        connection.shutdown(socket.SHUT_WR)
        if connection.recv(10) != b"all":
            raise TimeoutError(f"{where[0]} has not taken {size} bytes")
    return time.monotonic() - began_s
