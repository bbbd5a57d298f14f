"""Frozen values as JSON trees and back: what is unpacked equals what was packed, bit for bit. Pure.

A dataclass is the list of its fields in their order, an enum's member its name, a mapping the list of its pairs. So a
tree says nothing without its form, which tells every dataclass of a type with its fields; trees of another form are
not unpacked. Floats are exact, as JSON's shortest text of one is read back as the same.
"""

from __future__ import annotations

import enum
import math
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from netqos.errors import Rejected
from netqos.model.texts import shown

T = TypeVar("T")
Unpack = Callable[[object], Any]

_ATOMS: Mapping[Any, tuple[str, Callable[[object], bool]]] = {
    bool: ("true or false", lambda tree: type(tree) is bool),
    int: ("an integer", lambda tree: type(tree) is int),
    float: ("a number", lambda tree: type(tree) is int or (type(tree) is float and math.isfinite(tree))),
    str: ("a text", lambda tree: type(tree) is str),
}


def pack(value: object) -> object:
    """The tree of a value made of dataclasses, enums, tuples, mappings and plain values."""
    kind: Any = type(value)
    if is_dataclass(value):
        return [pack(getattr(value, name)) for name in _names(kind)]
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, tuple):
        return [pack(one) for one in value]
    if isinstance(value, Mapping):
        return [[pack(key), pack(one)] for key, one in value.items()]
    return value


def unpack(kind: type[T], tree: object) -> T:
    """The value of a type from its tree; `Rejected` for a tree that is none of it."""
    alias: Any = kind
    found: T = _unpacker(alias)(tree)
    return found


def form(kind: type) -> dict[str, list[str]]:
    """Every dataclass that values of the type are made of, with its fields and their types as the code has them."""
    return {
        one.__name__: [f"{field.name}: {field.type}" for field in fields(one)]
        for one in sorted(set(_dataclasses(kind, set())), key=lambda one: one.__name__)
    }


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _dataclasses(kind: Any, seen: set[Any]) -> Iterator[Any]:
    if kind in seen:
        return
    seen.add(kind)
    origin = get_origin(kind) or kind
    if is_dataclass(origin):
        yield origin
        for one in get_type_hints(origin).values():
            yield from _dataclasses(one, seen)
    for one in get_args(kind):
        yield from _dataclasses(one, seen)


@cache
def _unpacker(kind: Any) -> Unpack:
    kind = getattr(kind, "__supertype__", kind)
    origin, args = get_origin(kind), get_args(kind)
    if kind in _ATOMS:
        return _atom(*_ATOMS[kind])
    if is_dataclass(origin or kind):
        return _record(origin or kind, args)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return _member(kind)
    if origin is tuple:
        return _list(_unpacker(args[0]))
    if origin in {Union, types.UnionType}:
        (inner,) = (one for one in args if one is not type(None))
        return _optional(_unpacker(inner))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(_unpacker(args[0]), _unpacker(args[1]))
    raise TypeError(f"values of {kind} cannot be unpacked")


def _atom(allowed: str, fits: Callable[[object], bool]) -> Unpack:
    def unpack_one(tree: object) -> object:
        return tree if fits(tree) else _refuse(tree, allowed)

    return unpack_one


def _member(kind: type[enum.Enum]) -> Unpack:
    def unpack_one(tree: object) -> object:
        found = kind.__members__.get(tree) if isinstance(tree, str) else None
        return found if found is not None else _refuse(tree, f"one of {', '.join(kind.__members__)}")

    return unpack_one


def _record(kind: type, args: tuple[Any, ...]) -> Unpack:
    filled = dict(zip(getattr(kind, "__parameters__", ()), args, strict=True))
    hints = get_type_hints(kind)
    parts = [(name, _unpacker(filled.get(hints[name], hints[name]))) for name in _names(kind)]

    def unpack_one(tree: object) -> object:
        if not isinstance(tree, list) or len(tree) != len(parts):
            return _refuse(tree, f"the {len(parts)} fields of {kind.__name__}")
        return kind(**{name: unpack_part(one) for (name, unpack_part), one in zip(parts, tree, strict=True)})

    return unpack_one


def _list(unpack_part: Unpack) -> Unpack:
    def unpack_one(tree: object) -> object:
        return tuple(map(unpack_part, tree)) if isinstance(tree, list) else _refuse(tree, "a list")

    return unpack_one


def _optional(unpack_part: Unpack) -> Unpack:
    return lambda tree: None if tree is None else unpack_part(tree)


def _mapping(unpack_key: Unpack, unpack_part: Unpack) -> Unpack:
    def unpack_one(tree: object) -> object:
        if not isinstance(tree, list) or not all(isinstance(one, list) and len(one) == 2 for one in tree):
            return _refuse(tree, "a list of pairs")
        return {unpack_key(key): unpack_part(one) for key, one in tree}

    return unpack_one


def _refuse(tree: object, allowed: str) -> object:
    raise Rejected(f"{shown(tree)} where {allowed} must stand")
