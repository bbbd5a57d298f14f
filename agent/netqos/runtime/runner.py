"""One backend under the reconciler: observe, plan, apply, read back; back off from what others fight over.

A runner isolates its backend: whatever the plugin raises becomes a finding and a paced retry, and the other backends
go on. While an operation touches what the fast loop writes, the loop lets go (`Plan.disturbs_loop`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from netqos.backend import Backend, Capabilities, FastPath, LeafCounters
from netqos.engine.pacing import RepairBackoff
from netqos.engine.unitstate import LoopPolicy
from netqos.errors import NetqosError
from netqos.host.clock import Clock
from netqos.model.desired import NOTHING, DesiredState
from netqos.model.health import Finding, error, warning
from netqos.model.ids import PodUid
from netqos.model.plan import ApplyResult, Failure, ObservedState, Operation, Plan, Verb
from netqos.model.traffic import Unit
from netqos.observe.logs import get_logger
from netqos.observe.view import BackendView
from netqos.runtime.fastloop import FastLoop
from netqos.runtime.outstanding import Outstanding, incident_of, needed_by
from netqos.runtime.steerer import Grip

DEADLINE_S = 20.0
ROUNDS = 3

Policies = Callable[[DesiredState, FastPath], Mapping[Unit, LoopPolicy]]


class BackendRunner:
    """Keeps one backend at the desired state."""

    def __init__(self, backend: Backend, loop: FastLoop, policies: Policies, clock: Clock) -> None:
        """`policies` gives the loop's policy of each unit of a path for a desired state."""
        self.backend = backend
        self.loop = loop
        self._policies = policies
        self._clock = clock
        self._log = get_logger("netqos.runner").bind(backend=backend.name)
        self._backoff = RepairBackoff()
        self._capabilities: Capabilities | None = None
        self._settled: DesiredState | None = None
        self._observed: ObservedState | None = None
        self._looked_s = 0.0
        self._result: ApplyResult | None = None
        self._applied_s: float | None = None
        self._plan_findings: tuple[Finding, ...] = ()
        self._problem: Finding | None = None
        self._look_again = False
        self._wanted: dict[str, Operation] = {}
        self._held_back: dict[str, tuple[tuple[str, str], ...]] = {}
        self._outstanding = Outstanding()
        self._repairs = 0
        self._operations: dict[tuple[str, str], int] = {}

    def needs(self, desired: DesiredState) -> bool:
        """Whether `desired` is not known to be in force, or the loop lost its path."""
        return self._look_again or desired != self._settled

    def look_again(self) -> None:
        """Make the next pass observe, whatever is believed now; may be called from any thread."""
        self._look_again = True

    @property
    def is_rid_of_everything(self) -> bool:
        """Whether nothing of this backend is left in force."""
        return self._settled == NOTHING and self.is_working and not self._outstanding.failures

    async def probe(self) -> bool:
        """Whether the backend can work here; asked until it can, afterwards it is taken to stay so."""
        try:
            async with asyncio.timeout(DEADLINE_S):
                return await self._probe()
        except Exception as problem:  # noqa: BLE001 a plugin's border, as below
            self._fail("probe", problem)
            return False

    @property
    def is_available(self) -> bool:
        """Whether the last probe found that the backend can work here."""
        return self._capabilities is not None and self._capabilities.available

    @property
    def is_working(self) -> bool:
        """Whether the backend can work here and the last pass came to its end; single failures are no matter."""
        return self.is_available and self._problem is None

    @property
    def capabilities(self) -> Capabilities | None:
        """What the backend can do here, None before the first probe."""
        return self._capabilities

    async def is_drifted(self) -> bool:
        """Whether something may have changed behind us since the last reconcile."""
        if self._settled is None:
            return False
        now_s = self._clock.monotonic()
        if self._held_back and self._held_back.keys() != self._backoff.held(now_s).keys():
            return True
        if self._outstanding.is_due(now_s):
            return True
        try:
            async with asyncio.timeout(DEADLINE_S):
                is_untouched = await self.backend.is_untouched()
        except Exception as problem:  # noqa: BLE001 a plugin's border: whatever it raises must not end the agent
            self._fail("is_untouched", problem)
            return True
        if is_untouched:
            self._looked_s = now_s
        return not is_untouched

    async def reconcile(self, desired: DesiredState) -> ApplyResult:
        """Bring the backend to `desired`; the result says what was written and what failed."""
        if self._look_again or desired == self._settled:
            self._observed = None
        if self._look_again or desired != self._settled:
            self._outstanding.notice()
        self._look_again = False
        try:
            async with asyncio.timeout(DEADLINE_S):
                result = await self._converge(desired)
        except Exception as problem:  # noqa: BLE001 a plugin's border, as above
            self._settled = self._observed = None
            return self._fail("reconcile", problem)
        self._problem = None
        self._result = result
        return result

    async def preview(self, desired: DesiredState) -> Plan:
        """What `reconcile` would do now; nothing is changed."""
        async with asyncio.timeout(DEADLINE_S):
            if not await self._probe():
                return Plan(backend=self.backend.name, findings=self._findings())
            observed = await self._observe()
            # What was met now is no drift any more in the backend's eyes: the next pass must not take it for settled.
            self._look_again = True
            return self.backend.plan(desired, observed)

    async def counters(self) -> Mapping[PodUid, tuple[LeafCounters, ...]]:
        """Per-pod counters, empty when the backend cannot give any."""
        try:
            async with asyncio.timeout(DEADLINE_S):
                return await self.backend.counters()
        except Exception as problem:  # noqa: BLE001 a plugin's border, as above
            self._log.warning("counters_failed", problem=str(problem))
            return {}

    def view(self) -> BackendView:
        """How the backend stands."""
        return BackendView(
            name=self.backend.name,
            state=self._state(),
            capabilities=self._capabilities,
            last_result=self._result,
            last_applied_s=self._applied_s,
            findings=self._findings(),
            operations=dict(self._operations),
            repairs=self._repairs,
        )

    async def close(self) -> None:
        """Let go of everything in this process; enforcement stays."""
        self.loop.stop()
        await self.backend.close()

    async def _converge(self, desired: DesiredState) -> ApplyResult:
        if not await self._probe():
            return ApplyResult()
        plan = await self._first_plan(desired)
        if desired == self._settled:
            self._note_repairs(plan)
        applied = 0
        failures: tuple[Failure, ...] = ()
        for _ in range(ROUNDS):
            if not plan:
                break
            result = await self._apply(plan)
            plan = self._next_plan(desired, await self._observe())
            applied += result.applied
            failures = tuple(self._still_wanted(result.failures))
        if plan and not failures:
            failures = (_not_settling(plan),)
        wanted = frozenset(map(incident_of, self._wanted.values()))
        self._outstanding.settle(failures, wanted, self._clock.monotonic())
        self._settle(desired)
        return ApplyResult(applied=applied, failures=self._outstanding.failures)

    async def _first_plan(self, desired: DesiredState) -> Plan:
        """From what is known where that may be trusted or nobody touched it; that nothing is to do is never trusted."""
        known = self._observed if self._settled is not None else None
        plan = None
        if known is not None and self._clock.monotonic() - self._looked_s < known.trusted_s:
            plan = self._next_plan(desired, known)
            if plan:
                return plan
        if known is not None and await self.backend.is_untouched():
            return self._next_plan(desired, known) if plan is None else plan
        return self._next_plan(desired, await self._observe())

    async def _probe(self) -> bool:
        if not self.is_available:
            self._capabilities = await self.backend.probe()
        return self.is_available

    async def _observe(self) -> ObservedState:
        """Read back; kept for the next pass, which need not read it again where nobody touched anything."""
        self._looked_s = self._clock.monotonic()
        self._observed = await self.backend.observe()
        return self._observed

    def _next_plan(self, desired: DesiredState, observed: ObservedState) -> Plan:
        """What is left to do, without what others fight over and what failed a moment ago."""
        plan = self.backend.plan(desired, observed)
        self._plan_findings = plan.findings
        self._wanted = {one.subject: one for one in plan.operations}
        return self._without_waiting(self._without_fights(plan))

    def _still_wanted(self, failures: Iterable[Failure]) -> Iterator[Failure]:
        """The failures of what is still to be done, each with the incident that explains it by now."""
        for one in failures:
            wanted = self._wanted.get(one.operation.subject)
            if wanted is not None:
                explained = replace(one.operation, incident=wanted.incident, awaits=wanted.awaits)
                yield replace(one, operation=explained)

    async def _apply(self, plan: Plan) -> ApplyResult:
        if plan.disturbs_loop:
            self.loop.detach()
        result = await self.backend.apply(plan)
        self._applied_s = self._clock.monotonic()
        self._count(plan, result)
        self._log.info("applied", operations=len(plan.operations), failures=len(result.failures))
        for operation in plan.operations:
            self._log.debug(operation.verb.value, subject=operation.subject, detail=operation.detail)
        for failure in result.failures:
            self._log.error(
                "apply_failed", subject=failure.operation.subject, code=failure.code, why=failure.message
            )
        return result

    def _settle(self, desired: DesiredState) -> None:
        """Let the loop steer what is in force now; without levels there is nothing to steer."""
        self._settled = desired
        held = self.loop.path
        path = self.backend.fast_path() if held is None and desired.enabled else held
        policies = self._policies(desired, path) if path is not None else {}
        if path is None or not policies:
            self.loop.detach()
        elif held is None:
            self.loop.attach(Grip(path=path, policies=policies))
        elif policies != self.loop.policies:
            self.loop.update(policies)
        if path is not None and not policies:
            path.close()

    def _without_fights(self, plan: Plan) -> Plan:
        now_s = self._clock.monotonic()
        incidents = dict.fromkeys(map(incident_of, plan.operations))
        held = [incident for incident in incidents if self._backoff.is_held(incident, now_s)]
        self._held_back = {incident: _concerned_by(plan, incident) for incident in held}
        return _only(plan, lambda one: one.is_vital or self._held_back.keys().isdisjoint(needed_by(one)))

    def _without_waiting(self, plan: Plan) -> Plan:
        now_s = self._clock.monotonic()
        return _only(plan, lambda one: not self._outstanding.waits(one, now_s))

    def _note_repairs(self, plan: Plan) -> None:
        """Count what somebody else made necessary; what failed before is only tried again."""
        now_s = self._clock.monotonic()
        incidents = dict.fromkeys(incident_of(one) for one in plan.operations if one.is_repair)
        repaired = [one for one in incidents if one not in self._outstanding]
        self._repairs += bool(repaired)
        for incident in repaired:
            if incident not in self._held_back:
                self._backoff.repaired(incident, now_s)
                self._log.warning("drift_repaired", subject=incident)

    def _count(self, plan: Plan, result: ApplyResult) -> None:
        failed = {failure.operation.subject for failure in result.failures}
        for operation in plan.operations:
            key = (operation.verb.value, "error" if operation.subject in failed else "ok")
            self._operations[key] = self._operations.get(key, 0) + 1

    def _fail(self, action: str, problem: Exception) -> ApplyResult:
        code = "timeout" if isinstance(problem, TimeoutError) else type(problem).__name__
        text = str(problem) or f"no answer within {DEADLINE_S:g} s"
        if not isinstance(problem, NetqosError):
            self._log.exception("backend_failed", action=action)
        hint = problem.hint if isinstance(problem, NetqosError) else "the daemon tries again; see its log"
        self._problem = error(
            "backend-failed", f"backend {self.backend.name}", f"{action}: {text}", hint=hint
        )
        operation = Operation(verb=Verb.CHANGE, subject=f"backend {self.backend.name}", detail=action)
        self._result = ApplyResult(failures=(Failure(operation=operation, code=code, message=text),))
        return self._result

    def _state(self) -> str:
        if self._capabilities is not None and not self.is_available:
            return "unavailable"
        if self._problem is not None:
            return "failing"
        undone = self._outstanding.failures
        if undone and not all(one.operation.concerns for one in undone):
            return "failing"
        if not all(self._held_back.values()):
            return "backing-off"
        if undone or self._held_back:
            return "degraded"
        return "off" if self._settled in (None, NOTHING) else "ok"

    def _findings(self) -> tuple[Finding, ...]:
        capability = self._capabilities.findings if self._capabilities is not None else ()
        if self._problem is not None:
            return (*capability, *self._plan_findings, self._problem, *self._fights())
        failed = [
            error("not-applied", one.operation.subject, f"{one.code}: {one.message}")
            for one in self._outstanding.failures
        ]
        return (*capability, *self._plan_findings, *failed, *self._fights(), *self._concerned())

    def _concerned(self) -> Iterator[Finding]:
        """For whom nothing is enforced because of what failed or waits; of devices only an error denies that."""
        undone = {
            denied: one.operation.subject
            for one in self._outstanding.failures
            for denied in one.operation.denied
        }
        held = {denied: incident for incident, met in self._held_back.items() for denied in met}
        for (code, concern), subject in {**held, **undone}.items():
            says = warning if concern.startswith("pod ") else error
            yield says(code, concern, f"not enforced: {subject} is not as it should be")

    def _fights(self) -> tuple[Finding, ...]:
        now_s = self._clock.monotonic()
        return tuple(
            error(
                "repair-backoff",
                subject,
                f"somebody keeps changing it; next repair in {until_s - now_s:.0f} s",
                hint="find out who else configures this device, or switch this backend off; what could cut the node "
                "off is put right each time all the same",
            )
            for subject, until_s in self._backoff.held(now_s).items()
        )


def _concerned_by(plan: Plan, incident: str) -> tuple[tuple[str, str], ...]:
    operations = (one for one in plan.operations if incident in needed_by(one))
    return tuple(denied for one in operations for denied in one.denied)


def _only(plan: Plan, is_kept: Callable[[Operation], bool]) -> Plan:
    kept = tuple(filter(is_kept, plan.operations))
    return plan if len(kept) == len(plan.operations) else replace(plan, operations=kept)


def _not_settling(plan: Plan) -> Failure:
    first = plan.operations[0]
    return Failure(
        operation=first, code="not-settling", message=f"still to do after {ROUNDS} rounds: {first.detail}"
    )
