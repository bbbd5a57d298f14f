from __future__ import annotations

import math
from collections import Counter

from netqos.model.levels import Direction, Level
from netqos.testing.analysis import Series
from tests.bench.beginnings import Step, scenarios
from tests.bench.contention import PODS
from tests.bench.loads import bursts, one_flow
from tests.bench.onsets import Onset, Seen, figures, judge
from tests.bench.shapers import Case, M

CASE = Case(total_bps=600 * M, pods=PODS, direction=Direction.RX)
SHARES = {"web": 300 * M, "api": 200 * M, "batch": 100 * M}
STEP_S, START_S = 0.02, 10.0


def seen(step: Step, changes: dict[str, list[tuple[float, float]]], running: set[Level]) -> Seen:
    """Rates by pod as they change: from a moment on, so many bits per second."""
    at_s = [START_S - 0.5 + STEP_S * place for place in range(250)]
    counts = {}
    for name in PODS:
        column = [0.0]
        for moment in at_s[1:]:
            rate = next((bps for since, bps in reversed(changes[name]) if moment > since + 1e-6), 0.0)
            column.append(column[-1] + rate * STEP_S / 8)
        counts[name] = tuple(column)
    series = Series(at_s=tuple(at_s), counts=counts)
    return Seen(series=series, case=CASE, step=step, running=frozenset(running), start_s=START_S)


def test_there_are_fifty_onsets_and_more_of_each_kind() -> None:
    counted = Counter(one.kind for one in scenarios() for step in one.steps if step.counts)
    assert counted == {
        "start and stop": 18,
        "bursts of 200 ms": 3,
        "200 short flows": 3,
        "UDP flood": 3,
        "one flow beside 64": 3,
        "64 flows beside one": 3,
    }
    assert counted.total() * len(Direction) >= 50
    assert all(len({step.level for step in one.steps}) == 3 for one in scenarios())


def test_a_newcomers_onset_counts_from_its_data() -> None:
    changes = {
        "web": [(10.3, 150.0 * M), (10.5, 300.0 * M)],
        "api": [(0.0, 500.0 * M), (10.5, 200.0 * M)],
        "batch": [(0.0, 100.0 * M)],
    }
    found = judge(seen(Step(level=Level.L0, load=one_flow), changes, set(Level)), "x")
    assert found == Onset(kind="x", after_s=0.2)


def test_two_levels_have_what_the_third_leaves() -> None:
    changes = {
        "web": [(10.1, 400.0 * M)],
        "api": [(0.0, 600.0 * M), (10.1, 200.0 * M)],
        "batch": [(0.0, 0.0)],
    }
    found = judge(seen(Step(level=Level.L0, load=one_flow), changes, {Level.L0, Level.L1}), "x")
    assert found.after_s == 0


def test_after_a_stop_it_counts_when_the_freed_bandwidth_is_used() -> None:
    changes = {
        "web": [(0.0, 300.0 * M), (10.2, 0.0)],
        "api": [(0.0, 200.0 * M), (10.6, 500.0 * M)],
        "batch": [(0.0, 100.0 * M)],
    }
    found = judge(seen(Step(level=Level.L0, load=None), changes, {Level.L1, Level.L2}), "x")
    assert found.freed_s is not None
    assert (round(found.freed_s, 3), round(found.after_s, 3)) == (0.4, 0.45)


def test_of_bursts_the_middle_one_counts() -> None:
    burst = [(10.0, 100.0 * M), (10.2, 0.0), (11.0, 40.0 * M), (11.2, 0.0), (12.0, 100.0 * M), (12.2, 0.0)]
    changes = {"web": [(0.0, 300.0 * M)], "api": [(0.0, 200.0 * M)], "batch": [(0.0, 0.0), *burst]}
    found = judge(seen(Step(level=Level.L2, load=bursts), changes, set(Level)), "x")
    assert found.after_s == 0
    never = {**changes, "web": [(0.0, 200.0 * M)]}
    assert judge(seen(Step(level=Level.L2, load=bursts), never, set(Level)), "x").after_s == math.inf


def test_the_claims_are_over_all_kinds() -> None:
    ours = [
        Onset(kind="a", after_s=0.0),
        Onset(kind="a", after_s=0.1, freed_s=0.05),
        Onset(kind="b", after_s=math.inf, freed_s=0.15),
    ]
    by_hand = [Onset(kind="a", after_s=0.2), Onset(kind="b", after_s=0.3, freed_s=0.1)]
    found = {one.what: (one.value, one.is_met) for one in figures(ours, by_hand)}
    assert found == {
        "all kinds: median": (100, True),
        "all kinds: p95": (math.inf, False),
        "freed bandwidth used: median": (100, None),
        "freed bandwidth used: p95": (150, True),
        "a": (50, None),
        "b": (math.inf, None),
    }
    rows = figures(ours, by_hand)
    assert rows[0].note == "3 onsets, never in band 1, static HTB 0"
    assert rows[1].note == ""
