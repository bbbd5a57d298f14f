"""The classes that the fast loop moves: L0's ceiling on every tree, and on the IFB the total with L0's rate. Pure.

What the node receives for itself never comes to the IFB but uses the same link, so the total of its tree is the room
that this leaves (`netqos.engine.room`). L0 pays for it, since the node's own traffic is L0's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from netqos_tc import numbers, params
from netqos_tc.spec import ClassSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Steered:
    """Total and L0 as they are planned, with all of the link to themselves; `others` are L1's and L2's rates together.

    Bytes per second. `has_room` says whether the total is moved.
    """

    total: ClassSpec
    l0: ClassSpec
    others: int
    mtu: int
    has_room: bool = False

    def in_room(self, room: int) -> Steered:
        """The same where less than the planned total may pass; never less than what L1 and L2 are promised."""
        if room >= self.total.ceil:
            return self
        room = max(room, self.others)
        rate = params.l0_rate(self.l0.rate, room, self.others)
        return replace(
            self,
            total=_reshaped(self.total, room, room, mtu=self.mtu),
            l0=_reshaped(self.l0, rate, self.l0.ceil, mtu=self.mtu),
        )

    def with_ceiling(self, ceiling: int) -> ClassSpec:
        """L0's class under another ceiling, never under its rate; every other parameter as it was (contract 3)."""
        return _reshaped(self.l0, self.l0.rate, max(ceiling, self.l0.rate), mtu=self.mtu)

    def as_left(self, met: Mapping[int, ClassSpec]) -> Steered:
        """As the loop left them, where what was met (by minor) is something that it may have written."""
        left, total = self, met.get(numbers.TOTAL)
        if self.has_room and total is not None and self.others <= total.ceil <= self.total.ceil:
            left = self.in_room(total.ceil)
        l0 = met.get(numbers.L0)
        if l0 is not None and left.l0.rate <= l0.ceil <= left.l0.ceil:
            left = replace(left, l0=left.with_ceiling(l0.ceil))
        return left

    def may_leave(self, met: Mapping[int, ClassSpec]) -> bool:
        """Whether what was met (by minor) is something that the loop may have written."""
        left = self.as_left(met)
        return met.items() <= {numbers.TOTAL: left.total, numbers.L0: left.l0}.items()


def _reshaped(spec: ClassSpec, rate: int, ceil: int, *, mtu: int) -> ClassSpec:
    shape = params.inner_at(rate, ceil, mtu=mtu)
    return replace(spec, rate=shape.rate, ceil=shape.ceil, buffer=shape.buffer, cbuffer=shape.cbuffer)
