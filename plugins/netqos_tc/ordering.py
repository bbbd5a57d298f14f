"""In which order edits are applied, and what explains each: as steps of `netqos.engine.reconcile.safe_order`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from netqos.engine.reconcile import Step
from netqos.model.plan import Operation, Verb
from netqos_tc import concerns, describe, lifeline, numbers, strangers
from netqos_tc.edits import Edit
from netqos_tc.spec import (
    ClassKey,
    ClassSpec,
    ElementKey,
    FilterKey,
    FilterSpec,
    Key,
    LinkKey,
    QueueKey,
    RedirectKey,
    RootKey,
    RulesKey,
    SetKey,
    Spec,
    TableKey,
)


def cause_of(edit: Edit, known: Mapping[Key, Edit]) -> Edit:
    """What of the same plan explains an edit: the outermost object made anew that it stands on, else itself.

    What goes is explained by what it waits for: while that is held back, it cannot go.
    """
    for key in edit.needs:
        below = known.get(key)
        if below is None:
            continue
        cause = cause_of(below, known)
        is_made = cause.after is not None and (cause.before is None or isinstance(cause.key, RootKey))
        if is_made or edit.after is None:
            return cause
    return edit


def step(edit: Edit, cause: Edit, names: describe.Names, desired: Mapping[Key, Spec]) -> Step[Operation]:
    """An edit as an operation, with its place among the others; `cause` is what explains it."""
    verb = Verb.DELETE if edit.after is None else Verb.CREATE if edit.before is None else Verb.CHANGE
    operation = Operation(
        verb=verb,
        subject=describe.subject(edit.key, names),
        detail=describe.change(edit.key, edit.before, edit.after, names, earlier=edit.earlier),
        incident=describe.subject(cause.key, names),
        is_vital=any(lifeline.is_vital(one.key, one.before, one.after) for one in (edit, cause)),
        is_repair=not edit.is_news,
        concerns=concerns.of(edit.key, (edit.before, edit.after), names),
        denies=concerns.denies(edit.key, names),
        payload=edit,
    )
    if _is_in_the_way(edit, desired):
        return Step(verb=Verb.CHANGE, rank=_rank(edit), what=operation)
    return Step(verb=verb, rank=_rank(edit), widens=_widens(edit), what=operation)


def _is_in_the_way(edit: Edit, desired: Mapping[Key, Spec]) -> bool:
    """What goes before all else: a foreign filter, which leads packets astray and keeps the class it leads to, and a
    class that somebody put under a leaf, which has no queue meanwhile.
    """
    met = edit.before
    if met is None or edit.after is not None:
        return False
    if isinstance(met, FilterSpec):
        return strangers.is_strange(edit.key, met)
    if not isinstance(met, ClassSpec):
        return False
    assert isinstance(edit.key, ClassKey)
    above = desired.get(ClassKey(edit.key.ifindex, numbers.minor_of(met.parent)))
    return isinstance(above, ClassSpec) and above.prio is not None


_RANKS: Final[Mapping[type[Key], int]] = {
    TableKey: -1,
    LinkKey: -1,
    RootKey: 0,
    QueueKey: 5,
    FilterKey: 5,
    SetKey: 6,
    RulesKey: 7,
    ElementKey: 8,
    RedirectKey: 9,
}
"""Table and IFB stand on nothing, the elements on the leaves; what is led to the IFB finds all there."""


def _rank(edit: Edit) -> int:
    if not isinstance(edit.key, ClassKey):
        return _RANKS[type(edit.key)]
    if edit.key.minor in numbers.INNER:
        return 1 if edit.key.minor == numbers.TOTAL else 2
    spec = edit.before if edit.after is None else edit.after
    return 3 if isinstance(spec, ClassSpec) and spec.prio is None else 4


def _widens(edit: Edit) -> bool:
    """Whether a change belongs among the creations: all but those that take bandwidth away."""
    old, new = edit.before, edit.after
    if isinstance(old, ClassSpec) and isinstance(new, ClassSpec):
        return new.rate >= old.rate and new.ceil >= old.ceil
    return True
