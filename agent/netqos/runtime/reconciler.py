"""The reconciler: what should be, what is, the smallest safe change; again whenever something may have changed.

One task owns everything that is decided. Sources write cells and wake it; a pass composes the desired state, brings
every backend to it in order, publishes the files, and keeps what must survive a restart. Events only say "look
again": a pass looks at all inputs, so that any order of events ends in the same state.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from netqos.backend import FastPath
from netqos.engine.compose import compose
from netqos.engine.pacing import Pacing
from netqos.engine.pathlimits import Limits, limited
from netqos.engine.podmemo import PodMemo
from netqos.engine.units import loop_policy
from netqos.engine.unitstate import LoopPolicy
from netqos.host.clock import Clock
from netqos.model.composed import Composition, LastGood
from netqos.model.desired import NOTHING, DesiredState
from netqos.model.health import Finding, warning
from netqos.model.inputs import NodeFacts, NodePolicy, PodFacts
from netqos.model.plan import ApplyResult, Plan
from netqos.model.traffic import Unit
from netqos.runtime.fleet import Fleet
from netqos.runtime.overrides import OverrideBook
from netqos.runtime.runner import BackendRunner
from netqos.runtime.store import Cell, Wake
from netqos.settings.values import LoopSettings, Settings

AUDIT_S = 0.6
"""How often backends are asked whether somebody touched what is ours; repairs are promised within a second."""


MOST_REST_S = 0.05
"""The longest that an event waits for others that may come with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The inputs, each a cell written by its own source.

    `pods`, `slo` and `bandwidth_annotation` are of nodes with Kubernetes; `complete` False: one of these has not come.
    `path_limits` are in the place of totals that the path was shown not to carry.
    """

    wake: Wake
    settings: Cell[Settings]
    node: Cell[NodeFacts]
    workloads: Cell[tuple[PodFacts, ...]]
    pods: Cell[tuple[PodFacts, ...]]
    slo: Cell[NodePolicy | None]
    bandwidth_annotation: Cell[str | None]
    complete: Cell[bool]
    path_limits: Cell[Limits]


@dataclass(frozen=True, slots=True, kw_only=True)
class PassReport:
    """What one pass did. `took_s` runs from the first event that it answers, None for an audit."""

    results: Mapping[str, ApplyResult]
    event_to_applied_s: float | None
    took_s: float


class Reconciler:
    """Owns the composition and the runners. `whole` is what would be desired if every path carried its total."""

    def __init__(
        self,
        *,
        world: World,
        book: OverrideBook,
        clock: Clock,
        fleet: Fleet,
        publisher: BackendRunner,
        last_good: LastGood,
        on_pass: Callable[[PassReport], None],
    ) -> None:
        """`fleet` has the enforcement backends; `publisher` writes the contract's two files, after them."""
        self.world = world
        self.book = book
        self.fleet = fleet
        self.publisher = publisher
        self.last_good = last_good
        self.composition: Composition | None = None
        self.whole: DesiredState | None = None
        self.passes = 0
        self._clock = clock
        self._on_pass = on_pass
        self._memo = PodMemo()
        self._pacing: dict[str, Pacing] = {}
        self._targets: dict[str, DesiredState] = {}
        self._composed_from: tuple[object, ...] = ()
        self._waiting: list[asyncio.Future[Mapping[str, ApplyResult]]] = []
        self._event_s: float | None = None

    async def run(self) -> None:
        """Reconcile for ever. Where events come faster than passes, each pass is followed by a rest as long as itself.

        So many of them are taken together: who computes without a pause delays the fast loop, and is the one that is
        set aside on a busy machine. A change that comes alone waits for nothing.
        """
        while True:
            started_s = self._clock.monotonic()
            await self.run_pass()
            if self.world.wake.is_set:
                self._event_s = self._clock.monotonic()
                await asyncio.sleep(min(self._event_s - started_s, MOST_REST_S))
            if await self.world.wake.wait(self._rest_s()) and self._event_s is None:
                self._event_s = self._clock.monotonic()

    async def request(self) -> Mapping[str, ApplyResult]:
        """Ask for a full pass and wait for its results."""
        done: asyncio.Future[Mapping[str, ApplyResult]] = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        self.world.wake.set()
        return await done

    async def run_pass(self) -> Mapping[str, ApplyResult]:
        """One pass over all inputs and backends."""
        started_s = self._clock.monotonic()
        waiting, self._waiting = self._waiting, []
        composition = self._compose()
        desired = composition.desired
        wanted = self.wanted_backends()
        await self.fleet.ensure(self.world.settings.value, wanted)
        results: dict[str, ApplyResult] = {}
        for name, runner in list(self.fleet.runners.items()):
            target = self._target(name, desired, wanted)
            await self._bring(runner, target, results, forced=bool(waiting))
            if target is NOTHING and runner.is_rid_of_everything:
                await self.fleet.forget(name)
        await self._bring(self.publisher, desired, results, forced=bool(waiting))
        self.passes += 1
        self._report(results, started_s)
        for future in waiting:
            if not future.done():
                future.set_result(results)
        return results

    async def preview(self) -> tuple[Plan, ...]:
        """What a pass would change now, backend by backend."""
        desired, wanted = self._compose().desired, self.wanted_backends()
        await self.fleet.ensure(self.world.settings.value, wanted)
        for runner in self.fleet.runners.values():
            await runner.probe()
        plans = [
            await runner.preview(self._target(name, desired, wanted))
            for name, runner in self.fleet.runners.items()
        ]
        return (*plans, await self.publisher.preview(desired))

    async def restore(self) -> None:
        """Put the node back: ask every backend, and last the files, for nothing at all."""
        for runner in self.all_runners().values():
            await runner.reconcile(NOTHING)

    async def close(self) -> None:
        """Let go of every backend; what is enforced stays."""
        await self.fleet.close()
        await self.publisher.close()

    def all_runners(self) -> dict[str, BackendRunner]:
        """The enforcement backends in their order, and the publisher last."""
        return {**self.fleet.runners, self.publisher.backend.name: self.publisher}

    def wanted_backends(self) -> tuple[str, ...]:
        """The backends in use, in order: the NodeSLO's choice, else the file's."""
        slo = self.world.slo.value
        return slo.backends if slo is not None and slo.backends else self.world.settings.value.backends

    def findings(self) -> tuple[Finding, ...]:
        """Node-wide findings of the inputs and their composition."""
        composed = self.composition.findings if self.composition is not None else ()
        return (*self.world.node.value.findings, *self.fleet.findings, *composed, *self._stand_ins())

    def _target(self, name: str, desired: DesiredState, wanted: tuple[str, ...]) -> DesiredState:
        """What a backend is asked for: nothing once it is out of use, but not before one in use can take over."""
        if name in wanted or (desired is not NOTHING and self._lacks_successor(wanted)):
            return desired
        return NOTHING

    def _lacks_successor(self, wanted: tuple[str, ...]) -> bool:
        """Whether none of the backends in use can work here (as far as they were probed: they come first)."""
        found = [runner for name, runner in self.fleet.runners.items() if name in wanted]
        return bool(wanted) and not any(runner.is_available for runner in found)

    def _stand_ins(self) -> tuple[Finding, ...]:
        wanted = self.wanted_backends()
        if not self._lacks_successor(wanted):
            return ()
        return tuple(
            warning(
                "backend-stands-in",
                f"backend {name}",
                f"out of use, but none of the backends in use ({', '.join(wanted)}) can work here: it goes on",
                hint="`netqosctl doctor` tells what those lack; or name this one in `backends` again",
            )
            for name in self.fleet.runners
            if name not in wanted
        )

    def _compose(self) -> Composition:
        """The composition of the inputs of now; composed anew only when an input differs."""
        world, overrides = self.world, self.book.active()
        cells = (
            *(world.settings, world.slo, world.workloads, world.pods),
            *(world.node, world.bandwidth_annotation, world.complete, world.path_limits),
        )
        inputs = (overrides, *(cell.value for cell in cells))
        if self.composition is not None and _are_same(inputs, self._composed_from):
            return self.composition
        composed = compose(
            settings=world.settings.value,
            slo=world.slo.value,
            pods=(*world.workloads.value, *world.pods.value),
            overrides=overrides,
            node=replace(world.node.value, bandwidth_annotation=world.bandwidth_annotation.value),
            last_good=self.last_good,
            complete=world.complete.value,
            memo=self._memo,
        )
        self.whole, self.last_good = composed.desired, composed.last_good
        self.composition = limited(composed, world.path_limits.value, world.settings.value)
        self._composed_from = inputs
        return self.composition

    async def _bring(
        self, runner: BackendRunner, desired: DesiredState, results: dict[str, ApplyResult], *, forced: bool
    ) -> None:
        name = runner.backend.name
        pacing = self._pacing.setdefault(name, Pacing())
        if forced or desired != self._targets.get(name):
            pacing.notice()
        self._targets[name] = desired
        is_due = forced or runner.needs(desired) or await runner.is_drifted()
        if is_due and pacing.may_run(self._clock.monotonic()):
            pacing.started()
            if name in self.fleet.runners and desired is not NOTHING and await runner.probe():
                self.fleet.mark_used(name)
            results[name] = await runner.reconcile(desired)
            pacing.ran(self._clock.monotonic(), ok=runner.is_working)

    def _rest_s(self) -> float:
        """Seconds until something has to be looked at without an event."""
        ends_s = self.book.next_end_s()
        return AUDIT_S if ends_s is None else min(AUDIT_S, ends_s)

    def _report(self, results: Mapping[str, ApplyResult], started_s: float) -> None:
        now_s, event_s = self._clock.monotonic(), self._event_s
        self._event_s = None
        applied = any(result.applied for result in results.values())
        self._on_pass(
            PassReport(
                results=results,
                event_to_applied_s=now_s - event_s if applied and event_s is not None else None,
                took_s=now_s - started_s,
            )
        )


def _are_same(inputs: tuple[object, ...], earlier: tuple[object, ...]) -> bool:
    """Whether nothing was set anew: cells keep their value's identity, and the overrides (the first) are compared."""
    return inputs[0] == earlier[0] and all(map(operator.is_, inputs[1:], earlier[1:]))


def loop_policies(desired: DesiredState, path: FastPath, loop: LoopSettings) -> Mapping[Unit, LoopPolicy]:
    """The loop's policy for each unit of a path that is shaped by level."""
    policies = {unit: loop_policy(desired, unit, loop, lends=path.lends) for unit in path.units}
    return {unit: policy for unit, policy in policies.items() if policy is not None}
