"""HTB as a fluid: who may send how much in the next milliseconds. Deterministic, no packets, no clock.

It follows net/sched/sch_htb.c (6.x) where that decides about shares: tokens are times (so a changed rate keeps them),
a class lends while its own tokens and ceiling allow, a leaf asks the nearest class that may lend and nobody above it,
what is lent goes by `prio` and among equals by `quantum`, and everybody on the way is charged. A leaf within its own
rate or burst therefore sends whatever its parents say, as in the kernel.

Bytes, seconds, bytes per second. What it leaves out: the size of packets, and the time that packets take.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LONGEST_DEBT_S = 60.0
"""HTB forgets what a class owes beyond a minute (`mbuffer`)."""

NOTHING = 1e-6
"""Less than this many bytes are rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The numbers that a class is shaped by: bytes per second, and bytes of burst."""

    rate: float
    ceil: float
    burst: float
    cburst: float


class Htb:
    """One class; a leaf has `prio` and `quantum`, an inner class lends to those below it."""

    __slots__ = ("_ctokens_s", "_tokens_s", "ceiling", "path", "prio", "quantum", "sent", "shape", "spare")

    def __init__(
        self, shape: Shape, parent: Htb | None = None, *, prio: int = 0, quantum: float = 1.0
    ) -> None:
        """A class with full buckets. `path` is itself, its parent, and so on up to the root."""
        self.path: tuple[Htb, ...] = (self, *(parent.path if parent is not None else ()))
        self.prio = prio
        self.quantum = quantum
        self.shape = shape
        self.sent = 0.0
        self._tokens_s = shape.burst / shape.rate
        self._ctokens_s = shape.cburst / shape.ceil
        self.spare = self.ceiling = 0.0

    def begin(self, step_s: float) -> None:
        """Set what it may send in a step by its rate (`spare`) and by its ceiling; less than nothing is a debt."""
        shape = self.shape
        self.spare = (self._tokens_s + step_s) * shape.rate
        self.ceiling = (self._ctokens_s + step_s) * shape.ceil

    def end(self) -> None:
        """Keep what is left of a step, as much as the buckets hold."""
        shape = self.shape
        self._tokens_s = max(min(self.spare, shape.burst) / shape.rate, -LONGEST_DEBT_S)
        self._ctokens_s = max(min(self.ceiling, shape.cburst) / shape.ceil, -LONGEST_DEBT_S)


def serve(
    classes: Sequence[Htb], leaves: Sequence[Htb], waiting: Sequence[float], step_s: float
) -> list[float]:
    """What each leaf sends in a step of the bytes that wait there. `classes` are all, leaves and inner ones."""
    for one in classes:
        one.begin(step_s)
    left = dict(zip(leaves, waiting, strict=True))
    busy = [leaf for leaf in leaves if left[leaf] > NOTHING]
    for height in range(max((len(leaf.path) for leaf in busy), default=0)):
        for group in _lent_together(busy, height):
            _lend(group, height, left)
    for one in classes:
        one.end()
    return [before - left[leaf] for leaf, before in zip(leaves, waiting, strict=True)]


def _lent_together(busy: Sequence[Htb], height: int) -> Iterable[list[Htb]]:
    """Leaves that share what one class at this height lends, the lowest prio first."""
    groups: dict[tuple[int, Htb], list[Htb]] = {}
    for leaf in busy:
        if len(leaf.path) > height:
            groups.setdefault((leaf.prio, leaf.path[height]), []).append(leaf)
    return [groups[key] for key in sorted(groups, key=lambda key: key[0])]


def _lend(group: list[Htb], height: int, left: dict[Htb, float]) -> None:
    """Fill the leaves alike, by quantum, until each is empty or held by something on its way to the lender."""
    while group:
        lender = group[0].path[height]
        if min(lender.spare, lender.ceiling) <= NOTHING:
            return
        group = [leaf for leaf in group if left[leaf] > NOTHING and _opening(leaf, height) > NOTHING]
        if not group:
            return
        each = _each(group, height, left)
        for leaf in group:
            _charge(leaf, height, each * leaf.quantum)
            left[leaf] -= each * leaf.quantum


def _opening(leaf: Htb, height: int) -> float:
    """What the ceilings below the lender let through."""
    return min((one.ceiling for one in leaf.path[:height]), default=1e18)


def _each(group: Sequence[Htb], height: int, left: dict[Htb, float]) -> float:
    """How much for each unit of quantum all of them can get before something on some way is used up."""
    weights: dict[Htb, float] = {}
    for leaf in group:
        for one in leaf.path[: height + 1]:
            weights[one] = weights.get(one, 0.0) + leaf.quantum
    lender = group[0].path[height]
    bounds = [one.ceiling / weight for one, weight in weights.items()]
    bounds += [left[leaf] / leaf.quantum for leaf in group]
    return min(lender.spare / weights[lender], *bounds)


def _charge(leaf: Htb, height: int, sent: float) -> None:
    """Everybody pays by the ceiling; from the lender up also by the rate."""
    for place, one in enumerate(leaf.path):
        one.ceiling -= sent
        one.sent += sent
        if place >= height:
            one.spare -= sent
