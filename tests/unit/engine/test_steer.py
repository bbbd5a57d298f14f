"""The fast loop's step: counters in, decisions out, with times that the tests make up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, islice, pairwise

import pytest

from netqos.engine.steer import step
from netqos.engine.unitstate import LoopPolicy, UnitState, in_force, initial_state
from netqos.model.desired import Band
from netqos.model.ids import IfName
from netqos.model.levels import Direction, PerLevel
from netqos.model.traffic import Decision, Unit, UnitSample

M = 1_000_000
UNIT = Unit(Direction.TX, IfName("up0"))
TICK_S = 0.05
BANDS = PerLevel(
    Band(guarantee_bps=500 * M, ceiling_bps=1000 * M),
    Band(guarantee_bps=300 * M, ceiling_bps=800 * M),
    Band(guarantee_bps=200 * M, ceiling_bps=1000 * M),
)
LENDING = LoopPolicy(total_bps=1000 * M, bands=BANDS, lends=True, headroom=0.0)
POLICING = LoopPolicy(total_bps=1000 * M, bands=BANDS, lends=False, headroom=0.1)
Rates = tuple[float, float, float]


class Link:
    """A unit under made-up traffic: it counts bytes and keeps the loop's state."""

    def __init__(self, policy: LoopPolicy, *, at_s: float = 1000.0, state: UnitState | None = None) -> None:
        self.policy = policy
        self.sample = UnitSample(unit=UNIT, taken_at_s=at_s, level_bytes=PerLevel(10**12, 5, 77))
        self.state, first = step(state or initial_state(), self.sample, policy)
        assert first is None

    def tick(
        self, rates: Rates, *, waits: bool = False, waiting: str | None = None, after_s: float = TICK_S
    ) -> Decision | None:
        """Let `rates` megabits pass for a while, then step. `waiting` names levels for a backend that can tell."""
        counted = [
            before + round(rate * M * after_s / 8)
            for before, rate in zip(self.sample.level_bytes, rates, strict=True)
        ]
        self.sample = UnitSample(
            unit=UNIT,
            taken_at_s=self.sample.taken_at_s + after_s,
            level_bytes=PerLevel(*counted),
            backlogged=waits,
            level_backlogged=None if waiting is None else PerLevel(*(place in waiting for place in "012")),
        )
        self.state, decision = step(self.state, self.sample, self.policy)
        return decision

    def decide(
        self, rates: Rates, *, waits: bool = False, waiting: str | None = None, after_s: float = TICK_S
    ) -> Decision:
        decision = self.tick(rates, waits=waits, waiting=waiting, after_s=after_s)
        assert decision is not None
        return decision

    def settle(self, rates: Rates, *, waits: bool = False, waiting: str | None = None) -> Decision:
        """The decision after four equal ticks: the needs of earlier traffic are forgotten."""
        return [self.decide(rates, waits=waits, waiting=waiting) for _ in range(4)][-1]


def mbit(*values: float) -> PerLevel[int]:
    return PerLevel(*(round(value * M) for value in values))


def close(values: PerLevel[int], expected: Rates) -> bool:
    """Within a millionth: the made-up counters are whole bytes."""
    return all(got == pytest.approx(value * M, rel=1e-6) for got, value in zip(values, expected, strict=True))


def test_first_sample_decides_nothing_and_the_second_is_whole() -> None:
    decision = Link(LENDING, at_s=1000.0).decide((100, 90, 80), after_s=0.0625)
    assert decision == Decision(
        unit=UNIT,
        at_s=1000.0625,
        elapsed_s=0.0625,
        rates_bps=mbit(100, 90, 80),
        backlogged=PerLevel(False, False, False),
        contention=False,
        ceilings_bps=mbit(1000, 800, 1000),
        changed=True,
    )


TABLE: list[tuple[Rates, str, bool, Rates, Rates]] = [
    ((100, 100, 100), "", False, (1000, 800, 1000), (1000, 800, 1000)),
    ((0, 0, 1000), "2", True, (800, 800, 1000), (800, 800, 1000)),
    ((500, 300, 200), "012", True, (500, 300, 200), (500, 300, 200)),
    ((300, 300, 400), "12", True, (500, 500, 200), (500, 470, 200)),
    ((600, 300, 100), "0", True, (600, 300, 200), (590, 300, 200)),
    ((0, 800, 150), "1", True, (550, 800, 200), (535, 800, 200)),
    ((850, 100, 50), "0", True, (850, 300, 200), (835, 300, 200)),
]
"""Traffic, who waits, contention, ceilings without headroom and with h = 0.1 (contract 3)."""


def table(column: int) -> list[tuple[object, ...]]:
    return [(*row[:3], row[column]) for row in TABLE]


@pytest.mark.parametrize(("rates", "waiting", "contention", "ceilings"), table(4))
def test_worked_table_by_steps_with_headroom(
    rates: Rates, waiting: str, contention: bool, ceilings: Rates
) -> None:
    decision = Link(POLICING).settle(rates, waiting=waiting)
    assert decision.contention is contention
    assert close(decision.ceilings_bps, ceilings)


@pytest.mark.parametrize(("rates", "waiting", "contention", "ceilings"), table(3))
def test_worked_table_by_steps_without_headroom(
    rates: Rates, waiting: str, contention: bool, ceilings: Rates
) -> None:
    decision = Link(replace(POLICING, headroom=0.0)).settle(rates, waiting=waiting)
    assert decision.contention is contention
    assert close(decision.ceilings_bps, ceilings)


@pytest.mark.parametrize(("rates", "waiting", "contention", "ceilings"), table(3))
def test_a_lending_backend_moves_the_ceiling_of_l0_only(
    rates: Rates, waiting: str, contention: bool, ceilings: Rates
) -> None:
    decision = Link(LENDING).settle(rates, waiting=waiting)
    assert decision.contention is contention
    assert close(decision.ceilings_bps, (ceilings[0], 800, 1000))


def test_a_waiting_root_means_the_levels_that_have_their_guarantee() -> None:
    decision = Link(LENDING).decide((600, 293, 150), waits=True)
    assert decision.backlogged == PerLevel(True, False, False)
    decision = Link(LENDING).decide((480, 294.1, 196.1), waits=True)
    assert decision.backlogged == PerLevel(False, True, True)


def test_nobody_is_backlogged_without_a_waiting_root() -> None:
    assert not any(Link(LENDING).decide((600, 300, 200)).backlogged)


def test_a_short_pause_of_l1_costs_l0_nothing() -> None:
    link = Link(LENDING)
    assert link.settle((500, 300, 200), waits=True).ceilings_bps.l0 == 500 * M
    paused = link.decide((600, 0, 200), waits=True)
    assert paused.ceilings_bps.l0 == 800 * M
    assert link.decide((500, 300, 200), waits=True).ceilings_bps.l0 == 800 * M


def test_a_level_that_pauses_again_and_again_costs_l0_one_tick_a_hold() -> None:
    """0.1 s on and 0.1 s off: lowered four ticks after each pause, L0 would lack a tick at every next one."""
    link = Link(LENDING)
    link.settle((500, 300, 200), waits=True)
    ceilings = []
    for _ in range(3):
        ceilings += [link.decide((700, 0, 200), waits=True).ceilings_bps.l0 for _ in range(5)]
        ceilings += [link.decide((500, 300, 200), waits=True).ceilings_bps.l0 for _ in range(5)]
    assert ceilings == [800 * M] * 30


def test_a_pause_is_forgotten_after_the_hold() -> None:
    link = Link(LENDING)
    link.settle((500, 300, 200), waits=True)
    raised = link.decide((600, 0, 200), waits=True)
    back = [link.decide((500, 300, 200), waits=True) for _ in range(30)]
    assert {decision.ceilings_bps.l0 for decision in back} == {800 * M, 500 * M}
    lowered = next(decision for decision in back if decision.changed)
    still_needed_s = 3 * TICK_S
    assert lowered.at_s - raised.at_s - still_needed_s == pytest.approx(1.0, abs=1.5 * TICK_S)


def test_a_backend_that_cannot_lend_takes_back_at_once() -> None:
    link = Link(POLICING)
    link.settle((500, 300, 200), waiting="012")
    assert close(link.decide((700, 100, 200), waiting="02").ceilings_bps, (690, 300, 200))
    assert link.decide((500, 300, 200), waiting="012").ceilings_bps == mbit(500, 300, 200)


def test_need_that_falls_slowly_is_followed_in_steps() -> None:
    """A tenth of the total within 5 s: five steps of 2 percent, not a hundred writes."""
    link = Link(LENDING)
    link.settle((500, 300, 200), waits=True)
    falling = [link.decide((500 + fallen, 300 - fallen, 200), waits=True) for fallen in range(7, 107)]
    assert sum(decision.changed for decision in falling) <= 6
    assert all(decision.ceilings_bps.l0 >= 800 * M - decision.rates_bps.l1 for decision in falling)


def test_l0_is_never_raised_over_its_own_ceiling() -> None:
    low = replace(LENDING, bands=replace(BANDS, l0=Band(guarantee_bps=500 * M, ceiling_bps=710 * M)))
    link = Link(low)
    assert link.settle((700, 300, 0), waits=True).ceilings_bps.l0 == 700 * M
    assert link.decide((700, 292, 0)).ceilings_bps.l0 == 710 * M


def test_l0_is_raised_by_a_whole_step_and_comes_down_to_what_has_stood() -> None:
    link = Link(LENDING)
    link.settle((700, 300, 0), waits=True)
    little = [link.decide((700, 292, 0)) for _ in range(30)]
    assert [decision.ceilings_bps.l0 for decision in little if decision.changed] == [720 * M, 708 * M]


@pytest.mark.parametrize(
    ("rates", "waits", "contention"),
    [
        ((949, 0, 0), False, False),
        ((950.1, 0, 0), False, True),
        ((899, 0, 0), True, False),
        ((901, 0, 0), True, True),
        ((901, 0, 0), False, False),
        ((317, 317, 317), False, True),
    ],
)
def test_where_contention_starts(rates: Rates, waits: bool, contention: bool) -> None:
    assert Link(LENDING).decide(rates, waits=waits).contention is contention


@pytest.mark.parametrize(
    ("rates", "waits", "contention"), [((950, 0, 0), False, True), ((900, 0, 0), True, False)]
)
def test_the_thresholds_themselves(rates: Rates, waits: bool, contention: bool) -> None:
    # a sixteenth of a second is exact in binary
    assert Link(LENDING).decide(rates, waits=waits, after_s=0.0625).contention is contention


def test_contention_ends_after_a_whole_hold_under_the_lower_threshold() -> None:
    link = Link(LENDING)
    assert link.decide((990, 0, 0)).contention
    calm = [link.decide((840, 0, 0)) for _ in range(30)]
    ended = next(decision for decision in calm if not decision.contention)
    assert ended.at_s - calm[0].at_s == pytest.approx(1.0, abs=TICK_S)
    assert not calm[-1].contention


def test_load_above_the_lower_threshold_starts_the_hold_again() -> None:
    link = Link(LENDING)
    link.decide((990, 0, 0))
    for _ in range(4):
        assert all(link.decide((840, 0, 0)).contention for _ in range(18))
        assert link.decide((860, 0, 0)).contention


def noise(middle: float, *, swing: float = 10.0) -> Iterator[Rates]:
    """Rates whose sum swings around `middle`, in a pattern without a short period."""
    pattern = cycle([-1.0, 0.3, 0.9, -0.4, 1.0, -0.8, 0.1, 0.7, -0.9, 0.5, -0.2])
    return ((middle - 250, 50, 200 + swing * part) for part in pattern)


@pytest.mark.parametrize("middle", [850, 900, 950, 990])
@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("policy", [LENDING, POLICING])
def test_noise_around_a_threshold_does_not_oscillate(middle: float, waits: bool, policy: LoopPolicy) -> None:
    link = Link(policy)
    a_minute = [link.decide(rates, waits=waits) for rates in islice(noise(middle), 1200)]
    turns = sum(before.contention is not after.contention for before, after in pairwise(a_minute))
    assert turns <= 1
    assert sum(decision.changed for decision in a_minute) <= 10


def test_two_pods_that_alternate_each_second_change_twice_at_most_a_second() -> None:
    link = Link(LENDING)
    a_minute = []
    for second in range(60):
        rates = (700, 300, 0) if second % 2 else (0, 300, 700)
        a_minute += [link.decide(rates, waits=True) for _ in range(20)]
    assert sum(decision.changed for decision in a_minute) <= 120


def test_a_small_lowering_waits_until_it_has_stood_and_then_comes_exactly() -> None:
    link = Link(LENDING)
    assert link.settle((700, 295, 0), waits=True).ceilings_bps.l0 == 700 * M
    link.settle((700, 280, 0), waits=False)
    higher = link.decide((700, 280, 0), waits=False)
    assert higher.ceilings_bps.l0 == pytest.approx(720 * M, rel=1e-6)
    smaller = [link.decide((700, 290, 0)) for _ in range(60)]
    assert [decision.changed for decision in smaller].count(True) == 1
    assert smaller[0].ceilings_bps == higher.ceilings_bps
    assert smaller[-1].ceilings_bps.l0 == pytest.approx(710 * M, rel=1e-6)


def test_silence_is_not_congestion_and_gives_everybody_the_own_ceiling() -> None:
    link = Link(LENDING)
    link.settle((500, 300, 200), waits=True)
    quiet = [link.decide((0, 0, 0)) for _ in range(40)]
    assert all(decision.ceilings_bps.l0 >= 500 * M for decision in quiet)
    assert quiet[-1].contention is False
    assert quiet[-1].ceilings_bps == mbit(1000, 800, 1000)


def test_a_thin_stream_on_an_idle_link_changes_nothing() -> None:
    link = Link(LENDING)
    decisions = [link.decide((0.128, 0, 0)) for _ in range(100)]
    assert [decision.changed for decision in decisions] == [True] + [False] * 99
    assert decisions[-1].ceilings_bps == mbit(1000, 800, 1000)


def test_old_tokens_after_a_lowered_ceiling_do_not_swing_the_ceilings() -> None:
    """A lowered class passes twice its ceiling for one window; the law may follow it once, not back and forth."""
    link = Link(POLICING)
    link.settle((900, 0, 0), waiting="0")
    decisions = [link.decide((900, 300, 200), waiting="012")]
    decisions += [link.decide((500, 300, 200), waiting="012") for _ in range(20)]
    assert [decision.changed for decision in decisions] == [True] + [False] * 20
    assert decisions[-1].ceilings_bps == mbit(500, 300, 200)


@pytest.mark.parametrize("level", ["l0", "l1", "l2"])
def test_one_counter_that_goes_back_is_enough(level: str) -> None:
    link = Link(LENDING)
    link.settle((500, 300, 200), waits=True)
    counted = replace(link.sample.level_bytes.map(lambda count: count + 1000), **{level: 0})
    moved = replace(link.sample, level_bytes=counted, taken_at_s=link.sample.taken_at_s + TICK_S)
    assert step(link.state, moved, LENDING) == (replace(link.state, base=moved), None)


def test_a_counter_that_goes_back_is_no_sample_and_the_next_one_counts_from_it() -> None:
    link = Link(LENDING)
    before = link.settle((500, 300, 200), waits=True)
    link.sample = replace(
        link.sample, level_bytes=PerLevel(0, 0, 0), taken_at_s=link.sample.taken_at_s + TICK_S
    )
    state, decision = step(link.state, link.sample, link.policy)
    assert decision is None
    assert state == replace(link.state, base=link.sample)
    link.state = state
    after = link.decide((500, 300, 200), waits=True)
    assert (after.rates_bps, after.ceilings_bps) == (before.rates_bps, before.ceilings_bps)
    assert not after.changed


@pytest.mark.parametrize("after_s", [-1.0, 6.0, 3600.0])
def test_time_that_cannot_be_is_no_sample(after_s: float) -> None:
    link = Link(LENDING)
    link.settle((500, 300, 200), waits=True)
    state = link.state
    moved = replace(link.sample, taken_at_s=link.sample.taken_at_s + after_s)
    since_s = min(state.wanted_since_s, moved.taken_at_s)
    assert step(state, moved, link.policy) == (replace(state, base=moved, wanted_since_s=since_s), None)


def test_a_clock_that_goes_back_makes_no_hold_longer() -> None:
    link = Link(LENDING)
    link.decide((990, 0, 0))
    assert link.decide((500, 0, 0)).contention
    assert link.tick((500, 0, 0), after_s=-3600.0) is None
    calm = [link.decide((500, 0, 0)).contention for _ in range(22)]
    assert calm == sorted(calm, reverse=True)
    assert 18 <= sum(calm) <= 21


@pytest.mark.parametrize("after_s", [0.0, 0.0005])
def test_too_short_a_time_leaves_all_as_it_is(after_s: float) -> None:
    link = Link(LENDING)
    link.settle((500, 300, 200), waits=True)
    moved = replace(
        link.sample,
        taken_at_s=link.sample.taken_at_s + after_s,
        level_bytes=link.sample.level_bytes.map(lambda count: count + 65536),
    )
    assert step(link.state, moved, link.policy) == (link.state, None)


def test_a_late_tick_uses_the_true_time() -> None:
    late = Link(LENDING).decide((300, 200, 100), after_s=0.371)
    assert close(late.rates_bps, (300, 200, 100))
    assert late.elapsed_s == pytest.approx(0.371)


def test_another_policy_counts_on_but_decides_anew_at_once() -> None:
    link = Link(LENDING)
    link.settle((500, 300, 200), waits=True)
    link.policy = replace(
        LENDING,
        total_bps=990 * M,
        bands=PerLevel(Band(guarantee_bps=490 * M, ceiling_bps=990 * M), BANDS.l1, BANDS.l2),
    )
    decision = link.decide((490, 300, 200), waits=True)
    assert decision.ceilings_bps.l0 == 490 * M
    assert decision.changed


def test_needs_under_another_policy_say_nothing_any_more() -> None:
    link = Link(LENDING)
    link.settle((1000, 0, 0), waits=True)
    link.policy = replace(LENDING, hold_s=2.0)
    assert link.decide((500, 300, 200), waits=True).ceilings_bps.l0 == 500 * M


def test_ceilings_already_in_force_are_no_change() -> None:
    link = Link(LENDING, state=in_force(initial_state(), mbit(1000, 800, 1000)))
    assert not link.decide((100, 0, 0)).changed


def test_after_a_failed_write_the_same_ceilings_are_a_change() -> None:
    link = Link(LENDING)
    link.decide((100, 0, 0))
    link.state = in_force(link.state, None)
    assert link.decide((100, 0, 0)).changed
