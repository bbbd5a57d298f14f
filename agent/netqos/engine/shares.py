"""How one total is divided among the uplinks that share it, and when a division is moved. Pure.

Each uplink is shaped by itself, so each has a part of the total and of every level's promises. A part follows need:
what is left over is spread in proportion to it (ceiling x need / sum of needs), and where more is wanted than there is,
small needs are met first and the large ones share the rest alike. By proportion alone no division of a full total
would ever come to rest: an uplink that needs 30 of 100 beside a greedy one would be given 25, have packets waiting,
count as greedy too, be given 50, need 30, and so on.

Bits per second. Parts never add up to more than the total; none is under `FLOOR_PERCENT` of it, so that an uplink that
was idle is heard when it wakes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from netqos.engine.allocate import shares_bps
from netqos.model.desired import Band
from netqos.model.levels import Level, PerLevel

FLOOR_PERCENT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One uplink's part: what it may pass in all, and the levels' promises on it, which add up to no more."""

    total_bps: int
    bands: PerLevel[Band]


def divide(
    *,
    total_bps: int,
    bands: PerLevel[Band],
    needs: Sequence[PerLevel[int]],
    most_bps: Sequence[int | None] = (),
) -> tuple[Share, ...]:
    """A share for each uplink, in the order of `needs`, which say what each level wants there.

    `most_bps` is what each uplink itself can pass, None or left out: all of it. What one cannot use, others may.
    """
    limits = [total_bps if one is None else one for one in (*most_bps, *[None] * len(needs))][: len(needs)]
    needs = [PerLevel(*(min(one, most) for one in need)) for need, most in zip(needs, limits, strict=True)]
    wanted = [sum(one) for one in _given(total_bps, bands, needs)]
    totals = _limited(portions(total_bps, [min(pair) for pair in zip(wanted, limits, strict=True)]), limits)
    by_level = [_level(bands[level], [need[level] for need in needs]) for level in Level]
    return tuple(
        Share(total_bps=total, bands=_fitted(PerLevel(*(one[place] for one in by_level)), total))
        for place, total in enumerate(totals)
    )


def portions(amount: int, needs: Sequence[int]) -> list[int]:
    """`amount` divided by need, each part at least the floor; the parts add up to it.

    Needs that fit are met, and the rest is spread in proportion to them (alike where nobody needs anything).
    """
    met = _within(amount, needs)
    whole = sum(met)
    rest = amount - whole
    parts = [one + (rest * one // whole if whole else rest // len(met)) for one in met]
    parts = _raised(parts, _floor(amount, len(parts)))
    parts[parts.index(max(parts))] += amount - sum(parts)  # what rounding took
    return parts


def _given(total_bps: int, bands: PerLevel[Band], needs: Sequence[PerLevel[int]]) -> list[PerLevel[int]]:
    """What each level gets on each uplink: the law of one link for the sums, then the needs within them."""
    sums = PerLevel(*(sum(need[level] for need in needs) for level in Level))
    gives = shares_bps(total_bps=total_bps, bands=bands, needs=sums)
    parts = [_within(gives[level], [need[level] for need in needs]) for level in Level]
    return [PerLevel(*one) for one in zip(*parts, strict=True)]


def _limited(parts: list[int], limits: Sequence[int]) -> list[int]:
    """Parts within what each uplink can pass; what one cannot use goes to the others, by what they can."""
    cut = [min(pair) for pair in zip(parts, limits, strict=True)]
    free = [limit - part for limit, part in zip(limits, cut, strict=True)]
    over = min(sum(parts) - sum(cut), sum(free))
    return [part + over * one // max(sum(free), 1) for part, one in zip(cut, free, strict=True)]


def _level(band: Band, needs: Sequence[int]) -> list[Band]:
    """A level's promises, divided."""
    guarantees, ceilings = (portions(bps, needs) for bps in (band.guarantee_bps, band.ceiling_bps))
    return [
        Band(guarantee_bps=guarantee, ceiling_bps=max(ceiling, guarantee), enabled=band.enabled)
        for guarantee, ceiling in zip(guarantees, ceilings, strict=True)
    ]


def _fitted(bands: PerLevel[Band], total_bps: int) -> PerLevel[Band]:
    """The bands within one uplink's total: ceilings cut, guarantees scaled down where together they are more."""
    promised = sum(band.guarantee_bps for band in bands)

    def fit(band: Band) -> Band:
        guarantee = band.guarantee_bps * total_bps // promised if promised > total_bps else band.guarantee_bps
        ceiling = max(min(band.ceiling_bps, total_bps), guarantee)
        return Band(guarantee_bps=guarantee, ceiling_bps=ceiling, enabled=band.enabled)

    return bands.map(fit)


def _within(amount: int, needs: Sequence[int]) -> list[int]:
    """Needs cut to what there is, the smallest met first: at most `amount` in all (max-min fairness)."""
    met = [0] * len(needs)
    left = amount
    for rank, place in enumerate(sorted(range(len(needs)), key=lambda one: needs[one])):
        met[place] = min(needs[place], left // (len(needs) - rank))
        left -= met[place]
    return met


def _floor(amount: int, count: int) -> int:
    return min(amount * FLOOR_PERCENT // 100, amount // count)


def _raised(parts: list[int], floor: int) -> list[int]:
    """Every part at the floor at least; the others pay for it by what they have above it."""
    lacking = sum(max(0, floor - one) for one in parts)
    above = sum(max(0, one - floor) for one in parts)
    return [floor if one <= floor else one - -(-lacking * (one - floor) // above) for one in parts]
