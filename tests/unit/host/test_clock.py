from __future__ import annotations

import time
from pathlib import Path

import pytest

from netqos.host.clock import Clock, SystemClock
from netqos.testing.clock import FakeClock


def _times(clock: Clock) -> tuple[float, float, float, str]:
    return clock.monotonic(), clock.wall(), clock.boot(), clock.boot_id()


def test_the_real_clock_reads_the_kernels_clocks() -> None:
    before = (time.monotonic(), time.time(), time.clock_gettime(time.CLOCK_BOOTTIME))
    monotonic_s, wall_s, boot_s, boot_id = _times(SystemClock())
    after = (time.monotonic(), time.time(), time.clock_gettime(time.CLOCK_BOOTTIME))
    assert before[0] <= monotonic_s <= after[0]
    assert before[1] <= wall_s <= after[1]
    assert before[2] <= boot_s <= after[2]
    assert boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_the_boot_id_comes_from_the_given_proc(tmp_path: Path) -> None:
    folder = tmp_path / "sys/kernel/random"
    folder.mkdir(parents=True)
    (folder / "boot_id").write_text("b-1\n")
    assert SystemClock(tmp_path).boot_id() == "b-1"


@pytest.mark.parametrize("content", [None, b"", b"\xff"])
def test_an_unknown_boot_is_never_taken_for_an_earlier_one(tmp_path: Path, content: bytes | None) -> None:
    folder = tmp_path / "sys/kernel/random"
    folder.mkdir(parents=True)
    if content is not None:
        (folder / "boot_id").write_bytes(content)
    one, other = SystemClock(tmp_path), SystemClock(tmp_path)
    assert one.boot_id() == one.boot_id() != other.boot_id()


def test_the_fake_moves_as_the_real_ones_do() -> None:
    clock = FakeClock(monotonic_s=1.0, wall_s=100.0, boot_s=10.0)
    clock.advance(2.0)
    assert _times(clock) == (3.0, 102.0, 12.0, "boot-1")
    clock.suspend(5.0)
    assert _times(clock) == (3.0, 107.0, 17.0, "boot-1")
    clock.set_wall(50.0)
    assert _times(clock) == (3.0, 50.0, 17.0, "boot-1")
    clock.reboot(off_s=7.0)
    assert _times(clock) == (0.0, 57.0, 0.0, "boot-2")
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(-1.0)
