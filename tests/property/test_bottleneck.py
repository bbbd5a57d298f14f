"""What is done about a path that carries less than the total, and above all: when nothing is done."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from netqos.engine.pathsigns import PathPolicy
from netqos.engine.pathstate import PathState, Reason
from netqos.model.levels import Level, PerLevel
from tests.property.pathmodel import GREEDY_BPS, Demand, M, Moment, Seen, run

TOTAL = 1000 * M
AUTO = PathPolicy(total_bps=TOTAL, floor_bps=505 * M, guarantees_bps=PerLevel(500 * M, 300 * M, 200 * M))
FIXED = replace(AUTO, floor_bps=930 * M)
WIDE = 2 * TOTAL
IDLE = Demand()
MINUTE, WINDOWS_A_SECOND = 120, 2


def greedy(path_bps: int, *, shows_loss: bool = True, flows: tuple[int, int, int] = (1, 1, 16)) -> Moment:
    demands = PerLevel(*(Demand(wants_bps=GREEDY_BPS, flows=count) for count in flows))
    return Moment(demands=demands, path_bps=path_bps, shows_loss=shows_loss)


def wanting(l0: int, l1: int, l2: int, *, remote_loss: float = 0.0) -> Moment:
    """Levels that ask for so many megabits; of each, `remote_loss` is lost elsewhere."""
    demands = (Demand(wants_bps=one * M, remote_loss=remote_loss) for one in (l0, l1, l2))
    return Moment(demands=PerLevel(*demands), path_bps=WIDE)


def at_own_limit(limit: int, others: int) -> Moment:
    """L2 is one workload that always waits at its own limit."""
    l2 = Demand(wants_bps=GREEDY_BPS, queue_bps=limit * M)
    return Moment(demands=PerLevel(Demand(wants_bps=others * M), IDLE, l2), path_bps=WIDE)


def noisy(moment: Moment, count: int, noises: list[float]) -> list[Moment]:
    """The same conditions with noise on every level."""
    places = [3 * place for place in range(count)]
    return [
        replace(moment, noise=PerLevel(*(noises[(place + level) % len(noises)] for level in range(3))))
        for place in places
    ]


def moves(seen: list[Seen]) -> list[Reason]:
    return [one.step.reason for one in seen if one.step is not None]


def held_back(seen: list[Seen]) -> float:
    """The share of the time in which a trial held traffic back."""
    return sum(one.applied_bps < TOTAL and one.window.waiting > 0 for one in seen) / len(seen)


def last_limit(seen: list[Seen]) -> int | None:
    return seen[-1].state.limit_bps


def told_after_s(seen: list[Seen]) -> float | None:
    """Seconds from the first window's begin until a shortfall is told or a limit in force."""
    told = (place for place, one in enumerate(seen, start=1) if one.state.shortfall or one.state.limit_bps)
    return next((place / WINDOWS_A_SECOND for place in told), None)


FEW = settings(max_examples=15)
"""Each example is minutes of windows."""

NOISES = st.lists(st.floats(0.99, 1.01), min_size=7, max_size=60)
POLICIES = st.sampled_from([AUTO, FIXED])


@st.composite
def steady(draw: st.DrawFn) -> Moment:
    """Senders or receivers that ask for fixed amounts, in all no more than fits; what they lose is lost elsewhere."""
    wants = [draw(st.integers(0, TOTAL)) for _ in Level]
    over = max(1.0, sum(wants) / (0.97 * TOTAL))
    losses = st.sampled_from([0.0, 0.0, 1e-3, 1e-2, 0.1])
    demands = [
        Demand(wants_bps=int(one / over), flows=draw(st.integers(1, 64)), remote_loss=draw(losses))
        for one in wants
    ]
    return Moment(demands=PerLevel(*demands), path_bps=WIDE)


@st.composite
def narrow(draw: st.DrawFn, least: float = 0.55, most: float = 0.95) -> Moment:
    """Greedy levels before a path that carries less, in a queue that knows no levels."""
    flows = draw(st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(12, 64)))
    return greedy(int(draw(st.floats(least, most)) * TOTAL), shows_loss=draw(st.booleans()), flows=flows)


@FEW
@given(steady(), NOISES, POLICIES)
@example(
    Moment(
        demands=PerLevel(
            Demand(wants_bps=200 * M),
            Demand(wants_bps=150 * M),
            Demand(wants_bps=350 * M, remote_loss=0.02),
        ),
        path_bps=WIDE,
    ),
    [1.0] * 7,
    AUTO,
)
def test_traffic_that_asks_for_no_more_is_never_limited(
    moment: Moment, noises: list[float], policy: PathPolicy
) -> None:
    """Idle, limited by applications or receivers, losing packets elsewhere: a trial now and then at most."""
    seen = run(noisy(moment, 2 * MINUTE, noises), policy)
    is_losing = any(one.remote_loss for one in moment.demands)
    assert all(one.state.limit_bps is None for one in seen)
    assert is_losing or all(one.state.shortfall is None for one in seen)
    assert held_back(seen) <= 0.15


@FEW
@given(st.integers(10, 1000), st.integers(0, 1000), NOISES, POLICIES)
def test_a_workload_at_its_own_limit_is_no_narrow_path(
    limit: int, others: int, noises: list[float], policy: PathPolicy
) -> None:
    seen = run(noisy(at_own_limit(limit, others), MINUTE, noises), policy)
    assert all(one.state.limit_bps is None and one.state.shortfall is None for one in seen)


@FEW
@given(st.lists(st.integers(0, 1100), min_size=10, max_size=200), NOISES)
def test_demand_that_moves_is_no_plateau(totals: list[int], noises: list[float]) -> None:
    moments = [one for each in totals for one in noisy(wanting(each // 2, each // 3, each // 6), 2, noises)]
    assert all(one.state.limit_bps is None and one.state.shortfall is None for one in run(moments, AUTO))


@FEW
@given(st.tuples(st.integers(1, 64), st.integers(1, 64), st.integers(1, 64)), NOISES, POLICIES)
def test_a_path_that_carries_the_total_is_left_alone(
    flows: tuple[int, int, int], noises: list[float], policy: PathPolicy
) -> None:
    seen = run(noisy(greedy(TOTAL, flows=flows), MINUTE, noises), policy)
    assert (moves(seen), told_after_s(seen)) == ([], None)


@FEW
@given(narrow(), NOISES)
def test_under_auto_a_narrow_path_is_met_from_below_and_every_level_has_its_share(
    moment: Moment, noises: list[float]
) -> None:
    seen = run(noisy(moment, 2 * MINUTE, noises), AUTO)
    limit = last_limit(seen)
    assert limit is not None
    assert 0.9 * moment.path_bps <= limit <= 1.001 * moment.path_bps
    held = [one.window for one in seen if one.applied_bps == limit][-1]
    for level in Level:
        promised = AUTO.guarantees_bps[level] * limit / TOTAL
        assert held.rates_bps[level] >= 0.97 * promised


@FEW
@given(narrow(least=0.55, most=0.93), NOISES, POLICIES)
def test_a_narrow_path_that_loses_packets_is_told_within_ten_seconds(
    moment: Moment, noises: list[float], policy: PathPolicy
) -> None:
    after_s = told_after_s(run(noisy(replace(moment, shows_loss=True), 40, noises), policy))
    assert after_s is not None
    assert after_s <= 10


@FEW
@given(narrow(least=0.965, most=0.975), NOISES)
@example(
    replace(greedy(965_068_462, flows=(1, 1, 12)), path_loss=0.005),
    [1.0, 1.0, 0.9921875, 1.0, 0.9921875, 0.9921875, 0.9921875],
)
def test_what_lies_within_other_ways_of_counting_is_met_without_auto(
    moment: Moment, noises: list[float]
) -> None:
    seen = run(noisy(moment, MINUTE, noises), FIXED)
    limit = last_limit(seen)
    assert all(one.state.shortfall is None for one in seen)
    assert limit is not None
    assert 0.93 * TOTAL <= limit <= moment.path_bps


@FEW
@given(narrow(most=0.9), NOISES)
def test_what_no_allowed_limit_could_mend_is_not_tried(moment: Moment, noises: list[float]) -> None:
    assert moves(run(noisy(moment, MINUTE, noises), FIXED)) == []


@FEW
@given(narrow(least=0.5, most=0.99), NOISES, POLICIES)
def test_where_much_is_lost_steps_are_larger_but_the_floor_is_the_floor(
    moment: Moment, noises: list[float], policy: PathPolicy
) -> None:
    seen = run(noisy(replace(moment, shows_loss=True, path_loss=0.3), MINUTE, noises), policy)
    assert min(one.applied_bps for one in seen) >= policy.floor_bps


@FEW
@given(narrow(most=0.9), NOISES)
def test_without_auto_a_total_is_never_lowered_by_more(moment: Moment, noises: list[float]) -> None:
    seen = run(noisy(moment, 2 * MINUTE, noises), FIXED)
    assert min(one.applied_bps for one in seen) >= FIXED.floor_bps


@FEW
@given(st.lists(st.one_of(steady(), narrow(least=0.2, most=1.3)), min_size=1, max_size=12), NOISES, POLICIES)
def test_never_under_the_floor_never_above_the_total_and_in_bounded_steps(
    moments: list[Moment], noises: list[float], policy: PathPolicy
) -> None:
    seen = run([one for each in moments for one in noisy(each, 60, noises)], policy)
    applied = [one.applied_bps for one in seen]
    assert policy.floor_bps <= min(applied)
    assert max(applied) <= TOTAL
    tried: set[int] = {TOTAL}
    for before, after in pairwise(applied):
        assert after >= min(tried) or before - after <= 0.13 * TOTAL
        tried |= {before, after}


@FEW
@given(narrow(most=0.9), NOISES)
def test_the_total_is_back_soon_after_the_path_carries_it_again(moment: Moment, noises: list[float]) -> None:
    wide = replace(moment, path_bps=WIDE)
    seen = run([*noisy(moment, MINUTE, noises), *noisy(wide, 12 * MINUTE, noises)], AUTO)
    assert (last_limit(seen), seen[-1].applied_bps, seen[-1].state.shortfall) == (None, TOTAL, None)


@FEW
@given(narrow(most=0.9), NOISES)
def test_a_narrow_path_is_not_tried_again_and_again(moment: Moment, noises: list[float]) -> None:
    """Once a limit is proven, trials upwards get rarer: over ten minutes a few seconds of each hundred at most."""
    seen = run([*noisy(moment, MINUTE, noises), *noisy(moment, 10 * MINUTE, noises)], AUTO)
    above = sum(one.applied_bps > (one.state.limit_bps or TOTAL) for one in seen[MINUTE:])
    assert above <= 0.05 * 10 * MINUTE


@FEW
@given(narrow(most=0.9), NOISES, st.integers(1, 200))
def test_a_restart_goes_on_with_what_was_proven(moment: Moment, noises: list[float], quiet: int) -> None:
    limit = last_limit(run(noisy(moment, MINUTE, noises), AUTO))
    assume(limit is not None)
    again = run(noisy(wanting(0, 0, 0), quiet, noises), AUTO, PathState(limit_bps=limit))
    assert (moves(again), again[-1].applied_bps) == ([], limit)


@FEW
@given(narrow(most=0.9), NOISES)
def test_a_limit_that_the_configuration_allows_no_more_goes_at_once(
    moment: Moment, noises: list[float]
) -> None:
    state = run(noisy(moment, MINUTE, noises), AUTO)[-1].state
    assume(state.limit_bps is not None)
    after = run(noisy(moment, 1, noises), FIXED, state)
    assert (moves(after), after[-1].state.applied_bps(FIXED.total_bps)) == ([Reason.OUT_OF_RANGE], TOTAL)


@FEW
@given(narrow(), NOISES)
def test_the_step_is_a_function_of_its_arguments(moment: Moment, noises: list[float]) -> None:
    moments = noisy(moment, MINUTE, noises)
    assert run(moments, AUTO) == run(moments, AUTO)


@FEW
@given(st.floats(0.96, 0.98), NOISES, POLICIES)
def test_flows_that_push_on_do_not_hide_a_path_that_is_a_little_narrower(
    share: float, noises: list[float], policy: PathPolicy
) -> None:
    greedy_one = Demand(wants_bps=GREEDY_BPS)
    demands = PerLevel(greedy_one, greedy_one, replace(greedy_one, pushes=True))
    moment = Moment(demands=demands, path_bps=int(share * TOTAL))
    limit = last_limit(run(noisy(moment, 2 * MINUTE, noises), policy))
    assert limit is not None
    assert 0.9 * TOTAL <= limit <= moment.path_bps


NOBODYS_FAULT = {
    "idle": wanting(0, 0, 0),
    "128 kbit/s": Moment(demands=PerLevel(Demand(wants_bps=128_000), IDLE, IDLE), path_bps=WIDE),
    "half of the total, smooth": wanting(0, 500, 0),
    "one stream at nine tenths": wanting(900, 0, 0),
    "nearly all": wanting(300, 300, 370),
    "L0 asks for little beside bulk": wanting(50, 0, 850),
    "L0 asks for nothing beside bulk": wanting(0, 0, 900),
    "receivers limit L1": wanting(10, 600, 10),
    "clients far away lose one in a thousand": wanting(100, 600, 100, remote_loss=1e-3),
    "clients far away lose one in a hundred": wanting(100, 600, 100, remote_loss=1e-2),
    "clients far away report a gap in a tenth": wanting(100, 600, 100, remote_loss=0.1),
    "L0 loses packets far away, while L2 fills the total": Moment(
        demands=PerLevel(
            Demand(wants_bps=50 * M, remote_loss=0.01), IDLE, Demand(wants_bps=GREEDY_BPS, flows=16)
        ),
        path_bps=WIDE,
    ),
    "a workload at its own limit": at_own_limit(700, 0),
    "a workload at its own limit beside others": at_own_limit(400, 300),
    "L2 alone, greedy": Moment(demands=PerLevel(IDLE, IDLE, Demand(wants_bps=GREEDY_BPS)), path_bps=TOTAL),
    "all greedy, the path carries the total": greedy(TOTAL),
    "all greedy, the path carries more": greedy(WIDE),
}


MANY_CLIENTS = [0.95, 1.04, 0.99, 1.06, 0.96, 1.01, 0.94, 1.05, 1.0, 0.97, 1.03]
"""How the sum of many clients far away goes up and down."""


@pytest.mark.parametrize("policy", [AUTO, FIXED], ids=["auto", "fixed"])
@pytest.mark.parametrize("name", NOBODYS_FAULT)
def test_nothing_is_limited_or_told(name: str, policy: PathPolicy) -> None:
    noises = MANY_CLIENTS if "clients" in name else [1.0]
    seen = run(noisy(NOBODYS_FAULT[name], 10 * MINUTE, noises), policy)
    assert all(one.state.limit_bps is None and one.state.shortfall is None for one in seen)
    assert held_back(seen) <= 0.05


@pytest.mark.parametrize("shows_loss", [True, False], ids=["losing", "lossless"])
@pytest.mark.parametrize("percent", [60, 70, 80, 90, 95, 97])
def test_narrow_paths_under_auto(percent: int, shows_loss: bool) -> None:
    path_bps = TOTAL * percent // 100
    limit = last_limit(run([greedy(path_bps, shows_loss=shows_loss)] * MINUTE, AUTO))
    assert limit is not None
    assert 0.93 * path_bps <= limit <= path_bps
