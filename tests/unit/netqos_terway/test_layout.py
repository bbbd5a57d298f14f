"""The nearest values that terway-qos takes."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from netqos.model.desired import DesiredState
from netqos.model.levels import Direction, Level, PerDirection, PerLevel
from netqos.testing import states
from netqos.testing.states import M
from netqos.testing.strategies import desired_states
from netqos_terway import encode
from netqos_terway.layout import (
    IDLE,
    NO_LIMITS,
    UNLIMITED,
    Bounds,
    Row,
    asked,
    impossible,
    is_taken,
    keeps,
    nearest,
    nearest_rows,
    steered,
)
from tests.unit.netqos_terway import reader


def row(total: int, l1: tuple[int, int], l2: tuple[int, int], l0: tuple[int, int] | None = None) -> Row:
    low, high = l0 or (total - l1[0] - l2[0], total)
    return Row(
        total=total,
        levels=PerLevel(
            Bounds(low=low, high=high), Bounds(low=l1[0], high=l1[1]), Bounds(low=l2[0], high=l2[1])
        ),
    )


def ceilings(lowered: Row | None) -> tuple[int, int]:
    assert lowered is not None
    return lowered.levels.l1.high, lowered.levels.l2.high


EVEN = row(1000, (300, 1000), (200, 1000))


@pytest.mark.parametrize(
    ("wanted", "rates", "result"),
    [
        (row(1000, (300, 500), (200, 500)), (0, 0), (500, 500)),
        (EVEN, (0, 0), (800, 200)),
        (EVEN, (400, 400), (550, 450)),
        (EVEN, (400, 440), (500, 500)),
        (EVEN, (600, 300), (700, 300)),
        (EVEN, (300, 400), (350, 650)),
        (EVEN, (500, 500), (550, 450)),
        (EVEN, (100, 700), (300, 700)),
        (EVEN, (700, 100), (800, 200)),
        (row(1000, (300, 800), (200, 1000)), (0, 0), (800, 200)),
        (row(1000, (300, 800), (200, 1000)), (0, 900), (300, 700)),
        (row(1000, (300, 700), (200, 400)), (0, 0), (700, 300)),
        (row(1000, (300, 700), (200, 400)), (0, 400), (600, 400)),
        (row(1000, (0, 1000), (0, 1000)), (0, 0), (1000, 0)),
        (row(1000, (600, 1000), (390, 1000)), (0, 0), (610, 390)),
    ],
)
def test_the_excess_is_taken_from_who_uses_it_least(
    wanted: Row, rates: tuple[int, int], result: tuple[int, int]
) -> None:
    assert ceilings(nearest(wanted, PerLevel(1, *rates))) == result


def test_guarantees_that_leave_no_way() -> None:
    assert nearest(row(1000, (600, 700), (500, 700), (0, 1000))) is None
    rows = PerDirection(tx=EVEN, rx=row(1000, (600, 700), (500, 700), (0, 1000)))
    assert impossible(rows) == (Direction.RX,)
    assert nearest_rows(rows) is None


values = st.integers(0, 2000)


@given(values, st.tuples(values, values), st.tuples(values, values), st.tuples(values, values))
def test_whatever_is_asked_the_reader_takes_it_or_nothing_is_written(
    total: int, l1: tuple[int, int], l2: tuple[int, int], rates: tuple[int, int]
) -> None:
    wanted = row(total, l1, l2, (0, total))
    lowered = nearest(wanted, PerLevel(0, *rates))
    content = encode.global_text(PerDirection(tx=lowered or UNLIMITED, rx=UNLIMITED))
    assert reader.takes_file(content)
    assert is_taken(wanted) is reader.takes(
        reader.read_global(encode.global_text(PerDirection(tx=wanted, rx=UNLIMITED)))["tx"]
    )
    if lowered is None:
        assert l1[0] + l2[0] > total or l1[0] > min(l1[1], total) or l2[0] > min(l2[1], total)
        return
    for level in Level:
        assert lowered.levels[level].low == wanted.levels[level].low
        assert lowered.levels[level].high <= wanted.levels[level].high
    capped = sum(min(one[1], total) for one in (l1, l2))
    assert sum(ceilings(lowered)) == min(capped, total), "not lower than it must be"
    assert nearest(lowered, PerLevel(0, *rates)) == lowered, "what the reader takes is left alone"


@given(st.integers(0, 900), st.integers(0, 900))
def test_nobody_loses_what_it_uses_while_there_is_room(l1: int, l2: int) -> None:
    lowered = nearest(EVEN, PerLevel(0, l1, l2))
    assert lowered is not None
    if max(300, l1 * 1.1 + 50) + max(200, l2 * 1.1 + 50) <= 1000:
        assert lowered.levels.l1.high >= l1
        assert lowered.levels.l2.high >= l2
    assert lowered.levels.l1.high >= min(l1, 300)
    assert lowered.levels.l2.high >= min(l2, 200)


@settings(max_examples=50)
@given(desired_states(with_rules=False), st.tuples(values, values), st.tuples(values, values))
def test_every_state_that_compose_makes_can_be_written(
    state: DesiredState, tx: tuple[int, int], rx: tuple[int, int]
) -> None:
    rows = asked(state)
    assume(rows is not None)
    assert rows is not None
    for rates in (None, PerDirection(tx=PerLevel(0, *tx), rx=PerLevel(0, *rx))):
        lowered = nearest_rows(rows, rates)
        assert lowered is not None
        assert reader.takes_file(encode.global_text(lowered))
        assert keeps(lowered.tx, rows.tx)
        assert keeps(lowered.rx, rows.rx)


def test_units_and_directions() -> None:
    rows = asked(states.node())
    assert rows is not None
    assert (rows.tx.total, rows.rx.total) == (125 * M, 75 * M)
    assert rows.tx.levels.l1 == Bounds(low=37_500_000, high=100 * M)
    assert rows.rx.levels.l2 == Bounds(low=15 * M, high=60 * M)
    assert asked(states.switched_off(states.node())) is None
    unknown = asked(states.node(rx=states.direction(None)))
    assert unknown is not None
    assert unknown.rx == UNLIMITED
    assert asked(states.node(tx=states.direction(None), rx=states.direction(None))) is None


@pytest.mark.parametrize("percent", range(100))
def test_no_minimum_exceeds_the_hardware_whatever_the_share(percent: int) -> None:
    """B1: 30 percent of 1000M are 37 500 000 bytes per second."""
    share = 1000 * M * percent // 100
    state = states.node(tx=states.direction(1000 * M, (1000 * M - share, share, 0)))
    rows = asked(state)
    assert rows is not None
    assert rows.tx.levels.l1.low == 1_250_000 * percent
    assert rows.tx.levels.l1.low <= rows.tx.total


def test_steering_stays_between_guarantee_and_ceiling() -> None:
    wanted = row(1000, (300, 800), (200, 900), (500, 950))
    assert steered(wanted, None) == wanted
    assert steered(UNLIMITED, PerLevel(1, 2, 3)) == UNLIMITED
    moved = steered(wanted, PerLevel(100, 2000, 400))
    assert [bounds.high for bounds in moved.levels] == [500, 800, 400]
    assert [bounds.low for bounds in moved.levels] == [500, 300, 200]


@given(values, values, values, st.tuples(values, values))
def test_what_steering_writes_is_never_taken_for_drift(
    l0: int, l1: int, l2: int, rates: tuple[int, int]
) -> None:
    written = nearest(steered(EVEN, PerLevel(l0, l1, l2)), PerLevel(0, *rates))
    assert written is not None
    assert keeps(written, EVEN)


@pytest.mark.parametrize(
    "written",
    [
        row(900, (300, 500), (200, 400)),
        row(1000, (299, 500), (200, 400)),
        row(1000, (300, 500), (201, 400)),
        row(1000, (300, 900), (200, 400)),
        row(1000, (300, 200), (200, 400), (500, 1000)),
        row(1000, (300, 500), (200, 400), (400, 1000)),
        UNLIMITED,
    ],
)
def test_what_steering_never_writes_is_drift(written: Row) -> None:
    assert not keeps(written, EVEN)
    assert not keeps(written, UNLIMITED) or written == UNLIMITED


def test_no_limits_is_what_an_empty_file_is() -> None:
    assert reader.read_global(encode.NO_LIMITS_TEXT) == reader.read_global(b"")
    assert PerDirection(tx=UNLIMITED, rx=UNLIMITED) == NO_LIMITS
    assert nearest(UNLIMITED, IDLE) == UNLIMITED
