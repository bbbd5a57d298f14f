from __future__ import annotations

import math

import pytest

from netqos.model.levels import Direction, Level
from tests.bench.compare.measures import evaluate
from tests.bench.compare.rows import MEASURES
from tests.bench.compare.session import Cost
from tests.unit.bench.runs import MARKS, POLICY, TOTALS, recording, share_of, steady

WAYS, LEVELS = ("tx", "rx"), ("L0", "L1", "L2")
ALL_COSTS = Cost(cpu_percent=2.0, resident_mib=51.0, late_p99_ms=0.3, writes_a_second=7.0)


def test_a_run_that_keeps_every_promise_at_once() -> None:
    found = evaluate(recording(cost=ALL_COSTS), POLICY)
    assert {key: round(value, 6) for key, value in found.items() if math.isfinite(value)} == {
        **{f"{way}.onset.{level}": 0 for way in WAYS for level in LEVELS},
        **{f"{way}.release.{level}": 0 for way in WAYS for level in LEVELS},
        **{f"{way}.settled": 0 for way in WAYS},
        **{f"{way}.guarantee.{what}": 100 for way in WAYS for what in ("worst", "mean")},
        **{f"{way}.{what}": 100 for way in WAYS for what in ("used", "total.best")},
        **{f"{way}.ceiling.{what}": 100 for way in WAYS for what in ("best", "mean")},
        "rx.node": 125,
        "tx.short.p50": 4,
        "tx.short.p99": 50,
        "rx.short.p50": 3,
        "request.p50": 1,
        "request.p99": 20,
        "request.p99.9": 20,
        "agent.cpu": 2,
        "agent.rss": 51,
        "agent.late": 0.3,
        "agent.writes": 7,
    }
    assert found["rx.short.p99"] == math.inf
    assert set(found) == set(MEASURES)


def test_without_an_agent_there_is_nothing_that_it_costs() -> None:
    found = evaluate(recording(), POLICY)
    assert set(MEASURES) - set(found) == {"agent.cpu", "agent.rss", "agent.late"}
    assert found["agent.writes"] == 0


def late_by(seconds: float, way: Direction, level: Level, at_s: float) -> float:
    """In the first seconds of each mark of one direction the rates are still those of before."""
    mark = next((mark for mark in reversed(MARKS) if mark.start_s <= at_s), None)
    if way is not Direction.RX or mark is None or at_s >= mark.start_s + seconds:
        return steady(way, level, at_s)
    before = steady(way, level, mark.start_s - 0.01)
    if level is mark.level:
        return 0 if mark.kind == "gone" else 0.5 * share_of(None, way)[level]
    return before


def test_what_comes_late_is_late_in_its_direction_alone() -> None:
    found = evaluate(recording(lambda way, level, at_s: late_by(0.4, way, level, at_s)), POLICY)
    onsets = {
        key: round(value)
        for key, value in found.items()
        if "onset" in key or "release" in key or "settled" in key
    }
    tx = {key: value for key, value in onsets.items() if key.startswith("tx")}
    assert set(tx.values()) == {0}
    assert onsets["rx.settled"] == 400
    assert (onsets["rx.release.L0"], onsets["rx.release.L1"]) == (400, 400)
    assert onsets["rx.onset.L0"] == 400


def test_what_never_comes_is_infinite() -> None:
    def naive(way: Direction, level: Level, at_s: float) -> float:
        """L0 gets half of its share, whatever happens."""
        return steady(way, level, at_s) * (0.5 if level is Level.L0 else 1)

    found = evaluate(recording(naive), POLICY)
    assert found["tx.onset.L1"] == math.inf
    assert found["tx.release.L1"] == math.inf
    assert found["tx.guarantee.worst"] == pytest.approx(50)
    assert found["rx.used"] == pytest.approx(75)
    assert found["tx.settled"] == pytest.approx(0)


def test_a_level_above_its_ceiling_shows() -> None:
    def greedy(way: Direction, level: Level, at_s: float) -> float:
        return (
            TOTALS[way]
            if (way, level) == (Direction.TX, Level.L2) and at_s < 101.0
            else steady(way, level, at_s)
        )

    found = evaluate(recording(greedy), POLICY)
    assert found["tx.ceiling.best"] == pytest.approx(100 / 0.7)
    assert found["rx.ceiling.best"] == pytest.approx(100)
