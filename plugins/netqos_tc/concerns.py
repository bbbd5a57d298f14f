"""For whom what is not enforced while an object is not as it should be: subjects and codes of findings. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from netqos.model.levels import Direction
from netqos_tc import numbers
from netqos_tc.describe import Names, subject
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
from netqos_tc.spec import ElementSpec, Spec

INGRESS = "rx"
"""The subject for the whole direction."""


def of(key: Key, specs: Iterable[Spec | None], names: Names) -> tuple[str, ...]:
    """Workloads, an uplink or the way in; none: everybody. `specs` are the object's, as it is and as it should be.

    What belongs to nobody (any more) is its own subject: nobody's promise depends on it.
    """
    match key:
        case TableKey():
            return ()
        case LinkKey():
            return (INGRESS,)
        case RootKey() | FilterKey():
            return (_device(key.ifindex, names),)
        case ClassKey() | QueueKey() if key.minor in numbers.FIXED:
            return (_device(key.ifindex, names),)
        case ClassKey() | QueueKey() | RulesKey():
            minors = [key.minor]
        case ElementKey() | SetKey():
            minors = [one.minor for one in specs if isinstance(one, ElementSpec)]
        case RedirectKey():
            behind = tuple(f"pod {name}" for name in names.behind.get(key.ifindex, ()))
            return behind or (subject(key, names),)
        case _:
            assert_never(key)
    return _workloads(minors, names) or (subject(key, names),)


def denies(key: Key, names: Names) -> str:
    """What those that an object concerns lack without it, "" for all: one direction, or the rules of one direction."""
    match key:
        case RulesKey():
            return f"rules-{key.direction.pod_word}"
        case ElementKey():
            return key.map.direction.pod_word
        case RedirectKey():
            return Direction.RX.pod_word
        case ClassKey() | QueueKey() if key.minor not in numbers.FIXED:
            way = numbers.kind_on(key.ifindex).direction.pod_word
            return f"rules-{way}" if key.minor in names.rules else way
        case _:
            return ""


def _device(ifindex: int, names: Names) -> str:
    return INGRESS if ifindex == numbers.IFB_INDEX else names.device(ifindex)


def _workloads(minors: Iterable[int], names: Names) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"pod {names.pods[one]}" for one in minors if one in names.pods))
