"""A model of what the kernel does with planned operations: it refuses, forgets and keeps as HTB and nftables do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from ipaddress import ip_address

from netqos.model.levels import Direction
from netqos.model.plan import Operation
from netqos_tc import numbers, podrules
from netqos_tc.edits import Edit, device_of
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
from netqos_tc.observed import TcObserved
from netqos_tc.places import Device, Route, Routes
from netqos_tc.root import Root
from netqos_tc.spec import ClassSpec, ElementSpec, FilterSpec, RedirectSpec, RulesSpec, Spec

BRIDGE = 50
"""The index of a bridge, behind which are all workloads."""

PORT = 51
"""The index of its only port that leads to workloads."""


class Refused(Exception):
    """The kernel would refuse this operation here."""


class ModelKernel:
    """Objects by key. `roots` are the devices with what stood at their root before."""

    def __init__(self, roots: Mapping[int, Root]) -> None:
        self.specs: dict[Key, Spec] = {}
        self.roots = dict(roots)
        self.saved: dict[str, Root] = {}
        self._going: set[int] = set()
        self.names = {ifindex: f"up{ifindex}" for ifindex in roots}
        self.routes = Routes.of(
            Route(version, length, int(ip_address(network)), 0, BRIDGE)
            for version, length, network in ((4, 16, "10.88.0.0"), (6, 64, "fd00:88::"))
        )
        self.devices = {
            BRIDGE: Device(name="br0", kind="bridge"),
            PORT: Device(name="veth1", kind="veth", master=BRIDGE),
            52: Device(name="eth1", master=BRIDGE),
        }

    def observe(self, *, remembered: Mapping[str, int] | None = None) -> TcObserved:
        trees = {key.ifindex for key in self.specs if isinstance(key, RootKey)}
        return TcObserved(
            ours=dict(self.specs),  # type: ignore[arg-type]  # the backend's own keys
            roots={ifindex: root for ifindex, root in self.roots.items() if ifindex not in trees},
            names={ifindex: self.names.get(ifindex, numbers.IFB_NAME) for ifindex in trees},
            routes=self.routes,
            devices=self.devices,
            saved=dict(self.saved),
            remembered=remembered or {},
        )

    def apply(self, operations: Iterable[Operation], *, held: Iterable[str] = ()) -> None:
        """Carry out what needs none of the incidents that are held back.

        Trees that are to go need no class for what is new: it falls into the default there.
        """
        edits = [
            (one.payload, {one.incident, *one.awaits}) for one in operations if isinstance(one.payload, Edit)
        ]
        self._going = {
            edit.key.ifindex for edit, _ in edits if isinstance(edit.key, RootKey) and not edit.after
        }
        for edit, needed in edits:
            if needed.isdisjoint(held):
                self._apply(edit)

    def _apply(self, edit: Edit) -> None:
        if edit.before != self.specs.get(edit.key):
            raise Refused(f"{edit.key} is not as planned with")
        match edit.key:
            case LinkKey() | RedirectKey() | RootKey():
                self._device(edit)
            case ClassKey():
                self._class(edit.key, edit.after)
            case QueueKey(ifindex, minor):
                self._need(ClassKey(ifindex, minor))
                if self._children(ifindex, minor):
                    raise Refused(f"{edit.key}: an inner class has no queue")
                self._put(edit)
            case FilterKey(ifindex):
                self._need(RootKey(ifindex))
                self._put(edit)
            case TableKey():
                self._table(edit)
            case ElementKey():
                self._need(TableKey())
                self._put(edit)
            case SetKey() | RulesKey():
                self._looked_up(edit, edit.key)

    def _looked_up(self, edit: Edit, key: SetKey | RulesKey) -> None:
        if isinstance(key, SetKey):
            self._set(edit, key)
        else:
            self._rules(edit, key)

    def _set(self, edit: Edit, key: SetKey) -> None:
        self._need(TableKey())
        users = [one for one, spec in self.specs.items() if isinstance(spec, RulesSpec) and key in spec.sets]
        if users and edit.after is None:
            raise Refused(f"{key} is looked up by {users[0]}")
        self._put(edit)

    def _rules(self, edit: Edit, key: RulesKey) -> None:
        """A chain whose rules, and what leads to it, change at once; packets find every class that it gives."""
        self._need(TableKey())
        if isinstance(edit.after, RulesSpec):
            for looked_up in edit.after.sets:
                self._need(looked_up)
            for root in self._trees(key.direction):
                for _item, minor in podrules.classes(edit.after):
                    self._need(ClassKey(root, minor))
        self._put(edit)

    def _trees(self, way: Direction) -> list[int]:
        """The devices with a tree of one direction that stays."""
        roots = [key.ifindex for key in self.specs if isinstance(key, RootKey)]
        return [one for one in roots if _direction(one) is way and one not in self._going]

    def _device(self, edit: Edit) -> None:
        match edit.key:
            case LinkKey(ifindex):
                self._link(edit, ifindex)
            case RedirectKey():
                self._redirect(edit)
            case RootKey(ifindex):
                self._root(edit, ifindex)
            case _:
                raise TypeError(edit.key)

    def _link(self, edit: Edit, ifindex: int) -> None:
        """A device takes with it all that stands on it."""
        if edit.after is None:
            if any(isinstance(key, RedirectKey) for key in self.specs):
                raise Refused(f"{edit.key} goes while packets are led to it, which would be dropped")
            self.specs = {key: spec for key, spec in self.specs.items() if device_of(key) != ifindex}
        self._put(edit)

    def _redirect(self, edit: Edit) -> None:
        if isinstance(edit.after, RedirectSpec):
            kind = numbers.kind_on(edit.after.target)
            self._need(LinkKey(edit.after.target))
            self._need(RootKey(edit.after.target))
            for minor in kind.fixed:
                self._need(ClassKey(edit.after.target, minor))
        self._put(edit)

    def _root(self, edit: Edit, ifindex: int) -> None:
        if ifindex == numbers.IFB_INDEX:
            self._need(LinkKey(ifindex))
        elif edit.after is not None and edit.before is None:
            self.saved[self.names[ifindex]] = self.roots[ifindex]
        self.specs = {
            key: spec
            for key, spec in self.specs.items()
            if device_of(key) != ifindex or isinstance(key, LinkKey)
        }
        if edit.after is None:
            self.saved.pop(self.names.get(ifindex, ""), None)
        self._put(edit)

    def _table(self, edit: Edit) -> None:
        if edit.after is None:
            self.specs = {
                key: spec
                for key, spec in self.specs.items()
                if not isinstance(key, ElementKey | SetKey | RulesKey)
            }
        self._put(edit)

    def _class(self, key: ClassKey, spec: Spec | None) -> None:
        if not isinstance(spec, ClassSpec):
            self._delete_class(key)
            return
        if spec.rate < 1 or spec.ceil < spec.rate:
            raise Refused(f"{key}: rate {spec.rate}, ceil {spec.ceil}")
        parent = numbers.minor_of(spec.parent)
        self._need(ClassKey(key.ifindex, parent) if parent else RootKey(key.ifindex))
        met = self.specs.get(key)
        if isinstance(met, ClassSpec):
            spec = replace(spec, parent=met.parent)  # HTB takes a new parent silently as no change
        elif parent:
            self.specs.pop(QueueKey(key.ifindex, parent), None)  # a leaf that gets a child loses its queue
        self.specs[key] = spec

    def _delete_class(self, key: ClassKey) -> None:
        if self._children(key.ifindex, key.minor):
            raise Refused(f"{key} has children")
        for other, spec in self.specs.items():
            is_users = isinstance(other, FilterKey) and other.ifindex == key.ifindex
            if is_users and isinstance(spec, FilterSpec) and spec.minor == key.minor:
                raise Refused(f"{key} is in use by {other}")
            is_led = isinstance(other, ElementKey) and other.map.direction is _direction(key.ifindex)
            if is_led and isinstance(spec, ElementSpec) and spec.minor == key.minor:
                raise Refused(f"{other} still leads to {key}: its packets would go astray")
            is_ruled = isinstance(other, RulesKey) and other.direction is _direction(key.ifindex)
            if (
                is_ruled
                and isinstance(spec, RulesSpec)
                and key.minor in dict(podrules.classes(spec)).values()
            ):
                raise Refused(f"{other} still leads to {key}: its packets would go astray")
        del self.specs[key]
        self.specs.pop(QueueKey(key.ifindex, key.minor), None)

    def _children(self, ifindex: int, minor: int) -> list[ClassKey]:
        parent = numbers.class_id(minor, ifindex)
        return [
            key
            for key, spec in self.specs.items()
            if isinstance(key, ClassKey)
            and key.ifindex == ifindex
            and isinstance(spec, ClassSpec)
            and spec.parent == parent
        ]

    def _need(self, key: Key) -> None:
        if key not in self.specs:
            raise Refused(f"{key} is not there")

    def _put(self, edit: Edit) -> None:
        if edit.after is None:
            self.specs.pop(edit.key, None)
            return
        if isinstance(edit.key, ElementKey) and isinstance(edit.after, ElementSpec):
            for root in self._trees(edit.key.map.direction):
                self._need(ClassKey(root, edit.after.minor))
        self.specs[edit.key] = edit.after


def _direction(ifindex: int) -> Direction:
    return numbers.kind_on(ifindex).direction
