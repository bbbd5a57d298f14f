"""An agent that steps once a second, by the rule that terway-qos 0.3 publishes (bpf/qos_tc.c), as an adapter.

The rule: the average that it looks at is the sum of eight tenths of a second divided by nine, so contention begins at
1.125 times the total. Then the excess is taken from L2 down to its guarantee, from L1 likewise, last from L0; while
there is room, what is free is given back to L0, then L1, then L2, up to their most. One step a second.

Kinder than the original: levels are HTB classes, which delay, where that has token buckets, which drop, and each has
the queue of the tree by hand; rates are read behind the classes, not before a drop; values are not cut to whole
megabytes; a policy is in force at once, not with the next tick of 5 s; and nothing is deleted and set anew. There is
no common total: under one it would never see contention at all.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

from netqos.model.desired import Band
from netqos.model.levels import Direction, Level, PerLevel
from netqos.testing.netns import Rig
from netqos.testing.processes import Call, run_tool
from tests.bench.baseline import batch, direct_device, inner_burst, queue_bytes
from tests.bench.compare.byhand import classify_by_level, level_class
from tests.bench.compare.surface import Policy, Reading

STEP_S = 1.0
_SEEN = 8 / 9
_SENT = re.compile(r"^class htb (\S+) .*?Sent (\d+) bytes", re.MULTILINE | re.DOTALL)


def step(
    ceilings_bps: PerLevel[int], average_bps: float, *, total_bps: int, bands: PerLevel[Band]
) -> PerLevel[int]:
    """The next ceilings. `average_bps` is the true rate of all levels in the last second."""
    excess = int(average_bps * _SEEN) - total_bps
    least = bands.map(lambda band: band.guarantee_bps)
    if excess > 0:
        l2, excess = _take(ceilings_bps.l2, least.l2, excess)
        l1, excess = _take(ceilings_bps.l1, least.l1, excess)
        l0, _ = _take(ceilings_bps.l0, least.l0, excess)
        return PerLevel(l0, l1, l2)
    room = -excess
    l0, room = _give(ceilings_bps.l0, total_bps, room)
    l1, room = _give(ceilings_bps.l1, bands.l1.ceiling_bps, room)
    l2, _ = _give(ceilings_bps.l2, bands.l2.ceiling_bps, room)
    return PerLevel(l0, l1, l2)


def _take(ceiling: int, least: int, excess: int) -> tuple[int, int]:
    taken = min(excess, max(0, ceiling - least))
    return ceiling - taken, excess - taken


def _give(ceiling: int, most: int, room: int) -> tuple[int, int]:
    given = min(room, max(0, most - ceiling))
    return ceiling + given, room - given


class Adapter:
    """One process in the node that reads and moves both directions."""

    name = "1 s stepper"
    how = (
        "one step a second by terway-qos's published rule, here on HTB classes, which is kinder than its token "
        "buckets; it holds no total by itself and notices contention above 1.125 times the total"
    )

    def __init__(self) -> None:
        """Nothing runs."""
        self._rig: Rig | None = None
        self._call: Call[None] | None = None

    def start(self, rig: Rig) -> None:
        """Keep the rig."""
        self._rig = rig

    def apply(self, policy: Policy) -> None:
        """Set every level to its most, and step from now on."""
        assert self._rig is not None
        sides = {}
        for way in Direction:
            total, bands = policy.totals_bps[way], policy.bands[way]
            device = direct_device(self._rig, way)
            batch(self._rig, _tree(device, bands))
            classify_by_level(self._rig, policy.pods, way)
            sides[way] = _Side(device=device, total_bps=total, bands=bands)
        self._call = self._rig.node.fork(_run, sides)

    @property
    def pid(self) -> int | None:
        """The stepping process."""
        return None if self._call is None else self._call.pid

    def reading(self) -> Reading:
        """It tells nothing: its writes are counted as the kernel reports them."""
        return Reading()

    def stop(self) -> None:
        """End the process."""
        if self._call is not None:
            self._call.kill()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    device: str
    total_bps: int
    bands: PerLevel[Band]


def _tree(device: str, bands: PerLevel[Band]) -> list[str]:
    """A class a level at its most, each with the queue of the tree by hand; what no pod sent is in L1's."""
    lines = [f"qdisc add dev {device} root handle 1: htb default {level_class(Level.L1).removeprefix('1:')}"]
    for level, band in zip(Level, bands, strict=True):
        lines.append(_class("add", device, level, band.ceiling_bps))
        lines.append(f"qdisc add dev {device} parent {level_class(level)} bfifo limit {queue_bytes(band)}")
    return lines


def _class(verb: str, device: str, level: Level, bps: int) -> str:
    sizes = f"burst {inner_burst(bps)} cburst {inner_burst(bps)}"
    return f"class {verb} dev {device} parent 1: classid {level_class(level)} htb rate {bps}bit ceil {bps}bit {sizes}"


def _run(sides: Mapping[Direction, _Side]) -> None:
    ceilings = {way: side.bands.map(lambda band: band.ceiling_bps) for way, side in sides.items()}
    counts = {way: _sent_bytes(side.device) for way, side in sides.items()}
    then_s = time.monotonic()
    while True:
        time.sleep(max(0.0, then_s + STEP_S - time.monotonic()))
        elapsed_s, then_s = time.monotonic() - then_s, time.monotonic()
        for way, side in sides.items():
            count = _sent_bytes(side.device)
            average = (count - counts[way]) * 8 / elapsed_s
            counts[way] = count
            fresh = step(ceilings[way], average, total_bps=side.total_bps, bands=side.bands)
            if fresh != ceilings[way]:
                _write(side.device, fresh)
                ceilings[way] = fresh


def _sent_bytes(device: str) -> int:
    shown = run_tool(["tc", "-s", "class", "show", "dev", device]).stdout
    return sum(int(sent) for _, sent in _SENT.findall(shown))


def _write(device: str, ceilings: PerLevel[int]) -> None:
    lines = [_class("change", device, level, bps) for level, bps in zip(Level, ceilings, strict=True)]
    run_tool(["tc", "-batch", "-"], text="\n".join(lines) + "\n")
