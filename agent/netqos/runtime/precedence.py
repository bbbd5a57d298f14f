"""When the daemon goes before all other programs of the node: while a loop steers, and as long as it computes little.

On a node whose processors are all busy a tick would come when the scheduler pleases, tens of milliseconds late. What
may go first must be modest: more than 0.3 s of processor time in half a second, and all of it is an ordinary program
again for a second. The loop itself sees to that, being the one that the rest cannot hold up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

WINDOW_S: Final = 0.5
MOST: Final = 0.6
REST_S: Final = 1.0


class Precedence:
    """Asked at every tick of every loop; several threads may ask at once."""

    def __init__(
        self,
        *,
        before: Callable[[], str],
        among: Callable[[], None],
        told: Callable[[str], None] = lambda _problem: None,
        monotonic: Callable[[], float] = time.monotonic,
        cpu_s: Callable[[], float] = time.process_time,
    ) -> None:
        """`before` goes ahead and says why it cannot, `among` steps back; `told` is given the first outcome, once."""
        self._before = before
        self._among = among
        self._told = told
        self._monotonic = monotonic
        self._cpu_s = cpu_s
        self._lock = threading.Lock()
        self._is_ahead = False
        self._is_refused = False
        self._not_until_s = 0.0
        self._window = (0.0, 0.0)

    @property
    def is_ahead(self) -> bool:
        """Whether the daemon goes first now."""
        return self._is_ahead

    def tick(self) -> None:
        """Go ahead when nothing speaks against it; step back when too much was computed."""
        if self._is_refused or not self._lock.acquire(blocking=False):
            return
        try:
            now_s = self._monotonic()
            if not self._is_ahead:
                if now_s >= self._not_until_s:
                    self._go(now_s, self._cpu_s())
            elif now_s - self._window[0] >= WINDOW_S:
                self._judge(now_s, self._cpu_s())
        finally:
            self._lock.release()

    def rest(self) -> None:
        """Step back while nothing is steered: nobody would notice then that too much is computed."""
        with self._lock:
            self._step_back(0.0)

    def _go(self, now_s: float, cpu_s: float) -> None:
        problem, is_first = self._before(), self._window == (0.0, 0.0)
        self._is_ahead, self._is_refused = not problem, bool(problem)
        self._window = (now_s, cpu_s)
        if is_first:
            self._told(problem)

    def _judge(self, now_s: float, cpu_s: float) -> None:
        began_s, began_cpu_s = self._window
        self._window = (now_s, cpu_s)
        if cpu_s - began_cpu_s > MOST * (now_s - began_s):
            self._step_back(now_s + REST_S)

    def _step_back(self, until_s: float) -> None:
        if self._is_ahead:
            self._among()
            self._is_ahead, self._not_until_s = False, until_s
