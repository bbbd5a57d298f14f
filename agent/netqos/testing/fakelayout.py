"""What a desired state is in a `FakeKernel`: every object by its key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from netqos.model.desired import DesiredDirection, DesiredPod, DesiredState, DesiredUplink
from netqos.model.levels import Direction, Level
from netqos.testing.fakekernel import FakeClass, FakeMatch, Key, Thing

UNLIMITED_BPS = 10**15


def layout(desired: DesiredState, foreign: Mapping[str, str]) -> Iterator[tuple[Key, Thing]]:
    """Every object that a desired state needs, parents first."""
    if desired.is_idle:
        return
    for uplink in desired.uplinks:
        if uplink.name not in foreign:
            for direction in Direction:
                yield from _tree(desired, uplink, direction)


def _tree(desired: DesiredState, uplink: DesiredUplink, direction: Direction) -> Iterator[tuple[Key, Thing]]:
    shaped = desired.directions[direction]
    total_bps = uplink.total_bps[direction] or UNLIMITED_BPS
    root: Key = ("root", uplink.name, direction.value)
    yield root, FakeClass(parent=None, guarantee_bps=0, ceiling_bps=total_bps)
    for level in Level:
        yield level_key(uplink.name, direction, level), _level(shaped, level, root, total_bps)
    for pod in desired.pods:
        yield from _leaf(pod, uplink, direction)


def _level(shaped: DesiredDirection, level: Level, root: Key, total_bps: int) -> FakeClass:
    band = shaped.levels[level] if shaped.levels is not None else None
    return FakeClass(
        parent=root,
        guarantee_bps=min(band.guarantee_bps, total_bps) if band else 0,
        ceiling_bps=min(band.ceiling_bps, total_bps) if band else total_bps,
    )


def _leaf(pod: DesiredPod, uplink: DesiredUplink, direction: Direction) -> Iterator[tuple[Key, Thing]]:
    leaf: Key = ("leaf", uplink.name, direction.value, pod.level.name, pod.uid)
    level = level_key(uplink.name, direction, pod.level)
    limit_bps = pod.limits_bps[direction] or UNLIMITED_BPS
    yield leaf, FakeClass(parent=level, guarantee_bps=0, ceiling_bps=limit_bps)
    match: Key = ("match", uplink.name, direction.value, pod.uid)
    yield match, FakeMatch(leaf=leaf, addresses=pod.addresses, cgroup=pod.cgroup)


def level_key(device: str, direction: Direction, level: Level) -> Key:
    """The key of a level's class."""
    return ("level", device, direction.value, level.name)
