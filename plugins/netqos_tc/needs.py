"""What an object stands on, and what must be done before it goes. Pure.

Whoever applies a plan, or holds a part of it back, does nothing without what it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from netqos.model.levels import Direction
from netqos_tc import numbers, podrules
from netqos_tc.keys import (
    ClassKey,
    ElementKey,
    FilterKey,
    Key,
    LinkKey,
    QueueKey,
    RedirectKey,
    RootKey,
    RulesKey,
    SetKey,
    TableKey,
)
from netqos_tc.spec import ClassSpec, ElementSpec, RedirectSpec, RulesSpec, Spec

Held = SetKey | LinkKey | tuple[Direction, int]
"""What is held in its place: a set, the IFB, or the classes of a direction that have a minor."""


def leaving(pairs: Iterable[tuple[Key, Spec | None, Spec | None]]) -> dict[Held, tuple[Key, ...]]:
    """What stops leading to a class or the IFB, standing under it, or looking a set up: it may go when this is done."""
    found: dict[Held, list[Key]] = {}
    for key, before, after in pairs:
        for held in _holds(key, before, after):
            found.setdefault(held, []).append(key)
    return {held: tuple(keys) for held, keys in found.items()}


def awaited(key: Key, left: Mapping[Held, tuple[Key, ...]]) -> tuple[Key, ...]:
    """What must be done before an object goes, of what `leaving` has found."""
    match key:
        case ClassKey():
            return left.get((numbers.kind_on(key.ifindex).direction, key.minor), ())
        case SetKey() | LinkKey():
            return left.get(key, ())
        case _:
            return ()


def of(key: Key, after: Spec, roots: Sequence[int]) -> tuple[Key, ...]:
    """What an object stands on that is made or changed. `roots` are the devices that have a tree."""
    match key:
        case ClassKey():
            assert isinstance(after, ClassSpec)
            parent = numbers.minor_of(after.parent)
            return (ClassKey(key.ifindex, parent) if parent else RootKey(key.ifindex),)
        case QueueKey():
            return (ClassKey(key.ifindex, key.minor),)
        case FilterKey():
            return (ClassKey(key.ifindex, numbers.CONTROL),)
        case SetKey() | ElementKey() | RulesKey():
            return (TableKey(), *_led_to(key, after, roots))
        case RootKey(numbers.IFB_INDEX):
            return (LinkKey(numbers.IFB_INDEX),)
        case RedirectKey() if isinstance(after, RedirectSpec):
            return (LinkKey(after.target), ClassKey(after.target, numbers.LOCAL))
        case _:
            return ()


def _holds(key: Key, before: Spec | None, after: Spec | None) -> Iterator[Held]:
    """What cannot go before an object has become what it is to be."""
    if isinstance(key, ElementKey | RulesKey) and before is not None:
        way, minors = _leads(key, before)
        yield from ((way, minor) for minor in minors)
    if isinstance(before, RulesSpec):
        yield from before.sets
    if isinstance(before, RedirectSpec) and before.target > 0:
        yield LinkKey(before.target)
    if isinstance(key, ClassKey) and isinstance(before, ClassSpec) and after is None:
        yield numbers.kind_on(key.ifindex).direction, numbers.minor_of(before.parent)


def _led_to(key: SetKey | ElementKey | RulesKey, after: Spec, roots: Iterable[int]) -> Iterator[Key]:
    """What of the table looks up, and the classes to which it leads, in each tree."""
    if isinstance(key, SetKey):
        return
    if isinstance(after, RulesSpec):
        yield from after.sets
    way, minors = _leads(key, after)
    trees = [one for one in roots if numbers.kind_on(one).direction is way]
    yield from (ClassKey(ifindex, minor) for ifindex in trees for minor in minors)


def _leads(key: ElementKey | RulesKey, spec: Spec) -> tuple[Direction, tuple[int, ...]]:
    """The classes to which an element or a workload's rules lead."""
    if isinstance(key, RulesKey):
        classes = podrules.classes(spec) if isinstance(spec, RulesSpec) else ()
        return key.direction, tuple(dict.fromkeys(minor for _item, minor in classes))
    return key.map.direction, (spec.minor,) if isinstance(spec, ElementSpec) else ()
