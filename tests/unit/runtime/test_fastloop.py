from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import pairwise

import pytest

from netqos.engine.rounds import Taken, decide
from netqos.engine.unitstate import LoopPolicy
from netqos.errors import Retryable
from netqos.model.ids import IfName
from netqos.model.levels import Direction, PerLevel
from netqos.model.traffic import Glance, Unit, UnitSample
from netqos.runtime.fastloop import FastLoop
from netqos.runtime.steerer import Grip
from netqos.settings.values import LoopSettings
from netqos.testing import states
from tests.waiting import eventually

UNIT = Unit(Direction.TX, IfName("up0"))
RX_UNIT = Unit(Direction.RX, IfName("netqos-ifb"))
OTHER_UNIT = Unit(Direction.TX, IfName("up1"))
TOTAL_BPS = 1000 * states.M
QUICK = LoopSettings(interval_s=0.005, contended_interval_s=0.005)


class ScriptedPath:
    """Counts bytes by a rate that the test sets, and keeps what it was told."""

    lends = True
    units: tuple[Unit, ...] = (UNIT,)

    def __init__(self) -> None:
        self.rates_bps = PerLevel(0, 0, 0)
        self.backlogged = False
        self.ceilings: PerLevel[int] = PerLevel(TOTAL_BPS, 800 * states.M, TOTAL_BPS)
        self.room_bps: int | None = None
        self.adjusted: list[PerLevel[int]] = []
        self.closed = threading.Event()
        self.broken = False
        self._started_s = time.monotonic()

    def pace_s(self, unit: Unit) -> float:
        return 0.0

    def glance(self, units: Collection[Unit]) -> tuple[Glance, ...]:
        return ()

    def sample(self, units: Collection[Unit] | None = None) -> tuple[UnitSample, ...]:
        if self.broken:
            raise Retryable("device is gone", subject="up0")
        now_s = time.monotonic()
        counted = self.rates_bps.map(lambda bps: int(bps * (now_s - self._started_s) / 8))
        return (UnitSample(unit=UNIT, taken_at_s=now_s, level_bytes=counted, backlogged=self.backlogged),)

    def current_ceilings(self, unit: Unit) -> PerLevel[int] | None:
        return self.ceilings

    def current_room(self, unit: Unit) -> int | None:
        return self.room_bps

    def adjust(
        self,
        unit: Unit,
        ceilings_bps: PerLevel[int],
        *,
        room_bps: int | None = None,
        guarantees_bps: PerLevel[int] | None = None,
    ) -> int:
        self.adjusted.append(ceilings_bps)
        self.ceilings = ceilings_bps
        return 1

    def close(self) -> None:
        self.closed.set()


def policy(total_bps: int = TOTAL_BPS) -> LoopPolicy:
    levels = states.TX.levels
    assert levels is not None
    return LoopPolicy(total_bps=total_bps, bands=levels, lends=True, headroom=0.0)


@pytest.fixture
def lost() -> list[str]:
    return []


@pytest.fixture
def loop(lost: list[str]) -> Iterator[FastLoop]:
    loop = FastLoop("test", QUICK, on_lost=lost.append)
    yield loop
    loop.stop()


def test_a_quiet_unit_is_sampled_but_not_written(loop: FastLoop) -> None:
    path = ScriptedPath()
    loop.attach(Grip(path=path, policies={UNIT: policy()}))
    assert eventually(lambda: loop.view().ticks >= 5)
    assert path.adjusted == []
    assert loop.view().decisions[UNIT].contention is False


def test_contention_lowers_l0_once_and_its_end_raises_it(loop: FastLoop) -> None:
    path = ScriptedPath()
    path.rates_bps, path.backlogged = PerLevel(500 * states.M, 300 * states.M, 200 * states.M), True
    loop.attach(Grip(path=path, policies={UNIT: policy()}))
    assert eventually(lambda: bool(path.adjusted))
    assert path.adjusted[0] == PerLevel(500 * states.M, 800 * states.M, TOTAL_BPS)
    ticks = loop.view().ticks
    assert eventually(lambda: loop.view().ticks > ticks + 5)
    assert (len(path.adjusted), loop.view().writes) == (1, 1)
    assert loop.view().contention_s[UNIT] > 0


def test_ceilings_left_by_an_earlier_daemon_are_put_right(loop: FastLoop) -> None:
    path = ScriptedPath()
    path.ceilings = PerLevel(500 * states.M, 800 * states.M, TOTAL_BPS)
    loop.attach(Grip(path=path, policies={UNIT: policy()}))
    assert eventually(lambda: bool(path.adjusted))
    assert path.adjusted == [PerLevel(TOTAL_BPS, 800 * states.M, TOTAL_BPS)]


def test_a_lost_path_is_reported_once_and_another_can_be_attached(loop: FastLoop, lost: list[str]) -> None:
    path = ScriptedPath()
    path.broken = True
    loop.attach(Grip(path=path, policies={UNIT: policy()}))
    assert eventually(lambda: bool(lost))
    assert (path.closed.is_set(), loop.is_attached, loop.view().last_tick_s) == (True, False, None)
    loop.attach(Grip(path=ScriptedPath(), policies={UNIT: policy()}))
    assert eventually(lambda: UNIT in loop.view().decisions)
    assert lost == ["up0: device is gone"]


def test_detaching_closes_the_path_and_stops_ticking(loop: FastLoop) -> None:
    path = ScriptedPath()
    loop.attach(Grip(path=path, policies={UNIT: policy()}))
    assert eventually(lambda: loop.view().ticks > 0)
    loop.detach()
    ticks = loop.view().ticks
    threading.Event().wait(0.05)
    assert path.closed.is_set()
    assert loop.view().ticks <= ticks + 1
    assert dict(loop.policies) == {}


class TwoWays(ScriptedPath):
    """Egress on an uplink, ingress behind it, where the node itself receives 250 of the 800 Mbit/s."""

    units = (UNIT, RX_UNIT)

    def __init__(self) -> None:
        super().__init__()
        self.moved: dict[Unit, list[tuple[PerLevel[int], int | None]]] = {UNIT: [], RX_UNIT: []}

    def sample(self, units: Collection[Unit] | None = None) -> tuple[UnitSample, ...]:
        (sent,) = super().sample()
        offered = sum(sent.level_bytes)
        beside = int(250 * states.M * (sent.taken_at_s - self._started_s) / 8)
        received = replace(sent, unit=RX_UNIT, offered_bytes=offered, device_bytes=offered + beside)
        return (sent, received)

    def adjust(
        self,
        unit: Unit,
        ceilings_bps: PerLevel[int],
        *,
        room_bps: int | None = None,
        guarantees_bps: PerLevel[int] | None = None,
    ) -> int:
        self.moved[unit].append((ceilings_bps, room_bps))
        return 1


def test_both_directions_are_steered_each_by_its_own_promises_and_room(loop: FastLoop) -> None:
    path = TwoWays()
    path.rates_bps = PerLevel(100 * states.M, 0, 0)
    loop.attach(Grip(path=path, policies={UNIT: policy(), RX_UNIT: policy(800 * states.M)}))
    assert eventually(
        lambda: bool(path.moved[RX_UNIT]) and loop.view().decisions[RX_UNIT].room_bps != 800 * states.M
    )
    ceilings, room_bps = path.moved[RX_UNIT][-1]
    assert room_bps == pytest.approx(550 * states.M, abs=800 * states.M / 64)
    assert ceilings == PerLevel(room_bps, room_bps, room_bps)
    assert path.moved[UNIT] == []
    assert loop.view().decisions[UNIT].room_bps is None


class TwoUplinks(ScriptedPath):
    """Two uplinks under one total; all traffic, as much as may pass, is on the one that `busy` names."""

    units = (UNIT, OTHER_UNIT)

    def __init__(self) -> None:
        super().__init__()
        self.busy = UNIT
        self.rooms: dict[Unit, int] = {UNIT: TOTAL_BPS // 2, OTHER_UNIT: TOTAL_BPS // 2}
        self.sums: list[int] = []
        self._counted = dict.fromkeys(self.units, 0.0)
        self._counted_s = self._started_s

    def sample(self, units: Collection[Unit] | None = None) -> tuple[UnitSample, ...]:
        now_s = time.monotonic()
        self._counted[self.busy] += self.rooms[self.busy] * (now_s - self._counted_s) / 8
        self._counted_s = now_s
        return tuple(
            UnitSample(
                unit=unit,
                taken_at_s=now_s,
                level_bytes=PerLevel(0, 0, int(self._counted[unit])),
                backlogged=unit == self.busy,
            )
            for unit in self.units
        )

    def adjust(
        self,
        unit: Unit,
        ceilings_bps: PerLevel[int],
        *,
        room_bps: int | None = None,
        guarantees_bps: PerLevel[int] | None = None,
    ) -> int:
        assert room_bps is not None
        assert guarantees_bps is not None
        assert sum(guarantees_bps) <= room_bps
        assert max(ceilings_bps) <= room_bps
        self.rooms[unit] = room_bps
        self.sums.append(sum(self.rooms.values()))
        return 7


def test_parts_of_one_total_follow_the_traffic_and_never_add_up_to_more(loop: FastLoop) -> None:
    path = TwoUplinks()
    shared = replace(policy(), is_shared=True)
    loop.attach(Grip(path=path, policies={UNIT: shared, OTHER_UNIT: shared}))
    most = TOTAL_BPS * 95 // 100
    assert eventually(lambda: path.rooms[UNIT] == most)
    path.busy = OTHER_UNIT
    assert eventually(lambda: path.rooms[OTHER_UNIT] == most)
    assert max(path.sums) <= TOTAL_BPS


def test_an_updated_policy_counts_from_the_next_tick(loop: FastLoop) -> None:
    path = ScriptedPath()
    loop.attach(Grip(path=path, policies={UNIT: policy()}))
    assert eventually(lambda: loop.view().ticks > 1)
    levels = states.direction(800 * states.M).levels
    assert levels is not None
    smaller = LoopPolicy(total_bps=800 * states.M, bands=levels, lends=True, headroom=0.0)
    loop.update({UNIT: smaller})
    assert eventually(lambda: bool(path.adjusted))
    assert path.adjusted[-1].l0 == 800 * states.M


def test_each_round_is_told_and_gives_the_same_decisions_again(loop: FastLoop) -> None:
    path, taken = TwoUplinks(), list[Taken]()
    shared = replace(policy(), is_shared=True)
    loop.attach(Grip(path=path, policies={UNIT: shared, OTHER_UNIT: shared}))
    assert eventually(lambda: loop.view().ticks > 3)
    loop.listen(taken.append)
    path.busy = OTHER_UNIT
    assert eventually(lambda: sum(any(one.changed for one in round_.decisions) for round_ in taken) > 1)
    loop.listen(None)
    for one, following in pairwise(taken[:-1]):
        after, decisions = decide(one.before, one.samples, one.policies)
        assert (after, decisions) == (following.before, one.decisions)
