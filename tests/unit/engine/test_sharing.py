"""Two uplinks under one total, tick by tick."""

from __future__ import annotations

from netqos.engine.shares import Share, divide
from netqos.engine.sharing import KEPT_TICKS, NOTHING_SHARED, Sharing, narrow
from netqos.engine.steer import step
from netqos.engine.unitstate import LoopPolicy, initial_state
from netqos.model.ids import IfName
from netqos.model.levels import Direction, PerLevel
from netqos.model.traffic import Unit, UnitSample
from netqos.testing.states import M, bands

UP0, UP1 = Unit(Direction.TX, IfName("up0")), Unit(Direction.TX, IfName("up1"))
IFB = Unit(Direction.RX, IfName("netqos-ifb"))
BANDS = bands((500 * M, 300 * M, 200 * M), (1000 * M, 800 * M, 1000 * M))
SHARED = LoopPolicy(total_bps=1000 * M, bands=BANDS, lends=True, headroom=0.0, is_shared=True)
ALONE = LoopPolicy(total_bps=600 * M, bands=BANDS, lends=True, headroom=0.0)
TICK_S = 0.02
Rates = tuple[int, int, int]
IDLE: Rates = (0, 0, 0)


class Node:
    """Two uplinks and an IFB under made-up traffic."""

    def __init__(self) -> None:
        self.sharing: Sharing = NOTHING_SHARED
        self.samples = {
            unit: UnitSample(unit=unit, taken_at_s=5.0, level_bytes=PerLevel(7, 5, 3))
            for unit in (UP0, UP1, IFB)
        }
        self.narrow()

    def narrow(self) -> dict[Unit, LoopPolicy]:
        policies = {UP0: SHARED, UP1: SHARED, IFB: ALONE}
        self.sharing, narrowed = narrow(self.sharing, self.samples.values(), policies)
        assert narrowed[IFB] == ALONE
        return dict(narrowed)

    def tick(self, up0: Rates, up1: Rates, *, waits: str = "") -> tuple[int, int]:
        """Megabits of each level, and the uplinks where packets wait; the totals in megabits afterwards."""
        for unit, rates in ((UP0, up0), (UP1, up1)):
            before = self.samples[unit]
            self.samples[unit] = UnitSample(
                unit=unit,
                taken_at_s=before.taken_at_s + TICK_S,
                level_bytes=PerLevel(
                    *(
                        was + round(rate * M * TICK_S / 8)
                        for was, rate in zip(before.level_bytes, rates, strict=True)
                    )
                ),
                backlogged=unit.device in waits,
            )
        narrowed = self.narrow()
        return narrowed[UP0].total_bps // M, narrowed[UP1].total_bps // M


def test_who_needs_nothing_has_as_much_as_the_other() -> None:
    assert Node().tick(IDLE, IDLE) == (500, 500)


def test_a_part_follows_need_and_the_rest_is_spread_in_proportion() -> None:
    """In whole steps 156 and 47 are needed."""
    assert Node().tick((100, 20, 0), (0, 0, 40)) == (769, 230)


def test_a_need_that_grows_counts_at_once_and_one_that_falls_after_some_ticks() -> None:
    node = Node()
    assert node.tick((400, 0, 0), IDLE) == (950, 50)
    assert node.tick(IDLE, (50, 0, 0), waits="up1") == (453, 546)
    seen = [node.tick(IDLE, (546, 0, 0), waits="up1") for _ in range(KEPT_TICKS)]
    assert seen[-3:] == [(453, 546), (50, 950), (50, 950)]


def test_a_pod_that_waits_at_its_own_limit_is_no_uplink_that_is_too_small() -> None:
    node = Node()
    seen = [node.tick((0, 0, 20), (300, 0, 0), waits="up0") for _ in range(KEPT_TICKS)]
    assert seen[-1] == (83, 916)


def test_a_level_is_not_waiting_while_one_below_it_borrows() -> None:
    """On up0 L0 gets all of its 300 and L2 the rest, on up1 L2 wants as much: L2's part is halved, not L0's."""
    node = Node()
    node.tick((300, 0, 200), (0, 0, 500), waits="up0 up1")
    seen = [node.tick((300, 0, 360), (0, 0, 340), waits="up0 up1") for _ in range(2 * KEPT_TICKS)]
    assert seen[-1] == (671, 328)


def test_guarantees_are_kept_across_uplinks() -> None:
    """L0 is greedy on one, L2 on the other: 800 and 200, as on one link."""
    shares = divide(
        total_bps=1000 * M, bands=BANDS, needs=[PerLevel(1000 * M, 0, 0), PerLevel(0, 0, 1000 * M)]
    )
    assert [one.total_bps for one in shares] == [800 * M, 200 * M]
    assert [one.bands.l2 for one in shares] == [
        bands((0, 0, 10 * M), (0, 0, 50 * M)).l2,
        Share(total_bps=0, bands=shares[1].bands).bands.l2,
    ]
    assert shares[0].bands.l0.guarantee_bps == 475 * M
    assert shares[1].bands.l2.ceiling_bps == 200 * M


def test_a_decision_has_the_part_as_its_room_and_its_promises() -> None:
    node = Node()
    state, first = step(initial_state(), node.samples[UP0], SHARED)
    assert first is None
    node.tick((100, 20, 0), (0, 0, 40))
    policy = node.narrow()[UP0]
    state, decision = step(state, node.samples[UP0], policy)
    assert decision is not None
    assert (decision.changed, decision.room_bps) == (True, policy.total_bps)
    assert decision.guarantees_bps == policy.bands.map(lambda band: band.guarantee_bps)
    assert decision.ceilings_bps == policy.bands.map(lambda band: band.ceiling_bps)


def test_traffic_that_goes_to_and_fro_is_followed() -> None:
    """Half a second on each uplink: what grows is no need that came back by waiting alone."""
    node = Node()
    for turn in range(6):
        there, here = ((400, 0, 0), IDLE) if turn % 2 else (IDLE, (400, 0, 0))
        parts = [node.tick(there, here) for _ in range(25)][-1]
        assert parts[0 if turn % 2 else 1] >= 900
