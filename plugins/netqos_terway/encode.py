"""The two files of contract 2.1 as bytes, and the one of them that is read back. Pure; golden files pin both.

The reader looks for each `key value` anywhere in the text, takes a missing key as 0, and an empty text as "no limits".
"""

from __future__ import annotations

from collections.abc import Iterator

from netqos.engine.contents import json_table
from netqos.model.desired import DesiredPod, DesiredState
from netqos.model.levels import Direction, Level, PerDirection, PerLevel
from netqos.model.quantities import bytes_per_s
from netqos_terway.layout import NO_LIMITS, Bounds, Row, Rows

GLOBAL_FILE = "global_bps_config"
POD_FILE = "pod.json"

READERS_NET_CLS = "/sys/fs/cgroup/net_cls"
"""Where terway-qos sees the net_cls hierarchy: its container has the host's /sys/fs/cgroup at the usual place."""

PRIO_WHEN_OFF = 0

_PREFIXES = {Level.L0: "online", Level.L1: "offline_l1", Level.L2: "offline_l2"}


def global_text(rows: Rows) -> bytes:
    """`global_bps_config`: one `key value` a line, bytes per second, always all fourteen keys."""
    return "".join(f"{key} {value}\n" for key, value in _global_values(rows)).encode()


def _global_values(rows: Rows) -> Iterator[tuple[str, int]]:
    for direction in Direction:
        yield f"hw_{direction.value}_bps_max", rows[direction].total
    for level, prefix in _PREFIXES.items():
        for direction in Direction:
            bounds = rows[direction].levels[level]
            yield f"{prefix}_{direction.value}_bps_min", bounds.low
            yield f"{prefix}_{direction.value}_bps_max", bounds.high


NO_LIMITS_TEXT = global_text(NO_LIMITS)
"""What is written before the file goes: the reader keeps its old limits when a file is merely missing."""

NO_PODS_TEXT = json_table({})


def parse_global(content: bytes) -> Rows | None:
    """The rows of a file that was written here, None for any other content."""
    try:
        pairs = [line.split(" ") for line in content.decode("ascii").splitlines()]
        values = {key: int(value) for key, value in pairs}
        rows = PerDirection(tx=_parse_row(values, Direction.TX), rx=_parse_row(values, Direction.RX))
    except (ValueError, KeyError):
        return None
    return rows if global_text(rows) == content else None


def _parse_row(values: dict[str, int], direction: Direction) -> Row:
    l0, l1, l2 = (
        Bounds(
            low=values[f"{prefix}_{direction.value}_bps_min"],
            high=values[f"{prefix}_{direction.value}_bps_max"],
        )
        for prefix in _PREFIXES.values()
    )
    return Row(total=values[f"hw_{direction.value}_bps_max"], levels=PerLevel(l0, l1, l2))


def pods_text(desired: DesiredState) -> bytes | None:
    """`pod.json`: an object by pod UID; with network QoS off only pods with a limit, None when there is none."""
    pods = [pod for pod in desired.pods if desired.enabled or pod.is_limited]
    if not pods and not desired.enabled:
        return None
    return json_table({pod.uid: _entry(pod, is_shaped=desired.enabled) for pod in pods})


def _entry(pod: DesiredPod, *, is_shaped: bool) -> dict[str, object]:
    namespace, _, name = pod.name.rpartition("/")
    return {
        "podName": name,
        "podNamespace": namespace,
        "podUID": pod.uid,
        "prio": pod.level.value if is_shaped else PRIO_WHEN_OFF,
        "cgroupDir": f"{READERS_NET_CLS}{pod.cgroup}" if pod.cgroup else "",
        "qosConfig": {
            "ingressBandwidth": bytes_per_s(pod.limits_bps.rx or 0),
            "egressBandwidth": bytes_per_s(pod.limits_bps.tx or 0),
        },
    }
