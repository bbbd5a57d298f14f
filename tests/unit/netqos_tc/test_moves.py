"""What the loop moves on the IFB: the room, and L0's rate with it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.model.levels import PerLevel
from netqos.testing import states
from netqos.testing.states import M
from netqos_tc import numbers
from netqos_tc.ground import Ground
from netqos_tc.moves import Steered
from netqos_tc.tree import tree

TOTAL = 600 * M // 8


def steered(ifindex: int = numbers.IFB_INDEX) -> Steered:
    """600 Mbit/s with 300/180/120; L0 may have all."""
    bands = states.direction(600 * M).levels
    ground = Ground(ifindex=ifindex, mtu=1500, total_bps=600 * M, bands=bands, queue_ms=20)
    made = tree(ground, {}, {}).steered
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("room_bps", "total_bps", "l0_bps"),
    [
        (700 * M, 600 * M, 300 * M),
        (600 * M, 600 * M, 300 * M),
        (500 * M, 500 * M, 200 * M),
        (305 * M, 305 * M, 5 * M),
        (1, 300 * M, 8_000),
    ],
)
def test_l0_pays_for_what_the_node_receives(room_bps: int, total_bps: int, l0_bps: int) -> None:
    moved = steered().in_room(room_bps // 8)
    assert (moved.total.rate * 8, moved.total.ceil * 8) == (total_bps, total_bps)
    assert tuple(one.rate * 8 for one in moved.levels) == (l0_bps, 180 * M, 120 * M)
    assert {one.ceil * 8 for one in moved.levels} == {600 * M}


@given(st.integers(0, 2 * TOTAL), st.integers(0, 2 * TOTAL))
def test_whatever_the_loop_writes_is_taken_for_its_own_and_stays(room: int, ceiling: int) -> None:
    written = steered().in_room(room).with_ceiling(min(ceiling, TOTAL))
    assert steered().may_leave(written.classes)
    assert steered().as_left(written.classes) == written


@pytest.mark.parametrize("minor", [numbers.TOTAL, numbers.L0])
@pytest.mark.parametrize("field", ["rate", "buffer", "cbuffer"])
def test_what_somebody_else_writes_is_not(minor: int, field: str) -> None:
    met = steered().in_room(TOTAL // 2 + 1_000_000).classes
    changed = replace(met[minor], **{field: getattr(met[minor], field) + 1})
    assert not steered().may_leave(met | {minor: changed})


@pytest.mark.parametrize("ceil", [TOTAL + 1, 0])
def test_a_ceiling_out_of_its_range_is_not(ceil: int) -> None:
    met = steered().classes
    assert not steered().may_leave(met | {numbers.L0: replace(met[numbers.L0], ceil=ceil)})


def test_an_uplinks_total_is_nobodys_to_move() -> None:
    planned = steered(ifindex=2)
    lower = steered().in_room(TOTAL - 8_000_000).total
    assert not planned.has_room
    assert planned.as_left({numbers.TOTAL: lower}).total == planned.total


def test_the_ingress_tree_has_the_rates_of_its_own_direction() -> None:
    assert steered().levels.map(lambda one: one.rate * 8) == PerLevel(300 * M, 180 * M, 120 * M)
