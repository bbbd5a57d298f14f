"""Objects and their changes in words, for plans, logs and failures. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from netqos.model.quantities import bits_per_s, format_bandwidth
from netqos_tc import numbers, podrules
from netqos_tc.keys import (
    ClassKey,
    ElementKey,
    ElementMap,
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
from netqos_tc.numbers import class_id
from netqos_tc.root import Root
from netqos_tc.spec import (
    ClassSpec,
    ElementSpec,
    FilterSpec,
    LeafQueueSpec,
    LinkSpec,
    RedirectSpec,
    RootSpec,
    RulesSpec,
    SetSpec,
    Spec,
    TableSpec,
)

_FIXED = {
    numbers.TOTAL: "total",
    **{minor: level.name for level, minor in numbers.LEVELS.items()},
    numbers.CONTROL: "control frames",
    numbers.CRITICAL: "critical units",
    numbers.HOST: "host",
    numbers.UNKNOWN: "unknown",
    numbers.LOCAL: "traffic within the node",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What people call things: devices by index, workloads by the minor of their leaf.

    `pods` has a workload by the minor of each class that is its own, `rules` are those that belong to one rule of it,
    `behind` has the workloads that receive by a device.
    """

    devices: Mapping[int, str] = field(default_factory=dict)
    workloads: Mapping[int, str] = field(default_factory=dict)
    pods: Mapping[int, str] = field(default_factory=dict)
    rules: frozenset[int] = frozenset()
    behind: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    def device(self, ifindex: int) -> str:
        """A device's name, or its index where it has gone."""
        known = numbers.IFB_NAME if ifindex == numbers.IFB_INDEX else f"device {ifindex}"
        return self.devices.get(ifindex, known)

    def leaf(self, minor: int) -> str:
        """Whose class it is; empty for one that nobody owns."""
        return _FIXED.get(minor) or self.workloads.get(minor, "")


def subject(key: Key, names: Names) -> str:
    """The object; stable, since repairs are counted by it."""
    match key:
        case LinkKey():
            return f"device {names.device(key.ifindex)}"
        case RedirectKey():
            return f"redirect at the egress of {names.device(key.ifindex)}"
        case RootKey():
            return f"root qdisc of {names.device(key.ifindex)}"
        case ClassKey():
            return f"class {numbers.text(class_id(key.minor, key.ifindex))} on {names.device(key.ifindex)}"
        case QueueKey():
            klass = numbers.text(class_id(key.minor, key.ifindex))
            return f"queue of class {klass} on {names.device(key.ifindex)}"
        case FilterKey():
            chain = f" of chain {key.chain}" if key.chain else ""
            place = f" of class {numbers.text(class_id(key.minor, key.ifindex))}" if key.minor else ""
            return f"filter {key.preference}{chain}{place} on {names.device(key.ifindex)}"
        case TableKey() | ElementKey() | SetKey() | RulesKey():
            return _leader(key)
        case _:
            assert_never(key)


def _leader(key: TableKey | ElementKey | SetKey | RulesKey) -> str:
    """What tells packets their class."""
    if isinstance(key, ElementKey):
        is_folder = key.map is ElementMap.NC
        return (
            f"net_cls.classid of {key.value}" if is_folder else f"element {key.value} of map {key.map.value}"
        )
    if isinstance(key, SetKey):
        return f"set {key.name}"
    return "table inet netqos" if isinstance(key, TableKey) else f"chain {podrules.chain_name(key)}"


def change(
    key: Key, before: Spec | None, after: Spec | None, names: Names, *, earlier: Root | None = None
) -> str:
    """What changes: only the values that differ."""
    if isinstance(key, RootKey):
        return _root(key.ifindex, before, after, earlier)
    if isinstance(key, TableKey):
        return _table(before, after)
    if after is None:
        return _leaving(key, before, names)
    old, new = (_values(key, spec, names) for spec in (before, after))
    parts = [
        (f"{name} {old[name]} -> {value}" if name in old else f"{name} {value}")
        for name, value in new.items()
        if old.get(name) != value
    ]
    owner = names.leaf(key.minor) if isinstance(key, ClassKey | QueueKey | RulesKey) else ""
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
        return f"no longer class {numbers.text(_class_of(key, before))} of {owner}"
    if isinstance(key, LinkKey):
        return "removed; nothing is shaped on its way in"
    if isinstance(key, RedirectKey):
        return "no workload's ingress passes it to be shaped"
    owner = names.leaf(key.minor) if isinstance(key, ClassKey | RulesKey) else ""
    return f"no longer {owner}'s" if owner else "nobody's"


def _root(ifindex: int, before: Spec | None, after: Spec | None, earlier: Root | None) -> str:
    if after is None:
        back = "the device's default" if earlier is None or earlier.is_default else earlier.text
        return f"back to {back}"
    if before is not None:
        return "removed and made again"
    own = f"htb {numbers.text(numbers.kind_on(ifindex).root)}"
    return f"{own} instead of {earlier.text}" if earlier is not None else own


def _class_of(key: Key, element: ElementSpec) -> int:
    """The class that an element leads to."""
    assert isinstance(key, ElementKey)
    return numbers.KINDS[key.map.direction].class_id(element.minor)


def _values(key: Key, spec: Spec | None, names: Names) -> dict[str, str]:
    match spec:
        case None | RootSpec() | TableSpec():
            return {}
        case ClassSpec():
            return _class_values(spec)
        case LeafQueueSpec():
            return _queue_values(spec)
        case FilterSpec():
            return {f"protocol {spec.protocol:04x} to": numbers.text(class_id(spec.minor))}
        case ElementSpec():
            owner = names.workloads.get(spec.minor, spec.owner)
            return {"class": numbers.text(_class_of(key, spec)), "owner": owner}
        case RulesSpec() | SetSpec() | LinkSpec():
            return _other_values(spec)
        case RedirectSpec():
            more = f", and {spec.more} filters more" if spec.more else ""
            hook = "a hook of ours" if spec.owns_hook else "a hook of others"
            return {"leads to": f"{_target(spec.target)}{more} by {hook}"}
        case _:
            assert_never(spec)


def _other_values(spec: RulesSpec | SetSpec | LinkSpec) -> dict[str, str]:
    if isinstance(spec, SetSpec):
        return {"values": str(len(spec.values))}
    if isinstance(spec, LinkSpec):
        return {"is": _link_text(spec)}
    return {"rules": str(len(spec.comments)), "led to by": spec.owner or "nothing"}


def _queue_values(spec: LeafQueueSpec) -> dict[str, str]:
    values = {"queue": f"{spec.kind} {spec.limit} bytes"}
    if spec.fair is not None:
        fair = spec.fair
        values["flows"] = str(fair.flows)
        values["target"] = f"{fair.target_ticks * 1024 / 1_000_000:.1f} ms"
        values["quantum of a flow"] = str(fair.quantum)
        values["ECN"] = "on" if fair.ecn else "off"
    return values


def _link_text(spec: LinkSpec) -> str:
    odd = {
        f"named {spec.name}": spec.name != numbers.IFB_NAME,
        "without our alias": spec.mark != numbers.MARK,
        "with a hook of others": spec.is_hooked,
    }
    state = "up" if spec.is_up else "down"
    text = f"{state}, MTU {spec.mtu}, own queue {spec.queue_length} packets"
    return ", ".join((text, *(words for words, is_so in odd.items() if is_so)))


def _target(ifindex: int) -> str:
    if ifindex > 0:
        return Names().device(ifindex)
    return "nowhere" if ifindex == 0 else "what somebody chose"


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


def at_least(count: int) -> str:
    """A number that goes on growing, in words that change ten times less often each time: the power of ten below it."""
    return "some" if count < 10 else f"at least {10 ** (len(str(count)) - 1):,}"
