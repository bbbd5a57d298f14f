"""The two files that other programs read, `node` and `pods`, as bytes (contract 2). None means that the file goes.

Bandwidths in them are bytes per second. Keys have a fixed order, pods that of their uids; each file ends in a
newline, and `pods` has one pod a line, so that a difference between two versions can be read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from netqos.model.desired import Band, DesiredPod, DesiredState
from netqos.model.ids import PodUid
from netqos.model.levels import Direction, Level, PerLevel
from netqos.model.quantities import bytes_per_s
from netqos.settings.rules import normal_form

PRIORITY_WHEN_OFF = 0


def node_file(desired: DesiredState) -> bytes | None:
    """Total, guarantees and ceilings of L1 and L2; None where nothing is shaped by level.

    A direction that is not shaped while the other is has zeros, which its readers take as "no limit".
    """
    both = (desired.directions.tx, desired.directions.rx)
    if not desired.enabled or all(one.levels is None for one in both):
        return None
    values = dict(_node_values(desired))
    return f"{json.dumps(values)}\n".encode()


class PodLines:
    """The line of each pod as it was written last: a pod that is the same object is not written anew."""

    def __init__(self) -> None:
        """Nothing was written yet."""
        self._known: dict[PodUid, tuple[DesiredPod, bool, str]] = {}

    def write(self, pods: Sequence[DesiredPod], *, is_shaped: bool) -> list[str]:
        """A line for each pod, in order; pods that are not among them are forgotten."""
        self._known = {pod.uid: self._one(pod, is_shaped=is_shaped) for pod in pods}
        return [line for _, _, line in self._known.values()]

    def _one(self, pod: DesiredPod, *, is_shaped: bool) -> tuple[DesiredPod, bool, str]:
        known = self._known.get(pod.uid)
        if known is not None and known[0] is pod and known[1] is is_shaped:
            return known
        return pod, is_shaped, f"{json.dumps(pod.uid)}: {json.dumps(_entry(pod, is_shaped=is_shaped))}"


def pods_file(desired: DesiredState, lines: PodLines | None = None) -> bytes | None:
    """Every pod with its level and rules; with network QoS off only pods with a limit, None when there is none.

    `lines` saves the work on pods that are as they were in the step before.
    """
    listed = (pod for pod in desired.pods if desired.enabled or pod.is_limited)
    pods = sorted(listed, key=lambda pod: pod.uid)
    if not pods and not desired.enabled:
        return None
    written = (lines or PodLines()).write(pods, is_shaped=desired.enabled)
    return "{{\n{}\n}}\n".format(",\n".join(written)).encode() if pods else b"{}\n"


def _node_values(desired: DesiredState) -> Iterator[tuple[str, int]]:
    for direction in Direction:
        shaped = desired.directions[direction]
        total_bps = shaped.total_bps if shaped.levels is not None else None
        yield f"hw_{direction.value}_bps_max", bytes_per_s(total_bps or 0)
    for direction in Direction:
        yield from _level_values(direction, desired.directions[direction].levels)


def _level_values(direction: Direction, levels: PerLevel[Band] | None) -> Iterator[tuple[str, int]]:
    for level in (Level.L1, Level.L2):
        name = f"{level.name.lower()}_{direction.value}_bps"
        yield f"{name}_min", 0 if levels is None else bytes_per_s(levels[level].guarantee_bps)
        yield f"{name}_max", 0 if levels is None else bytes_per_s(levels[level].ceiling_bps)


def _entry(pod: DesiredPod, *, is_shaped: bool) -> dict[str, object]:
    return {
        "cgroup": pod.cgroup or "",
        "priority": pod.level.value if is_shaped else PRIORITY_WHEN_OFF,
        "pod": pod.name,
        "podUID": pod.uid,
        "qos-config": normal_form(pod.rules, pod.limits_bps),
    }
