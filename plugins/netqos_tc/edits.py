"""Edits: the payloads of operations, and what can be asked of a plan of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from netqos.model.plan import Operation
from netqos_tc import numbers
from netqos_tc.keys import (
    ClassKey,
    ElementKey,
    Key,
    LinkKey,
    RedirectKey,
    RootKey,
    RulesKey,
    SetKey,
    TableKey,
)
from netqos_tc.root import Root
from netqos_tc.spec import RedirectSpec, Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """The payload of an operation: an object as it was met and as it must become; None: not there.

    `needs` are the objects whose own operation, where the plan has one, must have succeeded before this one.
    `earlier` is for a root: what it takes the place of, or what is put back. `is_news`: what it is about came or went
    by itself.
    """

    key: Key
    before: Spec | None
    after: Spec | None
    needs: tuple[Key, ...] = ()
    earlier: Root | None = None
    device: str = ""
    is_news: bool = False


def made(plan: Iterable[Operation]) -> dict[Key, Spec]:
    """The objects that the operations make or change, as they must become."""
    edits = [operation.payload for operation in plan if isinstance(operation.payload, Edit)]
    return {edit.key: edit.after for edit in edits if edit.after is not None}


def own_hooks(plan: Iterable[Operation]) -> frozenset[int]:
    """The devices whose hook the operations make, or take for ours."""
    edits = [operation.payload for operation in plan if isinstance(operation.payload, Edit)]
    return frozenset(
        edit.key.ifindex
        for edit in edits
        if isinstance(edit.key, RedirectKey) and isinstance(edit.after, RedirectSpec) and edit.after.owns_hook
    )


def led_devices(plan: Iterable[Operation]) -> frozenset[int]:
    """The devices whose redirect the operations make, change or remove."""
    keys = [operation.payload.key for operation in plan if isinstance(operation.payload, Edit)]
    return frozenset(key.ifindex for key in keys if isinstance(key, RedirectKey))


def device_of(key: Key) -> int | None:
    """The device of an object, None for the table and what is in it."""
    return None if isinstance(key, TableKey | ElementKey | SetKey | RulesKey) else key.ifindex


def touches_loop(plan: Iterable[Operation]) -> bool:
    """Whether an object that the fast loop writes, or stands on, is among the operations."""
    keys = [operation.payload.key for operation in plan if isinstance(operation.payload, Edit)]
    return any(
        isinstance(key, RootKey | LinkKey) or (isinstance(key, ClassKey) and key.minor in numbers.INNER)
        for key in keys
    )
