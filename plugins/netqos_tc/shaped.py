"""The trees that the fast loop steers, as they stand in the kernel when it takes hold of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from netqos.model.ids import IfName
from netqos.model.traffic import Unit
from netqos_tc import numbers
from netqos_tc.moves import Steered
from netqos_tc.reader import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaped:
    """A device that has a tree: what of it is moved, as planned, and as it was left when the grip was made.

    `receivers` are the devices whose packets the tree meets a part of; empty: it is the device's own tree, for what
    that sends.
    """

    ifindex: int
    name: IfName
    steered: Steered
    left: Steered
    receivers: tuple[int, ...] = ()

    @property
    def unit(self) -> Unit:
        """Its name for the loop."""
        return Unit(numbers.kind_on(self.ifindex).direction, self.name)


def standing(reader: Reader, steered: Mapping[int, Steered], uplinks: tuple[int, ...]) -> Iterator[Shaped]:
    """Those of the planned ones that are there with all that is moved."""
    for ifindex, planned in sorted(steered.items()):
        link = reader.link(ifindex)
        met = {minor: reader.our_class(ifindex, minor) for minor in planned.classes}
        specs = {minor: one.spec for minor, one in met.items() if one is not None}
        if link is not None and len(specs) == len(met):
            yield Shaped(
                ifindex=ifindex,
                name=IfName(link.name),
                steered=planned,
                left=planned.as_left(specs),
                receivers=uplinks if ifindex == numbers.IFB_INDEX else (),
            )
