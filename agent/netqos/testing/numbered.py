"""Numbered packets of a quiet sender in both directions between a pod and the outside: what is missing was lost.

A few megabits, less than anybody may take from a pod, so that nothing but a change on the way loses any of them. A
stream begins when its taker listens.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from netqos.model.levels import Direction
from netqos.testing.namespaces import Foothold
from netqos.testing.processes import Call

PAYLOAD_BYTES = 1000
GAP_S = 0.001
_PORT = 7200
_MORE_S = 1.0
_LISTENS_S = 20.0
_SO_RCVBUFFORCE = 33  # include/uapi/asm-generic/socket.h

Numbers = tuple[tuple[int, int], ...]
"""Of packets: the first and the last of each run without a gap."""


@dataclass(slots=True, kw_only=True)
class Lost:
    """Packets sent and lost, by direction, once the streams have ended.

    `missing` says which were lost, and `refused` which the sender's own kernel did not take.
    """

    sent: dict[Direction, int] = field(default_factory=dict)
    lost: dict[Direction, int] = field(default_factory=dict)
    missing: dict[Direction, Numbers] = field(default_factory=dict)
    refused: dict[Direction, Numbers] = field(default_factory=dict)


@contextmanager
def numbered_packets(pod: Foothold, wire: Foothold) -> Iterator[Lost]:
    """Packets in both directions while the block runs, and for a second more; how many are lost is known after it."""
    lost = Lost()
    ends = {Direction.TX: (pod, wire), Direction.RX: (wire, pod)}
    stop_reader, stop = os.pipe()
    takers: dict[Direction, Call[Numbers]] = {}
    senders: dict[Direction, Call[tuple[int, Numbers]]] = {}
    for way, (source, sink) in ends.items():
        takers[way] = _listening(sink, stop_reader)
        senders[way] = source.fork(_send, sink.address, stop_reader)
    try:
        yield lost
    finally:
        time.sleep(_MORE_S)
        os.write(stop, b"!")
    for way in Direction:
        sent, refused = senders[way].result(timeout_s=20)
        missing = missing_of(takers[way].result(timeout_s=20), sent)
        lost.sent[way], lost.missing[way], lost.refused[way] = sent, missing, refused
        lost.lost[way] = sum(last - first + 1 for first, last in missing)
    os.close(stop)
    os.close(stop_reader)


def _listening(sink: Foothold, stop: int) -> Call[Numbers]:
    """A taker, once it listens."""
    ready, listens = os.pipe()
    taker = sink.fork(_take, sink.address, stop, listens)
    os.close(listens)
    select.select([ready], [], [], _LISTENS_S)
    os.close(ready)
    return taker


def _send(address: str, stop: int) -> tuple[int, Numbers]:
    """Numbered packets until told to stop: how many, and those of them that the kernel refused."""
    number, due_s = 0, time.monotonic()
    refused: list[int] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        while not select.select([stop], [], [], 0)[0]:
            try:
                sender.sendto(number.to_bytes(4, "big") + bytes(PAYLOAD_BYTES - 4), (address, _PORT))
            except OSError:
                refused.append(number)
            number += 1
            due_s = max(due_s + GAP_S, time.monotonic() - GAP_S)
            time.sleep(max(0.0, due_s - time.monotonic()))
    return number, runs_of(refused)


def _take(address: str, stop: int, listens: int) -> Numbers:
    """Those that come until there was nothing for half a second after the stop."""
    seen: set[int] = set()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taker:
        taker.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 1 << 24)
        taker.bind((address, _PORT))
        os.close(listens)
        while True:
            if select.select([taker], [], [], 0.5)[0]:
                seen.add(int.from_bytes(taker.recv(2048)[:4], "big"))
            elif select.select([stop], [], [], 0)[0]:
                return runs_of(sorted(seen))


def runs_of(numbers: Iterable[int]) -> Numbers:
    """Ascending numbers as runs."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return tuple(found)


def missing_of(taken: Numbers, sent: int) -> Numbers:
    """What of 0 to `sent` - 1 is in no run."""
    edges = [-1, *(edge for run in taken for edge in run), sent]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return tuple((before + 1, after - 1) for before, after in pairs if after - before > 1)
