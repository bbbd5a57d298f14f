"""The running daemon: starts every task in one group, and ends them in order.

A task that ends unexpectedly ends the daemon, whose own supervisor starts it again; what is enforced stays in force
meanwhile. Order of an end: stop deciding, restore the node if the settings say so, then let go of everything.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from netqos.engine.pathlimits import Limits, remembered
from netqos.engine.why import Ground
from netqos.errors import NetqosError, Rejected
from netqos.host.claim import Claim
from netqos.host.clock import Clock, SystemClock
from netqos.host.heap import give_back, keep_heap_small
from netqos.host.realtime import go_among_others, go_before_others
from netqos.model.composed import LastGood
from netqos.model.health import Finding
from netqos.model.inputs import SourceState
from netqos.observe.listen import UnixListener
from netqos.observe.logs import Logs, get_logger
from netqos.observe.metricsserver import serve_metrics, stalled
from netqos.observe.notify import Notifier
from netqos.observe.statusserver import serve_status
from netqos.observe.transitions import Transitions
from netqos.runtime.agent import RunningAgent
from netqos.runtime.cluster import decided, follow_kubernetes, is_in_cluster
from netqos.runtime.environment import metrics_listen
from netqos.runtime.feed import Feeds
from netqos.runtime.inputs import HostFacts
from netqos.runtime.parts import Hooks, Parts, make_parts
from netqos.runtime.precedence import Precedence
from netqos.runtime.reconciler import PassReport
from netqos.runtime.remembered import open_source, remember_owner, with_places_searched
from netqos.settings.values import OnExit
from netqos.sources.acceptance import Configuration
from netqos.sources.base import Snapshot
from netqos.sources.localfile import LocalFile

SWITCH_INTERVAL_S = 0.0002
"""The longest that a computing thread keeps the interpreter from the fast loop (CPython's default is 5 ms)."""

YOUNG, MIDDLE, NEVER = 5_000, 10, 1_000_000_000
"""When the garbage collector runs by itself, in objects and in runs: never over everything.

A full collection of 500 pods takes 35 ms, in which no thread ticks, and CPython would make one for every few of them
that are new; at a start with 4,000 rule classes they were a quarter of its processor time. What is not in cycles goes
without it.
"""

COLLECT_S = 600.0
"""How often everything is looked through for garbage all the same."""

SAVE_S = 1.0
"""How soon changed memories are written; overrides are written before they count."""

SAVE_AGAIN_S = 30.0
"""How often unchanged memories are compared with the state folder, which somebody may have removed."""


async def serve(config: Path) -> None:
    """Run the daemon until SIGTERM or SIGINT. `Rejected`: no usable configuration; `Fatal`: another daemon runs."""
    keep_heap_small()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.set_threshold(YOUNG, MIDDLE, NEVER)
    clock = SystemClock()
    source = open_source(config, clock)
    snapshots = source.snapshots()
    try:
        first = await anext(snapshots)
    except Rejected as problem:
        raise with_places_searched(problem, config) from problem
    logs = Logs(first.value.settings.log)
    logs.install()
    try:
        await Supervisor(source=source, snapshots=snapshots, first=first, logs=logs, clock=clock).run()
    finally:
        logs.close()


class _Stop(Exception):
    """Ends the task group on request."""


class Supervisor:
    """One daemon from its first configuration to its end."""

    def __init__(
        self,
        *,
        source: LocalFile,
        snapshots: AsyncIterator[Snapshot[Configuration]],
        first: Snapshot[Configuration],
        logs: Logs,
        clock: Clock,
    ) -> None:
        """Take the claim and the status socket first: a second daemon ends here, before anything is touched."""
        self._in_cluster = is_in_cluster()
        first = self._decided(first)
        settings = first.value.settings
        self._loop = asyncio.get_running_loop()
        self._claim = Claim()
        self._listener = UnixListener(Path(settings.paths.socket))
        self._source = source
        self._snapshots = snapshots
        self._logs = logs
        self._notifier = Notifier()
        self._log = get_logger("netqos.daemon")
        self._stop = asyncio.Event()
        self._looked_for = asyncio.Event()
        self._seen: tuple[Finding, ...] = ()
        self._transitions = Transitions(get_logger("netqos.inputs"))
        self._metrics_finding: Finding | None = None
        self._snapshot = first
        self._is_ready = self._is_frozen = False
        self._feeds = Feeds()
        self._precedence = Precedence(before=go_before_others, among=go_among_others, told=self._precedes)
        self._parts = self._make_parts(first, clock)
        self._host = HostFacts(self._parts.node, settings, clock)
        self._kube = follow_kubernetes(self._parts, self._host, settings)
        self._agent = RunningAgent(
            reconciler=self._parts.reconciler,
            clock=clock,
            feeds=self._feeds,
            sources=self._sources,
            waited_for=self._kube.waited_for if self._kube is not None else dict,
            extra_findings=self._extra_findings,
            save_overrides=self._parts.memory.overrides.save,
            paths=self._parts.watch.views,
        )

    async def run(self) -> None:
        """Run until asked to stop; a task that fails raises its error here."""
        self._handle_signals()
        self._loop.add_reader(self._claim.fileno(), self._claim.answer)
        self._host.look(self._parts.world)
        if self._kube is not None:
            self._kube.start(self._parts.world)
        self._log.info("started", node=self._parts.node, config=str(self._source.path))
        try:
            async with asyncio.TaskGroup() as tasks:
                self._start(tasks)
        except* _Stop:
            pass
        except* Exception:
            self._log.exception("failed")  # the log is closed when the interpreter would tell it
            raise
        finally:
            await self._end()

    def _start(self, tasks: asyncio.TaskGroup) -> None:
        parts, settings = self._parts, self._snapshot.value.settings
        clock = parts.clock
        tasks.create_task(self._wait_for_stop(), name="stop")
        tasks.create_task(parts.reconciler.run(), name="reconciler")
        tasks.create_task(self._host.follow(parts.world, self._looked_for), name="host")
        tasks.create_task(self._follow_configuration(), name="configuration")
        tasks.create_task(self._remember(), name="memory")
        watch, reconciler = parts.watch, parts.reconciler
        tasks.create_task(watch.follow(lambda: reconciler.whole, self._agent.all_counters), name="path")
        tasks.create_task(_collect(), name="garbage")
        tasks.create_task(
            serve_status(self._listener, self._agent, clock, recorder=parts.recorder), name="status"
        )
        listen = metrics_listen(settings.metrics_listen)
        if listen is not None:
            tasks.create_task(
                serve_metrics(listen, self._agent, parts.recorder, clock, report=self._report_metrics),
                name="metrics",
            )
        if self._notifier.watchdog_s is not None:
            tasks.create_task(self._feed_watchdog(self._notifier.watchdog_s / 2), name="watchdog")

    def _make_parts(self, first: Snapshot[Configuration], clock: Clock) -> Parts:
        def wake() -> None:
            self._loop.call_soon_threadsafe(parts.world.wake.set)

        def on_tick(decided: tuple[Ground, ...]) -> None:
            self._precedence.tick()
            self._feeds.stream.publish(decided)

        hooks = Hooks(
            on_tick=on_tick,
            on_rest=self._precedence.rest,
            on_loop=self._feeds.rounds.add,
            on_pass=self._passed,
            wake=wake,
        )
        parts = make_parts(first.value.settings, clock, hooks)
        return parts

    def _precedes(self, problem: str) -> None:
        """Called from a loop's thread, once."""
        event = "loop_among_other_programs" if problem else "loop_before_other_programs"
        self._loop.call_soon_threadsafe(lambda: self._log.info(event, why=problem))

    def _handle_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._stop.set)
        self._loop.add_signal_handler(signal.SIGHUP, self._reload)

    def _reload(self) -> None:
        self._notifier.reloading()
        self._source.wake()
        self._loop.call_later(0.5, self._notifier.ready)

    async def _wait_for_stop(self) -> None:
        await self._stop.wait()
        self._notifier.stopping()
        raise _Stop

    async def _follow_configuration(self) -> None:
        async for snapshot in self._snapshots:
            self._take(snapshot)

    def _take(self, snapshot: Snapshot[Configuration]) -> None:
        """Put a newer configuration in force; what needs a restart was kept out by the source."""
        self._snapshot = snapshot = self._decided(snapshot)
        settings = snapshot.value.settings
        self._logs.apply(settings.log)
        for runner in self._parts.reconciler.all_runners().values():
            runner.loop.settings = settings.loop
        self._parts.world.settings.set(settings)
        self._looked_for.set()

    def _passed(self, report: PassReport) -> None:
        """After every pass of the reconciler."""
        recorder = self._parts.recorder
        recorder.reconciled(took_s=report.took_s, event_to_applied_s=report.event_to_applied_s)
        findings = self._all_findings()
        if findings != self._seen:
            self._seen = findings
            recorder.saw(findings)
            self._transitions.saw(findings, self._parts.clock.monotonic())
        self._transitions.sources(self._sources(), self._parts.clock.monotonic())
        if self._kube is not None and self._parts.reconciler.composition is not None:
            self._kube.report(self._parts.reconciler.composition)
        if not self._is_ready:
            self._is_ready = True
            self._notifier.ready("enforcing")
        if not self._is_frozen and self._parts.world.complete.value:
            # What is there now mostly stays.
            self._is_frozen = True
            gc.collect()
            gc.freeze()
            give_back()

    def _all_findings(self) -> tuple[Finding, ...]:
        composition = self._parts.reconciler.composition
        pods = composition.pods if composition is not None else ()
        return (
            *self._parts.reconciler.findings(),
            *self._extra_findings(),
            *(finding for pod in pods for finding in pod.findings),
        )

    async def _remember(self) -> None:
        """Keep the accepted inputs over a restart, soon after they changed."""
        memory, clock = self._parts.memory, self._parts.clock
        kept: tuple[LastGood | None, Configuration | None] = (None, None)
        kept_limits: Limits | None = None
        compared_s = clock.monotonic()
        while True:
            if clock.monotonic() - compared_s >= SAVE_AGAIN_S:
                kept, kept_limits, compared_s = (None, None), None, clock.monotonic()
                await asyncio.to_thread(
                    memory.overrides.save, tuple(self._parts.reconciler.book.active().values())
                )
                await asyncio.to_thread(self._parts.reconciler.fleet.remember)
            newest = (self._parts.reconciler.last_good, self._snapshot.value)
            proven = self._parts.watch.proven()
            if newest[0] is not kept[0]:
                await asyncio.to_thread(memory.last_good.save, newest[0])
            if proven != kept_limits:
                await asyncio.to_thread(memory.path_limits.save, remembered(proven))
            kept_limits = proven
            if newest[1] is not kept[1]:
                await asyncio.to_thread(memory.configuration.save, newest[1].documents)
                await asyncio.to_thread(remember_owner, self._parts.state, self._source.path)
            kept = newest
            if self._kube is not None:
                await asyncio.to_thread(self._kube.remember)
            await asyncio.sleep(SAVE_S)

    async def _feed_watchdog(self, interval_s: float) -> None:
        """Tell the service manager that the daemon lives, for as long as the loop ticks and passes go on."""
        while True:
            problem = stalled(self._agent.view(), self._parts.clock)
            if problem:
                self._log.error("stalled", problem=problem)
            else:
                self._notifier.watchdog()
            await asyncio.sleep(interval_s)

    def _report_metrics(self, finding: Finding | None) -> None:
        self._metrics_finding = finding

    def _sources(self) -> dict[str, SourceState]:
        kube = self._kube.states() if self._kube is not None else {}
        return {"file": self._source.state, **kube}

    def _extra_findings(self) -> tuple[Finding, ...]:
        metrics = (self._metrics_finding,) if self._metrics_finding is not None else ()
        kube = self._kube.findings() if self._kube is not None else ()
        paths, state = self._parts.watch.findings(), self._parts.state.findings
        return (*self._snapshot.findings, *self._claim.findings, *state, *metrics, *kube, *paths)

    def _decided(self, snapshot: Snapshot[Configuration]) -> Snapshot[Configuration]:
        """The snapshot with `kubernetes.enable: auto` decided."""
        settings = decided(snapshot.value.settings, in_cluster=self._in_cluster)
        return replace(snapshot, value=replace(snapshot.value, settings=settings))

    async def _end(self) -> None:
        reconciler = self._parts.reconciler
        if self._kube is not None:
            self._kube.stop()
        try:
            if self._stop.is_set() and self._snapshot.value.settings.on_exit is OnExit.RESTORE:
                await reconciler.restore()
        except NetqosError as problem:
            self._log.error("restore_failed", problem=str(problem))
        self._parts.memory.last_good.save(reconciler.last_good)
        self._parts.memory.path_limits.save(remembered(self._parts.watch.proven()))
        if self._kube is not None:
            self._kube.remember(at_end=True)
        await reconciler.close()
        self._listener.close()
        self._loop.remove_reader(self._claim.fileno())
        self._claim.close()
        self._log.info("stopped")


async def _collect() -> None:
    while True:
        await asyncio.sleep(COLLECT_S)
        gc.collect()
        await asyncio.to_thread(give_back)
