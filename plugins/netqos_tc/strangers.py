"""What others put into our trees. The qdisc with our handle is ours, and so is all that is in it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from netqos.model.health import Finding, error
from netqos_tc import describe, numbers
from netqos_tc.controls import CONTROL_FILTERS
from netqos_tc.keys import ClassKey, FilterKey, Key
from netqos_tc.observed import TcObserved
from netqos_tc.spec import FilterSpec, Spec

_SHOWN = 5


def is_strange(key: Key, spec: Spec) -> bool:
    """Whether an object in our tree is one that we never make, by its number or by its kind."""
    match key, spec:
        case ClassKey(ifindex, minor), _:
            return minor not in numbers.kind_on(ifindex).fixed and not numbers.is_pod_minor(minor)
        case FilterKey(), FilterSpec():
            is_ours = (key.minor, key.chain) == (0, 0) and key.preference in CONTROL_FILTERS
            return not is_ours or spec.kind != "u32" or spec.more > 0
        case _:
            return False


def findings(observed: TcObserved) -> tuple[Finding, ...]:
    """An error for each tree that others put something into."""
    return observed.once(_findings)


def _findings(observed: TcObserved) -> tuple[Finding, ...]:
    return tuple(_each(observed))


def _each(observed: TcObserved) -> Iterator[Finding]:
    names = describe.Names(devices=observed.names)
    met: dict[int, list[str]] = {}
    for key, spec in observed.specs.items():
        if isinstance(key, ClassKey | FilterKey) and is_strange(key, spec):
            met.setdefault(key.ifindex, []).append(describe.subject(key, names))
    for ifindex, subjects in met.items():
        rest = f" and {len(subjects) - _SHOWN} more" if len(subjects) > _SHOWN else ""
        yield error(
            "foreign-in-our-tree",
            names.device(ifindex),
            f"{', '.join(subjects[:_SHOWN])}{rest}: not ours, though in our qdisc, where packets may pass the levels "
            "by it; what is in our qdisc is removed",
            hint="find out who makes it; whoever shapes this device differently needs it for themselves",
        )
