"""The running agent as the status socket and the metrics see it: one view a moment, and the requests it answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping

import netqos
from netqos.backend import LeafCounters
from netqos.engine.why import Ground, Reasoned
from netqos.errors import Rejected
from netqos.host.clock import Clock
from netqos.model.composed import PodView
from netqos.model.health import Finding
from netqos.model.ids import PodUid
from netqos.model.inputs import Override, SourceState
from netqos.model.plan import ApplyResult, Plan
from netqos.model.traffic import Unit
from netqos.observe.pathview import PathView
from netqos.observe.view import AgentView, LoopView, Numbered, OverrideRequest, Round
from netqos.runtime.feed import Feeds
from netqos.runtime.overrides import OverrideBook, accept
from netqos.runtime.reconciler import Reconciler

SaveOverrides = Callable[[tuple[Override, ...]], None]


class RunningAgent:
    """Implements `netqos.observe.view.Agent`."""

    def __init__(  # noqa: PLR0913 - one for each part of the view
        self,
        *,
        reconciler: Reconciler,
        clock: Clock,
        feeds: Feeds,
        sources: Callable[[], Mapping[str, SourceState]],
        waited_for: Callable[[], Mapping[str, str]],
        extra_findings: Callable[[], tuple[Finding, ...]],
        save_overrides: SaveOverrides,
        paths: Callable[[], Mapping[Unit, PathView]] = dict,
    ) -> None:
        """`sources`, `waited_for`, `extra_findings` and `paths` are asked anew for each view.

        `save_overrides` makes the book durable.
        """
        self._reconciler = reconciler
        self._clock = clock
        self._feeds = feeds
        self._sources = sources
        self._waited_for = waited_for
        self._extra_findings = extra_findings
        self._save_overrides = save_overrides
        self._paths = paths
        self._started_s = time.monotonic()

    def view(self) -> AgentView:
        """The newest view."""
        reconciler = self._reconciler
        runners = self._reconciler.all_runners()
        return AgentView(
            version=netqos.__version__,
            node=reconciler.world.node.value.name,
            started_s=self._started_s,
            now_s=self._clock.monotonic(),
            ready=_is_ready(reconciler),
            waited_for=self._waited_for(),
            passes=reconciler.passes,
            composition=reconciler.composition,
            sources=self._sources(),
            backends={name: runner.view() for name, runner in runners.items()},
            loop=self._loop_view(),
            overrides=tuple(self._book.active().values()),
            findings=(*reconciler.findings(), *self._extra_findings()),
            paths=self._paths(),
        )

    def history(self) -> tuple[Reasoned, ...]:
        """Remembered decisions of all loops, oldest first."""
        kept = [
            one
            for runner in self._reconciler.all_runners().values()
            for one in runner.loop.history.decisions()
        ]
        return tuple(sorted(kept, key=lambda one: one.decision.at_s))

    def stream(self) -> AsyncGenerator[tuple[Numbered[Ground], ...], None]:
        """Each tick's decisions from now on."""
        return self._feeds.stream.read()

    def rounds(self) -> AsyncGenerator[tuple[Numbered[Round], ...], None]:
        """Each round of every loop from now on."""
        return self._feeds.rounds.read()

    async def plan(self) -> tuple[Plan, ...]:
        """What the next reconcile would change."""
        return await self._reconciler.preview()

    async def counters(self, pod: PodView) -> tuple[LeafCounters, ...]:
        """The kernel's counters of one pod, from every backend that has some."""
        return (await self.all_counters()).get(pod.uid, ())

    async def all_counters(self) -> Mapping[PodUid, tuple[LeafCounters, ...]]:
        """The kernel's counters of every pod that a backend knows."""
        found = [await runner.counters() for runner in self._reconciler.fleet.runners.values()]
        uids = {uid for counters in found for uid in counters}
        return {uid: tuple(one for counters in found for one in counters.get(uid, ())) for uid in uids}

    async def set_override(self, uid: PodUid, request: OverrideRequest) -> Override:
        """Check, save, then apply an override; an unknown pod or a wrong value is Rejected."""
        if uid not in self._known_uids():
            raise Rejected("no such pod on this node", subject=str(uid), hint="`netqosctl pods` lists them")
        override = accept(uid, request, self._clock)
        await self._save({**self._book.active(), uid: override})
        self._book.put(override)
        await self._reconciler.request()
        return override

    async def delete_override(self, uid: PodUid) -> bool:
        """Forget an override and apply; False when there was none."""
        remaining = dict(self._book.active())
        if remaining.pop(uid, None) is None:
            return False
        await self._save(remaining)
        self._book.remove(uid)
        await self._reconciler.request()
        return True

    async def reconcile(self) -> Mapping[str, ApplyResult]:
        """Reconcile now and wait for the results."""
        return await self._reconciler.request()

    @property
    def _book(self) -> OverrideBook:
        return self._reconciler.book

    def _known_uids(self) -> frozenset[PodUid]:
        composition = self._reconciler.composition
        return frozenset(pod.uid for pod in composition.pods) if composition is not None else frozenset()

    async def _save(self, book: Mapping[PodUid, Override]) -> None:
        await asyncio.to_thread(self._save_overrides, tuple(book.values()))

    def _loop_view(self) -> LoopView:
        """The loops of all backends as one: decisions joined, the statistics of the one that ticks most."""
        views = [runner.loop.view() for runner in self._reconciler.fleet.runners.values()]
        if not views:
            return LoopView()
        busiest = max(views, key=lambda view: view.ticks)
        return LoopView(
            newest={unit: one for view in reversed(views) for unit, one in view.newest.items()},
            ticks=sum(view.ticks for view in views),
            late_p99_s=busiest.late_p99_s,
            late_max_s=busiest.late_max_s,
            duration_p99_s=busiest.duration_p99_s,
            contention_s={unit: one for view in reversed(views) for unit, one in view.contention_s.items()},
            writes=sum(view.writes for view in views),
            last_tick_s=max(
                (view.last_tick_s for view in views if view.last_tick_s is not None), default=None
            ),
        )


def _is_ready(reconciler: Reconciler) -> bool:
    """Whether a pass was made with all that the sources have to say. What is remembered of one is enforced meanwhile.

    It does not count here: a new release without its rights must not look as good as the one before.
    """
    composition = reconciler.composition
    return reconciler.passes > 0 and composition is not None and composition.desired.complete
