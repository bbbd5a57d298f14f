"""rest: whether a loop that rests while there is little traffic notices contention later than one that never does.

Both look at one tree at the same time, from an idle node to a flood, so that each onset is a pair.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Collection
from contextlib import ExitStack

from netqos.engine.rounds import Taken
from netqos.engine.units import loop_policy
from netqos.engine.unitstate import LoopPolicy
from netqos.model.desired import DesiredState
from netqos.model.levels import Level
from netqos.model.traffic import Glance, Unit
from netqos.runtime.fastloop import FastLoop
from netqos.runtime.steerer import Grip
from netqos.settings.values import LoopSettings
from netqos.testing.analysis import percentile
from netqos.testing.traffic import Datagrams, Traffic
from netqos_tc.fast import TcFastPath
from tests.bench.figures import Figure, at_most, number
from tests.bench.options import Options, say
from tests.kernel.tcnode import TOTAL_BPS, ShapedNode, shaped_node

_FLOOD_S, _PAUSE_S = 0.5, 1.6
_SEED = 5
_SETTINGS = LoopSettings()


class _Restless:
    """A path of which no glance is to be had, so that every look at it is a sample."""

    def __init__(self, path: TcFastPath) -> None:
        self._path = path

    def __getattr__(self, name: str) -> object:
        return getattr(self._path, name)

    def glance(self, units: Collection[Unit]) -> tuple[Glance, ...]:
        del units
        return ()


class _Watched:
    """A loop on a path of its own, and when it noticed contention."""

    def __init__(self, node: ShapedNode, desired: DesiredState, *, rests: bool) -> None:
        path = node.backend.fast_path()
        assert isinstance(path, TcFastPath)
        self.noticed_s: list[float] = []
        self.samples = 0
        self.loop = FastLoop("rest", _SETTINGS, on_lost=say)
        self.loop.listen(self._take)
        policies: dict[Unit, LoopPolicy] = {}
        for unit in path.units:
            policy = loop_policy(desired, unit, _SETTINGS, lends=True)
            if policy is not None:
                policies[unit] = policy
        self.loop.attach(Grip(path=path if rests else _Restless(path), policies=policies))  # type: ignore[arg-type]

    def _take(self, taken: Taken) -> None:
        self.samples += len(taken.samples)
        for sample in taken.samples:
            was = taken.before.states[sample.unit].contention
            if not was and any(one.unit == sample.unit and one.contention for one in taken.decisions):
                self.noticed_s.append(time.monotonic())


def rest(options: Options) -> list[Figure]:
    """From the first packet of a flood to contention, for as many onsets as are asked for."""
    with shaped_node("batch") as node:
        desired = node.node(node.pod("batch", Level.L2))
        asyncio.run(node.bring(desired))
        with ExitStack() as stack:
            resting, restless = (_Watched(node, desired, rests=rests) for rests in (True, False))
            stack.callback(resting.loop.stop)
            stack.callback(restless.loop.stop)
            pairs = _onsets(node, resting, restless, options.onsets)
            idle = _idle(resting, restless)
    later = [1000 * (one - other) for one, other in pairs]
    return [
        Figure(
            bench="rest",
            what="noticed later than by a loop that never rests: median",
            unit="ms",
            runs=(percentile(later, 50),),
            target=at_most(20),
            note=f"{len(pairs)} onsets, {number(min(later))} to {number(max(later))} ms",
        ),
        Figure(
            bench="rest",
            what="noticed after the flood began: median",
            unit="ms",
            runs=(1000 * percentile([one for one, _other in pairs], 50),),
            baseline=(1000 * percentile([other for _one, other in pairs], 50),),
            baseline_name="never rests",
        ),
        Figure(
            bench="rest",
            what="idle: samples of a unit a second",
            unit="",
            runs=(idle[0],),
            baseline=(idle[1],),
            baseline_name="never rests",
        ),
    ]


def _onsets(node: ShapedNode, resting: _Watched, restless: _Watched, count: int) -> list[tuple[float, float]]:
    """Seconds from a flood's start to contention, in both loops; onsets that one of them missed are left out."""
    chance, pairs = random.Random(_SEED), []
    traffic = Traffic(node.rig)
    for number_ in range(count):
        say(f"rest: onset {number_ + 1}")
        time.sleep(_PAUSE_S + chance.uniform(0, 0.2))
        before = len(resting.noticed_s), len(restless.noticed_s)
        flood = traffic.udp("batch", Datagrams(rate_bps=2 * TOTAL_BPS, segments=8))
        began_s = time.monotonic()
        flood.start()
        time.sleep(_FLOOD_S)
        flood.stop()
        found = [one.noticed_s[seen:] for one, seen in zip((resting, restless), before, strict=True)]
        if all(found):
            pairs.append((found[0][0] - began_s, found[1][0] - began_s))
    traffic.stop()
    return pairs


def _idle(resting: _Watched, restless: _Watched) -> tuple[float, float]:
    time.sleep(_PAUSE_S)
    before = resting.samples, restless.samples
    time.sleep(2)
    return (resting.samples - before[0]) / 2, (restless.samples - before[1]) / 2
