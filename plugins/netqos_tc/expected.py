"""What a plan leaves behind, so that a read-back which shows just that needs no second plan. Pure.

Only plans that change nothing but leaves and elements of workloads: of everything else more depends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from netqos.model.desired import DesiredState
from netqos.model.plan import Operation
from netqos_tc import changes
from netqos_tc.edits import Edit
from netqos_tc.keys import ClassKey, ElementKey, ElementMap, Key, QueueKey
from netqos_tc.layout import Facilities, Layout, lay_out
from netqos_tc.numbers import is_pod_minor
from netqos_tc.observed import TcObserved
from netqos_tc.options import Options
from netqos_tc.spec import ClassSpec, LeafQueueSpec, Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """A layout, and from what it was made."""

    desired: DesiredState
    observed: TcObserved
    facilities: Facilities
    layout: Layout
    is_plain: bool
    keeps_places: bool

    def is_reached(self, desired: DesiredState, met: TcObserved, facilities: Facilities) -> bool:
        """Whether `met` has exactly what was laid out for the same desired state in the same surroundings."""
        return (
            self.is_plain
            and desired is self.desired
            and facilities == self.facilities
            and _around(met) == _around(self.observed)
            and met.specs == self.layout.specs
        )


def lay(
    desired: DesiredState, observed: TcObserved, options: Options, facilities: Facilities
) -> tuple[Laid, tuple[Operation, ...]]:
    """What is laid out for a desired state, and the ordered operations that lead there from what was observed."""
    layout = lay_out(desired, observed, options, facilities)
    devices = {ifindex: one.name for ifindex, one in observed.devices.items()}
    names = layout.names({**devices, **observed.names, **{one.index: one.name for one in desired.uplinks}})
    operations = changes.operations(layout.specs, observed, names, complete=layout.is_whole)
    laid = Laid(
        desired=desired,
        observed=observed,
        facilities=facilities,
        layout=layout,
        is_plain=is_plain(operations),
        keeps_places=keeps_places(operations),
    )
    return laid, operations


def is_plain(operations: Iterable[Operation]) -> bool:
    """Whether only leaves and elements of workloads are made, changed or removed."""
    return all(isinstance(one.payload, Edit) and _is_plain(one.payload.key) for one in operations)


def keeps_places(operations: Iterable[Operation]) -> bool:
    """Whether nothing comes or goes, and every class stays under its parent."""
    return all(isinstance(one.payload, Edit) and _keeps_place(one.payload) for one in operations)


def specs_after(specs: Mapping[Key, Spec], operations: Iterable[Operation]) -> dict[Key, Spec]:
    """The objects when plain operations have succeeded; a class takes its queue along."""
    found = dict(specs)
    for edit in (one.payload for one in operations if isinstance(one.payload, Edit)):
        if edit.after is not None:
            found[edit.key] = edit.after
            continue
        found.pop(edit.key, None)
        if isinstance(edit.key, ClassKey):
            found.pop(QueueKey(edit.key.ifindex, edit.key.minor), None)
    return found


def _is_plain(key: Key) -> bool:
    if isinstance(key, ClassKey | QueueKey):
        return is_pod_minor(key.minor)
    return isinstance(key, ElementKey) and key.map is not ElementMap.NC


def _keeps_place(edit: Edit) -> bool:
    before, after = edit.before, edit.after
    if isinstance(before, ClassSpec) and isinstance(after, ClassSpec):
        return before.parent == after.parent
    return isinstance(before, LeafQueueSpec) and isinstance(after, LeafQueueSpec)


def _around(observed: TcObserved) -> tuple[object, ...]:
    """What a layout looks at beside the objects."""
    return (
        observed.roots,
        observed.devices,
        observed.routes,
        observed.hooks,
        observed.own_hooks,
        observed.foreign_ifb,
        observed.net_classes,
    )
