"""terway-qos as a reader, written from what its source does: the oracle that nothing here may contradict."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalConfig:
    """One direction; bytes per second."""

    hw: int
    l0_min: int
    l0_max: int
    l1_min: int
    l1_max: int
    l2_min: int
    l2_max: int


NO_LIMITS = GlobalConfig(hw=0, l0_min=0, l0_max=0, l1_min=0, l1_max=0, l2_min=0, l2_max=0)


def read_global(content: bytes) -> dict[str, GlobalConfig]:
    """`tx` and `rx` as its text parser sees them: a missing key is 0."""
    text = content.decode()

    def value(key: str) -> int:
        found = re.search(rf"{key}(?:=?|\s+)([0-9]+)", text)
        return int(found.group(1)) if found else 0

    return {
        direction: GlobalConfig(
            hw=value(f"hw_{direction}_bps_max"),
            l0_min=value(f"online_{direction}_bps_min"),
            l0_max=value(f"online_{direction}_bps_max"),
            l1_min=value(f"offline_l1_{direction}_bps_min"),
            l1_max=value(f"offline_l1_{direction}_bps_max"),
            l2_min=value(f"offline_l2_{direction}_bps_min"),
            l2_max=value(f"offline_l2_{direction}_bps_max"),
        )
        for direction in ("tx", "rx")
    }


def takes(config: GlobalConfig) -> bool:
    """Whether it takes a direction; if it refuses one, the old limits of both stay."""
    if config == NO_LIMITS:
        return True
    return not (
        config.hw < config.l1_max
        or config.hw < config.l2_max
        or config.l1_min > config.l1_max
        or config.l2_min > config.l2_max
        or config.hw < config.l1_max + config.l2_max
    )


def takes_file(content: bytes) -> bool:
    return all(map(takes, read_global(content).values()))


def read_pods(content: bytes) -> dict[str, dict[str, object]]:
    """The entries by UID; what would make the process end (a null entry) or be skipped (a wrong type) fails here."""
    document = json.loads(content)
    assert isinstance(document, dict)
    for uid, entry in document.items():
        assert isinstance(entry, dict)
        assert entry["podUID"] == uid
        assert entry["prio"] in {0, 1, 2}
        assert all(isinstance(entry[key], str) for key in ("podName", "podNamespace", "cgroupDir"))
        assert set(entry["qosConfig"]) == {"ingressBandwidth", "egressBandwidth"}
        assert all(isinstance(value, int) and 0 <= value < 2**64 for value in entry["qosConfig"].values())
    return document
