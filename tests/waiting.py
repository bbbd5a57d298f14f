"""Waiting for what no event tells, in tests of real processes."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(check: Callable[[], object], timeout_s: float = 10.0, *, pause_s: float = 0.02) -> bool:
    """Whether it holds now or before the time is over."""
    end_s = time.monotonic() + timeout_s
    while not check():
        if time.monotonic() >= end_s:
            return False
        time.sleep(pause_s)
    return True


def wait_until(check: Callable[[], object], timeout_s: float = 20.0) -> None:
    """Go on as soon as it holds; AssertionError where it does not in time."""
    assert eventually(check, timeout_s), f"not within {timeout_s:.0f} s"
