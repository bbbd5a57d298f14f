"""What differs between what should be and what is, and in which order to change it without a bad moment in between."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from netqos.model.plan import Verb

K = TypeVar("K", bound=Hashable)
S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Change(Generic[S]):
    """An object that is there but not as it should be."""

    old: S
    new: S


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(Generic[K, S]):
    """What to create and change, in the desired mapping's order, and what to delete, in the observed one's."""

    creates: Mapping[K, S]
    changes: Mapping[K, Change[S]]
    deletes: Mapping[K, S]

    def __bool__(self) -> bool:
        """Whether there is any difference."""
        return bool(self.creates or self.changes or self.deletes)


def diff(
    desired: Mapping[K, S], observed: Mapping[K, S], *, same: Callable[[S, S], bool] = operator.eq
) -> Difference[K, S]:
    """The keyed difference; no spec is None. `same(desired, observed)` decides whether an object needs no change.

    An object is the same as itself, unasked.
    """
    creates: dict[K, S] = {}
    changes: dict[K, Change[S]] = {}
    for key, spec in desired.items():
        met = observed.get(key)
        if met is None:
            creates[key] = spec
        elif met is not spec and not same(spec, met):
            changes[key] = Change(met, spec)
    has_more = len(observed) > len(desired) - len(creates)
    deletes = {key: spec for key, spec in observed.items() if key not in desired} if has_more else {}
    return Difference(creates=creates, changes=changes, deletes=deletes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Generic[T]):
    """One change of an object in a tree, described for ordering only.

    `rank` is the depth: what stands on other objects has a higher rank than they. `widens` tells of a CHANGE
    whether the object may use more afterwards; a change that widens one value and shrinks another is two steps.
    """

    verb: Verb
    rank: int
    widens: bool = False
    what: T


def safe_order(steps: Iterable[Step[T]]) -> tuple[T, ...]:
    """An order in which no child that stays has more than its parent, and nothing goes before its successor is there.

    Shrink, children before parents; then widen and create, parents before children; then delete, children before
    parents. Steps of one kind and rank keep their order. Shrinking first also keeps the sum of children within their
    parent while bandwidth moves from one to another.
    """
    return tuple(step.what for step in sorted(steps, key=_place))


def _place(step: Step[T]) -> tuple[int, int]:
    if step.verb is Verb.DELETE:
        return 2, -step.rank
    if step.verb is Verb.CHANGE and not step.widens:
        return 0, -step.rank
    return 1, step.rank
