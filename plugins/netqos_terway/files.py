"""Moving the ceilings in `global_bps_config` with the traffic, at most one write a second, in a thread of its own.

The fast loop only hands over its newest ceilings and takes the newest counters; nothing that it calls here waits. The
thread reads the meter, lowers the ceilings to the nearest that terway-qos takes, and writes when that differs from
what is in force. The writer is retired as soon as the backend itself changes the file; then every call of the loop
says so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass

from netqos.errors import NetqosError, Retryable
from netqos.model.ids import IfName
from netqos.model.levels import Direction, PerDirection, PerLevel
from netqos.model.quantities import bits_per_s, bytes_per_s
from netqos.model.traffic import Glance, Unit, UnitSample
from netqos_terway.encode import global_text
from netqos_terway.layout import IDLE, Row, Rows, nearest_rows, steered
from netqos_terway.memo import Memo
from netqos_terway.meter import Counts

READ_EVERY_S = 1.0
WRITE_GAP_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What the writer may do. `write` gives False when the file is no longer its own; `count` is None without nft."""

    write: Callable[[CeilingWriter, bytes], bool]
    count: Callable[[], Counts] | None
    lost: Callable[[], None]
    log: Callable[..., None]
    monotonic: Callable[[], float]


class CeilingWriter:
    """The fast path of the backend and the thread behind it."""

    def __init__(self, memo: Memo, in_force: Rows, outside: Outside) -> None:
        """`in_force` are the values that the file has now. Nothing happens before `start`."""
        self._memo = memo
        self._outside = outside
        self._in_force = in_force
        self._ceilings: dict[tuple[Direction, str], PerLevel[int]] = {}
        self._counts: tuple[float, Counts] | None = None
        self._rates: PerDirection[PerLevel[int]] = PerDirection(tx=IDLE, rx=IDLE)
        self._samples: tuple[UnitSample, ...] = ()
        self._read_at_s = self._write_at_s = outside.monotonic()
        self._problem = ""
        self._is_retired = False
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="netqos-terway", daemon=True)

    # ------------------------------------------------------------ the fast loop's side

    @property
    def units(self) -> tuple[Unit, ...]:
        """Both directions of every uplink."""
        return tuple(Unit(direction, IfName(name)) for name in self._memo.uplinks for direction in Direction)

    @property
    def lends(self) -> bool:
        """Token buckets lend nothing."""
        return False

    def pace_s(self, unit: Unit) -> float:
        """A write a second is what terway-qos can follow: its own loop runs once a second."""
        del unit
        return WRITE_GAP_S

    def glance(self, units: Collection[Unit]) -> tuple[Glance, ...]:
        """Nothing is cheaper than the samples, which the thread has read already."""
        del units
        return ()

    def sample(self, units: Collection[Unit] | None = None) -> tuple[UnitSample, ...]:
        """The newest counters that the thread has read; none where nft is missing, or one total is of many uplinks."""
        self._refuse_when_retired()
        return tuple(one for one in self._samples if units is None or one.unit in units)

    def current_ceilings(self, unit: Unit) -> PerLevel[int] | None:
        """The ceilings in the file, in bits per second."""
        row = self._in_force[unit.direction]
        return None if row.is_unlimited else row.levels.map(lambda bounds: bits_per_s(bounds.high))

    def current_room(self, unit: Unit) -> int | None:
        """The totals in the file are not moved."""
        del unit
        return None

    def adjust(
        self,
        unit: Unit,
        ceilings_bps: PerLevel[int],
        *,
        room_bps: int | None = None,
        guarantees_bps: PerLevel[int] | None = None,
    ) -> int:
        """Keep the ceilings for the next write, which the thread makes; 0 when they are those kept already.

        The decisions of another backend about the same uplinks serve as well: those of several devices are added up.
        """
        del room_bps, guarantees_bps
        self._refuse_when_retired()
        key, ceilings = (unit.direction, unit.device), ceilings_bps.map(bytes_per_s)
        if unit.device not in self._memo.uplinks or self._ceilings.get(key) == ceilings:
            return 0
        self._ceilings = {**self._ceilings, key: ceilings}
        self._wake.set()
        return 1

    def close(self) -> None:
        """Stop steering; the thread ends soon, what is in the file stays."""
        self._is_retired = True
        self._wake.set()

    def _refuse_when_retired(self) -> None:
        if self._is_retired:
            raise Retryable("the file was written anew, or its writer has ended", subject="global_bps_config")

    # ------------------------------------------------------------ the thread's side

    def start(self) -> None:
        """Begin to read counters and to write."""
        self._thread.start()

    def join(self, timeout_s: float) -> None:
        """Wait for the thread's end after `close`."""
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def turn(self) -> float:
        """Do what is due now; the seconds until something is due again."""
        now_s = self._outside.monotonic()
        if now_s >= self._read_at_s:
            self._read(now_s)
            self._read_at_s = now_s + READ_EVERY_S
        rows = self._rows()
        if rows is not None and rows != self._in_force and now_s >= self._write_at_s:
            self._write(rows)
            self._write_at_s = now_s + WRITE_GAP_S
        is_pending = rows is not None and rows != self._in_force
        return (min(self._read_at_s, self._write_at_s) if is_pending else self._read_at_s) - now_s

    def _run(self) -> None:
        try:
            while not self._is_retired:
                self._wake.wait(self.turn())
                self._wake.clear()
        finally:
            self._is_retired = True

    def _rows(self) -> Rows | None:
        """What should be in the file now."""
        asked = self._memo.asked
        return nearest_rows(
            PerDirection(tx=self._steered(asked.tx, Direction.TX), rx=self._steered(asked.rx, Direction.RX)),
            self._rates,
        )

    def _steered(self, row: Row, direction: Direction) -> Row:
        newest = [ceilings for (of, _), ceilings in self._ceilings.items() if of is direction]
        if not newest:
            return row
        l0, l1, l2 = (sum(values) for values in zip(*newest, strict=True))
        return steered(row, PerLevel(l0, l1, l2))

    def _write(self, rows: Rows) -> None:
        try:
            if self._outside.write(self, global_text(rows)):
                self._in_force = rows
            self._report("")
        except NetqosError as problem:
            self._report(str(problem))

    def _read(self, now_s: float) -> None:
        if self._outside.count is None:
            return
        try:
            counts = self._outside.count()
        except NetqosError as problem:
            self._counts = None
            self._outside.lost()
            self._report(str(problem))
            return
        if self._counts is not None:
            before_s, before = self._counts
            self._rates = PerDirection(
                tx=_rates(before.tx, counts.tx, now_s - before_s),
                rx=_rates(before.rx, counts.rx, now_s - before_s),
            )
        self._counts = (now_s, counts)
        self._samples = self._make_samples(counts, now_s)

    def _make_samples(self, counts: Counts, now_s: float) -> tuple[UnitSample, ...]:
        if len(self._memo.uplinks) != 1:
            return ()
        device = IfName(self._memo.uplinks[0])
        return tuple(
            UnitSample(unit=Unit(direction, device), taken_at_s=now_s, level_bytes=counts[direction])
            for direction in Direction
            if not self._memo.asked[direction].is_unlimited
        )

    def _report(self, problem: str) -> None:
        """Log a problem when it begins and when it has ended, not every second."""
        if problem != self._problem:
            self._problem = problem
            self._outside.log(
                "terway_steering_failed" if problem else "terway_steering_works", problem=problem
            )


def _rates(before: PerLevel[int], after: PerLevel[int], elapsed_s: float) -> PerLevel[int]:
    """Bytes per second between two readings; a counter that went back tells nothing."""
    if elapsed_s <= 0:
        return IDLE
    l0, l1, l2 = (max(0, int((new - old) / elapsed_s)) for old, new in zip(before, after, strict=True))
    return PerLevel(l0, l1, l2)
