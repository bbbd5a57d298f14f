from __future__ import annotations

import pytest

from netqos.testing.analysis import Series
from tests.bench.contention import PODS
from tests.bench.shapers import Case, M
from tests.bench.together import figures, judged

CASE = Case(total_bps=600 * M, pods=PODS)
SHARES = {"web": 300 * M, "api": 200 * M, "batch": 100 * M}


def test_bins_under_the_band_and_the_worst_second() -> None:
    """L2 is at a half for one second of four, before which nothing counts."""
    counts = {}
    for name, share in SHARES.items():
        column = [0.0]
        for step in range(500):
            at_s = 0.01 * step
            is_low = at_s < 1 or (name == "batch" and 2 <= at_s < 3)
            column.append(column[-1] + share * (0.5 if is_low else 1) * 0.01 / 8)
        counts[name] = tuple(column)
    series = Series(at_s=tuple(10 + 0.01 * step for step in range(501)), counts=counts)
    low, worst = judged(series, CASE, 11.0)
    assert low == pytest.approx(100 * 10 / 120, abs=1)
    assert worst == pytest.approx(50, abs=0.1)


def test_both_nodes_stand_side_by_side() -> None:
    found = figures("egress, bbr", [{"netqosd": (1.0, 99.0), "static HTB": (2.0, 98.0)}])
    assert [(one.what, one.runs, one.baseline, one.note) for one in found] == [
        ("egress, bbr: 100 ms of a level under 90 % of its guarantee", (1.0,), (2.0,), "1 / 2"),
        ("egress, bbr: worst second of a level, of its guarantee", (99.0,), (98.0,), "99 / 98"),
    ]
