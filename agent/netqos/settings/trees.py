"""Reading untrusted JSON-like trees: everything may be missing, null or of another type, and nothing here raises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from netqos.model.inputs import NO_LIMITS, Amount, LevelPolicy, Percent
from netqos.model.levels import Direction, Level, PerDirection
from netqos.model.texts import shown
from netqos.settings.issues import Code, Issues, Path

T = TypeVar("T")
Tree = Mapping[str, object]

FULL = Percent(100)
BOOLEANS = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}
_MEANT: Mapping[object, str] = {
    **{word: str(value).lower() for word, value in BOOLEANS.items()},
    0: "false",
    1: "true",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What one shape of a policy says, as in `NodePolicy`; a level that it does not mention is not in `levels`."""

    enabled: bool | None = None
    total: PerDirection[int | None] = NO_LIMITS
    levels: Mapping[Level, LevelPolicy] = field(default_factory=dict)
    invalid: frozenset[Level] = frozenset()
    invalid_total: frozenset[Direction] = frozenset()


def section(tree: Tree, key: str, path: Path, issues: Issues) -> Tree:
    """The map under a key; empty when it is missing, null, or no map, which is an issue."""
    found = tree.get(key)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        issues.add(
            Code.POLICY, (*path, key), f"{shown(found)} is no map; allowed: a map", hint="or leave it out"
        )
        return {}
    return found


def flag(tree: Tree, key: str, path: Path, issues: Issues) -> bool | None:
    """The boolean under a key; None when it is missing, null, or no boolean, which is an issue."""
    found = tree.get(key)
    if found is None or isinstance(found, bool):
        return found
    issues.add(Code.POLICY, (*path, key), f"{shown(found)}; allowed: true, false", hint=boolean_hint(found))
    return None


def boolean_hint(value: object) -> str:
    """The next step for a value that was met in the place of a boolean."""
    word = value.lower() if isinstance(value, str) else value
    meant = _MEANT.get(word) if isinstance(word, (str, int)) else None
    if meant is None:
        return "write true or false"
    return f"write {meant}, without quotes" if word == meant else f"write {meant}"


def optional(
    tree: Tree,
    key: str,
    path: Path,
    issues: Issues,
    *,
    parse: Callable[[object], T],
    code: Code = Code.POLICY,
) -> T | None:
    """`parse` of the value under a key; None when that is missing, null, an empty text, or wrong, which is an issue."""
    found = tree.get(key)
    if found is None or found == "":
        return None
    return issues.attempt(code, (*path, key), parse, found)


def ceiling(amount: Amount | None) -> Amount | None:
    """A ceiling of 0 means "no ceiling", as for a pod's limit: the whole total."""
    is_none = amount is not None and (amount == 0 or amount == Percent(0))
    return FULL if is_none else amount
