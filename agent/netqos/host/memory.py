"""What the agent itself remembers over a restart, as values: last good inputs, accepted configuration, overrides.

Values go through JSON and come back equal. A document of another shape is set aside, and that memory starts
empty.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Generic, Protocol, TypeVar

from pydantic import AfterValidator, BeforeValidator, TypeAdapter, ValidationError

from netqos.backend import StateStore
from netqos.engine.pathlimits import PathLimit
from netqos.model.composed import EMPTY_LAST_GOOD, LastGood
from netqos.model.inputs import Override
from netqos.model.texts import shown

T = TypeVar("T")

_SHARE = re.compile(r"([0-9]{1,400})(?:/([0-9]{1,400}))?")

Documents = tuple[tuple[str, str], ...]
"""Texts of a configuration, each with the name of its file, in the order in which they apply."""


class Store(StateStore, Protocol):
    """Where the documents are: `netqos.host.state.StateFolder`."""

    def set_aside(self, name: str, reason: str) -> None:
        """Move a document out of the way that makes no sense to its reader, and report it."""
        ...


class Remembered(Generic[T]):
    """One value in one document."""

    def __init__(self, store: Store, name: str, kind: TypeAdapter[T], nothing: T) -> None:
        """`nothing` stands for a document that is not there."""
        self._store = store
        self._name = name
        self._kind = kind
        self._nothing = nothing

    def load(self) -> T:
        """The value, or the one that stands for nothing."""
        document = self._store.load(self._name)
        if document is None:
            return self._nothing
        try:
            return self._kind.validate_python(document)
        except ValidationError as problem:
            self._store.set_aside(self._name, _first_problem(problem))
            return self._nothing

    def save(self, value: T) -> None:
        """Keep the value; an equal one is not written again, in whatever order its sets come out."""
        if value != self.load():
            self._store.save(self._name, self._kind.dump_python(value, mode="json"))


class AgentMemory:
    """Everything that the agent itself remembers; who uses an override checks whether it has ended."""

    def __init__(self, store: Store) -> None:
        """Nothing is read yet."""
        self.last_good: Remembered[LastGood] = Remembered(
            store, "last-good", TypeAdapter(Annotated[LastGood, BeforeValidator(_checked)]), EMPTY_LAST_GOOD
        )
        self.configuration: Remembered[Documents] = Remembered(
            store, "configuration", TypeAdapter(Documents), ()
        )
        self.path_limits: Remembered[tuple[PathLimit, ...]] = Remembered(
            store, "path-limits", TypeAdapter(tuple[PathLimit, ...]), ()
        )
        self.overrides: Remembered[tuple[Override, ...]] = Remembered(
            store,
            "overrides",
            TypeAdapter(tuple[Annotated[Override, AfterValidator(_refuse_endless)], ...]),
            (),
        )


def _checked(document: object) -> object:
    """The document, in which every share is one: they are kept as text, whose numbers nobody has looked at yet."""
    inner = document.items() if isinstance(document, dict) else ()
    for key, value in inner:
        if key == "value" and isinstance(value, str | int | float) and not _is_share(str(value)):
            raise ValueError(f"{shown(value)} is no share; allowed are 0 to 100, also as a fraction")
        _checked(value)
    return document


def _is_share(text: str) -> bool:
    found = _SHARE.fullmatch(text)
    return found is not None and int(found[1]) <= 100 * int(found[2] or 1) != 0


def _refuse_endless(override: Override) -> Override:
    if not (math.isfinite(override.expires_wall_s) and math.isfinite(override.expires_boot_s)):
        raise ValueError("an override ends at a time that clocks reach")
    return override


def _first_problem(problem: ValidationError) -> str:
    first = problem.errors(include_url=False, include_context=False)[0]
    place = ".".join(shown(part).strip('"') for part in first["loc"])
    return f"{place}: {first['msg']}" if place else first["msg"]
