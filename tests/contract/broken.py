"""Backends that break the contract, one fault each: the suite must see every one of them."""

from __future__ import annotations

from dataclasses import replace

from netqos.backend import Backend, FastPath
from netqos.model.desired import DesiredState
from netqos.model.levels import PerLevel
from netqos.model.plan import ApplyResult, ObservedState, Operation, Plan, Verb
from netqos.model.traffic import Unit
from netqos.testing.contract import Harness
from netqos.testing.fakekernel import FakeKernel
from netqos.testing.fakes import FakeBackend, FakeFastPath


class BrokenHarness(Harness):
    def __init__(self, fault: str) -> None:
        self.kernel = FakeKernel()
        self.fault = fault

    def backend(self) -> Backend:
        return BrokenBackend(self.kernel, self.fault)

    def drift(self) -> None:
        self.kernel.behind_your_back()

    def fail_next(self, times: int) -> None:
        self.kernel.fail_next(times)


class BrokenBackend(FakeBackend):
    def __init__(self, kernel: FakeKernel, fault: str) -> None:
        super().__init__(kernel)
        self.fault = fault
        self.plans = 0

    def plan(self, desired: DesiredState, observed: ObservedState) -> Plan:
        self.plans += 1
        if self.fault == "deletes early":
            desired = replace(desired, complete=True)
        plan = super().plan(desired, observed)
        if self.fault == "leaves things":
            kept = [one for one in plan.operations if not one.subject.startswith("root") or desired.uplinks]
            return replace(plan, operations=tuple(kept))
        if self.fault == "remembers plans":
            return replace(plan, operations=plan.operations[: len(plan.operations) - self.plans])
        if self.fault == "plans again" and observed.ours:
            again = Operation(verb=Verb.CHANGE, subject="the same as ever", detail="again")
            return replace(plan, operations=(again, *plan.operations))
        return plan

    async def apply(self, plan: Plan) -> ApplyResult:
        result = await super().apply(plan)
        return ApplyResult(applied=len(plan.operations)) if self.fault == "swallows failures" else result

    async def is_untouched(self) -> bool:
        return True if self.fault == "never notices" else await super().is_untouched()

    def fast_path(self) -> FastPath | None:
        path = super().fast_path()
        if self.fault == "writes always" and isinstance(path, FakeFastPath):
            return BusyPath(self, path)
        return path


class BusyPath(FakeFastPath):
    def __init__(self, backend: BrokenBackend, path: FakeFastPath) -> None:
        units = tuple(sample.unit for sample in path.sample())
        super().__init__(backend, units, lends=True, monotonic=lambda: 0.0)

    def adjust(
        self,
        unit: Unit,
        ceilings_bps: PerLevel[int],
        *,
        room_bps: int | None = None,
        guarantees_bps: PerLevel[int] | None = None,
    ) -> int:
        return super().adjust(unit, ceilings_bps, room_bps=room_bps) or 1
