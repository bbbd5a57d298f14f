"""The desired state under limits of paths, and how far they may go."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netqos.engine.pathlimits import (
    NO_PATH_LIMITS,
    PathLimit,
    follows,
    limited,
    path_policy,
    recalled,
    remembered,
    within_limits,
)
from netqos.engine.units import bands_at
from netqos.model.composed import EMPTY_LAST_GOOD, Composition
from netqos.model.desired import DesiredState
from netqos.model.ids import IfName
from netqos.model.levels import Direction, PerDirection, PerLevel
from netqos.model.traffic import Unit
from netqos.settings.values import ConfiguredUplink, Settings
from netqos.testing import states
from netqos.testing.states import M

UP0, UP1, IFB = IfName("up0"), IfName("up1"), IfName("netqos-ifb")
TX, RX, TX1 = Unit(Direction.TX, UP0), Unit(Direction.RX, IFB), Unit(Direction.TX, UP1)
FIXED = Settings()
AUTO = Settings(follows=PerDirection(tx=True, rx=True))
TX_ONLY = Settings(follows=PerDirection(tx=True, rx=False))


def node(*uplinks: str, tx: int = 1000, rx: int = 600) -> DesiredState:
    """One uplink has the whole total; of several each has an equal part of its own."""
    names = uplinks or ("up0",)
    shares = PerDirection(tx=tx * M // len(names), rx=rx * M // len(names))
    found = tuple(
        states.uplink(name, index=7 + place, tx_bps=shares.tx, rx_bps=shares.rx)
        for place, name in enumerate(names)
    )
    return states.node((), uplinks=found, tx=states.direction(tx * M), rx=states.direction(rx * M))


def test_what_may_be_lowered_is_a_little_unless_the_total_is_auto() -> None:
    guarantees = PerLevel(500 * M, 300 * M, 200 * M)
    whole = node()
    assert path_policy(whole, TX, FIXED) is not None
    floors = [
        found and (found.total_bps, found.floor_bps)
        for found in (path_policy(whole, unit, settings) for settings in (FIXED, AUTO) for unit in (TX, RX))
    ]
    assert floors == [(1000 * M, 930 * M), (600 * M, 558 * M), (1000 * M, 505 * M), (600 * M, 305 * M)]
    found = path_policy(whole, TX, AUTO)
    assert found is not None
    assert found.guarantees_bps == guarantees
    assert found.promised(500 * M) == PerLevel(250 * M, 150 * M, 100 * M)


def test_an_uplink_that_is_none_any_more_limits_nothing() -> None:
    whole = node("up1")
    assert path_policy(whole, TX, AUTO) is None
    assert within_limits(whole, {TX: 780 * M}, AUTO) is whole


def test_nothing_is_judged_without_levels_or_where_a_total_is_shared() -> None:
    off = states.node(
        (), uplinks=(states.uplink("up0"),), tx=states.direction(None), rx=states.direction(None)
    )
    assert path_policy(off, TX, AUTO) is None
    pool = replace(states.uplink("up0"), pool_bps=PerDirection(tx=900 * M, rx=None))
    assert path_policy(replace(node(), uplinks=(pool,)), TX, AUTO) is None


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (ConfiguredUplink(name=UP0), (True, False)),
        (ConfiguredUplink(name=UP0, bandwidth=PerDirection(tx=5 * M, rx=None)), (False, False)),
        (
            ConfiguredUplink(
                name=UP0,
                bandwidth=PerDirection(tx=5 * M, rx=None),
                follows=PerDirection(tx=True, rx=False),
            ),
            (True, False),
        ),
        (ConfiguredUplink(name=UP0, follows=PerDirection(tx=False, rx=True)), (True, True)),
    ],
)
def test_an_uplinks_own_word_counts_before_the_nodes(
    own: ConfiguredUplink, expected: tuple[bool, bool]
) -> None:
    settings = replace(TX_ONLY, uplinks=(own,))
    assert (follows(TX, settings), follows(Unit(Direction.RX, UP0), settings)) == expected


def test_without_limits_it_is_the_very_same_state() -> None:
    whole = node()
    assert within_limits(whole, NO_PATH_LIMITS, AUTO) is whole


def test_one_uplink_is_what_it_would_be_with_that_total() -> None:
    whole = node()
    found = within_limits(whole, {TX: 780 * M, RX: 480 * M}, AUTO)
    assert found.uplinks[0].total_bps == PerDirection(tx=780 * M, rx=480 * M)
    assert [found.directions[way].total_bps for way in Direction] == [780 * M, 480 * M]
    levels = found.directions.tx.levels
    assert levels is not None
    assert levels == bands_at(whole.directions.tx, 780 * M)
    assert levels.map(lambda band: band.guarantee_bps) == PerLevel(390 * M, 234 * M, 156 * M)
    assert replace(found, uplinks=whole.uplinks, directions=whole.directions) == whole


def test_of_several_uplinks_only_the_one_behind_which_it_is_narrow_has_less() -> None:
    whole = node("up0", "up1")
    found = within_limits(whole, {TX1: 400 * M}, AUTO)
    assert [one.total_bps.tx for one in found.uplinks] == [500 * M, 400 * M]
    assert found.directions.tx.total_bps == 900 * M
    assert found.directions.rx == whole.directions.rx


@pytest.mark.parametrize(
    ("settings", "limits"),
    [
        (FIXED, {TX: 929 * M}),
        (AUTO, {TX: 504 * M}),
        (AUTO, {TX: 1000 * M}),
        (TX_ONLY, {RX: 480 * M}),
        (AUTO, {Unit(Direction.TX, IfName("gone")): 10 * M}),
    ],
)
def test_what_the_configuration_does_not_allow_does_not_count(
    settings: Settings, limits: dict[Unit, int]
) -> None:
    whole = node()
    assert within_limits(whole, limits, settings) is whole


def test_a_limited_direction_says_where_its_total_is_from() -> None:
    whole = Composition(
        desired=node(),
        total_sources=PerDirection(tx="file", rx="nic"),
        pods=(),
        findings=(),
        last_good=EMPTY_LAST_GOOD,
    )
    found = limited(whole, {TX: 780 * M}, AUTO)
    assert found.total_sources == PerDirection(tx="measured", rx="nic")
    assert limited(whole, {}, AUTO) is whole


def test_what_is_remembered_comes_back() -> None:
    limits = {RX: 480 * M, TX: 780 * M}
    kept = remembered(limits)
    assert kept == (
        PathLimit(device=IFB, direction=Direction.RX, limit_bps=480 * M),
        PathLimit(device=UP0, direction=Direction.TX, limit_bps=780 * M),
    )
    assert recalled(kept) == limits
