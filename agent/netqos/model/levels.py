"""Network levels and directions, and the per-level, per-direction containers built on them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class Level(enum.Enum):
    """A network priority; the value is the number written to the pods file. L0 is the highest."""

    L0 = 0
    L1 = 1
    L2 = 2

    __hash__ = (
        object.__hash__
    )  # of members there is one each; Enum's own is a call into Python for each look-up

    @classmethod
    def parse(cls, text: str) -> Level | None:
        """`l0`, `L1`, ... in any case; None when the text names no level."""
        return cls.__members__.get(text.upper())


_L0, _L1 = Level.L0, Level.L1


class Direction(enum.Enum):
    """Seen from the pod or node: TX is egress (away from it), RX is ingress (towards it)."""

    TX = "tx"
    RX = "rx"

    __hash__ = object.__hash__

    @property
    def pod_word(self) -> str:
        """`egress` or `ingress`, as annotations and limits say it."""
        return "egress" if self is Direction.TX else "ingress"


_TX = Direction.TX


@dataclass(frozen=True, slots=True)
class PerLevel(Generic[T]):
    """One value for each level, in the order L0, L1, L2."""

    l0: T
    l1: T
    l2: T

    def __getitem__(self, level: Level) -> T:
        """The value of one level; a member's own value would be a call into Python."""
        if level is _L0:
            return self.l0
        return self.l1 if level is _L1 else self.l2

    def __iter__(self) -> Iterator[T]:
        """The values from L0 to L2."""
        return iter((self.l0, self.l1, self.l2))

    def map(self, function: Callable[[T], U]) -> PerLevel[U]:
        """The same three places with `function` applied to each value."""
        return PerLevel(function(self.l0), function(self.l1), function(self.l2))


@dataclass(frozen=True, slots=True, kw_only=True)
class PerDirection(Generic[T]):
    """One value for each direction."""

    tx: T
    rx: T

    def __getitem__(self, direction: Direction) -> T:
        """The value of one direction."""
        return self.tx if direction is _TX else self.rx

    def map(self, function: Callable[[T], U]) -> PerDirection[U]:
        """The same two places with `function` applied to each value."""
        return PerDirection(tx=function(self.tx), rx=function(self.rx))
