"""A model of what the kernel does with planned operations: it refuses, forgets and keeps as HTB and nftables do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from netqos.model.plan import Operation
from netqos_tc import numbers
from netqos_tc.changes import Edit, device_of
from netqos_tc.observed import TcObserved
from netqos_tc.root import Root
from netqos_tc.spec import (
    ClassKey,
    ClassSpec,
    ElementKey,
    ElementSpec,
    FilterKey,
    FilterSpec,
    Key,
    QueueKey,
    RootKey,
    Spec,
    TableKey,
)


class Refused(Exception):
    """The kernel would refuse this operation here."""


class ModelKernel:
    """Objects by key. `roots` are the devices with what stood at their root before."""

    def __init__(self, roots: Mapping[int, Root]) -> None:
        self.specs: dict[Key, Spec] = {}
        self.roots = dict(roots)
        self.saved: dict[str, Root] = {}
        self.names = {ifindex: f"up{ifindex}" for ifindex in roots}

    def observe(self, *, remembered: Mapping[str, int] | None = None) -> TcObserved:
        trees = {key.ifindex for key in self.specs if isinstance(key, RootKey)}
        return TcObserved(
            ours=dict(self.specs),  # type: ignore[arg-type]  # the backend's own keys
            roots={ifindex: root for ifindex, root in self.roots.items() if ifindex not in trees},
            names={ifindex: self.names[ifindex] for ifindex in trees},
            saved=dict(self.saved),
            remembered=remembered or {},
        )

    def apply(self, operations: Iterable[Operation]) -> None:
        for operation in operations:
            assert isinstance(operation.payload, Edit)
            self._apply(operation.payload)

    def _apply(self, edit: Edit) -> None:
        if edit.before != self.specs.get(edit.key):
            raise Refused(f"{edit.key} is not as planned with")
        match edit.key:
            case RootKey(ifindex):
                self._root(edit, ifindex)
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

    def _root(self, edit: Edit, ifindex: int) -> None:
        if edit.after is not None and edit.before is None:
            self.saved[self.names[ifindex]] = self.roots[ifindex]
        self.specs = {key: spec for key, spec in self.specs.items() if device_of(key) != ifindex}
        if edit.after is None:
            self.saved.pop(self.names[ifindex], None)
        self._put(edit)

    def _table(self, edit: Edit) -> None:
        if edit.after is None:
            self.specs = {key: spec for key, spec in self.specs.items() if not isinstance(key, ElementKey)}
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
            if isinstance(spec, ElementSpec) and spec.minor == key.minor:
                raise Refused(f"{other} still leads to {key}: its packets would go astray")
        del self.specs[key]
        self.specs.pop(QueueKey(key.ifindex, key.minor), None)

    def _children(self, ifindex: int, minor: int) -> list[ClassKey]:
        parent = numbers.class_id(minor)
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
        if isinstance(edit.after, ElementSpec):
            for root in [key for key in self.specs if isinstance(key, RootKey)]:
                self._need(ClassKey(root.ifindex, edit.after.minor))
        self.specs[edit.key] = edit.after
