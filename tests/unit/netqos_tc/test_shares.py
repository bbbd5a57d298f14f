"""The trees of uplinks that share one total: where they begin, what the loop may write, what it finds again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.model.desired import DesiredState
from netqos.model.levels import PerLevel
from netqos.testing import states
from netqos.testing.states import M
from netqos_tc import numbers
from netqos_tc.keys import ClassKey
from netqos_tc.layout import Facilities, lay_out
from netqos_tc.moves import Steered
from netqos_tc.observed import TcObserved
from netqos_tc.options import Options
from netqos_tc.spec import ClassSpec

BYTE = 8
POOL = 800 * M
UPLINKS = tuple(
    states.uplink(f"up{place}", index=2 + place, tx_bps=POOL, pool_bps=POOL) for place in range(2)
)
NODE = states.node(uplinks=UPLINKS, tx=states.direction(POOL))


def planned(node: DesiredState = NODE, observed: TcObserved | None = None) -> dict[int, Steered]:
    return dict(lay_out(node, observed or TcObserved(), Options(), Facilities()).steered)


def inner(node: DesiredState, observed: TcObserved | None = None) -> dict[int, list[tuple[int, int]]]:
    """Rate and ceiling in megabits of total and levels, by device."""
    specs = lay_out(node, observed or TcObserved(), Options(), Facilities()).specs
    found: dict[int, list[tuple[int, int]]] = {}
    for uplink in node.uplinks:
        classes = [
            specs[ClassKey(uplink.index, minor)] for minor in (numbers.TOTAL, *numbers.LEVELS.values())
        ]
        found[uplink.index] = [
            (one.rate * BYTE // M, one.ceil * BYTE // M) for one in classes if isinstance(one, ClassSpec)
        ]
    return found


def test_at_first_each_has_as_much_as_the_other() -> None:
    half = [(400, 400), (200, 400), (120, 400), (80, 400)]
    assert inner(NODE) == {2: half, 3: half}


def test_what_the_loop_left_stays() -> None:
    left = planned()[2].in_part(60 * M, PerLevel(20 * M, 10 * M, 5 * M), PerLevel(50 * M, 40 * M, 30 * M))
    observed = TcObserved(ours={ClassKey(2, minor): spec for minor, spec in left.classes.items()})
    assert inner(NODE, observed)[2] == [(480, 480), (160, 400), (80, 320), (40, 240)]
    assert inner(NODE, observed)[3][0] == (400, 400)


def test_who_no_longer_shares_has_what_is_its_own() -> None:
    left = planned()[2].in_part(5 * M, PerLevel(M, M, M), PerLevel(5 * M, 5 * M, 5 * M))
    observed = TcObserved(ours={ClassKey(2, minor): spec for minor, spec in left.classes.items()})
    alone = states.node(uplinks=(states.uplink(index=2, tx_bps=POOL),), tx=states.direction(POOL))
    assert inner(alone, observed)[2] == [(800, 800), (400, 800), (240, 800), (160, 800)]


amounts = st.integers(0, 2 * POOL)
levels = st.builds(PerLevel, amounts, amounts, amounts)


@given(amounts, levels, levels, st.integers(0, POOL))
def test_whatever_the_loop_writes_is_known_again(
    total: int, rates: PerLevel[int], ceils: PerLevel[int], l0_ceiling: int
) -> None:
    steered = planned()[2]
    written = steered.in_part(total, rates, ceils)
    assert steered.may_leave(written.classes)
    assert steered.as_left(written.classes) == written
    whole = steered.classes
    assert all(spec.ceil <= whole[minor].ceil for minor, spec in written.classes.items())
    assert all(spec.rate <= whole[minor].rate for minor, spec in written.classes.items())
    assert steered.may_leave(written.with_ceiling(min(l0_ceiling, written.levels.l0.ceil)).classes)


@pytest.mark.parametrize("minor", [numbers.TOTAL, *numbers.LEVELS.values()])
def test_what_it_cannot_have_written_is_drift(minor: int) -> None:
    steered = planned()[2]
    written = steered.in_part(
        60 * M, PerLevel(20 * M, 10 * M, 5 * M), PerLevel(50 * M, 40 * M, 30 * M)
    ).classes
    one = written[minor]
    for wrong in (
        ClassSpec(
            parent=one.parent,
            rate=one.rate,
            ceil=one.ceil,
            buffer=1,
            cbuffer=one.cbuffer,
            prio=None,
            quantum=None,
        ),
        ClassSpec(
            parent=one.parent,
            rate=1,
            ceil=one.ceil,
            buffer=one.buffer,
            cbuffer=one.cbuffer,
            prio=None,
            quantum=None,
        ),
    ):
        assert not steered.may_leave({**written, minor: wrong})
