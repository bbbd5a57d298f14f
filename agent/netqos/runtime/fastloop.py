"""The fast loop: sample, decide, adjust, in a thread of its own that waits for nothing and for nobody.

Each unit has a pace of its own (`netqos.runtime.turns`): short in contention, and while there is little traffic a
glance at its usual interval with a sample now and then (`netqos.engine.pace`). A late tick uses the true elapsed time.
The deciding is `netqos.engine.rounds`, the doing a backend's `FastPath`. The loop never logs and never raises: a path
that is lost is let go and reported through `on_lost`, and the reconciler attaches a new one.

Why a thread and not an asyncio task: a callback of the event loop (a request, a log line, a reconcile) would delay the
tick for as long as it runs; a thread only waits for the interpreter lock, and `sys.setswitchinterval` bounds that.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping

from netqos.backend import FastPath
from netqos.engine.rounds import Taken
from netqos.engine.unitstate import LoopPolicy
from netqos.engine.why import Ground
from netqos.errors import NetqosError
from netqos.host.realtime import name_thread
from netqos.model.traffic import Unit
from netqos.observe.view import LoopView
from netqos.runtime.bell import Bell
from netqos.runtime.steerer import Grip, Steerer
from netqos.runtime.ticks import DecisionHistory, TickStatistics
from netqos.settings.values import LoopSettings


class FastLoop:
    """Steers the units of one backend."""

    def __init__(
        self,
        name: str,
        settings: LoopSettings,
        *,
        on_lost: Callable[[str], None],
        on_tick: Callable[[tuple[Ground, ...], float, float], None] = lambda _decided, _late, _took: None,
        on_rest: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_lost(reason)` and `on_tick(decided, late_s, took_s)` run in the loop's thread; neither may wait.

        So does `on_rest()`, when nothing is left to steer.
        """
        self.settings = settings
        self._on_lost = on_lost
        self._on_tick = on_tick
        self._on_rest = on_rest
        self._lock = threading.Lock()
        self._bell = Bell()
        self._stopping = False
        self._steerer = Steerer()
        self._last_tick_s: float | None = None
        self.statistics = TickStatistics()
        self.history = DecisionHistory()
        self._thread = threading.Thread(target=self._run, name=f"netqos-loop-{name}", daemon=True)

    def stop(self) -> None:
        """End the thread and let go of the path. Ceilings stay as they are."""
        self._stopping = True
        self.detach()
        self._bell.ring()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def attach(self, grip: Grip) -> None:
        """Steer with `grip` from the next tick, which comes at once; the earlier path is closed.

        The first grip starts the thread: a backend without a fast path has none.
        """
        with self._lock:
            self._release()
            try:
                self._steerer.hold(grip, time.monotonic())
            except NetqosError:
                grip.path.close()
                raise
        self._bell.ring()
        if self._thread.ident is None:
            self._thread.start()

    def update(self, policies: Mapping[Unit, LoopPolicy]) -> None:
        """Go on with the same path under other policies, from a tick that comes at once."""
        with self._lock:
            grip = self._steerer.grip
            if grip is not None:
                self._steerer.hold(Grip(path=grip.path, policies=policies), time.monotonic())
        self._bell.ring()

    def detach(self) -> None:
        """Let go of the path; on return no tick is under way."""
        with self._lock:
            self._release()

    def listen(self, on_sample: Callable[[Taken], None] | None) -> None:
        """Have each round told as it was taken, in the loop's thread, without waiting; None ends it."""
        self._steerer.on_sample = on_sample

    @property
    def is_attached(self) -> bool:
        """Whether there is a path to steer with."""
        return self._steerer.grip is not None

    @property
    def path(self) -> FastPath | None:
        """The path that it steers with, None while nothing is attached."""
        grip = self._steerer.grip
        return grip.path if grip is not None else None

    @property
    def policies(self) -> Mapping[Unit, LoopPolicy]:
        """The policies in force, empty while nothing is attached."""
        grip = self._steerer.grip
        return grip.policies if grip is not None else {}

    def view(self) -> LoopView:
        """The newest decisions and the tick statistics."""
        figures = self.statistics.figures()
        return LoopView(
            newest=dict(self._steerer.newest),
            ticks=figures.ticks,
            late_p99_s=figures.late_p99_s,
            late_max_s=figures.late_max_s,
            duration_p99_s=figures.took_p99_s,
            contention_s=self.history.contention_s(),
            writes=self._steerer.writes,
            last_tick_s=self._last_tick_s,
        )

    def _release(self) -> None:
        self._steerer.release()
        self._last_tick_s = None

    def _run(self) -> None:
        name_thread()
        while not self._stopping:
            next_s = self._steerer.next_s
            if next_s == math.inf:
                self._on_rest()
            self._bell.wait(None if next_s == math.inf else next_s - time.monotonic())
            self._tick()

    def _tick(self) -> None:
        with self._lock:
            started_s, due_s = time.monotonic(), self._steerer.next_s
            try:
                decided = self._steerer.tick(started_s, self.settings)
            except (NetqosError, OSError) as problem:
                self._release()
                self._on_lost(str(problem))
                return
            if decided is None:
                return
            self._last_tick_s = started_s
        took_s, late_s = time.monotonic() - started_s, started_s - due_s
        self.statistics.add(late_s=late_s, took_s=took_s)
        self.history.add(decided)
        self._on_tick(decided, late_s, took_s)
