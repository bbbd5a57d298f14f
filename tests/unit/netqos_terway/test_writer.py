"""The writer of ceilings, in virtual time: what it writes, when, and when it stops."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from netqos.errors import Retryable
from netqos.model.ids import IfName
from netqos.model.levels import Direction, Level, PerDirection, PerLevel
from netqos.model.traffic import Unit, UnitSample
from netqos.testing import states
from netqos.testing.states import M
from netqos_terway.encode import parse_global
from netqos_terway.files import CeilingWriter, Outside
from netqos_terway.layout import NO_LIMITS, Rows, nearest_rows
from netqos_terway.memo import Memo, wanted_memo
from netqos_terway.meter import Counts
from tests.unit.netqos_terway import reader

TX = Unit(Direction.TX, IfName("up0"))
RX = Unit(Direction.RX, IfName("up0"))
FREE = PerLevel(1000 * M, 800 * M, 1000 * M)
CONTENDED = PerLevel(500 * M, 300 * M, 200 * M)


class World:
    """The outside of a writer, with a clock and counters to set."""

    def __init__(self, *, uplinks: tuple[str, ...] = ("up0",), has_nft: bool = True) -> None:
        memo = wanted_memo(states.node(uplinks=[states.uplink(name) for name in uplinks]))
        assert memo is not None
        self.memo: Memo = memo
        self.now_s = 100.0
        self.bytes = {Direction.TX: [0, 0, 0], Direction.RX: [0, 0, 0]}
        self.written: list[tuple[float, Rows]] = []
        self.logged: list[tuple[str, str]] = []
        self.failure: Retryable | None = None
        self.meter_failure: Retryable | None = None
        self.is_mine = True
        self.losses = 0
        first = nearest_rows(memo.asked)
        assert first is not None
        self.writer = CeilingWriter(
            memo,
            first,
            Outside(
                write=self.write,
                count=self.count if has_nft else None,
                lost=self.lose,
                log=lambda event, **values: self.logged.append((event, values["problem"])),
                monotonic=lambda: self.now_s,
            ),
        )

    def write(self, writer: CeilingWriter, content: bytes) -> bool:
        assert writer is self.writer
        if self.failure is not None:
            raise self.failure
        if self.is_mine:
            assert reader.takes_file(content)
            rows = parse_global(content)
            assert rows is not None
            self.written.append((self.now_s, rows))
        return self.is_mine

    def count(self) -> Counts:
        if self.meter_failure is not None:
            raise self.meter_failure
        tx, rx = (PerLevel(*self.bytes[direction]) for direction in Direction)
        return PerDirection(tx=tx, rx=rx)

    def lose(self) -> None:
        self.losses += 1

    def run(self, seconds: float, **rates_bps: int) -> None:
        """Let time pass in turns as the thread takes them; `tx_l1=...` is traffic in bits per second."""
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            pause_s = min(self.writer.turn(), end_s - self.now_s)
            assert pause_s > 0
            self.now_s += pause_s
            for name, bps in rates_bps.items():
                direction, level = Direction(name[:2]), Level[name[3:].upper()]
                self.bytes[direction][level.value] += int(bps / 8 * pause_s)
        self.writer.turn()

    def ceilings(self, direction: Direction = Direction.TX) -> tuple[int, int, int]:
        """The newest written ceilings in megabits per second."""
        l0, l1, l2 = (bounds.high * 8 // M for bounds in self.written[-1][1][direction].levels)
        return l0, l1, l2


def test_nothing_to_do_means_no_write() -> None:
    world = World()
    world.run(10)
    assert world.written == []
    assert world.writer.current_ceilings(TX) == PerLevel(1000 * M, 800 * M, 200 * M)
    assert world.writer.current_ceilings(RX) == PerLevel(600 * M, 480 * M, 120 * M)


def test_the_newest_ceilings_are_written_and_no_more_than_one_a_second() -> None:
    world = World()
    for number in range(40):
        share = number * 10 * M
        world.writer.adjust(TX, PerLevel(1000 * M - share, 800 * M - share, 200 * M))
        world.run(0.1)
    gaps = [later[0] - sooner[0] for sooner, later in zip(world.written, world.written[1:], strict=False)]
    assert len(world.written) in {4, 5}
    assert all(gap >= 0.999 for gap in gaps)
    world.run(1)
    assert world.ceilings() == (610, 410, 200)


def test_equal_ceilings_are_no_adjustment() -> None:
    world = World()
    assert world.writer.adjust(TX, CONTENDED) == 1
    assert world.writer.adjust(TX, CONTENDED) == 0
    world.run(5)
    assert len(world.written) == 1
    assert world.writer.current_ceilings(TX) == CONTENDED
    assert world.writer.current_ceilings(RX) == PerLevel(600 * M, 480 * M, 120 * M)


def test_free_ceilings_go_to_the_level_that_uses_them() -> None:
    world = World()
    world.writer.adjust(TX, FREE)
    world.run(3, tx_l1=50 * M, tx_l2=600 * M, rx_l1=100 * M, rx_l2=10 * M)
    assert world.ceilings() == (1000, 300, 700)
    assert world.ceilings(Direction.RX) == (600, 480, 120)
    world.run(3, tx_l1=250 * M, tx_l2=20 * M)
    assert world.ceilings() == (1000, 800, 200)


def test_two_levels_that_use_about_the_same_do_not_change_places() -> None:
    world = World()
    world.writer.adjust(TX, FREE)
    for number in range(20):
        noise = 10 * M if number % 2 else -10 * M
        world.run(1, tx_l1=200 * M + noise, tx_l2=200 * M - noise)
    assert len(world.written) == 1
    assert world.ceilings() == (1000, 750, 250)


def test_ceilings_never_leave_guarantee_and_policy() -> None:
    world = World()
    world.writer.adjust(TX, PerLevel(1, 5000 * M, 1))
    world.run(1)
    assert world.ceilings() == (500, 800, 200)


def test_samples_are_the_newest_counters_and_cost_the_loop_nothing() -> None:
    world = World()
    assert world.writer.sample() == ()
    world.run(2, tx_l1=8 * M, rx_l0=80 * M)
    first, second = world.writer.sample()
    assert first == UnitSample(unit=TX, taken_at_s=102.0, level_bytes=PerLevel(0, 2 * M, 0))
    assert second.unit == RX
    assert second.level_bytes == PerLevel(20 * M, 0, 0)
    assert world.writer.sample() == (first, second)


def test_without_nft_the_tie_rule_stands_and_another_backends_decisions_serve() -> None:
    world = World(has_nft=False)
    world.run(3)
    assert world.writer.sample() == ()
    assert world.written == []
    world.writer.adjust(TX, CONTENDED)
    world.run(1)
    assert world.ceilings() == (500, 300, 200)


def test_one_total_of_several_uplinks() -> None:
    world = World(uplinks=("up0", "up1"))
    world.run(2, tx_l1=8 * M)
    assert world.writer.sample() == ()
    half = CONTENDED.map(lambda bps: bps // 2)
    for name in ("up0", "up1"):
        assert world.writer.adjust(Unit(Direction.TX, IfName(name)), half) == 1
    assert world.writer.adjust(Unit(Direction.TX, IfName("eth9")), FREE) == 0
    world.run(1)
    assert world.ceilings() == (500, 300, 200)


def test_a_failing_write_is_told_once_and_tried_again() -> None:
    world = World()
    world.failure = Retryable("disk full")
    world.writer.adjust(TX, CONTENDED)
    world.run(5)
    assert world.logged == [("terway_steering_failed", "disk full")]
    world.failure = None
    world.run(2)
    assert world.ceilings() == (500, 300, 200)
    assert world.logged[1:] == [("terway_steering_works", "")]


def test_a_lost_meter_is_told_and_begins_anew() -> None:
    world = World()
    world.writer.adjust(TX, FREE)
    world.run(2, tx_l2=600 * M)
    world.meter_failure = Retryable("no such table")
    world.run(3)
    assert world.losses >= 3
    assert [event for event, _ in world.logged] == ["terway_steering_failed"]
    world.meter_failure = None
    world.bytes[Direction.TX] = [0, 0, 0]
    world.run(3, tx_l1=600 * M)
    assert world.ceilings() == (1000, 800, 200)


def test_a_counter_that_goes_back_tells_nothing() -> None:
    world = World()
    world.writer.adjust(TX, FREE)
    world.run(2, tx_l2=600 * M)
    assert world.ceilings() == (1000, 300, 700)
    world.bytes[Direction.TX] = [0, 0, 0]
    world.run(1)
    assert world.ceilings() == (1000, 800, 200)


def test_a_file_that_is_no_longer_ours_is_left_alone() -> None:
    world = World()
    world.is_mine = False
    world.writer.adjust(TX, CONTENDED)
    world.run(3)
    assert world.written == []
    assert world.writer.current_ceilings(TX) == PerLevel(1000 * M, 800 * M, 200 * M)


def test_a_retired_writer_says_so() -> None:
    world = World()
    world.writer.close()
    for call in (world.writer.sample, lambda: world.writer.adjust(TX, FREE)):
        with pytest.raises(Retryable, match="written anew"):
            call()


def test_no_ceilings_where_nothing_is_limited() -> None:
    world = World()
    writer = CeilingWriter(world.memo, NO_LIMITS, world.writer._outside)
    assert writer.current_ceilings(TX) is None


def test_the_thread_writes_and_ends() -> None:
    """The only test in real time: one write, then the end."""
    world = World(has_nft=False)
    done = threading.Event()

    def write(writer: CeilingWriter, content: bytes) -> bool:
        done.set()
        return world.write(writer, content)

    outside = replace(world.writer._outside, write=write)
    world.writer = CeilingWriter(world.memo, nearest_rows(world.memo.asked) or NO_LIMITS, outside)
    world.writer.start()
    world.writer.adjust(TX, CONTENDED)
    assert done.wait(10)
    world.writer.close()
    world.writer.join(10)
    assert world.ceilings() == (500, 300, 200)
    assert not any(thread.name == "netqos-terway" for thread in threading.enumerate())
