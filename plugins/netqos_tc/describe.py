"""Objects and their changes in words, for plans, logs and failures. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from netqos.model.quantities import bits_per_s, format_bandwidth
from netqos_tc import numbers
from netqos_tc.numbers import class_id
from netqos_tc.root import Root
from netqos_tc.spec import (
    ClassKey,
    ClassSpec,
    ElementKey,
    ElementSpec,
    FilterKey,
    FilterSpec,
    Key,
    LeafQueueSpec,
    QueueKey,
    RootKey,
    RootSpec,
    Spec,
    TableKey,
    TableSpec,
)

_FIXED = {
    numbers.TOTAL: "total",
    **{minor: level.name for level, minor in numbers.LEVELS.items()},
    numbers.CONTROL: "control frames",
    numbers.CRITICAL: "critical units",
    numbers.HOST: "host",
    numbers.UNKNOWN: "unknown",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What people call things: devices by index, workloads by the minor of their leaf."""

    devices: Mapping[int, str] = field(default_factory=dict)
    workloads: Mapping[int, str] = field(default_factory=dict)

    def device(self, ifindex: int) -> str:
        """A device's name, or its index where it has gone."""
        return self.devices.get(ifindex, f"device {ifindex}")

    def leaf(self, minor: int) -> str:
        """Whose class it is; empty for one that nobody owns."""
        return _FIXED.get(minor) or self.workloads.get(minor, "")


def subject(key: Key, names: Names) -> str:
    """The object; stable, since repairs are counted by it."""
    match key:
        case RootKey():
            return f"root qdisc of {names.device(key.ifindex)}"
        case ClassKey():
            return f"class {numbers.text(class_id(key.minor))} on {names.device(key.ifindex)}"
        case QueueKey():
            return f"queue of class {numbers.text(class_id(key.minor))} on {names.device(key.ifindex)}"
        case FilterKey():
            chain = f" of chain {key.chain}" if key.chain else ""
            place = f" of class {numbers.text(class_id(key.minor))}" if key.minor else ""
            return f"filter {key.preference}{chain}{place} on {names.device(key.ifindex)}"
        case TableKey():
            return "table inet netqos"
        case ElementKey():
            return f"element {key.value} of map {key.map.value}"
        case _:
            assert_never(key)


def change(
    key: Key, before: Spec | None, after: Spec | None, names: Names, *, earlier: Root | None = None
) -> str:
    """What changes: only the values that differ."""
    if isinstance(key, RootKey):
        return _root(before, after, earlier)
    if isinstance(key, TableKey):
        return _table(before, after)
    if after is None:
        return _leaving(key, before, names)
    old, new = (_values(spec, names) for spec in (before, after))
    parts = [
        (f"{name} {old[name]} -> {value}" if name in old else f"{name} {value}")
        for name, value in new.items()
        if old.get(name) != value
    ]
    owner = names.leaf(key.minor) if isinstance(key, ClassKey | QueueKey) else ""
    words = ", ".join(parts) or "made again"
    return f"{owner}: {words}" if owner else words


def _table(before: Spec | None, after: Spec | None) -> str:
    if after is None:
        return "packets are no longer told apart"
    return "tells packets to their classes" if before is None else "rules and maps put back"


def _leaving(key: Key, before: Spec | None, names: Names) -> str:
    """What goes, and whose it was."""
    if isinstance(before, ElementSpec):
        owner = names.workloads.get(before.minor, before.owner)
        return f"no longer class {numbers.text(class_id(before.minor))} of {owner}"
    owner = names.leaf(key.minor) if isinstance(key, ClassKey) else ""
    return f"no longer {owner}'s" if owner else "nobody's"


def _root(before: Spec | None, after: Spec | None, earlier: Root | None) -> str:
    if after is None:
        back = "the device's default" if earlier is None or earlier.is_default else earlier.text
        return f"back to {back}"
    if before is not None:
        return "removed and made again"
    return f"htb 4e51: instead of {earlier.text}" if earlier is not None else "htb 4e51:"


def _values(spec: Spec | None, names: Names) -> dict[str, str]:
    match spec:
        case None | RootSpec() | TableSpec():
            return {}
        case ClassSpec():
            return _class_values(spec)
        case LeafQueueSpec():
            return {"queue": f"{spec.kind} {spec.limit} bytes"}
        case FilterSpec():
            return {f"protocol {spec.protocol:04x} to": numbers.text(class_id(spec.minor))}
        case ElementSpec():
            owner = names.workloads.get(spec.minor, spec.owner)
            return {"class": numbers.text(class_id(spec.minor)), "owner": owner}
        case _:
            assert_never(spec)


def _class_values(spec: ClassSpec) -> dict[str, str]:
    values = {
        "rate": format_bandwidth(bits_per_s(spec.rate)),
        "ceil": format_bandwidth(bits_per_s(spec.ceil)),
        "prio": str(spec.prio),
        "quantum": str(spec.quantum),
        "buffer": f"{spec.buffer} ticks",
        "cbuffer": f"{spec.cbuffer} ticks",
        "parent": numbers.text(spec.parent),
    }
    return {name: value for name, value in values.items() if value != "None"}
