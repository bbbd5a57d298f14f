"""Replays: the same decisions again, and what another policy would have decided of the same samples."""

from __future__ import annotations

from dataclasses import replace

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.engine.otherpolicy import policies_under
from netqos.engine.recording import Gap, Policies, RecordedRound, head_line
from netqos.engine.replay import Replay
from netqos.engine.rounds import Taken
from netqos.engine.unitstate import LoopPolicy
from netqos.errors import Rejected
from netqos.model.desired import Band
from netqos.model.ids import IfName
from netqos.model.levels import Direction, Level, PerLevel
from netqos.model.traffic import Unit
from netqos.settings.file import parse_documents
from netqos.settings.values import Settings
from tests.unit.engine.rounds import HEAD, busy_course, courses, read, written
from tests.unit.engine.test_steer import LENDING, UNIT, M


def replayed(lines: list[str], change: object = None) -> Replay:
    replay = Replay(change)  # type: ignore[arg-type]
    for entry in read(lines):
        replay.take(entry)
    return replay


@hypothesis.settings(max_examples=40)
@given(courses(), st.integers(0, 9))
def test_the_recorded_policies_give_the_recorded_decisions_again(course: list[Taken], missed: int) -> None:
    skips = (missed,) if 0 < missed < len(course) else ()
    found = replayed(written(course, skips=skips), dict).found
    assert (found.unequal, found.unequal_count) == ([], 0)
    assert found.decisions == sum(
        len(one.decisions) for place, one in enumerate(course) if place not in skips
    )
    assert found.rounds == len(course) - len(skips)
    if not skips:
        assert (found.differing, found.differences) == (0, [])
        assert found.other == found.recorded


def test_a_difference_has_the_time_of_its_own_stretch() -> None:
    """Two recordings of one node in one file: between them its clock went on, and it was started anew."""
    lines = written(busy_course())
    later = [head_line(replace(HEAD, at_s=HEAD.at_s - 900, unix_s=HEAD.unix_s + 100)), *lines[1:]]
    found = [replayed(one, more_for_l2).found for one in (lines, later, [*lines, *later])]
    one, other, both = ({round(each.unix_s, 3) for each in every.differences} for every in found)
    assert {round(each + 1000, 3) for each in one} == other
    assert both <= one | other
    assert both & one
    assert both & other


def test_a_tick_at_a_time_that_no_clock_shows_is_refused() -> None:
    entries = [
        replace(one, samples=tuple(replace(each, taken_at_s=each.taken_at_s + 1e15) for each in one.samples))
        if isinstance(one, RecordedRound)
        else one
        for one in read(written(busy_course()))
    ]
    replay = Replay(more_for_l2)
    with pytest.raises(Rejected, match="no values that a loop ever had"):
        list(map(replay.take, entries))


def test_a_changed_recording_is_seen() -> None:
    entries = read(written(busy_course()))
    replay = Replay()
    for place, entry in enumerate(entries):
        if place == 31:
            assert isinstance(entry, RecordedRound)
            (made,) = entry.decisions
            other = replace(made, contention=not made.contention)
            replay.take(replace(entry, decisions=(other,)))
        else:
            replay.take(entry)
    (unequal,) = replay.found.unequal
    assert unequal.recorded is not None
    assert unequal.again is not None
    assert (unequal.recorded.contention, unequal.again.contention) == (False, True)


def more_for_l2(recorded: Policies) -> Policies:
    bands = PerLevel(
        Band(guarantee_bps=300 * M, ceiling_bps=1000 * M),
        Band(guarantee_bps=300 * M, ceiling_bps=800 * M),
        Band(guarantee_bps=400 * M, ceiling_bps=1000 * M),
    )
    return {unit: replace(policy, bands=bands) for unit, policy in recorded.items()}


def test_another_policy_is_told_apart_with_figures_and_the_first_tick() -> None:
    found = replayed(written(busy_course()), more_for_l2).found
    recorded, other = found.recorded[UNIT], found.other[UNIT]
    assert (recorded.decisions, other.decisions) == (100, 100)
    assert (recorded.lowest_bps, other.lowest_bps) == (
        [800 * M, 800 * M, 1000 * M],
        [600 * M, 800 * M, 1000 * M],
    )
    assert recorded.contention_s == other.contention_s
    assert recorded.contention_s == pytest.approx(3.0, abs=0.1)
    assert recorded.mean_bps(Level.L0) == pytest.approx(920 * M, rel=0.02)
    assert other.mean_bps(Level.L0) == pytest.approx(840 * M, rel=0.02)
    assert (recorded.changes, other.changes) == ([3, 0, 0], [3, 0, 0])
    first, *_ = found.differences
    assert (first.one.decision.ceilings_bps.l0, first.other.decision.ceilings_bps.l0) == (800 * M, 600 * M)
    assert found.differing == 37


def test_a_gap_is_told_and_another_policy_goes_on_over_it() -> None:
    found = replayed(written(busy_course(), skips=range(30, 40)), more_for_l2).found
    assert found.gaps == [Gap(why="the reader was too slow for 10 rounds", rounds=10)]
    assert found.unequal_count == 0
    assert found.other[UNIT].lowest_bps[0] == 600 * M


def test_values_that_no_loop_ever_had_are_refused_with_their_line() -> None:
    lines = written(busy_course())
    lines[1] = lines[1].replace("1000000000", "0", 1)
    with pytest.raises(Rejected) as caught:
        replayed(lines)
    assert (caught.value.subject, "no values that a loop ever had" in caught.value.message) == (
        "line 4",
        True,
    )


# ------------------------------------------------------------------ policies from files


def settings(text: str) -> Settings:
    return parse_documents([("other.yaml", text)])


RX, UP1 = Unit(Direction.RX, IfName("netqos-ifb")), Unit(Direction.TX, IfName("up1"))
OTHER = """
policy:
  enable: true
  levels: {l1: {txMin: 100M, rxMin: 50M}, l2: {txMin: 200M, txMax: 600M}}
loop: {enter: 80%, enterBacklogged: 75%, leave: 70%, hold: 2s}
"""


def guarantees(policy: LoopPolicy) -> list[int]:
    return [band.guarantee_bps // M for band in policy.bands]


def test_a_files_policy_is_taken_under_the_recorded_totals() -> None:
    recorded = {UNIT: LENDING, RX: replace(LENDING, total_bps=600 * M)}
    found = policies_under(settings(OTHER), recorded)
    assert {unit: (one.total_bps // M, guarantees(one)) for unit, one in found.items()} == {
        UNIT: (1000, [700, 100, 200]),
        RX: (600, [370, 50, 180]),
    }
    assert found[UNIT].bands.l2.ceiling_bps == 600 * M
    assert (found[UNIT].enter, found[UNIT].enter_backlogged, found[UNIT].leave, found[UNIT].hold_s) == (
        0.8,
        0.75,
        0.7,
        2.0,
    )
    assert (found[UNIT].lends, found[UNIT].headroom) == (True, 0.0)


def test_a_files_total_counts_and_uplinks_keep_their_proportion() -> None:
    recorded = {UNIT: replace(LENDING, total_bps=300 * M), UP1: replace(LENDING, total_bps=100 * M)}
    found = policies_under(settings(OTHER + "node: {bandwidth: {tx: 800M}}"), recorded)
    assert [one.total_bps // M for one in found.values()] == [600, 200]
    assert [guarantees(one) for one in found.values()] == [[375, 75, 150], [125, 25, 50]]


def test_a_shared_total_is_the_nodes() -> None:
    shared = replace(LENDING, is_shared=True, most_bps=700 * M)
    recorded = {UNIT: shared, UP1: replace(shared, most_bps=None)}
    found = policies_under(settings(OTHER + "node: {bandwidth: {tx: 2G}}"), recorded)
    assert [(one.total_bps, one.is_shared, one.most_bps) for one in found.values()] == [
        (2000 * M, True, 1400 * M),
        (2000 * M, True, None),
    ]


def test_a_policy_that_cannot_be_in_force_is_refused_with_every_problem() -> None:
    text = "policy: {enable: true, levels: {l1: {txMin: 900M}, l2: {txMin: 200M, rxMin: 700M}}}"
    with pytest.raises(Rejected) as caught:
        policies_under(settings(text), {UNIT: LENDING, RX: replace(LENDING, total_bps=600 * M)})
    assert any("tx L1" in one for one in caught.value.problems)
    assert any("rx L2" in one and "under the total of 600M" in one for one in caught.value.problems)


def test_a_policy_that_is_off_decides_nothing() -> None:
    with pytest.raises(Rejected, match="network QoS is off"):
        policies_under(settings("policy: {enable: false}"), {UNIT: LENDING})
