"""The fast loop: sample, decide, adjust, in a thread of its own that waits for nothing and for nobody.

Ticks have absolute due times; a late tick uses the true elapsed time and the missed ones are not made up for. The
deciding is `netqos.engine.steer`, the doing a backend's `FastPath`. The loop never logs and never raises: a path that
is lost is let go and reported through `on_lost`, and the reconciler attaches a new one.

Why a thread and not an asyncio task: a callback of the event loop (a request, a log line, a reconcile) would delay the
tick for as long as it runs; a thread only waits for the interpreter lock, and `sys.setswitchinterval` bounds that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from netqos.backend import FastPath
from netqos.engine.rounds import Steering, Taken, decide
from netqos.engine.steer import LoopPolicy, UnitState, in_force, initial_state, next_interval
from netqos.errors import NetqosError
from netqos.model.traffic import Decision, Unit
from netqos.observe.view import LoopView
from netqos.runtime.ticks import DecisionHistory, TickStatistics
from netqos.settings.values import LoopSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Grip:
    """What the loop holds: a path, and the policy of each unit that it steers."""

    path: FastPath
    policies: Mapping[Unit, LoopPolicy]


class FastLoop:
    """Steers the units of one backend."""

    def __init__(
        self,
        name: str,
        settings: LoopSettings,
        *,
        on_lost: Callable[[str], None],
        on_tick: Callable[[tuple[Decision, ...], float, float], None] = lambda _decisions, _late, _took: None,
    ) -> None:
        """`on_lost(reason)` and `on_tick(decisions, late_s, took_s)` run in the loop's thread; neither may wait.

        `on_sample`, None or set at any time, is given each round as it was taken, in the same way.
        """
        self.on_sample: Callable[[Taken], None] | None = None
        self.settings = settings
        self._on_lost = on_lost
        self._on_tick = on_tick
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._grip: Grip | None = None
        self._steering = Steering(states={})
        self._decisions: dict[Unit, Decision] = {}
        self._writes = 0
        self._last_tick_s: float | None = None
        self.statistics = TickStatistics()
        self.history = DecisionHistory()
        self._thread = threading.Thread(target=self._run, name=f"netqos-loop-{name}", daemon=True)

    def stop(self) -> None:
        """End the thread and let go of the path. Ceilings stay as they are."""
        self._stopping = True
        self.detach()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def attach(self, grip: Grip) -> None:
        """Steer with `grip` from the next tick, which comes at once; the earlier path is closed.

        The first grip starts the thread: a backend without a fast path has none.
        """
        with self._lock:
            self._release()
            self._grip = grip
            self._steering = self._steering_on(grip)
        self._wake.set()
        if self._thread.ident is None:
            self._thread.start()

    def update(self, policies: Mapping[Unit, LoopPolicy]) -> None:
        """Go on with the same path under other policies."""
        with self._lock:
            if self._grip is not None:
                self._grip = Grip(path=self._grip.path, policies=policies)
                self._steering = self._steering_on(self._grip)
        self._wake.set()

    def detach(self) -> None:
        """Let go of the path; on return no tick is under way."""
        with self._lock:
            self._release()

    @property
    def is_attached(self) -> bool:
        """Whether there is a path to steer with."""
        return self._grip is not None

    @property
    def path(self) -> FastPath | None:
        """The path that it steers with, None while nothing is attached."""
        grip = self._grip
        return grip.path if grip is not None else None

    @property
    def policies(self) -> Mapping[Unit, LoopPolicy]:
        """The policies in force, empty while nothing is attached."""
        grip = self._grip
        return grip.policies if grip is not None else {}

    def view(self) -> LoopView:
        """The newest decisions and the tick statistics."""
        figures = self.statistics.figures()
        return LoopView(
            decisions=dict(self._decisions),
            ticks=figures.ticks,
            late_p99_s=figures.late_p99_s,
            late_max_s=figures.late_max_s,
            duration_p99_s=figures.took_p99_s,
            contention_s=self.history.contention_s(),
            writes=self._writes,
            last_tick_s=self._last_tick_s,
        )

    def _release(self) -> None:
        if self._grip is not None:
            self._grip.path.close()
        self._grip = None
        self._last_tick_s = None
        self._decisions.clear()

    def _run(self) -> None:
        due_s = time.monotonic()
        while not self._stopping:
            if self._wake.wait(max(0.0, due_s - time.monotonic()) if self.is_attached else None):
                self._wake.clear()
                due_s = time.monotonic()
            started_s = time.monotonic()
            interval_s = self._tick(late_s=max(0.0, started_s - due_s), started_s=started_s)
            due_s += interval_s
            if due_s < time.monotonic():
                due_s = time.monotonic() + interval_s

    def _tick(self, *, late_s: float, started_s: float) -> float:
        """One tick; returns the seconds until the next."""
        with self._lock:
            grip = self._grip
            if grip is None:
                return self.settings.interval_s
            try:
                decisions = self._steer(grip)
            except (NetqosError, OSError) as problem:
                self._release()
                self._on_lost(str(problem))
                return self.settings.interval_s
            interval_s = self._next_interval(grip)
        self._last_tick_s = started_s
        took_s = time.monotonic() - started_s
        self.statistics.add(late_s=late_s, took_s=took_s)
        self.history.add(decisions)
        self._on_tick(decisions, late_s, took_s)
        return interval_s

    def _steering_on(self, grip: Grip) -> Steering:
        """What is remembered of each unit, with what is in force now."""
        states = {unit: self._state_on(grip.path, unit, policy) for unit, policy in grip.policies.items()}
        return Steering(states=states, sharing=self._steering.sharing)

    def _state_on(self, path: FastPath, unit: Unit, policy: LoopPolicy) -> UnitState:
        room_bps = path.current_room(unit)
        known = self._steering.states.get(unit) or initial_state(
            total_bps=policy.total_bps, room_bps=room_bps
        )
        return in_force(known, path.current_ceilings(unit), room_bps)

    def _steer(self, grip: Grip) -> tuple[Decision, ...]:
        before, samples = self._steering, grip.path.sample()
        self._steering, decisions = decide(before, samples, grip.policies)
        for decision in decisions:
            self._decisions[decision.unit] = decision
            if decision.changed:
                self._writes += grip.path.adjust(
                    decision.unit,
                    decision.ceilings_bps,
                    room_bps=decision.room_bps,
                    guarantees_bps=decision.guarantees_bps,
                )
        if self.on_sample is not None:
            self.on_sample(Taken(before=before, samples=samples, policies=grip.policies, decisions=decisions))
        return decisions

    def _next_interval(self, grip: Grip) -> float:
        return max(grip.path.min_interval_s, next_interval(self._steering.states.values(), self.settings))
