"""When something may be done next: a minimum gap, retries that become rarer, a forced look now and then; and how often
one object is repaired before we stop fighting over it.

State machines over times that are passed in (monotonic seconds); nothing here waits or reads a clock.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class PacingPolicy:
    """All in seconds. `min_gap_s` lies between the end of a run and the next one; the first retry after a failure comes
    after `retry_s`, each further one after twice the time, at most `retry_max_s`; without any event a run is due
    `resync_s` after the last good one (infinite: never).
    """

    min_gap_s: float = 0.0
    retry_s: float = 0.5
    retry_max_s: float = 60.0
    resync_s: float = math.inf


class Pacing:
    """When one repeated piece of work runs next. An event cuts a retry's wait short, but not the minimum gap."""

    def __init__(self, policy: PacingPolicy | None = None) -> None:
        """Nothing has run yet, so the first run is due at once."""
        self.policy = policy or PacingPolicy()
        self._ran_s: float | None = None
        self._failures = 0
        self._has_news = False

    @property
    def failures(self) -> int:
        """How many runs failed since the last good one."""
        return self._failures

    def notice(self) -> None:
        """Something changed that a run should see, also while one is under way."""
        self._has_news = True

    def started(self) -> None:
        """A run begins; it sees everything that was noticed before."""
        self._has_news = False

    def ran(self, now_s: float, *, ok: bool) -> None:
        """A run ended at `now_s`."""
        self._ran_s = now_s
        self._failures = 0 if ok else self._failures + 1

    def may_run(self, now_s: float) -> bool:
        """Whether neither the minimum gap nor a retry's wait forbids a run that somebody asks for now."""
        return now_s >= self._earliest_s()

    def due_s(self) -> float:
        """When the next run is due if nothing more happens; minus infinity: at once."""
        if self._ran_s is None or self._has_news or self._failures:
            return self._earliest_s()
        return self._ran_s + max(self.policy.resync_s, self.policy.min_gap_s)

    def _earliest_s(self) -> float:
        if self._ran_s is None:
            return -math.inf
        wait_s = self._retry_wait_s() if self._failures and not self._has_news else 0.0
        return self._ran_s + max(self.policy.min_gap_s, wait_s)

    def _retry_wait_s(self) -> float:
        return _doubled(self.policy.retry_s, self._failures, self.policy.retry_max_s)


REPAIRS_AT_ONCE = 2
WINDOW_S = 60.0
BACKOFF_S = 10.0
BACKOFF_MAX_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _History:
    """`repaired_s`: when, newest last. `holds`: how often it was held. `until_s`: the end of the hold under way."""

    repaired_s: tuple[float, ...] = ()
    holds: int = 0
    until_s: float | None = None


class RepairBackoff:
    """The repairs of objects that somebody else keeps changing (contract 7).

    Two repairs of one object within a minute are made at once. The third waits 10 s, each further one twice as long as
    the one before, at most 5 minutes. An object left in peace for a minute more than its last wait starts anew.
    """

    def __init__(self) -> None:
        """Nothing was repaired yet."""
        self._histories: dict[str, _History] = {}

    def is_held(self, subject: str, now_s: float) -> bool:
        """Whether the repair of `subject` that is wanted now has to wait; the first refusal starts the wait."""
        self._forget(now_s)
        history = self._histories.get(subject)
        if history is None:
            return False
        if history.until_s is not None:
            return now_s < history.until_s
        recent = [at_s for at_s in history.repaired_s if now_s - at_s < WINDOW_S]
        if history.holds == 0 and len(recent) < REPAIRS_AT_ONCE:
            return False
        holds = history.holds + 1
        self._histories[subject] = replace(history, holds=holds, until_s=now_s + _wait_s(holds))
        return True

    def repaired(self, subject: str, now_s: float) -> None:
        """`subject` was repaired."""
        history = self._histories.get(subject, _History())
        recent = (*history.repaired_s, now_s)[-REPAIRS_AT_ONCE:]
        self._histories[subject] = replace(history, repaired_s=recent, until_s=None)

    def held(self, now_s: float) -> Mapping[str, float]:
        """The objects whose repair waits at this moment, and until when."""
        return {
            subject: history.until_s
            for subject, history in self._histories.items()
            if history.until_s is not None and now_s < history.until_s
        }

    def _forget(self, now_s: float) -> None:
        self._histories = {
            subject: history for subject, history in self._histories.items() if now_s < _forgotten_s(history)
        }


def _wait_s(holds: int) -> float:
    return _doubled(BACKOFF_S, holds, BACKOFF_MAX_S)


def _forgotten_s(history: _History) -> float:
    """When an object counts as left in peace: a minute, and its last wait once it was held, after the last event."""
    last_s = max(history.repaired_s, default=-math.inf)
    if history.until_s is not None:
        last_s = max(last_s, history.until_s)
    return last_s + WINDOW_S + (_wait_s(history.holds) if history.holds else 0.0)


def _doubled(first_s: float, times: int, most_s: float) -> float:
    """`first_s`, doubled with each time after the first, at most `most_s`."""
    return min(most_s, first_s * 2.0 ** min(times - 1, 64))
