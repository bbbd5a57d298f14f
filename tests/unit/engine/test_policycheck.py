"""The engine's rules, asked of a file before any node is known (contract 1.4; case B3)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.engine.policycheck import policy_problems
from netqos.model.inputs import LevelPolicy, NodePolicy, Percent
from netqos.model.levels import PerDirection, PerLevel
from netqos.settings.file import parse_documents
from netqos.settings.values import Settings, Toggle
from tests.unit.engine.given import composed

TOTAL = "node: {bandwidth: {tx: 1G, rx: 2G}}\n"
OWN_TOTALS = "node: {uplinks: [{name: a, bandwidth: {tx: 400M}}, {name: b, bandwidth: {tx: 600M}}]}\n"


def settings_of(levels: str, *, total: str = TOTAL, more: str = "") -> Settings:
    return parse_documents([("f", f"{total}policy: {{levels: {levels}{more}}}\n")])


def problems(settings: Settings) -> list[tuple[str, str]]:
    """Level, direction and bound of each problem, and its message."""
    return [
        (
            f"{one.problem.level.name} {one.direction.value} {one.problem.bound.value if one.problem.bound else None}",
            one.problem.message,
        )
        for one in policy_problems(settings)
    ]


SUM = "the guarantees of L1 and L2 add up to"


@pytest.mark.parametrize(
    ("levels", "wrong"),
    [
        ("{l1: {txMin: 700M}, l2: {txMin: 400M}}", [("L2 tx guarantee", f"{SUM} 1.1G of 1G")]),
        ("{l1: {txMin: 700M}, l2: {txMin: 290M}}", []),
        ("{l1: {rxMin: 700M}, l2: {rxMin: 400M}}", []),
        ("{l1: {txMin: 1G}}", [("L1 tx guarantee", f"{SUM} 1G of 1G")]),
        ("{l1: {txMax: 2G, rxMax: 2G}}", [("L1 tx ceiling", "ceiling 2G is over the total")]),
        (
            "{l1: {txMax: 2G}, l2: {txMax: 2G}}",
            [(f"{one} tx ceiling", "ceiling 2G is over the total") for one in ("L1", "L2")],
        ),
        ("{l0: {txMin: 99%}}", [("L0 tx guarantee", "a guarantee of 990M is asked for")]),
        ("{l0: {txMin: 40%}}", []),
        ("{l0: {txMax: 4M}}", [("L0 tx ceiling", "ceiling 4M is under 5M")]),
        ("{l1: {txMax: 0, rxMax: 0}}", []),
    ],
)
def test_what_the_engine_would_not_take_under_the_total(levels: str, wrong: list[tuple[str, str]]) -> None:
    found = problems(settings_of(levels))
    assert [place for place, _ in found] == [place for place, _ in wrong]
    for (_, message), (_, begin) in zip(found, wrong, strict=True):
        assert message.startswith(begin)


@pytest.mark.parametrize(
    "levels",
    [
        "{l1: {txMin: 700M}, l2: {txMin: 400M}}",
        "{l1: {txMax: 2G}}",
        "{l0: {txMin: 99%}}",
        "{l1: {txMin: 700M}}",
        "{l2: {rxMin: 1980M}}",
        "{l1: {txMin: 30%, rxMin: 20%}, l2: {txMax: 80%}}",
    ],
)
def test_it_agrees_with_what_is_composed(levels: str) -> None:
    settings = settings_of(levels, more=", enable: true")
    at_run_time = {one.code for one in composed(settings=settings).findings} & {"invalid-policy"}
    assert bool(problems(settings)) == bool(at_run_time)


AMOUNTS = st.one_of(
    st.none(), st.integers(0, 1200).map(lambda mbit: mbit * 10**6), st.integers(0, 100).map(Percent)
)
CEILINGS = AMOUNTS.filter(lambda amount: amount not in (0, Percent(0)))
LEVELS = st.builds(
    LevelPolicy,
    enabled=st.just(True),
    guarantee=st.builds(PerDirection, tx=AMOUNTS, rx=AMOUNTS),
    ceiling=st.builds(PerDirection, tx=CEILINGS, rx=CEILINGS),
)


@given(st.tuples(LEVELS, LEVELS, LEVELS))
def test_whatever_the_policy_it_agrees_with_what_is_composed(
    levels: tuple[LevelPolicy, LevelPolicy, LevelPolicy],
) -> None:
    policy = NodePolicy(source="file", enabled=True, levels=PerLevel(*levels))
    total: PerDirection[int | None] = PerDirection(tx=10**9, rx=7 * 10**8)
    settings = replace(Settings(), policy=policy, bandwidth=total)
    told = {f"policy {one.problem.level.name} {one.direction.value}" for one in policy_problems(settings)}
    found = {one.subject for one in composed(settings=settings).findings if one.code == "invalid-policy"}
    assert told <= found
    assert bool(told) == bool(found)


def test_the_totals_of_all_uplinks_are_the_total() -> None:
    assert problems(settings_of("{l1: {txMax: 1G}}", total=OWN_TOTALS)) == []
    [(place, message)] = problems(settings_of("{l1: {txMax: 1001M}}", total=OWN_TOTALS))
    assert (place, message) == ("L1 tx ceiling", "ceiling 1.001G is over the total; allowed: up to 1G")


def test_without_a_total_only_percentages_can_be_judged() -> None:
    assert problems(settings_of("{l1: {txMax: 2G}, l2: {txMin: 3G}}", total="")) == []
    [(place, message)] = problems(settings_of("{l0: {rxMin: 99%}}", total=""))
    assert place == "L0 rx guarantee"
    assert message.startswith("a guarantee of 99% is asked for")
    assert message.endswith("leave 40%")


def test_on_a_node_that_follows_kubernetes_other_totals_come_before_the_file() -> None:
    settings = settings_of("{l1: {txMax: 2G, rxMin: 3G}}")
    following = replace(settings, kubernetes=replace(settings.kubernetes, enable=Toggle.ON))
    assert len(problems(settings)) == 2
    assert problems(following) == []
    asked = replace(settings_of("{l0: {txMin: 99%}}"), kubernetes=following.kubernetes)
    assert [place for place, _ in problems(asked)] == ["L0 tx guarantee"]


def test_a_policy_that_is_switched_off_is_judged_too() -> None:
    assert problems(settings_of("{l1: {txMax: 2G}}", more=", enable: false")) != []
    proposal = (
        "policy: {networkQOSStrategy: {enable: false, nodeBandwidthLimit: {hw: {tx: 1000}, l1: {tx: 2000}}}}"
    )
    assert [place for place, _ in problems(parse_documents([("f", proposal)]))] == ["L1 tx ceiling"]


def test_a_class_that_is_off_says_nothing() -> None:
    text = "policy: {resourceQOSStrategy: {lsClass: {networkQOS: {enable: false, egressRequest: 100}}}}"
    assert problems(parse_documents([("f", text)])) == []
