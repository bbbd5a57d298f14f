from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from netqos.cli.demo.verdict import as_json, judge, settle_bin_s
from netqos.model.levels import Direction, Level
from netqos.testing.analysis import Series
from tests.unit.cli.demo.demodata import RX, SCENARIO, TX, M, record


def broken(scale: dict[tuple[int, Level], float], way: Direction) -> list[tuple[int, str, str]]:
    verdict = judge(SCENARIO, record(scale=scale, way=way))
    return [
        (number, level.name, result.broken)
        for number, phase in enumerate(verdict.phases)
        for level, result in phase.sides[way].levels.items()
        if result.broken
    ]


def test_exact_shares_keep_every_promise() -> None:
    verdict = judge(SCENARIO, record())
    assert verdict.kept
    for way in (TX, RX):
        assert [phase.sides[way].settled_after_s for phase in verdict.phases] == [0.0] * 5


@pytest.mark.parametrize(
    ("scale", "found"),
    [
        ({(1, Level.L1): 0.96}, []),
        ({(1, Level.L1): 0.94}, [(1, "L1", "it got under 95% of its share")]),
        ({(2, Level.L1): 0.94}, [(2, "L1", "its worst second is under 95% of its guarantee")]),
        ({(2, Level.L1): 1.5}, []),  # more than promised is fine below the ceiling
        ({(1, Level.L1): 1.03}, [(1, "L1", "its best second is over 102% of its ceiling")]),
        ({(4, Level.L2): 1.2}, [(4, "L2", "its best second is over 102% of its ceiling")]),
    ],
)
def test_a_promise_is_broken_by_too_little_or_over_the_ceiling(
    scale: dict[tuple[int, Level], float], found: list[tuple[int, str, str]]
) -> None:
    assert broken(scale, TX) == found


def test_each_direction_is_judged_by_its_own_promises() -> None:
    told = [
        (0, "L2", "it got under 95% of its share"),
        (1, "L2", "its worst second is under 95% of its guarantee"),
    ]
    scale = {(0, Level.L2): 0.9, (1, Level.L2): 0.9, (4, Level.L1): 1.1}
    assert broken(scale, RX) == told
    verdict = judge(SCENARIO, record(scale=scale, way=RX))
    assert [phase.broken for phase in verdict.phases] == [((RX, Level.L2),), ((RX, Level.L2),), (), (), ()]


def test_a_dip_in_what_is_lent_is_no_broken_promise() -> None:
    recording = record()
    start_s = recording.spans[0].start_s
    lost = [max(0.0, min(1.0, at - start_s - 1.5) * 40 * M / 8) for at in recording.series.at_s]
    counts = dict(recording.series.counts)
    counts["batch tx"] = tuple(count - less for count, less in zip(counts["batch tx"], lost, strict=True))
    dipped = replace(recording, series=Series(at_s=recording.series.at_s, counts=counts))
    result = judge(SCENARIO, dipped).phases[0].sides[TX].levels[Level.L2]
    assert round(result.measured.worst_bps / M) == 960
    assert result.broken == ""


def test_a_level_that_stays_off_its_promise_never_settles() -> None:
    verdict = judge(SCENARIO, record(scale={(2, Level.L0): 1.2}))
    assert [phase.sides[TX].settled_after_s for phase in verdict.phases] == [0.0, 0.0, None, 0.0, 0.0]


def got(guaranteed: int, share: int, ceiling: int) -> dict[str, object]:
    """A level that got exactly its share, in megabits."""
    return {
        "guaranteed_bps": guaranteed * M,
        "share_bps": share * M,
        "ceiling_bps": ceiling * M,
        "mean_bps": share * M,
        "worst_second_bps": share * M,
        "best_second_bps": share * M,
        "broken": None,
    }


def test_programs_get_plain_json() -> None:
    document: dict[str, Any] = json.loads(json.dumps(as_json(judge(SCENARIO, record())), allow_nan=False))
    assert document["kept"] is True
    assert document["directions"]["tx"]["levels"]["L1"] == {"guarantee_bps": 300 * M, "ceiling_bps": 800 * M}
    assert document["directions"]["rx"]["total_bps"] == 600 * M
    phase = document["phases"][1]
    directions = phase.pop("directions")
    assert phase == {
        "title": "L1 joins",
        "start_s": 2.5,
        "end_s": 5.0,
        "kept": True,
        "request_ms": {"count": 250, "lost": 0, "p50": 0.1, "p99": 0.1},
    }
    assert directions["tx"] == {
        "settled_after_s": 0.0,
        "levels": {"L1": got(300, 800, 800), "L2": got(200, 200, 1000)},
    }
    assert directions["rx"] == {
        "settled_after_s": 0.0,
        "levels": {"L1": got(60, 480, 600), "L2": got(120, 120, 330)},
    }
    assert document["phases"][4]["request_ms"] == {"count": 249, "lost": 1, "p50": 0.1, "p99": 0.1}


def test_small_rates_are_looked_at_longer() -> None:
    assert [settle_bin_s(rate * M) for rate in (600, 50, 20, 1)] == [0.1, 0.1, 0.2, 0.5]
