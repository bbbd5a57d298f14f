"""HTB as a fluid: who may send how much in the next milliseconds. Deterministic, no packets, no clock.

It follows net/sched/sch_htb.c (6.x) where that decides about shares: tokens are times (so a changed rate keeps them),
a class lends while its own tokens and ceiling allow, a leaf asks the nearest class that may lend and nobody above it,
what is lent goes by `prio` and among equals by `quantum`, and everybody on the way is charged. A leaf within its own
rate or burst therefore sends whatever its parents say, as in the kernel.

Bytes, seconds, bytes per second. What it leaves out: the size of packets, and the time that packets take.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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
        self.spare = self.ceiling = 0.0
        self.fill()

    def fill(self) -> None:
        """Fill the buckets."""
        self._tokens_s = self.shape.burst / self.shape.rate
        self._ctokens_s = self.shape.cburst / self.shape.ceil

    def forgive(self) -> None:
        """Forget what it owes: what takes its place has not sent anything."""
        self._tokens_s, self._ctokens_s = max(self._tokens_s, 0.0), max(self._ctokens_s, 0.0)

    def begin(self, step_s: float) -> None:
        """Set what it may send in a step by its rate (`spare`) and by its ceiling; less than nothing is a debt."""
        shape = self.shape
        self.spare = (self._tokens_s + step_s) * shape.rate
        self.ceiling = (self._ctokens_s + step_s) * shape.ceil

    def end(self) -> None:
        """Keep what is left of a step, as much as the buckets hold."""
        shape = self.shape
        tokens_s = (self.spare if self.spare < shape.burst else shape.burst) / shape.rate
        ctokens_s = (self.ceiling if self.ceiling < shape.cburst else shape.cburst) / shape.ceil
        self._tokens_s = tokens_s if tokens_s > -LONGEST_DEBT_S else -LONGEST_DEBT_S
        self._ctokens_s = ctokens_s if ctokens_s > -LONGEST_DEBT_S else -LONGEST_DEBT_S


class Scheduler:
    """The classes of one root, and who shares what: leaves by who may lend to them, the lowest prio first."""

    def __init__(self, classes: Sequence[Htb], leaves: Sequence[Htb]) -> None:
        """`classes` are all, leaves and inner ones."""
        self._classes = tuple(classes)
        self._leaves = tuple(leaves)
        self._groups = tuple(_groups(leaves))

    def serve(self, waiting: Sequence[float], step_s: float) -> list[float]:
        """What each leaf sends in a step of the bytes that wait there."""
        for one in self._classes:
            one.begin(step_s)
        left = dict(zip(self._leaves, waiting, strict=True))
        for height, leaves in self._groups:
            if len(leaves) == 1:
                _lend_alone(leaves[0], height, left)
            else:
                _lend(leaves, height, left)
        for one in self._classes:
            one.end()
        return [before - left[leaf] for leaf, before in zip(self._leaves, waiting, strict=True)]


def _groups(leaves: Sequence[Htb]) -> Iterator[tuple[int, tuple[Htb, ...]]]:
    """Leaves that share what one class lends, in the order in which that is done."""
    for height in range(max((len(leaf.path) for leaf in leaves), default=0)):
        groups: dict[tuple[int, Htb], list[Htb]] = {}
        for leaf in leaves:
            if len(leaf.path) > height:
                groups.setdefault((leaf.prio, leaf.path[height]), []).append(leaf)
        for key in sorted(groups, key=lambda key: key[0]):
            yield height, tuple(groups[key])


def _lend_alone(leaf: Htb, height: int, left: dict[Htb, float]) -> None:
    amount = min(left[leaf], leaf.path[height].spare)
    if amount <= NOTHING:
        return
    amount = min(amount, _opening(leaf, height + 1))
    if amount > NOTHING:
        _charge(leaf, height, amount)
        left[leaf] -= amount


def _lend(leaves: Sequence[Htb], height: int, left: dict[Htb, float]) -> None:
    """Fill the leaves alike, by quantum, until each is empty or held by something on its way to the lender."""
    lender = leaves[0].path[height]
    group = leaves
    while min(lender.spare, lender.ceiling) > NOTHING:
        group = [leaf for leaf in group if left[leaf] > NOTHING and _opening(leaf, height) > NOTHING]
        if not group:
            return
        each = _each(group, height, left)
        for leaf in group:
            _charge(leaf, height, each * leaf.quantum)
            left[leaf] -= each * leaf.quantum


def _opening(leaf: Htb, height: int) -> float:
    """What the ceilings of the classes under a height let through."""
    return min([one.ceiling for one in leaf.path[:height]], default=math.inf)


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
