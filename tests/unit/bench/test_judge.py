from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.compare.judge import Change, compare, judge
from tests.bench.compare.results import Contestant, Result

VALUES = st.lists(st.floats(0, 1e6) | st.just(math.inf), min_size=1, max_size=7)


@pytest.mark.parametrize(
    ("before", "after", "less_is_better", "change"),
    [
        ((10, 11, 12), (11, 12, 13), True, Change.SAME),
        ((10, 11, 12), (7, 8, 9), True, Change.BETTER),
        ((10, 11, 12), (7, 8, 9), False, Change.WORSE),
        ((10, 11, 12), (7, 8, 9), None, Change.MOVED),
        ((10, 11, 12), (13, 14, math.inf), True, Change.WORSE),
        ((100.0, 100.1), (99.4, 99.5), False, Change.SAME),
        ((math.inf,), (50,), True, Change.BETTER),
        ((50,), (math.inf,), True, Change.WORSE),
        ((math.inf,), (math.inf,), True, Change.SAME),
        ((0, 0), (0, 0), True, Change.SAME),
        ((0, 0), (50, 50), True, Change.WORSE),
    ],
)
def test_runs_that_lie_apart_have_moved(
    before: tuple[float, ...], after: tuple[float, ...], less_is_better: bool | None, change: Change
) -> None:
    assert judge(before, after, less_is_better=less_is_better) is change


@given(before=VALUES, after=VALUES)
def test_there_and_back_is_the_opposite(before: list[float], after: list[float]) -> None:
    there = judge(before, after, less_is_better=True)
    assert judge(after, before, less_is_better=False) in {there, Change.SAME}
    assert judge(before, before, less_is_better=True) is Change.SAME


def test_what_cannot_be_told_apart_is_the_same() -> None:
    assert judge((0, 0), (50, 50), less_is_better=True, resolution=50) is Change.SAME
    assert judge((0, 0), (100, 100), less_is_better=True, resolution=50) is Change.WORSE
    assert judge((0, 50), (math.inf,), less_is_better=True, resolution=50) is Change.WORSE


def result(**runs: list[dict[str, float]]) -> Result:
    return Result(
        policy={},
        contestants=tuple(Contestant(name=name, how="", runs=tuple(found)) for name, found in runs.items()),
    )


def test_only_what_both_results_have_is_compared() -> None:
    before = result(netqos=[{"tx.used": 98.0, "agent.cpu": 2.0}] * 3, gone=[{"tx.used": 1.0}])
    after = result(netqos=[{"tx.used": 99.5, "request.p50": 1.0}] * 3, fresh=[{"tx.used": 1.0}])
    found = list(compare(before, after))
    assert [(one.who, one.measure.key, one.before, one.after, one.change) for one in found] == [
        ("netqos", "tx.used", 98.0, 99.5, Change.MOVED)
    ]
    assert found[0].ratio == pytest.approx(99.5 / 98)


def test_two_runs_tell_nothing() -> None:
    before, after = ([{"tx.used": value}] * 2 for value in (98.0, 99.5))
    assert [one.change for one in compare(result(netqos=before), result(netqos=after))] == [Change.SAME]


def test_no_ratio_where_there_is_none() -> None:
    key = "tx.onset.L0"
    before = result(a=[{key: 0.0}], b=[{key: math.inf}], c=[{key: math.inf}])
    after = result(a=[{key: 50.0}], b=[{key: 50.0}], c=[{key: math.inf}])
    ratios = [one.ratio for one in compare(before, after)]
    assert [math.isnan(ratio) for ratio in ratios] == [True, True, False]
    assert ratios[2] == 1
