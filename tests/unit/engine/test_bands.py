"""Defaults, checks and last good values of the levels (contract 1.4; cases B1, B3)."""

from __future__ import annotations

from fractions import Fraction

import pytest

from netqos.engine.bands import NO_LAST_BANDS, Bands, LastBands, resolve_bands
from netqos.model.desired import Band
from netqos.model.health import Severity
from netqos.model.inputs import LevelPolicy, NodePolicy, Percent
from netqos.model.levels import Direction, Level, PerLevel
from tests.unit.engine.given import M, codes, level, policy

OFF = LevelPolicy(enabled=False)


def tx(asked: NodePolicy, total: int = 1000, last: LastBands = NO_LAST_BANDS) -> Bands:
    return resolve_bands(asked, Direction.TX, total * M, last)


def mbit(bands: Bands) -> list[tuple[float, float]]:
    """Guarantee and ceiling of each level in megabits."""
    return [(band.guarantee_bps / M, band.ceiling_bps / M) for band in bands.levels]


def last(*values: tuple[int, int] | None) -> LastBands:
    bands = [
        None if one is None else Band(guarantee_bps=one[0] * M, ceiling_bps=one[1] * M) for one in values
    ]
    return PerLevel(*bands)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(policy(), [(400, 1000), (300, 1000), (300, 1000)], id="nothing said: 40:30:30"),
        pytest.param(
            policy(l1=level(guarantee=Percent(50))), [(200, 1000), (500, 1000), (300, 1000)], id="one given"
        ),
        pytest.param(
            policy(l1=level(guarantee=Percent(90))),
            [(10, 1000), (900, 1000), (90, 1000)],
            id="the other gives way",
        ),
        pytest.param(
            policy(l2=level(guarantee=990 * M)),
            [(10, 1000), (0, 1000), (990, 1000)],
            id="all but one percent given",
        ),
        pytest.param(
            policy(l2=level(ceiling=200 * M)),
            [(500, 1000), (300, 1000), (200, 200)],
            id="within its own ceiling",
        ),
        pytest.param(
            policy(l1=level(guarantee=0), l2=level(guarantee=Percent(0))),
            [(1000, 1000), (0, 1000), (0, 1000)],
            id="an explicit 0 stands",
        ),
        pytest.param(policy(l2=OFF), [(700, 1000), (300, 1000), (0, 1000)], id="a class that is off"),
        pytest.param(
            policy(level(ceiling=300 * M)),
            [(300, 300), (300, 1000), (300, 1000)],
            id="m0 within L0's ceiling",
        ),
        pytest.param(
            policy(level(guarantee=Percent(10))),
            [(400, 1000), (300, 1000), (300, 1000)],
            id="L0 asks for less",
        ),
        pytest.param(
            policy(l1=level(guarantee=Percent(Fraction(25, 2)), ceiling=Percent(Fraction(1601, 20)))),
            [(575, 1000), (125, 800.5), (300, 1000)],
            id="fractions of a percent",
        ),
        pytest.param(
            policy(l1=level(guarantee=700 * M), l2=level(guarantee=Percent(29))),
            [(10, 1000), (700, 1000), (290, 1000)],
            id="both kinds of amounts, 99 percent together",
        ),
    ],
)
def test_values_and_defaults(asked: NodePolicy, expected: list[tuple[float, float]]) -> None:
    bands = tx(asked)
    assert (mbit(bands), bands.findings) == (expected, ())
    assert bands.last_good == bands.levels


def test_a_class_that_is_off_is_marked_so() -> None:
    assert [band.enabled for band in tx(policy(OFF, OFF)).levels] == [True, False, True]


@pytest.mark.parametrize("percent", range(100))
def test_any_percentage_is_within_the_total(percent: int) -> None:
    bands = tx(policy(l1=level(guarantee=Percent(percent)), l2=level(guarantee=0)))
    assert bands.levels.l1.guarantee_bps == percent * 10 * M
    assert sum(band.guarantee_bps for band in bands.levels) == 1000 * M


@pytest.mark.parametrize(
    ("l1", "l2", "wrong"),
    [
        pytest.param(Percent(60), Percent(50), {Level.L1, Level.L2}, id="60 + 50 percent"),
        pytest.param(700 * M, 400 * M, {Level.L1, Level.L2}, id="700M + 400M"),
        pytest.param(Percent(100), 0, {Level.L1}, id="100 + 0 percent"),
        pytest.param(Percent(70), 2000 * M, {Level.L2}, id="one is wrong by itself, the other is good"),
    ],
)
def test_guarantees_that_leave_l0_nothing_are_wrong(
    l1: int | Percent, l2: int | Percent, wrong: set[Level]
) -> None:
    bands = tx(policy(l1=level(guarantee=l1), l2=level(guarantee=l2)))
    assert {one for one in Level if not bands.levels[one].enabled} == wrong
    assert bands.levels.l0.guarantee_bps >= 10 * M
    assert all(bands.last_good[one] is None for one in wrong)
    assert {finding.severity for finding in bands.findings} == {Severity.ERROR}


@pytest.mark.parametrize("just_too_much", [990 * M + 1, 991 * M])
def test_one_bit_more_than_ninety_nine_percent_is_too_much(just_too_much: int) -> None:
    assert codes(tx(policy(l1=level(guarantee=just_too_much), l2=OFF)).findings) == ["invalid-policy"]
    assert not tx(policy(l1=level(guarantee=990 * M), l2=OFF)).findings


def test_everything_wrong_is_reported_at_once() -> None:
    bands = tx(
        policy(
            level(guarantee=999 * M),
            level(guarantee=500 * M, ceiling=400 * M),
            level(guarantee=1500 * M, ceiling=1200 * M),
        )
    )
    assert [(one.subject, one.message.split(";")[0]) for one in bands.findings] == [
        ("policy L1 tx", "guarantee 500M is over its ceiling 400M"),
        ("policy L2 tx", "ceiling 1.2G is over the total"),
        ("policy L2 tx", "guarantee 1.5G is over its ceiling 1.2G"),
    ]
    assert mbit(bands) == [(1000, 1000), (0, 1000), (0, 1000)]


def test_a_wrong_class_keeps_its_own_last_good_values_while_the_good_ones_apply() -> None:
    bands = tx(
        policy(l1=level(guarantee=500 * M, ceiling=400 * M), l2=level(guarantee=250 * M)),
        last=last(None, (200, 900), (100, 500)),
    )
    assert mbit(bands) == [(550, 1000), (200, 900), (250, 1000)]
    assert bands.last_good == last((550, 1000), (200, 900), (250, 1000))
    [finding] = bands.findings
    assert finding.severity is Severity.ERROR
    assert "last good values stay (guarantee 200M, ceiling 900M)" in finding.message


def test_a_class_whose_text_was_rejected_keeps_its_last_good_values() -> None:
    asked = policy(l1=LevelPolicy(), l2=level(guarantee=250 * M), invalid=frozenset({Level.L1}))
    bands = tx(asked, last=last(None, (200, 900), None))
    assert mbit(bands) == [(550, 1000), (200, 900), (250, 1000)]
    assert codes(bands.findings) == ["invalid-policy"]


def test_new_values_that_do_not_fit_beside_last_good_ones_are_the_wrong_ones() -> None:
    """L1's text is wrong and its last good 800M do not leave room for L2's new 300M."""
    asked = policy(l1=LevelPolicy(), l2=level(guarantee=300 * M), invalid=frozenset({Level.L1}))
    bands = tx(asked, last=last(None, (800, 1000), (100, 1000)))
    assert mbit(bands) == [(100, 1000), (800, 1000), (100, 1000)]
    assert [finding.subject for finding in bands.findings] == ["policy L1 tx", "policy L2 tx"]


def test_last_good_values_that_fit_no_more_go_together() -> None:
    asked = policy(l1=LevelPolicy(), l2=LevelPolicy(), invalid=frozenset({Level.L1, Level.L2}))
    bands = tx(asked, total=600, last=last(None, (400, 1000), (300, 1000)))
    assert mbit(bands) == [(600, 600), (0, 600), (0, 600)]
    assert [finding.severity for finding in bands.findings] == [Severity.ERROR] * 4


def test_last_good_values_shrink_with_the_total_or_go() -> None:
    asked = policy(l1=LevelPolicy(), l2=OFF, invalid=frozenset({Level.L1}))
    assert mbit(tx(asked, total=700, last=last(None, (200, 1000), None)))[1] == (200, 700)
    too_small = tx(asked, total=150, last=last(None, (200, 1000), None))
    assert mbit(too_small)[1] == (0, 150)
    assert too_small.last_good.l1 == Band(guarantee_bps=200 * M, ceiling_bps=1000 * M)


def test_l0_may_not_ask_for_more_than_the_others_leave() -> None:
    bands = tx(policy(level(guarantee=Percent(60))))
    assert mbit(bands) == [(400, 1000), (300, 1000), (300, 1000)]
    [finding] = bands.findings
    assert (finding.code, finding.subject, finding.severity) == (
        "invalid-policy",
        "policy L0 tx",
        Severity.ERROR,
    )


def test_the_ceiling_of_l0_is_raised_to_what_the_node_lives_on() -> None:
    bands = tx(policy(level(ceiling=2 * M)))
    assert mbit(bands)[0] == (5, 5)
    assert codes(bands.findings) == ["invalid-policy"]


def test_a_ceiling_of_l0_over_the_total_leaves_it_the_total() -> None:
    bands = tx(policy(level(ceiling=1001 * M)))
    assert mbit(bands)[0] == (400, 1000)
    assert codes(bands.findings) == ["invalid-policy"]


def test_a_ceiling_of_nothing_is_wrong() -> None:
    bands = tx(policy(l1=level(ceiling=0), l2=level(guarantee=0)))
    assert mbit(bands) == [(1000, 1000), (0, 1000), (0, 1000)]
    assert [finding.subject for finding in bands.findings] == ["policy L1 tx"]


def test_directions_do_not_share_anything() -> None:
    asked = policy(l1=level(guarantee=(Percent(30), 700 * M), ceiling=(None, 500 * M)))
    assert not resolve_bands(asked, Direction.TX, 1000 * M).findings
    assert resolve_bands(asked, Direction.RX, 1000 * M).findings
