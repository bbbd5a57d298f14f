"""The allocation law (contract 3): what each level may use at this moment, from what it was promised and what it does.

One direction of one device at a time. All amounts are bits per second and ints, so that equal input gives equal
output bit for bit; the headroom is the only fraction, and its product is rounded before anything is added to it.
"""

from __future__ import annotations

from netqos.model.desired import Band
from netqos.model.levels import Level, PerLevel

L0_FLOOR_BPS = 5_000_000
"""L0's ceiling never goes below this, for the node's own traffic lives in it (contract 1.5)."""


def allocate(
    *,
    total_bps: int,
    bands: PerLevel[Band],
    rates_bps: PerLevel[int],
    backlogged: PerLevel[bool],
    headroom: float,
    lowest_needs_bps: PerLevel[int] | None = None,
) -> PerLevel[int]:
    """The ceilings in contention.

    `bands` hold m_i and M_i with m_0 + m_1 + m_2 <= total and m_i <= M_i <= total. `lowest_needs_bps` replaces the
    needs of L1 and L2 where L0's ceiling is set: a lending backend passes the lowest of the last ticks.
    """
    guarantees = bands.map(lambda band: band.guarantee_bps)
    needs = needs_bps(bands=bands, rates_bps=rates_bps, backlogged=backlogged, headroom=headroom)
    for_l0 = needs if lowest_needs_bps is None else lowest_needs_bps
    left_for_l0 = total_bps - min(for_l0.l1, guarantees.l1) - min(for_l0.l2, guarantees.l2)
    gives = _give(total_bps, needs, guarantees)
    return PerLevel(
        _clamp(left_for_l0, l0_floor_bps(bands.l0), bands.l0.ceiling_bps),
        _between(total_bps - gives.l0 - min(needs.l2, guarantees.l2), bands.l1),
        _between(total_bps - gives.l0 - gives.l1, bands.l2),
    )


def unrestricted(bands: PerLevel[Band]) -> PerLevel[int]:
    """The ceilings outside of contention: everybody's own."""
    return bands.map(lambda band: band.ceiling_bps)


def needs_bps(
    *, bands: PerLevel[Band], rates_bps: PerLevel[int], backlogged: PerLevel[bool], headroom: float
) -> PerLevel[int]:
    """What each level would use: its ceiling while packets wait, else its rate with headroom, at most its ceiling."""

    def need(level: Level) -> int:
        ceiling, rate = bands[level].ceiling_bps, rates_bps[level]
        return ceiling if backlogged[level] else min(ceiling, rate + round(rate * headroom))

    return PerLevel(need(Level.L0), need(Level.L1), need(Level.L2))


def shares_bps(*, total_bps: int, bands: PerLevel[Band], needs: PerLevel[int]) -> PerLevel[int]:
    """What each level gets of a direction when it wants `needs` (at most its ceiling): give_i of contract 3."""
    wanted = PerLevel(*(min(need, band.ceiling_bps) for need, band in zip(needs, bands, strict=True)))
    return _give(total_bps, wanted, bands.map(lambda band: band.guarantee_bps))


def l0_floor_bps(band: Band) -> int:
    """The least that L0's ceiling may become: its guarantee, or the floor where that is more, within its ceiling."""
    return min(max(band.guarantee_bps, L0_FLOOR_BPS), band.ceiling_bps)


def _give(total_bps: int, needs: PerLevel[int], guarantees: PerLevel[int]) -> PerLevel[int]:
    """First what each level needs of its guarantee, then the rest from L0 to L2 up to the need."""
    gives = [min(need, guarantee) for need, guarantee in zip(needs, guarantees, strict=True)]
    left = total_bps - sum(gives)
    for place, need in enumerate(needs):
        more = max(0, min(left, need - gives[place]))
        gives[place] += more
        left -= more
    return PerLevel(*gives)


def _between(value: int, band: Band) -> int:
    return _clamp(value, band.guarantee_bps, band.ceiling_bps)


def _clamp(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)
