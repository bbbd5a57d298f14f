"""The watch over the paths: ticks in, limits, findings and views out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from netqos.backend import LeafCounters
from netqos.engine.pathlimits import Limits
from netqos.engine.pathstate import Reason
from netqos.engine.unitstate import LoopPolicy, UnitState
from netqos.engine.why import Ground
from netqos.model.ids import IfName, PodUid
from netqos.model.levels import Direction, PerDirection, PerLevel
from netqos.model.traffic import Decision, Unit, UnitSample
from netqos.runtime.pathwatch import PathWatch
from netqos.runtime.store import Cell, Wake
from netqos.settings.values import Settings
from netqos.testing import states
from netqos.testing.clock import FakeClock
from netqos.testing.states import M

UNIT = Unit(Direction.TX, IfName("up0"))
NODE = states.node((), uplinks=(states.uplink("up0", tx_bps=1000 * M, rx_bps=600 * M),))
AUTO = Settings(follows=PerDirection(tx=True, rx=True))
STARVED, SERVED = PerLevel(20, 20, 760), PerLevel(390, 234, 156)


async def no_counters() -> Mapping[PodUid, tuple[LeafCounters, ...]]:
    return {}


class Desk:
    """A watch, and what it is told."""

    def __init__(self, settings: Settings = AUTO, limits: Limits | None = None) -> None:
        self.clock, wake = FakeClock(), Wake()
        self.limits: Cell[Limits] = Cell(limits or {}, wake=wake)
        self.settings = Cell(settings, wake=wake)
        self.watch = PathWatch(
            limits=self.limits, settings=self.settings, clock=self.clock, counter=lambda: None
        )

    async def pass_time(self, seconds: float, rates: PerLevel[int], *, waits: bool) -> None:
        for _ in range(round(seconds * 2)):
            for _ in range(10):
                self.watch.tick((ground(rates.map(lambda one: one * M), waits=waits),))
            self.clock.advance(0.5)
            await self.watch.look(NODE, no_counters)


def ground(rates_bps: PerLevel[int], *, waits: bool) -> Ground:
    levels = NODE.directions.tx.levels
    assert levels is not None
    sample = UnitSample(unit=UNIT, taken_at_s=0.0, level_bytes=PerLevel(0, 0, 0), backlogged=waits)
    decision = Decision(
        unit=UNIT,
        at_s=0.0,
        elapsed_s=0.05,
        rates_bps=rates_bps,
        backlogged=PerLevel(l0=False, l1=False, l2=False),
        contention=False,
        ceilings_bps=levels.map(lambda band: band.ceiling_bps),
        changed=False,
    )
    policy = LoopPolicy(total_bps=1000 * M, bands=levels, lends=True, headroom=0.0)
    return Ground(decision, policy, UnitState(base=sample))


async def test_nothing_is_known_of_a_quiet_path() -> None:
    desk = Desk()
    await desk.pass_time(10, PerLevel(100, 50, 10), waits=False)
    (view,) = desk.watch.views().values()
    assert (view.total_bps, view.floor_bps, view.follows, view.proposed_bps, view.steps) == (
        1000 * M,
        505 * M,
        True,
        None,
        (),
    )
    assert (desk.limits.value, desk.watch.proven(), desk.watch.findings()) == ({}, {}, ())


async def test_a_limit_is_tried_proven_remembered_and_told() -> None:
    desk = Desk()
    await desk.pass_time(3, STARVED, waits=False)
    assert desk.limits.value == {UNIT: 880 * M}
    assert desk.watch.proven() == {}
    await desk.pass_time(3, STARVED, waits=False)
    assert desk.limits.value == {UNIT: 784 * M}
    await desk.pass_time(3, SERVED, waits=True)
    assert desk.limits.value == {}
    await desk.pass_time(3.5, STARVED, waits=False)
    assert desk.limits.value == {UNIT: 784 * M}
    await desk.pass_time(3, SERVED, waits=True)
    assert (desk.limits.value, desk.watch.proven()) == ({UNIT: 784 * M}, {UNIT: 784 * M})
    (view,) = desk.watch.views().values()
    lower, gained, again = Reason.TRY_LOWER, Reason.GAINED, Reason.GAINED_AGAIN
    assert [one.reason for one in view.steps] == [lower, lower, gained, lower, again]
    assert [one.code for one in desk.watch.findings()] == ["total-lowered", "losses-not-counted"]


async def test_what_was_remembered_is_in_force_and_goes_with_auto() -> None:
    desk = Desk(limits={UNIT: 784 * M})
    await desk.pass_time(1, PerLevel(1, 1, 1), waits=False)
    assert desk.limits.value == {UNIT: 784 * M}
    desk.settings.set(replace(AUTO, follows=PerDirection(tx=False, rx=True)))
    await desk.pass_time(1, PerLevel(1, 1, 1), waits=False)
    assert (desk.limits.value, desk.watch.proven()) == ({}, {})
