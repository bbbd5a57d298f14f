"""The fluid HTB obeys the rules that the kernel's was measured to have."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from netqos.engine.fluidflows import Demand, Kind
from netqos.engine.fluidtree import Member
from netqos.engine.fluidunit import FluidUnit, Traffic
from netqos.engine.unitstate import LoopPolicy
from netqos.model.desired import Band
from netqos.model.ids import IfName
from netqos.model.levels import Direction, Level, PerLevel
from netqos.model.traffic import Unit
from netqos.testing.states import M, bands

UNIT = Unit(Direction.TX, IfName("up0"))
BANDS = bands((300 * M, 200 * M, 100 * M), (600 * M, 600 * M, 600 * M))
GREEDY = (Demand(),)
TCP = (Demand(kind=Kind.TCP),)


def rates(
    demands: Mapping[str, tuple[Demand, ...]],
    *members: Member,
    promised: PerLevel[Band] = BANDS,
    total: int = 600,
    seconds: float = 2.0,
    warm_s: float = 0.5,
) -> list[float]:
    """Megabits of each workload after a warm-up."""
    policy = LoopPolicy(total_bps=total * M, bands=promised, lends=True, headroom=0.0)
    unit = FluidUnit(UNIT, policy, Traffic(members=members, demands=demands))
    unit.run_until(warm_s)
    before = unit.sent_by_member
    unit.run_until(warm_s + seconds)
    return [(now - then) * 8 / seconds / M for now, then in zip(unit.sent_by_member, before, strict=True)]


def pod(name: str, level: Level, limit: int | None = None) -> Member:
    return Member(name=name, level=level, limit_bps=None if limit is None else limit * M)


WEB, API, BATCH = pod("web", Level.L0), pod("api", Level.L1), pod("batch", Level.L2)


@pytest.mark.parametrize("kind", [GREEDY, TCP])
def test_greedy_levels_have_their_guarantees(kind: tuple[Demand, ...]) -> None:
    found = rates({"web": kind, "api": kind, "batch": kind}, WEB, API, BATCH)
    assert found == pytest.approx([300, 200, 100], rel=0.02)


def test_what_nobody_uses_goes_to_the_lowest_prio_first() -> None:
    thin = (Demand(kind=Kind.UDP, rate_bps=50 * M),)
    assert rates({"web": GREEDY, "api": thin, "batch": GREEDY}, WEB, API, BATCH) == pytest.approx(
        [450, 50, 100], rel=0.02
    )
    assert rates({"web": thin, "api": GREEDY, "batch": GREEDY}, WEB, API, BATCH) == pytest.approx(
        [50, 450, 100], rel=0.02
    )


def test_a_ceiling_and_a_limit_hold() -> None:
    low = bands((300 * M, 200 * M, 100 * M), (600 * M, 240 * M, 600 * M))
    found = rates({"api": GREEDY, "batch": GREEDY}, API, BATCH, promised=low)
    assert found == pytest.approx([240, 360], rel=0.02)
    found = rates({"slow": GREEDY, "batch": GREEDY}, pod("slow", Level.L0, 70), BATCH)
    assert found == pytest.approx([70, 530], rel=0.02)


def test_pods_of_one_level_share_it_alike_but_for_limits() -> None:
    members = [pod("a", Level.L1), pod("b", Level.L1, 30), pod("c", Level.L1), WEB]
    found = rates({"a": GREEDY, "b": GREEDY, "c": GREEDY, "web": GREEDY}, *members)
    assert found == pytest.approx([85, 30, 85, 400], rel=0.03)


def test_a_leaf_within_its_own_rate_asks_nobody() -> None:
    """The trap that leaves' rates are small for: a level that is over its ceiling still lets them send."""
    policy = LoopPolicy(total_bps=600 * M, bands=BANDS, lends=True, headroom=0.0)
    members = tuple(pod(f"p{n}", Level.L2) for n in range(40))
    unit = FluidUnit(UNIT, policy, Traffic(members=members, demands={one.name: GREEDY for one in members}))
    for leaf in unit.tree.leaves:
        leaf.shape = type(leaf.shape)(rate=50 * M / 8, ceil=600 * M / 8, burst=3036, cburst=75000)
    unit.run_until(1.0)
    assert sum(unit.sent) * 8 / M > 1900


def test_leaves_that_wake_together_do_not_pass_the_total() -> None:
    members = [pod(f"p{n}", Level.L2) for n in range(200)]
    found = rates({one.name: GREEDY for one in members}, *members, seconds=0.1, warm_s=0.0)
    assert sum(found) < 600 * 1.25
    assert sum(rates({one.name: GREEDY for one in members}, *members)) == pytest.approx(600, rel=0.02)


def test_udp_that_is_too_much_is_lost_and_never_more_than_fits_waits() -> None:
    policy = LoopPolicy(total_bps=600 * M, bands=BANDS, lends=True, headroom=0.0)
    flood = {"batch": (Demand(kind=Kind.UDP, rate_bps=900 * M),)}
    unit = FluidUnit(UNIT, policy, Traffic(members=(BATCH,), demands=flood))
    unit.run_until(1.0)
    assert unit.sent.l2 * 8 / M == pytest.approx(600, rel=0.02)
    assert unit.waiting.l2 <= unit.tree.limits[0] + 1
    assert unit.lost + unit.sent.l2 + unit.waiting.l2 == pytest.approx(900 * M / 8, rel=1e-6)


def test_a_flood_beside_a_greedy_source_takes_its_rate() -> None:
    both = (Demand(), Demand(kind=Kind.UDP, rate_bps=90 * M))
    policy = LoopPolicy(total_bps=600 * M, bands=BANDS, lends=True, headroom=0.0)
    unit = FluidUnit(UNIT, policy, Traffic(members=(API,), demands={"api": both}))
    unit.run_until(2.0)
    assert unit.sent.l1 * 8 / 2 / M == pytest.approx(600, rel=0.02)
    assert unit.lost <= 0.01 * 90 * M * 2 / 8


def test_tcp_that_has_little_to_send_gets_it_all() -> None:
    steady = (Demand(kind=Kind.TCP, rate_bps=180 * M, rtt_s=0.01),)
    found = rates({"api": steady, "web": GREEDY, "batch": GREEDY}, WEB, API, BATCH)
    assert found == pytest.approx([320, 180, 100], rel=0.03)


def test_a_demand_has_its_times() -> None:
    gate = Demand(start_s=1.0, end_s=2.0, every_s=0.5, on_s=0.2)
    moments = (0.9, 1.0, 1.1, 1.3, 1.6, 1.9, 2.1)
    assert [gate.is_on(at_s) for at_s in moments] == [False, True, True, False, True, False, False]


def test_equal_runs_are_equal() -> None:
    flows = {"web": TCP, "api": GREEDY, "batch": (Demand(kind=Kind.TCP, flows=40, rtt_s=0.03),)}
    assert rates(flows, WEB, API, BATCH) == rates(flows, WEB, API, BATCH)
