"""Minima within half of a level's guarantee (contract 1.3)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from netqos.engine.admission import Admitted, Ask, admit, host_rate_bps, leaf_rate_bps
from netqos.model.desired import Band
from netqos.model.ids import PodUid
from netqos.model.levels import Direction, Level, PerLevel
from netqos.model.rules import IpMatch, Rule
from tests.unit.engine.given import M

EVERYTHING = (IpMatch(),)
# 1024M and 8192M make round leaf rates: 1M in L0 and in L1.
BANDS = PerLevel(
    Band(guarantee_bps=1024 * M, ceiling_bps=9999 * M),
    Band(guarantee_bps=8192 * M, ceiling_bps=9999 * M),
    Band(guarantee_bps=0, ceiling_bps=9999 * M),
)


def minimum(mbit: int, level: Level | None = None) -> Rule:
    return Rule(matches=EVERYTHING, minimum_bps=mbit * M, level=level)


def ask(uid: str, level: Level, *rules: Rule, limit: int | None = None) -> Ask:
    bps = None if limit is None else limit * M
    return Ask(uid=PodUid(uid), subject=f"pod p/{uid}", level=level, limit_bps=bps, rules=rules)


def tx(asks: Sequence[Ask], bands: PerLevel[Band] | None = BANDS) -> Admitted:
    return admit(asks, bands, Direction.TX)


def minima(admitted: Admitted) -> dict[str, list[float]]:
    return {uid: [(rule.minimum_bps or 0) / M for rule in rules] for uid, rules in admitted.rules.items()}


@pytest.mark.parametrize(
    ("level", "guarantee", "rate"),
    [
        (Level.L0, 10 * M, 64_000),
        (Level.L0, 1024 * M, 1 * M),
        (Level.L0, 100_000 * M, 5 * M),
        (Level.L1, 10 * M, 8_000),
        (Level.L2, 8192 * M, 1 * M),
    ],
)
def test_leaf_rates(level: Level, guarantee: int, rate: int) -> None:
    assert leaf_rate_bps(level, guarantee) == rate


def test_the_nodes_own_leaf() -> None:
    assert (host_rate_bps(10 * M), host_rate_bps(1000 * M)) == (2 * M, 20 * M)


def test_what_fits_is_not_touched() -> None:
    # half of 8192 is 4096; two leaves and two rules have 1 each
    asks = [ask("a", Level.L1, minimum(4000)), ask("b", Level.L1, minimum(92)), ask("c", Level.L0)]
    assert tx(asks) == Admitted(rules={}, findings=())


def test_what_does_not_fit_is_scaled_by_one_factor() -> None:
    asks = [
        ask("a", Level.L1, minimum(6000), minimum(184)),
        ask("b", Level.L1, minimum(1998)),
        ask("c", Level.L0),
    ]
    # five leaves: two pods and three rules leave 4091 of 4096
    admitted = tx(asks)
    factor = 4091 / 8182
    assert minima(admitted) == {
        "a": [pytest.approx(6000 * factor), pytest.approx(184 * factor)],
        "b": [pytest.approx(1998 * factor)],
    }
    assert [(one.code, one.subject) for one in admitted.findings] == [("minimum-scaled", "L1 tx")]
    assert "each has 50% of what it asks for" in admitted.findings[0].message


def test_levels_are_admitted_apart_and_a_rule_may_take_from_another_one() -> None:
    asks = [ask("a", Level.L1, minimum(5000, Level.L0), minimum(4000))]
    admitted = tx(asks)
    # L0: half of 1024 less one rule and two leaves of the node with 2 percent each
    room = 512 - 1 - 2 * 20.48
    assert minima(admitted) == {"a": [pytest.approx(room), 4000]}


def test_on_a_pod_with_a_limit_a_rule_takes_from_the_pods_own_level() -> None:
    asks = [ask("a", Level.L1, minimum(500, Level.L0), limit=1000)]
    assert tx(asks) == Admitted(rules={}, findings=())


def test_minima_stay_within_the_pods_limit() -> None:
    admitted = tx([ask("a", Level.L1, minimum(60), minimum(40), limit=50)])
    assert minima(admitted) == {"a": [30, 20]}
    assert [(one.code, one.subject) for one in admitted.findings] == [("minimum-above-limit", "pod p/a")]


def test_minima_may_fill_the_pods_limit() -> None:
    assert tx([ask("a", Level.L1, minimum(30), minimum(20), limit=50)]) == Admitted(rules={}, findings=())


@pytest.mark.parametrize(
    ("bands", "why"),
    [
        (None, "tx is not shaped by level: none is given"),
        (BANDS, "half of the level's guarantee has room for 0: each has 0% of what it asks for"),
    ],
)
def test_without_a_guarantee_there_is_no_minimum(bands: PerLevel[Band] | None, why: str) -> None:
    admitted = tx([ask("a", Level.L2, minimum(5))], bands)
    assert admitted.rules == {PodUid("a"): (Rule(matches=EVERYTHING),)}
    told = [(one.code, one.message) for one in admitted.findings]
    assert told == [("minimum-scaled", f"minima of 5M are asked for, and {why}")]
