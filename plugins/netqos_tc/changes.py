"""From desired and observed objects to ordered operations. Pure.

The order keeps a packet's way whole at every step: shrink, then widen and create from the root outwards, then lead
packets to the new leaves, and only then take away, from the leaves inwards (`netqos.engine.reconcile.safe_order`).
What goes with its parent (the queue of a class, everything under a root) has no operation of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from netqos.engine.reconcile import Difference, diff, safe_order
from netqos.model.plan import Operation
from netqos_tc import describe, needs, numbers, ordering
from netqos_tc.debt import is_in_debt
from netqos_tc.edits import Edit, device_of
from netqos_tc.keys import (
    ClassKey,
    ElementKey,
    ElementMap,
    FilterKey,
    Key,
    LinkKey,
    RedirectKey,
    RootKey,
    RulesKey,
    SetKey,
    TableKey,
)
from netqos_tc.observed import TcObserved
from netqos_tc.root import Root
from netqos_tc.spec import ClassSpec, Spec


def operations(
    desired: Mapping[Key, Spec], observed: TcObserved, names: describe.Names, *, complete: bool
) -> tuple[Operation, ...]:
    """The ordered operations from `observed` to `desired`; without `complete` only those that take nothing away.

    A damaged table is repaired even then: that adds the rules that are missing and leaves every element. And a
    workload's ceiling follows what is known of it: an override, or a configuration that changed. An address that is
    another workload's by now leads to that one's class: it can be but one's, and that one would have another's limit.
    """
    different = diff(desired, observed.specs)
    broken = _broken_trees(different) | (_trees_in_debt(different) if complete else frozenset())
    if not complete and broken:
        desired = {key: spec for key, spec in desired.items() if device_of(key) not in broken}
    if broken:
        different = diff(desired, _without(broken, observed))
    edits = _edits(different, desired, observed, names)
    if not complete:
        edits = [one for one in edits if one.before is None or _takes_nothing_away(one)]
    causes = ordering.Causes(edits)
    return safe_order(ordering.step(edit, causes.of(edit), names, desired) for edit in edits)


def _takes_nothing_away(edit: Edit) -> bool:
    before, after = edit.before, edit.after
    if isinstance(before, ClassSpec) and isinstance(after, ClassSpec) and isinstance(edit.key, ClassKey):
        is_own = edit.key.minor not in numbers.kind_on(edit.key.ifindex).fixed
        is_in_place = (before.parent, before.prio) == (after.parent, after.prio)
        return is_own and is_in_place and before.rate >= after.rate
    return isinstance(edit.key, TableKey | ElementKey) and after is not None


def _broken_trees(different: Difference[Key, Spec]) -> frozenset[int]:
    """Trees that no change can mend: the default class is another, or a fixed class stands in the wrong place."""
    found = set()
    for key, change in different.changes.items():
        is_misplaced = (
            isinstance(key, ClassKey)
            and isinstance(change.new, ClassSpec)
            and isinstance(change.old, ClassSpec)
            and key.minor in numbers.kind_on(key.ifindex).fixed
            and change.new.parent != change.old.parent
        )
        if is_misplaced or isinstance(key, RootKey):
            found.add(device_of(key) or 0)
    return frozenset(found)


def _trees_in_debt(different: Difference[Key, Spec]) -> frozenset[int]:
    """Trees with a class that, set right in place, would still send nothing for up to a minute."""
    return frozenset(
        device_of(key) or 0
        for key, change in different.changes.items()
        if is_in_debt(key, change.new, change.old)
    )


def _without(broken: frozenset[int], observed: TcObserved) -> dict[Key, Spec]:
    """What is there. A broken tree is made anew, so nothing of it counts; its device stays."""
    return {
        key: spec
        for key, spec in observed.specs.items()
        if device_of(key) not in broken or isinstance(key, LinkKey | RedirectKey)
    }


def _edits(
    found: Difference[Key, Spec], desired: Mapping[Key, Spec], observed: TcObserved, names: describe.Names
) -> list[Edit]:
    """All that differs."""
    roots = [key.ifindex for key in desired if isinstance(key, RootKey)]
    pairs: list[tuple[Key, Spec | None, Spec | None]] = [
        *((key, _root_before(key, observed), spec) for key, spec in found.creates.items()),
        *((key, change.old, change.new) for key, change in found.changes.items()),
        *_deletes(found.deletes),
    ]
    leaving = needs.leaving(pairs)
    return [
        Edit(
            key=key,
            before=before,
            after=after,
            needs=needs.of(key, after, roots) if after is not None else needs.awaited(key, leaving),
            earlier=_earlier(key, after, observed),
            device=names.device(device_of(key) or 0),
            is_news=_is_news(key, before, after, observed),
        )
        for key, before, after in pairs
    ]


def _is_news(key: Key, before: Spec | None, after: Spec | None, observed: TcObserved) -> bool:
    """Whether a device was never led to the IFB before, or no workload is behind it any more."""
    if not isinstance(key, RedirectKey):
        return False
    return after is None or (before is None and key.ifindex not in observed.led)


def _root_before(key: Key, observed: TcObserved) -> Spec | None:
    """Only the root of a broken tree is created over one that is there."""
    return observed.specs.get(key) if isinstance(key, RootKey) else None


def _deletes(deletes: Mapping[Key, Spec]) -> list[tuple[Key, Spec | None, Spec | None]]:
    """Without what goes by itself: what stands on a device or root that goes, elements with the table, queues."""
    links = {key.ifindex for key in deletes if isinstance(key, LinkKey)}
    going = links | {key.ifindex for key in deletes if isinstance(key, RootKey)}
    has_table_going = TableKey() in deletes
    kept = [
        key
        for key in deletes
        if isinstance(key, LinkKey | RedirectKey | TableKey)
        or (isinstance(key, RootKey) and key.ifindex not in links)
        or (isinstance(key, ElementKey) and (key.map is ElementMap.NC or not has_table_going))
        or (isinstance(key, SetKey | RulesKey) and not has_table_going)
        or (isinstance(key, ClassKey | FilterKey) and key.ifindex not in going)
    ]
    kept.sort(key=lambda key: -_depth(key, deletes))
    return [(key, deletes[key], None) for key in kept]


def _depth(key: Key, specs: Mapping[Key, Spec]) -> int:
    """How many of the classes above an object are among these; HTB lets no class go before those below it."""
    depth = 0
    while isinstance(key, ClassKey) and isinstance(spec := specs.get(key), ClassSpec):
        key = ClassKey(key.ifindex, numbers.minor_of(spec.parent))
        depth += 1
    return depth


def _earlier(key: Key, after: Spec | None, observed: TcObserved) -> Root | None:
    if not isinstance(key, RootKey):
        return None
    if after is not None:
        return observed.roots.get(key.ifindex)
    return observed.saved.get(observed.names.get(key.ifindex, ""))
