"""What the backend found on the node, as one value. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

from netqos.model.plan import ObservedState
from netqos_tc import numbers
from netqos_tc.keys import ClassKey, ElementKey, Key, RootKey
from netqos_tc.places import Device, Hook, Routes
from netqos_tc.root import Root
from netqos_tc.spec import ClassSpec, ElementSpec, Spec

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TcObserved(ObservedState):
    """`ObservedState` with what only this backend needs; `ours` holds `spec.Key` -> `spec.Spec`.

    `roots`: the root qdiscs that are not ours, by device. `names`: the devices that have a tree of ours. `saved`: the
    earlier roots kept in the state folder, by device name. `remembered`: the last known minor of each owner, from
    this process's memory; it keeps classes when somebody flushed the table that tells their owners.

    `routes`, `devices` and `hooks` tell where workloads are and what others have there. `own_hooks` are the devices
    whose hook we made, from memory too: it keeps that when somebody removes our filter alone. `led` are those that led
    to the IFB, from memory likewise. `foreign_ifb` says what
    stands where our IFB belongs, None for nothing. `net_classes` are the numbers in `net_cls.classid` by the path of
    the folder, None where cgroups are of version 2 or that controller is not mounted.
    """

    roots: Mapping[int, Root] = field(default_factory=dict)
    names: Mapping[int, str] = field(default_factory=dict)
    saved: Mapping[str, Root] = field(default_factory=dict)
    remembered: Mapping[str, int] = field(default_factory=dict)
    routes: Routes = field(default_factory=Routes)
    devices: Mapping[int, Device] = field(default_factory=dict)
    hooks: Mapping[int, Hook] = field(default_factory=dict)
    own_hooks: frozenset[int] = frozenset()
    led: frozenset[int] = frozenset()
    foreign_ifb: str | None = None
    net_classes: Mapping[str, int] | None = None
    _derived: dict[object, object] = field(default_factory=dict, init=False, repr=False, compare=False)

    def once(self, make: Callable[[TcObserved], T]) -> T:
        """What `make` makes of this value, made once: of which objects are where, not of their numbers."""
        if make not in self._derived:
            self._derived[make] = make(self)
        return cast("T", self._derived[make])

    def inherit(self, other: TcObserved) -> None:
        """Take over what was made of another value, which has the same objects in the same places."""
        self._derived.update(other._derived)

    def device_name(self, ifindex: int) -> str:
        """A device's name, or its index where that is not known."""
        known = self.devices.get(ifindex)
        return known.name if known is not None else f"device {ifindex}"

    def classes_on(self, ifindex: int) -> Mapping[int, ClassSpec]:
        """The inner classes on one device, by minor."""
        keys = {minor: ClassKey(ifindex, minor) for minor in numbers.INNER}
        found = {minor: self.specs.get(key) for minor, key in keys.items()}
        return {minor: spec for minor, spec in found.items() if isinstance(spec, ClassSpec)}

    @property
    def specs(self) -> Mapping[Key, Spec]:
        """`ours` with its types."""
        return self.ours  # type: ignore[return-value]  # a backend's own keys and specs (see ObservedState)

    @property
    def trees(self) -> tuple[int, ...]:
        """The devices that have a root of ours."""
        return tuple(sorted(key.ifindex for key in self.specs if isinstance(key, RootKey)))

    @property
    def classes(self) -> Mapping[ClassKey, ClassSpec]:
        """The classes of our trees."""
        return {
            key: spec
            for key, spec in self.specs.items()
            if isinstance(key, ClassKey) and isinstance(spec, ClassSpec)
        }

    @property
    def elements(self) -> Mapping[ElementKey, ElementSpec]:
        """The elements of our maps."""
        return {
            key: spec
            for key, spec in self.specs.items()
            if isinstance(key, ElementKey) and isinstance(spec, ElementSpec)
        }
