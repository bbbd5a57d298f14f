"""What wants to be sent, as fluids: sources that react to loss (TCP), that do not (UDP), and that never lack data.

TCP is additive increase with a cubic term and 0.7 on loss, at most once a round trip, after a slow start. Several
connections of one source are one window: what is lost hits as many of them as there are packets lost. Bytes, seconds.
"""

from __future__ import annotations

import enum
from collections import deque
from dataclasses import dataclass
from typing import Protocol, assert_never

SEGMENT = 1514.0
"""A full frame at an MTU of 1500, as HTB counts it."""

FIRST_WINDOW = 10 * SEGMENT
MOST_WINDOW = 6 * 1024 * 1024.0
"""The kernel's default for receive buffers (`tcp_rmem`)."""

LOSS_FACTOR = 0.7
CUBIC = 0.4
FRIENDLY = 3 * (1 - LOSS_FACTOR) / (1 + LOSS_FACTOR)
"""RFC 9438: the cubic constant, and the segments a round trip by which Reno would grow for the same loss."""

SOCKET_S = 0.2
"""What an application with a steady rate makes up for later: as much as a socket buffer holds."""


LONGEST_QUEUE_S = 1.0
"""A queue that hardly moves is not waited for longer than a retransmission timer."""


class Kind(enum.Enum):
    """How a source reacts to the network."""

    GREEDY = "greedy"
    TCP = "tcp"
    UDP = "udp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """One source. GREEDY always has packets waiting; TCP and UDP have `rate_bps` to send, TCP as much as it gets
    where that is None. From `start_s` to `end_s` (None: for ever), of each `every_s` only the first `on_s`.
    """

    kind: Kind = Kind.GREEDY
    rate_bps: int | None = None
    flows: int = 1
    rtt_s: float = 0.001
    start_s: float = 0.0
    end_s: float | None = None
    every_s: float | None = None
    on_s: float = 0.0

    def is_on(self, now_s: float) -> bool:
        """Whether it sends at a moment."""
        if now_s < self.start_s or (self.end_s is not None and now_s >= self.end_s):
            return False
        return self.every_s is None or (now_s - self.start_s) % self.every_s < self.on_s


class Source(Protocol):
    """A running demand."""

    @property
    def is_elastic(self) -> bool:
        """Whether what does not fit was never sent, so that nothing of it is lost."""
        ...

    def offer(self, now_s: float, step_s: float, *, queued: float, room: float) -> float:
        """The bytes that it adds in a step to the `queued` ones of its own; about `room` would fit."""
        ...

    def told(self, now_s: float, step_s: float, *, sent: float, lost: float) -> None:
        """What became of its bytes in the step."""
        ...


def source(demand: Demand) -> Source:
    """The source of a demand, which has not sent yet."""
    match demand.kind:
        case Kind.GREEDY:
            return _Greedy(demand)
        case Kind.TCP:
            return _Tcp(demand)
        case Kind.UDP:
            return _Udp(demand)
        case _:
            assert_never(demand.kind)


class _Greedy:
    """Fills what its queue has room for: the ideal TCP."""

    is_elastic = True

    def __init__(self, demand: Demand) -> None:
        self._demand = demand

    def offer(self, now_s: float, step_s: float, *, queued: float, room: float) -> float:
        del step_s, queued
        return room if self._demand.is_on(now_s) else 0.0

    def told(self, now_s: float, step_s: float, *, sent: float, lost: float) -> None:
        """It never minds."""


class _Udp:
    """Sends at its rate, whatever is lost."""

    is_elastic = False

    def __init__(self, demand: Demand) -> None:
        self._demand = demand

    def offer(self, now_s: float, step_s: float, *, queued: float, room: float) -> float:
        del queued, room
        return (self._demand.rate_bps or 0) / 8 * step_s if self._demand.is_on(now_s) else 0.0

    def told(self, now_s: float, step_s: float, *, sent: float, lost: float) -> None:
        """It does not look."""


class _Tcp:
    """All connections of a demand."""

    is_elastic = False

    def __init__(self, demand: Demand) -> None:
        self._demand = demand
        self._flows = max(1, demand.flows)
        self._window = FIRST_WINDOW * self._flows
        self._slow_start = True
        self._highest = self._window
        self._lost_at_s = float("-inf")
        self._ready = 0.0
        self._flying = self._queued = 0.0
        self._acks: deque[tuple[float, float]] = deque()
        self._gaps: deque[tuple[float, float]] = deque()
        self._trip_s = demand.rtt_s

    def offer(self, now_s: float, step_s: float, *, queued: float, room: float) -> float:
        del room
        self._hear(now_s)
        self._prepare(now_s, step_s)
        self._queued = queued
        more = max(0.0, min(self._window - queued - self._flying, self._ready))
        self._ready -= more
        return more

    def told(self, now_s: float, step_s: float, *, sent: float, lost: float) -> None:
        if sent > 0:
            queue_s = min(self._queued / sent * step_s, LONGEST_QUEUE_S)
            self._trip_s = max(self._demand.rtt_s, step_s / 2) + queue_s
            self._acks.append((now_s + max(self._demand.rtt_s, step_s / 2), sent))
        if lost > 0:
            self._gaps.append((now_s + self._trip_s, lost))
        self._flying += sent + lost

    def _hear(self, now_s: float) -> None:
        """Take what has been acknowledged by now, and what is known to be lost and sent again."""
        while self._acks and self._acks[0][0] <= now_s:
            amount = self._acks.popleft()[1]
            self._flying -= amount
            self._grow(now_s, amount)
        while self._gaps and self._gaps[0][0] <= now_s:
            amount = self._gaps.popleft()[1]
            self._flying -= amount
            self._ready += amount
            self._shrink(now_s, amount)

    def _prepare(self, now_s: float, step_s: float) -> None:
        """What the application has handed over."""
        if not self._demand.is_on(now_s):
            self._ready = 0.0
        elif self._demand.rate_bps is None:
            self._ready = 1e12
        else:
            rate = self._demand.rate_bps / 8
            self._ready = min(self._ready + rate * step_s, rate * max(SOCKET_S, step_s))

    def _grow(self, now_s: float, acked: float) -> None:
        if self._slow_start:
            self._window += acked
        elif acked > 0:
            since_s = now_s - self._lost_at_s
            whole_s = (self._highest / self._flows / SEGMENT * (1 - LOSS_FACTOR) / CUBIC) ** (1 / 3)
            cubic = CUBIC * SEGMENT * self._flows * (since_s - whole_s) ** 3 + self._highest
            friendly = self._window + FRIENDLY * SEGMENT * self._flows * acked / self._window
            self._window = max(friendly, min(cubic, self._window + acked))
        self._window = min(self._window, MOST_WINDOW * self._flows)

    def _shrink(self, now_s: float, lost: float) -> None:
        """Once a round trip, the queue's delay included."""
        if now_s - self._lost_at_s < self._trip_s:
            return
        hit = min(self._flows, max(1.0, lost / SEGMENT))
        self._highest = self._window
        least = 2 * SEGMENT * self._flows
        self._window = max(self._window * (1 - (1 - LOSS_FACTOR) * hit / self._flows), least)
        self._slow_start = False
        self._lost_at_s = now_s
