"""What terway-qos is told of a node, and the nearest values that its reader takes. Pure.

The reader refuses a whole file, and keeps its old limits, unless in each direction min <= max for L1 and L2, each max
<= hw and l1 max + l2 max <= hw. The default ceilings, 100 percent each, never pass; so ceilings are lowered here, and
guarantees never. Values are bytes per second, as in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from netqos.model.desired import Band, DesiredDirection, DesiredState
from netqos.model.levels import Direction, Level, PerDirection, PerLevel
from netqos.model.quantities import bytes_per_s

STEPS = 20
"""Traffic is seen in steps of a twentieth of the total, and two levels that differ by less use the same.

Otherwise noise would change the file every second, and two equally busy levels would change places.
"""

HEADROOM = 10
"""What a level uses now is kept for it with a tenth more, so that it can grow (contract 3: h = 0.1)."""

IDLE: PerLevel[int] = PerLevel(0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """A level's guarantee and ceiling in bytes per second."""

    low: int = 0
    high: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One direction of the file, bytes per second; all zeros is "no limits"."""

    total: int = 0
    levels: PerLevel[Bounds] = field(default=PerLevel(Bounds(), Bounds(), Bounds()))

    @property
    def is_unlimited(self) -> bool:
        """Whether the reader takes it as "no limits"."""
        return self == UNLIMITED


Rows = PerDirection[Row]

UNLIMITED = Row()
NO_LIMITS: Rows = PerDirection(tx=UNLIMITED, rx=UNLIMITED)


def asked(desired: DesiredState) -> Rows | None:
    """What the policy asks for, whether the reader takes it or not; None where nothing is shaped by level."""
    rows = desired.directions.map(_asked_row)
    return None if not desired.enabled or rows == NO_LIMITS else rows


def _asked_row(direction: DesiredDirection) -> Row:
    if direction.levels is None or direction.total_bps is None:
        return UNLIMITED
    return Row(total=bytes_per_s(direction.total_bps), levels=direction.levels.map(_bounds))


def _bounds(band: Band) -> Bounds:
    return Bounds(low=bytes_per_s(band.guarantee_bps), high=bytes_per_s(band.ceiling_bps))


def is_taken(row: Row) -> bool:
    """Whether the reader takes a direction: its own checks, read in terway-qos 0.3 (GlobalConfig.Validate)."""
    l1, l2 = row.levels.l1, row.levels.l2
    return row.is_unlimited or (
        l1.low <= l1.high <= row.total and l2.low <= l2.high <= row.total and l1.high + l2.high <= row.total
    )


def nearest(row: Row, rates: PerLevel[int] = IDLE) -> Row | None:
    """The nearest row that the reader takes, None when the guarantees alone leave no way.

    What the ceilings of L1 and L2 exceed the total by is taken from the level that uses it least now (`rates`, bytes
    per second), L2 first on a tie. What neither uses goes first; then, down to the guarantees, what is used.
    """
    l1, l2 = (replace(one, high=min(one.high, row.total)) for one in (row.levels.l1, row.levels.l2))
    excess = max(0, l1.high + l2.high - row.total)
    used = rates.map(lambda rate: _kept(rate, row.total))
    for floor_1, floor_2 in ((max(l1.low, used.l1), max(l2.low, used.l2)), (l1.low, l2.low)):
        if is_lighter(rates.l1, than=rates.l2, total=row.total):
            l1, excess = _lower(l1, excess, floor_1)
            l2, excess = _lower(l2, excess, floor_2)
        else:
            l2, excess = _lower(l2, excess, floor_2)
            l1, excess = _lower(l1, excess, floor_1)
    lowered = Row(total=row.total, levels=PerLevel(row.levels.l0, l1, l2))
    return lowered if is_taken(lowered) else None


def is_lighter(rate: int, *, than: int, total: int) -> bool:
    """Whether a rate is clearly the smaller one."""
    return rate < than - total // STEPS


def _kept(rate: int, total: int) -> int:
    """A rate with headroom, rounded up to a whole step."""
    step = max(1, total // STEPS)
    return -(-(rate + rate // HEADROOM) // step) * step


def _lower(bounds: Bounds, excess: int, floor: int) -> tuple[Bounds, int]:
    """The level with a ceiling lowered by up to `excess`, not under `floor`, and what is left over."""
    taken = max(0, min(excess, bounds.high - floor))
    return replace(bounds, high=bounds.high - taken), excess - taken


def steered(row: Row, ceilings: PerLevel[int] | None) -> Row:
    """The row asked for with other ceilings (bytes per second), each kept between its guarantee and its own ceiling."""
    if ceilings is None or row.is_unlimited:
        return row
    l0, l1, l2 = (
        replace(bounds, high=max(bounds.low, min(ceiling, bounds.high)))
        for bounds, ceiling in zip(row.levels, ceilings, strict=True)
    )
    return replace(row, levels=PerLevel(l0, l1, l2))


def keeps(written: Row, wanted: Row) -> bool:
    """Whether a row in force is one that steering may have made of the wanted one.

    The total and all guarantees are as wanted, no ceiling is higher, and the reader takes it.
    """
    if written.is_unlimited or wanted.is_unlimited:
        return written == wanted
    return (
        written.total == wanted.total
        and is_taken(written)
        and all(
            is_one.low == should_be.low and is_one.low <= is_one.high <= should_be.high
            for is_one, should_be in zip(written.levels, wanted.levels, strict=True)
        )
    )


def lowered_levels(wanted: Row, written: Row) -> Sequence[Level]:
    """The levels whose ceiling in force is lower than asked."""
    return [level for level in Level if written.levels[level].high < wanted.levels[level].high]


def nearest_rows(rows: Rows, rates: PerDirection[PerLevel[int]] | None = None) -> Rows | None:
    """Both directions as the reader takes them; None when one has no way: it would refuse the whole file."""
    tx = nearest(rows.tx, rates.tx if rates is not None else IDLE)
    rx = nearest(rows.rx, rates.rx if rates is not None else IDLE)
    return PerDirection(tx=tx, rx=rx) if tx is not None and rx is not None else None


def impossible(rows: Rows) -> tuple[Direction, ...]:
    """The directions whose guarantees leave no file that the reader takes."""
    return tuple(direction for direction in Direction if nearest(rows[direction]) is None)
