"""What the law promises for any input."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from netqos.engine.allocate import allocate, needs_bps
from netqos.model.desired import Band
from netqos.model.levels import Level, PerLevel
from tests.property import strategies as some


@dataclass(frozen=True)
class Situation:
    total: int
    bands: PerLevel[Band]
    rates: PerLevel[int]
    backlogged: PerLevel[bool]
    headroom: float

    @property
    def needs(self) -> PerLevel[int]:
        return needs_bps(
            bands=self.bands, rates_bps=self.rates, backlogged=self.backlogged, headroom=self.headroom
        )

    @property
    def ceilings(self) -> PerLevel[int]:
        return allocate(
            total_bps=self.total,
            bands=self.bands,
            rates_bps=self.rates,
            backlogged=self.backlogged,
            headroom=self.headroom,
        )

    def with_rate(self, level: Level, rate: int) -> Situation:
        return replace(self, rates=replace(self.rates, **{level.name.lower(): rate}))


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    total = draw(some.totals())
    return Situation(
        total,
        draw(some.bands(total)),
        draw(some.rates(total)),
        draw(some.flags()),
        draw(some.headrooms()),
    )


@given(situations())
def test_each_ceiling_is_between_guarantee_and_own_ceiling(at: Situation) -> None:
    for level in Level:
        assert at.bands[level].guarantee_bps <= at.ceilings[level] <= at.bands[level].ceiling_bps


@given(situations())
def test_equal_input_gives_equal_output(at: Situation) -> None:
    assert at.ceilings == at.ceilings


@given(situations())
def test_no_level_loses_what_nobody_above_and_no_guarantee_needs(at: Situation) -> None:
    """Counted here in another way than the law does: whoever is above takes its whole need, whoever is below its
    need within the guarantee, and all that is left must be open to the level.
    """
    for level in Level:
        above = sum(at.needs[other] for other in Level if other.value < level.value)
        below = sum(
            min(at.needs[other], at.bands[other].guarantee_bps)
            for other in Level
            if other.value > level.value
        )
        left = at.total - above - below
        assert at.ceilings[level] >= min(left, at.bands[level].ceiling_bps)


@given(situations())
def test_the_total_is_used_as_long_as_somebody_wants_it(at: Situation) -> None:
    used = sum(min(ceiling, need) for ceiling, need in zip(at.ceilings, at.needs, strict=True))
    assert used >= min(at.total, sum(at.needs))


@given(situations())
def test_what_levels_above_use_and_guarantees_leave_is_not_handed_out_twice(at: Situation) -> None:
    """Ceilings of backlogged levels add up to no more than the total, but for floors that the contract asks for."""
    greedy = replace(at, backlogged=PerLevel(True, True, True))
    floor = max(0, 5_000_000 - at.bands.l0.guarantee_bps)
    assert sum(greedy.ceilings) <= at.total + floor


@given(situations(), st.sampled_from(Level), st.data())
def test_more_traffic_of_one_level_never_raises_a_lower_one(
    at: Situation, level: Level, data: st.DataObject
) -> None:
    more = data.draw(st.integers(at.rates[level], 2 * at.total))
    before, after = at.ceilings, at.with_rate(level, more).ceilings
    for other in Level:
        if other.value > level.value:
            assert after[other] <= before[other]
    if level is not Level.L0:
        assert after.l0 <= before.l0


@given(situations(), st.data())
def test_the_ceiling_of_a_level_does_not_depend_on_its_own_traffic(
    at: Situation, data: st.DataObject
) -> None:
    level = data.draw(st.sampled_from((Level.L0, Level.L2)))
    other_rate = data.draw(st.integers(0, 2 * at.total))
    assert at.with_rate(level, other_rate).ceilings[level] == at.ceilings[level]
