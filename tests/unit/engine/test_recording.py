"""Recordings: what is read back is what was taken, bit for bit; what is wrong is told with its line."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netqos.engine.recording import LONGEST_LINE, Gap, Head, RecordedRound, RoundReader, gap_line
from netqos.engine.rounds import Steering, Taken
from netqos.errors import Rejected
from netqos.model.packing import form, pack, unpack
from netqos.model.traffic import Decision
from tests.unit.engine.rounds import HEAD, busy_course, courses, numbered, read, written


@settings(max_examples=40)
@given(courses())
def test_what_is_written_is_read_as_it_was_taken(course: list[Taken]) -> None:
    for taken in course:
        again = unpack(Taken, json.loads(json.dumps(pack(taken))))
        assert (again, repr(again)) == (taken, repr(taken))
    head, *rounds = read(written(course))
    assert head == HEAD
    for one, taken in zip(rounds, course, strict=True):
        assert isinstance(one, RecordedRound)
        assert (one.policies, one.samples, one.decisions) == (taken.policies, taken.samples, taken.decisions)
    assert isinstance(rounds[0], RecordedRound)
    assert rounds[0].begins == course[0].before


@settings(max_examples=40)
@given(courses(), st.data())
def test_after_a_gap_the_state_is_told_anew(course: list[Taken], data: st.DataObject) -> None:
    places = list(range(1, len(course) - 1))
    skipped = data.draw(st.sampled_from(places)) if places else None
    entries = read(written(course, skips=() if skipped is None else (skipped,)))
    gaps = [place for place, one in enumerate(entries) if isinstance(one, Gap)]
    if skipped is None:
        assert gaps == []
        return
    (place,) = gaps
    assert entries[place] == Gap(why="the reader was too slow for 1 rounds", rounds=1)
    following = entries[place + 1]
    assert isinstance(following, RecordedRound)
    assert following.begins == course[skipped + 1].before


def test_policies_and_states_are_written_only_where_they_do_not_follow() -> None:
    lines = written(busy_course()[:6])
    assert [next(iter(json.loads(line))) for line in lines] == ["recording", "policies", "state"] + [
        "round"
    ] * 6


GOOD = written(busy_course()[:3])


def changed(line: int, change: Callable[[Any], Any]) -> list[str]:
    lines = list(GOOD)
    lines[line - 1] = json.dumps(change(json.loads(lines[line - 1])))
    return lines


def with_other_unit(head: Any) -> Any:
    return {**head, "forms": {**head["forms"], "Unit": []}}


@pytest.mark.parametrize(
    ("lines", "where", "message"),
    [
        (["hello"], "line 1", '"hello" is no JSON'),
        (["[1]"], "line 1", '"[1]" is no JSON object'),
        (["[" * 100_000], "line 1", "is no JSON"),
        (['{"a": 1}'], "line 1", "this is no recording of netqos"),
        ([""], "line 1", '"" is no JSON'),
        (["9" * (LONGEST_LINE + 1)], "line 1", "longer than 4 MiB"),
        (changed(1, lambda head: {**head, "recording": 2}), "line 1", "of version 2; version 1 can be read"),
        (changed(1, lambda head: {**head, "forms": {}}), "line 1", "made this recording: Band, Decision"),
        (changed(1, with_other_unit), "line 1", "made this recording: Unit had other fields"),
        (changed(1, lambda head: {**head, "node": 7}), "line 1", "the head lacks node"),
        ([GOOD[0], GOOD[1], GOOD[3]], "line 3", 'a round of "tc" before its policies and its state'),
        ([*GOOD[:2], gap_line("x"), *GOOD[2:]], "line 5", 'a round of "tc" before its policies and its state'),
        (changed(4, lambda one: {**one, "of": 1}), "line 4", "no line of a recording: its keys are"),
        (changed(4, lambda one: {"round": 1, "of": "tc"}), "line 4", "no line of a recording"),
        (changed(4, lambda one: {**one, "round": [[1], []]}), "line 4", "1 where the 8 fields of UnitSample"),
        (changed(4, lambda one: {**one, "round": [{"a": 1}, []]}), "line 4", "a map where a list must stand"),
        (changed(3, lambda one: {**one, "state": [[[["UP", "up0"], 0]], 0]}), "line 3", '"UP" where one of TX, RX'),
        ([*GOOD[:3], GOOD[3][:-5]], "line 4", "is no JSON"),
        ([*GOOD[:3], GOOD[3].replace("false", "NaN", 1)], "line 4", "nan where true or false must stand"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(lines: list[str], where: str, message: str) -> None:
    with pytest.raises(Rejected) as caught:
        read(lines)
    assert caught.value.subject == where
    assert message in caught.value.message
    assert caught.value.hint


@given(st.data())
def test_a_damaged_recording_is_read_or_refused_and_nothing_else(data: st.DataObject) -> None:
    text = "\n".join(GOOD)
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start, min(len(text), start + 200)))
    damaged = (
        text[:start] + data.draw(st.sampled_from(("", "0", "null", '"', "[", "1e999", "-1"))) + text[end:]
    )
    with contextlib.suppress(Rejected):
        entries = list(RoundReader().read(numbered(damaged.split("\n"))))
        assert all(isinstance(one, Head | Gap | RecordedRound) for one in entries)


def test_a_form_tells_every_type_that_values_are_made_of() -> None:
    found = form(Steering)
    assert {
        "Steering",
        "UnitState",
        "LoopPolicy",
        "Band",
        "RoomState",
        "Sharing",
        "Need",
        "Share",
        "PerLevel",
    } <= found.keys()
    assert form(Decision)["Unit"] == ["direction: Direction", "device: IfName"]
