"""The room that a unit leaves for what it does not meet, with counters and times that the tests make up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from netqos.engine.room import RoomState, measure, room_bps, within
from netqos.engine.steer import step
from netqos.engine.unitstate import LoopPolicy, UnitState, in_force, initial_state
from netqos.model.ids import IfName
from netqos.model.levels import Direction, PerLevel
from netqos.model.traffic import Decision, Unit, UnitSample
from netqos.testing.states import M, bands

RX = Unit(Direction.RX, IfName("netqos-ifb"))
TOTAL_BPS = 640 * M
STEP_BPS = 10 * M
BANDS = bands((320 * M, 192 * M, 128 * M), (640 * M, 500 * M, 640 * M))
POLICY = LoopPolicy(total_bps=TOTAL_BPS, bands=BANDS, lends=True, headroom=0.0)


class Node:
    """A node that receives for its pods and for itself: rates are megabits a second."""

    def __init__(self, *, state: UnitState | None = None) -> None:
        self.sample = UnitSample(
            unit=RX,
            taken_at_s=500.0,
            level_bytes=PerLevel(7, 0, 3),
            device_bytes=10**11,
            offered_bytes=10**10,
        )
        self.state = step(state or initial_state(), self.sample, POLICY)[0]

    def tick(
        self,
        host: float,
        pods: tuple[float, float, float] = (0, 0, 0),
        *,
        lost: float = 0,
        after_s: float = 0.05,
    ) -> Decision:
        """`lost` is what is dropped on the way through the unit's queues."""
        before = self.sample
        assert before.device_bytes is not None
        assert before.offered_bytes is not None
        offered = _count(sum(pods) + lost, after_s)
        self.sample = replace(
            before,
            taken_at_s=before.taken_at_s + after_s,
            level_bytes=PerLevel(
                *(then + _count(rate, after_s) for then, rate in zip(before.level_bytes, pods, strict=True))
            ),
            offered_bytes=before.offered_bytes + offered,
            device_bytes=before.device_bytes + offered + _count(host, after_s),
        )
        self.state, decision = step(self.state, self.sample, POLICY)
        assert decision is not None
        return decision

    def rooms(self, hosts: Iterable[float], pods: tuple[float, float, float] = (0, 0, 0)) -> list[int]:
        """The room in megabits after each tick."""
        return [round((self.tick(host, pods).room_bps or 0) / M) for host in hosts]


def _count(mbit: float, after_s: float) -> int:
    return round(mbit * M * after_s / 8)


def test_a_node_that_receives_nothing_itself_has_the_whole_total() -> None:
    assert set(Node().rooms([0] * 100, (300, 200, 100))) == {640}


def test_what_the_node_receives_is_kept_free_within_a_window_and_given_back_after_a_hold() -> None:
    node = Node()
    rooms = node.rooms([200] * 20, (300, 100, 40))
    assert rooms[0] == 640
    assert rooms[2:] == [440] * 18
    calm = node.rooms([0] * 140, (300, 100, 40))
    # a window of three ticks may still hold one of the download, so it can take two holds
    first, last = next(tick for tick, room in enumerate(calm) if room > 440), calm.index(640)
    assert 57 <= first <= last <= 2 * 63
    assert set(calm[last:]) == {640}


def test_a_download_that_pauses_keeps_its_place() -> None:
    node = Node()
    node.rooms([200] * 10)
    assert set(node.rooms(([0] * 40 + [200] * 10) * 5)) == {440}


def test_what_is_lost_in_the_units_own_queues_is_not_taken_for_the_nodes() -> None:
    node = Node()
    decisions = [node.tick(0, (200, 128, 312), lost=900) for _ in range(50)]
    assert {decision.room_bps for decision in decisions} == {TOTAL_BPS}


def test_a_device_that_counts_less_than_the_unit_sees_no_traffic_of_the_node() -> None:
    """A veth counts the headers of a GSO train once: 4.5 percent less than HTB."""
    assert set(Node().rooms([-28.8] * 50, (400, 140, 100))) == {640}


@pytest.mark.parametrize("host", [360, 500, 640, 5000])
def test_the_guarantees_of_l1_and_l2_and_the_floor_of_l0_stay_whatever_the_node_receives(host: float) -> None:
    assert Node().rooms([host] * 5)[-1] == max(640 - host, 192 + 128 + 5)


def test_the_law_runs_with_the_room() -> None:
    node = Node()
    node.rooms([200] * 10)
    decision = [node.tick(200, (130, 190, 120)) for _ in range(4)][-1]
    assert decision.contention
    assert decision.room_bps == 440 * M
    assert decision.ceilings_bps == PerLevel(440 * M - 190 * M - 120 * M, 440 * M, 440 * M)


def test_bands_in_a_room() -> None:
    assert within(BANDS, 400 * M) == bands((80 * M, 192 * M, 128 * M), (400 * M, 400 * M, 400 * M))
    assert within(BANDS, TOTAL_BPS) == BANDS
    capped = replace(BANDS, l0=replace(BANDS.l0, guarantee_bps=100 * M, ceiling_bps=100 * M))
    assert within(capped, 500 * M).l0 == capped.l0


def test_a_room_for_classes_that_are_all_off_is_never_nothing() -> None:
    off = bands((640 * M, 0, 0), (640 * M, 640 * M, 640 * M))
    assert room_bps(10**12, off, total_bps=TOTAL_BPS) == 5 * M
    tiny = bands((2 * M, 1 * M, 1 * M), (4 * M, 4 * M, 4 * M))
    assert room_bps(10**12, tiny, total_bps=4 * M) == 4 * M


@pytest.mark.parametrize("counter", ["device_bytes", "offered_bytes"])
def test_a_counter_that_goes_back_is_no_sample(counter: str) -> None:
    node = Node()
    node.rooms([200] * 10)
    node.sample = replace(node.sample, **{counter: 5})  # type: ignore[arg-type] # one of two fields of the same type
    state, _ = step(node.state, replace(node.sample, taken_at_s=node.sample.taken_at_s + 0.05), POLICY)
    assert state.room == replace(
        node.state.room, base=state.base, lower_since_s=node.sample.taken_at_s + 0.05
    )
    assert state.room_bps == 440 * M


def test_a_pause_of_the_daemon_is_no_sample() -> None:
    room = RoomState(base=Node().sample, kept_bps=30 * M)
    later = replace(Node().sample, taken_at_s=510.0, device_bytes=10**12)
    assert measure(room, later, total_bps=TOTAL_BPS) == replace(room, base=later, lower_since_s=510.0)


def test_another_grip_counts_from_its_own_first_sample() -> None:
    """An uplink that appears brings its whole counter into the sum."""
    node = Node()
    node.rooms([200] * 10)
    state = in_force(node.state, None, 440 * M)
    joined = replace(
        node.sample,
        taken_at_s=node.sample.taken_at_s + 0.2,
        device_bytes=(node.sample.device_bytes or 0) + 10**12,
    )
    state, decision = step(state, joined, POLICY)
    assert decision is not None
    assert decision.room_bps == 440 * M


def test_a_room_in_force_is_no_change_and_is_kept_until_more_is_known() -> None:
    started = in_force(
        initial_state(total_bps=TOTAL_BPS, room_bps=440 * M), PerLevel(440 * M, 440 * M, 440 * M), 440 * M
    )
    node = Node(state=started)
    decisions = [node.tick(200) for _ in range(100)]
    assert not any(decision.changed for decision in decisions)


def test_a_moved_room_is_a_change_once() -> None:
    node = Node()
    node.rooms([0] * 5)
    changes = [node.tick(100).changed for _ in range(20)]
    assert changes == [False, True, *[False] * 18]


def test_a_unit_that_meets_everything_has_no_room_to_move() -> None:
    before = UnitSample(unit=RX, taken_at_s=1.0, level_bytes=PerLevel(0, 0, 0), device_bytes=0)
    state, _ = step(initial_state(), before, POLICY)
    after = replace(before, taken_at_s=1.2, device_bytes=10**9)
    decision = step(state, after, POLICY)[1]
    assert decision is not None
    assert (decision.room_bps, decision.ceilings_bps) == (None, PerLevel(640 * M, 500 * M, 640 * M))
