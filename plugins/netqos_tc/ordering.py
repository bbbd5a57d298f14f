"""In which order edits are applied, and what explains each: as steps of `netqos.engine.reconcile.safe_order`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from netqos.engine.reconcile import Step
from netqos.model.plan import Operation, Verb
from netqos_tc import concerns, describe, lifeline, numbers, strangers
from netqos_tc.edits import Edit
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
from netqos_tc.spec import ClassSpec, FilterSpec, Spec


class Causes:
    """What of the same plan explains each edit: the outermost objects made anew that it stands on, else itself.

    What goes is explained by all that it waits for: while one of them is held back, it cannot go.
    """

    def __init__(self, edits: Iterable[Edit]) -> None:
        """All edits of the plan."""
        self._edits = {edit.key: edit for edit in edits}
        self._found: dict[Key, tuple[Edit, ...]] = {}

    def of(self, edit: Edit) -> tuple[Edit, ...]:
        """At least one."""
        if edit.key not in self._found:
            needed = (self._edits[key] for key in edit.needs if key in self._edits)
            below = [cause for one in needed for cause in self.of(one)]
            explaining = {one.key: one for one in below if edit.after is None or _is_made(one)}
            self._found[edit.key] = tuple(explaining.values()) or (edit,)
        return self._found[edit.key]


def _is_made(edit: Edit) -> bool:
    return edit.after is not None and (edit.before is None or isinstance(edit.key, RootKey))


def _is_vital(edit: Edit) -> bool:
    return lifeline.is_vital(edit.key, edit.before, edit.after)


def step(
    edit: Edit, causes: Sequence[Edit], names: describe.Names, desired: Mapping[Key, Spec]
) -> Step[Operation]:
    """An edit as an operation, with its place among the others; `causes` are what explains it, one at least."""
    incident, *awaits = dict.fromkeys(describe.subject(one.key, names) for one in causes)
    verb = Verb.DELETE if edit.after is None else Verb.CREATE if edit.before is None else Verb.CHANGE
    operation = Operation(
        verb=verb,
        subject=describe.subject(edit.key, names),
        detail=describe.change(edit.key, edit.before, edit.after, names, earlier=edit.earlier),
        incident=incident,
        awaits=tuple(awaits),
        is_vital=_is_vital(edit) or all(map(_is_vital, causes)),
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
