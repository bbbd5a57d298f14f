"""Rounds of loops under random traffic, as a recording has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from netqos.engine.recording import Gap, Head, RecordedRound, RoundReader, RoundWriter, head_line
from netqos.engine.rounds import Steering, Taken, decide
from netqos.engine.unitstate import LoopPolicy, initial_state
from netqos.model.ids import IfName
from netqos.model.levels import Direction, PerLevel
from netqos.model.traffic import Unit, UnitSample
from tests.property import strategies as possible
from tests.unit.engine.test_steer import LENDING
from tests.unit.engine.test_why import Unit as Busy

HEAD = Head(node="worker-1", netqos="0.1.0", at_s=1000.25, unix_s=1_700_000_000.125)
UNITS = (
    Unit(Direction.TX, IfName("up0")),
    Unit(Direction.RX, IfName("netqos-ifb")),
    Unit(Direction.TX, IfName("up1")),
)


@st.composite
def policies(draw: st.DrawFn) -> dict[Unit, LoopPolicy]:
    """Of one to three units; two of one direction may share a total."""
    units = UNITS[: draw(st.integers(1, 3))]
    total_bps = draw(possible.totals())
    bands, lends, shares = draw(possible.bands(total_bps)), draw(st.booleans()), draw(st.booleans())
    whole = LoopPolicy(total_bps=total_bps, bands=bands, lends=lends, headroom=0.0 if lends else 0.1)
    is_shared = shares and len(units) == 3
    return {
        unit: replace(whole, is_shared=True, most_bps=draw(st.sampled_from((None, total_bps // 2))))
        if is_shared and unit.direction is Direction.TX
        else whole
        for unit in units
    }


@st.composite
def courses(draw: st.DrawFn, most: int = 6) -> list[Taken]:
    """Rounds that follow one another: samples of some units, late, with room beside them, under changing policies."""
    given = draw(policies())
    steering = Steering(states={unit: initial_state() for unit in given})
    samples = {
        unit: UnitSample(
            unit=unit,
            taken_at_s=draw(st.floats(1, 1e6)),
            level_bytes=PerLevel(7, 5, 3),
            device_bytes=0,
            offered_bytes=0 if unit.direction is Direction.RX else None,
        )
        for unit in given
    }
    taken = []
    for _ in range(draw(st.integers(1, most))):
        looked = tuple(samples[unit] for unit in given if draw(st.booleans()) or unit is UNITS[0])
        after, decisions = decide(steering, looked, given)
        taken.append(Taken(before=steering, after=after, samples=looked, policies=given, decisions=decisions))
        steering = after
        if draw(st.integers(0, 5)) == 0:
            given = {unit: replace(one, hold_s=draw(st.floats(0.1, 3))) for unit, one in given.items()}
            steering = replace(steering, states=dict(steering.states))
        samples = {unit: draw(_later(sample, given[unit])) for unit, sample in samples.items()}
    return taken


@st.composite
def _later(draw: st.DrawFn, sample: UnitSample, policy: LoopPolicy) -> UnitSample:
    after_s = draw(st.sampled_from((0.02, 0.05, 0.2, 1.0, 7.0)) | st.floats(0, 0.3))
    rates = draw(possible.rates(policy.total_bps))
    step = [round(rate * after_s / 8) for rate in rates]
    if draw(st.integers(0, 20)) == 0:
        step[1] = -sample.level_bytes.l1
    beside = draw(st.integers(0, policy.total_bps)) if sample.offered_bytes is not None else 0
    return replace(
        sample,
        taken_at_s=sample.taken_at_s + after_s,
        level_bytes=PerLevel(*(then + more for then, more in zip(sample.level_bytes, step, strict=True))),
        backlogged=draw(st.booleans()),
        level_backlogged=draw(st.none() | possible.flags()),
        device_bytes=(sample.device_bytes or 0) + max(0, sum(step)) + round(beside * after_s / 8),
        offered_bytes=None if sample.offered_bytes is None else sample.offered_bytes + max(0, sum(step)),
        dropped=draw(st.integers(0, 9)),
    )


def written(taken: Sequence[Taken], *, backend: str = "tc", skips: Sequence[int] = ()) -> list[str]:
    """The lines of a recording of these rounds; those at the places in `skips` were missed."""
    writer = RoundWriter()
    lines = [head_line(HEAD)]
    for number, one in enumerate(taken):
        if number not in skips:
            lines += writer.lines(number, backend, one)
    return lines


def read(lines: Sequence[str]) -> list[Head | Gap | RecordedRound]:
    return list(RoundReader().read(numbered(lines)))


def numbered(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    return enumerate(lines, 1)


def busy_course() -> list[Taken]:
    """A quiet second, two seconds of L2 alone with packets waiting, another two quiet ones."""
    busy, taken = Busy(LENDING), list[Taken]()
    for rates, waits, ticks in (
        ((100, 50, 20), False, 20),
        ((0, 0, 1000), True, 40),
        ((100, 50, 20), False, 40),
    ):
        for _ in range(ticks):
            before = busy.steering
            decisions = (busy.tick(rates, waits=waits).decision,)
            samples, policies = (busy.sample,), busy.policies
            taken.append(
                Taken(
                    before=before,
                    after=busy.steering,
                    samples=samples,
                    policies=policies,
                    decisions=decisions,
                )
            )
    return taken
