"""From the desired state to what the loop keeps on one unit."""

from __future__ import annotations

from dataclasses import replace

from netqos.engine.units import bands_at, loop_policy
from netqos.engine.unitstate import LoopPolicy
from netqos.model.ids import IfName
from netqos.model.levels import Direction, PerLevel
from netqos.model.traffic import Unit
from netqos.settings.values import LoopSettings
from netqos.testing import states
from netqos.testing.states import M, bands

LOOP = LoopSettings(enter=0.9, enter_backlogged=0.8, leave=0.7, hold_s=2.0)
UP0_TX, UP0_RX = Unit(Direction.TX, IfName("up0")), Unit(Direction.RX, IfName("up0"))


def test_a_unit_on_the_only_uplink_has_the_nodes_bands() -> None:
    assert loop_policy(states.node(), UP0_RX, LOOP, lends=True) == LoopPolicy(
        total_bps=600 * M,
        bands=bands((300 * M, 180 * M, 120 * M), (600 * M, 600 * M, 480 * M)),
        lends=True,
        headroom=0.0,
        enter=0.9,
        enter_backlogged=0.8,
        leave=0.7,
        hold_s=2.0,
    )


def test_a_backend_that_cannot_lend_has_headroom() -> None:
    policy = loop_policy(states.node(), UP0_TX, LOOP, lends=False)
    assert policy is not None
    assert (policy.lends, policy.headroom) == (False, 0.1)


def test_another_device_has_the_nodes_total() -> None:
    policy = loop_policy(states.node(), Unit(Direction.TX, IfName("terway")), LOOP, lends=False)
    assert policy is not None
    assert policy.total_bps == 1000 * M


def test_one_of_several_uplinks_has_its_share_of_the_bands() -> None:
    node = states.node(uplinks=(states.uplink(tx_bps=333 * M + 1), states.uplink("up1", tx_bps=None)))
    policy = loop_policy(node, UP0_TX, LOOP, lends=True)
    assert policy is not None
    assert policy.total_bps == 333 * M + 1
    assert policy.bands == bands(
        (166_500_001, 99_900_000, 66_600_000), (333_000_001, 266_400_000, 333_000_001)
    )
    assert sum(band.guarantee_bps for band in policy.bands) == policy.total_bps
    assert loop_policy(node, Unit(Direction.TX, IfName("up1")), LOOP, lends=True) is None


def test_uplinks_that_share_a_total_have_the_policy_of_the_whole() -> None:
    """The pool is what others leave of the node's 1000M; one link can pass a part of it only."""
    shared = [
        states.uplink(name, tx_bps=most, pool_bps=500 * M)
        for name, most in (("up0", 490 * M), ("up1", 500 * M))
    ]
    node = states.node(uplinks=(*shared, states.uplink("up2", tx_bps=500 * M)))
    found = [
        loop_policy(node, Unit(Direction.TX, IfName(name)), LOOP, lends=True)
        for name in ("up0", "up1", "up2")
    ]
    half = bands((250 * M, 150 * M, 100 * M), (500 * M, 400 * M, 500 * M))
    assert [(one.total_bps, one.bands, one.is_shared, one.most_bps) for one in found if one is not None] == [
        (500 * M, half, True, 490 * M),
        (500 * M, half, True, 500 * M),
        (500 * M, half, False, None),
    ]


def test_what_is_not_shaped_by_level_is_not_steered() -> None:
    assert loop_policy(states.switched_off(states.node()), UP0_TX, LOOP, lends=True) is None
    unknown = states.node(rx=states.direction(None), uplinks=(states.uplink(rx_bps=None),))
    assert loop_policy(unknown, UP0_RX, LOOP, lends=True) is None
    assert loop_policy(unknown, UP0_TX, LOOP, lends=True) is not None


def test_scaling_keeps_what_is_off_off() -> None:
    direction = replace(states.TX, levels=bands((800 * M, 0, 200 * M), (1000 * M,) * 3, off=()))
    scaled = bands_at(direction, 500 * M)
    assert scaled == PerLevel(*bands((400 * M, 0, 100 * M), (500 * M,) * 3))
    assert bands_at(direction, None) is None


def test_directions_are_not_swapped() -> None:
    node = states.node(uplinks=(states.uplink(tx_bps=100 * M, rx_bps=50 * M),))
    found = [loop_policy(node, unit, LOOP, lends=True) for unit in (UP0_TX, UP0_RX)]
    assert [policy.total_bps for policy in found if policy is not None] == [100 * M, 50 * M]
