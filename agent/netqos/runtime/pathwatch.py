"""Watches what the path behind each unit carries, and keeps the limits that `netqos.engine.bottleneck` proves.

The loops' threads leave a tick here; twice a second a task makes windows of them, has them judged, and puts the limits
into their cell, which the reconciler then brings about like any other change of a total. What receivers report as lost
is counted only while it could decide something.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence

from netqos.backend import LeafCounters
from netqos.engine import bottleneck
from netqos.engine.pathlimits import Limits, follows, path_policy
from netqos.engine.pathsigns import PathPolicy
from netqos.engine.pathstate import PathState, Step
from netqos.engine.pathwindow import WINDOW_S, Losses, Tick, Window, window_of
from netqos.engine.why import Ground
from netqos.host.clock import Clock
from netqos.host.losses import LossCounter
from netqos.model.desired import DesiredState
from netqos.model.health import Finding
from netqos.model.ids import PodUid
from netqos.model.traffic import Unit
from netqos.observe.logs import get_logger
from netqos.observe.pathview import PathView, path_findings
from netqos.runtime.lossbook import LossBook
from netqos.runtime.store import Cell
from netqos.settings.values import Settings

MOST_TICKS = 512
"""Ticks kept of a unit for one window; the loop makes some 25 in it."""

KEPT_STEPS = 32

Counters = Callable[[], Awaitable[Mapping[PodUid, tuple[LeafCounters, ...]]]]


class PathWatch:
    """Of all units of all backends."""

    def __init__(
        self,
        *,
        limits: Cell[Limits],
        settings: Cell[Settings],
        clock: Clock,
        counter: Callable[[], LossCounter | None],
    ) -> None:
        """`limits` starts with what was remembered. `counter` is asked once, when losses could first decide something.

        It gives None where nothing can be counted.
        """
        self._limits = limits
        self._settings = settings
        self._clock = clock
        self._ticks: dict[Unit, deque[Tick]] = {}
        self._states = {unit: PathState(limit_bps=bps) for unit, bps in limits.value.items()}
        self._policies: dict[Unit, PathPolicy] = {}
        self._made_from: tuple[DesiredState, Settings, frozenset[Unit]] | None = None
        self._steps: dict[Unit, tuple[Step, ...]] = {}
        self._book = LossBook(counter)
        self._log = get_logger("netqos.path")

    def tick(self, decided: Sequence[Ground]) -> None:
        """What a loop decided; called in its thread. Where levels do not lend, a sum that stands still says nothing."""
        for ground in decided:
            decision, sample = ground.decision, ground.state.base
            if sample is None or not ground.policy.lends:
                continue
            waits = sample.backlogged or any(sample.level_backlogged or ())
            room_bps = decision.room_bps
            total_bps = ground.policy.total_bps
            tick = Tick(
                elapsed_s=decision.elapsed_s,
                rates_bps=decision.rates_bps,
                waits=waits,
                beside_bps=0 if room_bps is None else max(0, total_bps - room_bps),
            )
            self._ticks.setdefault(decision.unit, deque(maxlen=MOST_TICKS)).append(tick)

    async def follow(self, whole: Callable[[], DesiredState | None], counters: Counters) -> None:
        """Look twice a second, for ever. `whole` is the desired state without limits."""
        while True:
            started_s = self._clock.monotonic()
            desired = whole()
            if desired is not None:
                await self.look(desired, counters)
            await asyncio.sleep(max(0.05, started_s + WINDOW_S - self._clock.monotonic()))

    async def look(self, whole: DesiredState, counters: Counters) -> None:
        """Judge one window of each unit."""
        losses = await self._book.read(whole, counters)
        now_s, settings = self._clock.monotonic(), self._settings.value
        self._judge_by(whole, settings)
        for unit, policy in self._policies.items():
            window = self._window(unit, now_s, losses.get(unit.direction))
            if window is not None:
                self._judge(unit, window, policy)
        self._states = {unit: state for unit, state in self._states.items() if unit in self._policies}
        self._limits.set(self._applied())
        self._book.arm([one.name for one in whole.uplinks] if self._wants_losses() else [])

    def proven(self) -> Limits:
        """What to remember over a restart: the limits that were proven, not what is being tried."""
        return {unit: one.limit_bps for unit, one in self._states.items() if one.limit_bps is not None}

    def views(self) -> Mapping[Unit, PathView]:
        """What is known of each unit's path."""
        settings = self._settings.value
        return {
            unit: PathView(
                total_bps=policy.total_bps,
                floor_bps=policy.floor_bps,
                follows=follows(unit, settings),
                limit_bps=self._states.get(unit, PathState()).limit_bps,
                shortfall=self._states.get(unit, PathState()).shortfall,
                steps=self._steps.get(unit, ()),
            )
            for unit, policy in self._policies.items()
        }

    def findings(self) -> tuple[Finding, ...]:
        """What is to be told of the paths."""
        found = [one for unit, view in self.views().items() for one in path_findings(unit, view)]
        return (*found, *self._book.findings(needed=bool(found)))

    def _judge_by(self, whole: DesiredState, settings: Settings) -> None:
        """Work the policies out anew where anything that they are made from differs."""
        units = frozenset((*self._ticks, *self._states))
        made_from = whole, settings, units
        if self._made_from is not None and all(
            new is old or new == old for new, old in zip(made_from, self._made_from, strict=True)
        ):
            return
        self._made_from = made_from
        policies = {unit: path_policy(whole, unit, settings) for unit in units}
        self._policies = {unit: policy for unit, policy in policies.items() if policy is not None}

    def _window(self, unit: Unit, now_s: float, losses: Losses | None) -> Window | None:
        waiting = self._ticks.get(unit)
        ticks = [waiting.popleft() for _ in range(len(waiting))] if waiting else []
        return window_of(ticks, now_s, losses)

    def _judge(self, unit: Unit, window: Window, policy: PathPolicy) -> None:
        state = self._states.get(unit) or PathState()
        self._states[unit], made = bottleneck.step(state, window, policy)
        if made is not None:
            self._steps[unit] = (*self._steps.get(unit, ()), made)[-KEPT_STEPS:]
            self._log.info(
                "total-moved",
                device=unit.device,
                direction=unit.direction.value,
                before_bps=made.before_bps,
                after_bps=made.after_bps,
                configured_bps=policy.total_bps,
                why=made.reason.value,
            )

    def _applied(self) -> Limits:
        applied = {
            unit: self._states[unit].applied_bps(policy.total_bps)
            for unit, policy in self._policies.items()
            if unit in self._states
        }
        return {unit: bps for unit, bps in applied.items() if bps < self._policies[unit].total_bps}

    def _wants_losses(self) -> bool:
        return any(
            bottleneck.wants_losses(self._states[unit], policy)
            for unit, policy in self._policies.items()
            if unit in self._states
        )
