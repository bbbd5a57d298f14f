"""Where the files say the amounts of the policy, in whichever of its shapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from netqos.model.levels import Direction, Level
from netqos.settings.issues import Path
from netqos.settings.nodes import Node
from netqos.settings.upstream import CLASSES
from netqos.settings.values import AmountKey, Bound, Place

_OWN = {Bound.GUARANTEE: "Min", Bound.CEILING: "Max"}
_PROPOSAL = {Bound.GUARANTEE: "Min", Bound.CEILING: ""}
_UPSTREAM = {Bound.GUARANTEE: "Request", Bound.CEILING: "Limit"}
_SIDES = {Direction.TX: "egress", Direction.RX: "ingress"}

Keys = Iterator[tuple[AmountKey, Path]]


def amount_places(root: Node) -> Mapping[AmountKey, Place]:
    """The place of every amount that the files give."""
    found = {}
    for key, path in (*_own(), *_proposal(), *_upstream(root)):
        node = root.get(*path)
        if node is not None and node.value is not None:
            found[key] = Place(path=path, file=node.mark.file, line=node.mark.line)
    return found


def own_path(level: Level, direction: Direction, bound: Bound) -> Path:
    """The key of an amount in the file's own shape."""
    return ("policy", "levels", level.name.lower(), f"{direction.value}{_OWN[bound]}")


def _own() -> Keys:
    for key in _keys():
        yield key, own_path(*key)


def _proposal() -> Keys:
    for level, direction, bound in _keys():
        inner = ("nodeBandwidthLimit", level.name.lower(), f"{direction.value}{_PROPOSAL[bound]}")
        yield (level, direction, bound), ("policy", "networkQOSStrategy", *inner)


def _upstream(root: Node) -> Keys:
    above = ("policy", "resourceQOSStrategy")
    for level, direction, bound in _keys():
        for name in CLASSES[level]:
            holder = root.get(*above, name, "networkQOS")
            if holder is not None and holder.value is not None:
                path = (*above, name, "networkQOS", f"{_SIDES[direction]}{_UPSTREAM[bound]}")
                yield (level, direction, bound), path
                break


def _keys() -> Iterator[AmountKey]:
    return ((level, direction, bound) for level in Level for direction in Direction for bound in Bound)
