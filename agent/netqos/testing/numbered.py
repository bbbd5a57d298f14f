"""Numbered packets of a quiet sender in both directions between a pod and the outside: what is missing was lost.

A few megabits, less than anybody may take from a pod, so that nothing but a change on the way loses any of them.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from netqos.model.levels import Direction
from netqos.testing.namespaces import Foothold
from netqos.testing.processes import Call

PAYLOAD_BYTES = 1000
GAP_S = 0.001
_PORT = 7200
_MORE_S = 1.0
_SO_RCVBUFFORCE = 33  # include/uapi/asm-generic/socket.h


@dataclass(slots=True, kw_only=True)
class Lost:
    """Packets sent and lost, by direction, once the streams have ended."""

    sent: dict[Direction, int] = field(default_factory=dict)
    lost: dict[Direction, int] = field(default_factory=dict)


@contextmanager
def numbered_packets(pod: Foothold, wire: Foothold) -> Iterator[Lost]:
    """Packets in both directions while the block runs, and for a second more; how many are lost is known after it."""
    lost = Lost()
    ends = {Direction.TX: (pod, wire), Direction.RX: (wire, pod)}
    stop_reader, stop = os.pipe()
    takers: dict[Direction, Call[int]] = {}
    senders: dict[Direction, Call[int]] = {}
    for way, (source, sink) in ends.items():
        takers[way] = sink.fork(_take, sink.address, stop_reader)
        time.sleep(0.2)
        senders[way] = source.fork(_send, sink.address, stop_reader)
    try:
        yield lost
    finally:
        time.sleep(_MORE_S)
        os.write(stop, b"!")
    for way in Direction:
        sent, taken = senders[way].result(timeout_s=20), takers[way].result(timeout_s=20)
        lost.sent[way], lost.lost[way] = sent, sent - taken
    os.close(stop)
    os.close(stop_reader)


def _send(address: str, stop: int) -> int:
    """Numbered packets until told to stop; how many. Those that the kernel refuses are counted as sent."""
    number, due_s = 0, time.monotonic()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        while not select.select([stop], [], [], 0)[0]:
            with contextlib.suppress(OSError):
                sender.sendto(number.to_bytes(4, "big") + bytes(PAYLOAD_BYTES - 4), (address, _PORT))
            number += 1
            due_s = max(due_s + GAP_S, time.monotonic() - GAP_S)
            time.sleep(max(0.0, due_s - time.monotonic()))
    return number


def _take(address: str, stop: int) -> int:
    """Count different packets until nothing has come for half a second after the stop."""
    seen: set[bytes] = set()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taker:
        taker.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 1 << 24)
        taker.bind((address, _PORT))
        while True:
            if select.select([taker], [], [], 0.5)[0]:
                seen.add(taker.recv(2048)[:4])
            elif select.select([stop], [], [], 0)[0]:
                return len(seen)
