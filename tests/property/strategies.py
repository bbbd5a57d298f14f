"""Random but possible promises and traffic."""

from __future__ import annotations

from hypothesis import strategies as st

from netqos.model.desired import Band
from netqos.model.levels import PerLevel

SMALLEST_BPS = 10_000_000
LARGEST_BPS = 400_000_000_000


@st.composite
def totals(draw: st.DrawFn) -> int:
    return draw(st.integers(SMALLEST_BPS, LARGEST_BPS))


@st.composite
def bands(draw: st.DrawFn, total_bps: int) -> PerLevel[Band]:
    """Guarantees that leave L0 one percent, ceilings between guarantee and total; m0 is what is left."""
    least_l0 = total_bps // 100 + 1
    m1 = draw(between(0, total_bps - least_l0))
    m2 = draw(between(0, total_bps - least_l0 - m1))
    ceilings = [draw(between(low, total_bps)) for low in (1, m1, m2)]
    m0 = min(total_bps - m1 - m2, ceilings[0])
    return PerLevel(
        *(Band(guarantee_bps=low, ceiling_bps=high) for low, high in zip((m0, m1, m2), ceilings, strict=True))
    )


def between(low: int, high: int) -> st.SearchStrategy[int]:
    """Any number, or one of thousandths that are all alike often: of large numbers hypothesis likes small ones."""
    return st.integers(low, high) | st.integers(0, 1000).map(lambda one: low + (high - low) * one // 1000)


@st.composite
def rates(draw: st.DrawFn, total_bps: int) -> PerLevel[int]:
    rate = st.one_of(st.just(0), between(0, total_bps), between(0, 2 * total_bps))
    return PerLevel(draw(rate), draw(rate), draw(rate))


def flags() -> st.SearchStrategy[PerLevel[bool]]:
    return st.builds(PerLevel, st.booleans(), st.booleans(), st.booleans())


def headrooms() -> st.SearchStrategy[float]:
    return st.sampled_from((0.0, 0.05, 0.1, 0.25))
