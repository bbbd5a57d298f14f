"""A model of what a real enforcement obeys: a tree of classes, and matches that lead packets into its leaves.

It refuses what a kernel refuses: a child without its parent, a second object of one key, the removal of what is in
use. In one thing it is stricter, so that tests see a wrong order: no level may have more than its root. It can be told
to fail, and it can be changed behind a backend's back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from netqos.errors import Retryable
from netqos.model.levels import PerLevel
from netqos.model.traffic import Unit

Key = tuple[str, ...]
"""`(kind, ...)`: root, level, leaf or match, and what tells it from its siblings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeClass:
    """A root, level or leaf: rates in bits per second. A root has no parent."""

    parent: Key | None
    guarantee_bps: int
    ceiling_bps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeMatch:
    """Packets of these addresses (or this cgroup) go to the leaf."""

    leaf: Key
    addresses: tuple[str, ...]
    cgroup: str | None


Thing = FakeClass | FakeMatch


class Refused(Exception):
    """The kernel's answer to a bad request: `code` is an errno name."""

    def __init__(self, code: str, message: str) -> None:
        """Keep the code apart."""
        super().__init__(message)
        self.code = code


class FakeKernel:
    """Everything there is on one host. `foreign` maps a device to somebody else's qdisc on it."""

    def __init__(self, *, foreign: dict[str, str] | None = None) -> None:
        """An empty host, but for what is foreign."""
        self.things: dict[Key, Thing] = {}
        self.foreign = dict(foreign or {})
        self.level_bytes: dict[Unit, PerLevel[int]] = {}
        self.backlogged: set[Unit] = set()
        self.version = 0
        self.writes = 0
        self._failures: list[str] = []

    def fail_next(self, times: int, code: str = "EBUSY") -> None:
        """Refuse the next writes, whatever they are."""
        self._failures += [code] * times

    def behind_your_back(self) -> Key:
        """Somebody removes an object that nothing depends on: the last one. Its key is returned."""
        key = next(reversed(self.things))
        del self.things[key]
        self.version += 1
        return key

    def create(self, key: Key, thing: Thing) -> None:
        """Add an object below one that is there."""
        self._begin()
        if key in self.things:
            raise Refused("EEXIST", f"{key} is there already")
        self._check(thing)
        self._store(key, thing)

    def change(self, key: Key, thing: Thing) -> None:
        """Replace an object's values; a class cannot move to another parent."""
        self._begin()
        old = self.things.get(key)
        if old is None:
            raise Refused("ENOENT", f"{key} is not there")
        if isinstance(old, FakeClass) and isinstance(thing, FakeClass) and old.parent != thing.parent:
            raise Refused("EINVAL", f"{key} cannot move from {old.parent} to {thing.parent}")
        self._check(thing)
        if isinstance(thing, FakeClass):
            self._check_children(key, thing)
        self._store(key, thing)

    def delete(self, key: Key) -> None:
        """Remove an object that nothing uses."""
        self._begin()
        if key not in self.things:
            raise Refused("ENOENT", f"{key} is not there")
        users = [other for other, thing in self.things.items() if key in _used_by(thing)]
        if users:
            raise Refused("EBUSY", f"{key} is used by {users[0]}")
        del self.things[key]
        self._wrote()

    def require(self, key: Key) -> FakeClass:
        """A class that must be there; `Retryable` when it is gone."""
        thing = self.things.get(key)
        if not isinstance(thing, FakeClass):
            raise Retryable("is gone", subject=" ".join(key))
        return thing

    def _begin(self) -> None:
        if self._failures:
            raise Refused(self._failures.pop(0), "told to fail")

    def _check(self, thing: Thing) -> None:
        for used in _used_by(thing):
            if used not in self.things:
                raise Refused("ENOENT", f"{used} is not there")
        if isinstance(thing, FakeClass) and thing.parent is not None:
            parent = self.require(thing.parent)
            if parent.parent is None and thing.ceiling_bps > parent.ceiling_bps:
                raise Refused("EINVAL", f"{thing.ceiling_bps} bit/s below one of {parent.ceiling_bps}")

    def _check_children(self, key: Key, thing: FakeClass) -> None:
        if thing.parent is not None:
            return
        for other, child in self.things.items():
            if isinstance(child, FakeClass) and child.parent == key and child.ceiling_bps > thing.ceiling_bps:
                raise Refused(
                    "EINVAL", f"{other} has {child.ceiling_bps} bit/s, more than {thing.ceiling_bps}"
                )

    def _store(self, key: Key, thing: Thing) -> None:
        self.things[key] = thing
        self._wrote()

    def _wrote(self) -> None:
        self.version += 1
        self.writes += 1


def _used_by(thing: Thing) -> Iterable[Key]:
    if isinstance(thing, FakeMatch):
        return (thing.leaf,)
    return () if thing.parent is None else (thing.parent,)
