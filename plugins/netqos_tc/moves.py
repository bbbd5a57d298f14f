"""The classes that the fast loop moves: the total and the levels. Pure.

On every tree it moves L0's ceiling. On the IFB also the total, with L0's rate: what the node receives for itself never
comes there but uses the same link, so the total is the room that this leaves (`netqos.engine.room`), and L0 pays for
it, since the node's own traffic is L0's. On an uplink that shares its total with others all of them, within what all
together may pass (`netqos.engine.shares`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from netqos.model.levels import PerLevel
from netqos_tc import numbers, params
from netqos_tc.spec import ClassSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Steered:
    """Total and levels as they are planned, with all of the link to themselves.

    `has_room` says whether the total is moved. `parts` is how many uplinks share what is planned: 1 for one that has
    its own.
    """

    total: ClassSpec
    levels: PerLevel[ClassSpec]
    mtu: int
    has_room: bool = False
    parts: int = 1

    @property
    def classes(self) -> dict[int, ClassSpec]:
        """By minor."""
        return {numbers.TOTAL: self.total, **dict(zip(numbers.LEVELS.values(), self.levels, strict=True))}

    @property
    def others(self) -> int:
        """The rates of L1 and L2 together, in bytes per second."""
        return self.levels.l1.rate + self.levels.l2.rate

    def in_room(self, room: int) -> Steered:
        """The same where less than the planned total may pass; never less than what L1 and L2 are promised."""
        if room >= self.total.ceil:
            return self
        room = max(room, self.others)
        l0 = self.levels.l0
        rate = params.l0_rate(l0.rate, room, self.others)
        return replace(
            self,
            total=_reshaped(self.total, room, room, mtu=self.mtu),
            levels=replace(self.levels, l0=_reshaped(l0, rate, l0.ceil, mtu=self.mtu)),
        )

    def in_part(self, total: int, rates: PerLevel[int], ceils: PerLevel[int]) -> Steered:
        """One uplink's part of what several share, in bytes per second; nothing is above what is planned."""
        least = params.least_rate()

        def part(spec: ClassSpec, rate: int, ceil: int) -> ClassSpec:
            within = min(max(rate, least), spec.rate)
            return _reshaped(spec, within, min(max(ceil, within), spec.ceil), mtu=self.mtu)

        l0, l1, l2 = map(part, self.levels, rates, ceils)
        return replace(self, total=part(self.total, total, total), levels=PerLevel(l0, l1, l2))

    def with_ceiling(self, ceiling: int) -> Steered:
        """L0 under another ceiling, never under its rate; every other parameter as it was (contract 3)."""
        l0 = self.levels.l0
        moved = _reshaped(l0, l0.rate, max(ceiling, l0.rate), mtu=self.mtu)
        return replace(self, levels=replace(self.levels, l0=moved))

    def as_left(self, met: Mapping[int, ClassSpec]) -> Steered:
        """As the loop left them, where what was met (by minor) is something that it may have written."""
        if self.parts > 1:
            return self._part_as_left(met)
        left, total = self, met.get(numbers.TOTAL)
        if self.has_room and total is not None and self.others <= total.ceil <= self.total.ceil:
            left = self.in_room(total.ceil)
        l0 = met.get(numbers.L0)
        if l0 is not None and left.levels.l0.rate <= l0.ceil <= left.levels.l0.ceil:
            left = left.with_ceiling(l0.ceil)
        return left

    def may_leave(self, met: Mapping[int, ClassSpec]) -> bool:
        """Whether what was met (by minor) is something that the loop may have written."""
        return met.items() <= self.as_left(met).classes.items()

    def _part_as_left(self, met: Mapping[int, ClassSpec]) -> Steered:
        """The part that was met; where there is none, as much as each other one has."""
        if met.keys() >= self.classes.keys():
            l0, l1, l2 = (met[minor] for minor in numbers.LEVELS.values())
            rates, ceils = PerLevel(l0.rate, l1.rate, l2.rate), PerLevel(l0.ceil, l1.ceil, l2.ceil)
            left = self.in_part(met[numbers.TOTAL].ceil, rates, ceils)
            if all(met[minor] == spec for minor, spec in left.classes.items()):
                return left
        return self.in_part(
            self.total.ceil // self.parts,
            self.levels.map(lambda spec: spec.rate // self.parts),
            self.levels.map(lambda spec: spec.ceil // self.parts),
        )


def _reshaped(spec: ClassSpec, rate: int, ceil: int, *, mtu: int) -> ClassSpec:
    shape = params.inner_at(rate, ceil, mtu=mtu)
    return replace(spec, rate=shape.rate, ceil=shape.ceil, buffer=shape.buffer, cbuffer=shape.cbuffer)
