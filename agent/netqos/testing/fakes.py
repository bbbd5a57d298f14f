"""A backend that enforces in a `FakeKernel`, for tests of everything above it.

It is a whole backend: one tree for each uplink and direction, a class for each level, a leaf for each pod, and it
passes the contract suite (`netqos.testing.contract`). It can be made slow, unavailable and not lending.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import assert_never

from netqos.backend import Capabilities, FastPath, LeafCounters
from netqos.engine.reconcile import Step, diff, safe_order
from netqos.model.desired import DesiredState
from netqos.model.health import Finding, error
from netqos.model.ids import IfName, PodUid
from netqos.model.levels import Direction, Level, PerLevel
from netqos.model.plan import ApplyResult, Failure, ObservedState, Operation, Plan, Verb
from netqos.model.traffic import Glance, Unit, UnitSample
from netqos.testing.fakekernel import FakeClass, FakeKernel, FakeMatch, Key, Refused, Thing
from netqos.testing.fakelayout import layout, level_key

RANKS = {"root": 0, "level": 1, "leaf": 2, "match": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Write:
    """The payload of an operation; of a DELETE `thing` is what was there."""

    key: Key
    thing: Thing


class FakeBackend:
    """A backend in memory. `delay_s` makes every operation slow; `unavailable` is the reason why it cannot work."""

    def __init__(
        self,
        kernel: FakeKernel | None = None,
        *,
        name: str = "fake",
        lends: bool = True,
        delay_s: float = 0.0,
        unavailable: str = "",
        monotonic: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """Several backends over one kernel are one host before and after a restart."""
        self.kernel = kernel or FakeKernel()
        self.delay_s = delay_s
        self.unavailable = unavailable
        self.is_closed = False
        self._name = name
        self._lends = lends
        self._monotonic = monotonic
        self._seen: int | None = None

    @property
    def name(self) -> str:
        """The entry point's name."""
        return self._name

    async def probe(self) -> Capabilities:
        """Both directions, unless told to be unavailable."""
        findings: tuple[Finding, ...] = ()
        if self.unavailable:
            findings = (error("fake-unavailable", f"backend {self._name}", self.unavailable),)
        return Capabilities(
            available=not findings, enforces=frozenset(Direction), lends=self._lends, findings=findings
        )

    async def observe(self) -> ObservedState:
        """The kernel's objects as they are."""
        await self._wait()
        self._seen = self.kernel.version
        return ObservedState(ours=_copy(self.kernel.things), foreign=dict(self.kernel.foreign))

    def plan(self, desired: DesiredState, observed: ObservedState) -> Plan:
        """The keyed difference in an order that the kernel takes."""
        found: Mapping[Key, Thing] = observed.ours  # type: ignore[assignment] # made by observe
        wanted = dict(layout(desired, observed.foreign))
        if not desired.complete:
            found = {key: thing for key, thing in found.items() if key in wanted}
        difference = diff(wanted, found, same=self._is_same)
        steps = [
            *(_step(Verb.CREATE, key, new) for key, new in difference.creates.items()),
            *(_step(Verb.CHANGE, key, change.new, change.old) for key, change in difference.changes.items()),
            *(_step(Verb.DELETE, key, old) for key, old in difference.deletes.items()),
        ]
        operations = safe_order(steps)
        return Plan(
            backend=self._name,
            operations=operations,
            disturbs_loop=any(_write(operation).key[0] in {"root", "level"} for operation in operations),
            findings=tuple(
                error("fake-foreign", device, f"has {what}, which is left alone")
                for device, what in observed.foreign.items()
                if any(uplink.name == device for uplink in desired.uplinks)
            ),
        )

    async def apply(self, plan: Plan) -> ApplyResult:
        """Operation by operation; what depends on a failed one fails in the kernel by itself."""
        failures = []
        for operation in plan.operations:
            await self._wait()
            try:
                self._do(operation)
            except Refused as problem:
                failures.append(Failure(operation=operation, code=problem.code, message=str(problem)))
        self._seen = None if failures else self.kernel.version
        return ApplyResult(applied=len(plan.operations) - len(failures), failures=tuple(failures))

    async def is_untouched(self) -> bool:
        """Whether the kernel is as it was left."""
        return self._seen == self.kernel.version

    def fast_path(self) -> FastPath | None:
        """A grip on the trees with levels, None when there are none."""
        units = tuple(
            Unit(Direction(key[2]), IfName(key[1])) for key in self.kernel.things if key[0] == "root"
        )
        return FakeFastPath(self, units, lends=self._lends, monotonic=self._monotonic) if units else None

    async def counters(self) -> Mapping[PodUid, tuple[LeafCounters, ...]]:
        """None are kept."""
        return {}

    async def close(self) -> None:
        """Enforcement stays."""
        self.is_closed = True

    def adjust(self, key: Key, thing: FakeClass) -> None:
        """A write of the fast path: ours, so it is no drift."""
        was_untouched = self._seen == self.kernel.version
        self.kernel.change(key, thing)
        if was_untouched:
            self._seen = self.kernel.version

    async def _wait(self) -> None:
        if self.delay_s:
            await asyncio.sleep(self.delay_s)

    def _do(self, operation: Operation) -> None:
        write = _write(operation)
        match operation.verb:
            case Verb.CREATE:
                self.kernel.create(write.key, write.thing)
            case Verb.CHANGE:
                self.kernel.change(write.key, write.thing)
            case Verb.DELETE:
                self.kernel.delete(write.key)
            case _:
                assert_never(operation.verb)

    def _is_same(self, wanted: Thing, found: Thing) -> bool:
        """Equal, or a level whose ceiling the fast loop has moved within its bounds."""
        if wanted == found or not isinstance(wanted, FakeClass) or not isinstance(found, FakeClass):
            return wanted == found
        steered = wanted.parent is not None and wanted.parent[0] == "root"
        same_promise = (wanted.parent, wanted.guarantee_bps) == (found.parent, found.guarantee_bps)
        return steered and same_promise and wanted.guarantee_bps <= found.ceiling_bps <= wanted.ceiling_bps


class FakeFastPath:
    """The fast path of a `FakeBackend`. Set `kernel.level_bytes` and `kernel.backlogged` to make traffic."""

    def __init__(
        self, backend: FakeBackend, units: tuple[Unit, ...], *, lends: bool, monotonic: Callable[[], float]
    ) -> None:
        """Valid as long as the roots of `units` are there."""
        self.is_closed = False
        self._backend = backend
        self._units = units
        self._lends = lends
        self._monotonic = monotonic

    @property
    def units(self) -> tuple[Unit, ...]:
        """The roots that were there."""
        return self._units

    @property
    def lends(self) -> bool:
        """As the backend was made."""
        return self._lends

    def pace_s(self, unit: Unit) -> float:
        """A fake is as quick as the loop."""
        del unit
        return 0.0

    def glance(self, units: Collection[Unit]) -> tuple[Glance, ...]:
        """The sum of the levels."""
        return tuple(
            Glance(unit=one.unit, taken_at_s=one.taken_at_s, carried_bytes=sum(one.level_bytes))
            for one in self.sample(units)
        )

    def sample(self, units: Collection[Unit] | None = None) -> tuple[UnitSample, ...]:
        """The counters of now."""
        kernel, now_s = self._backend.kernel, self._monotonic()
        for unit in self._units:
            kernel.require(("root", unit.device, unit.direction.value))
        return tuple(
            UnitSample(
                unit=unit,
                taken_at_s=now_s,
                level_bytes=kernel.level_bytes.get(unit, PerLevel(0, 0, 0)),
                backlogged=unit in kernel.backlogged,
            )
            for unit in (self._units if units is None else units)
        )

    def current_ceilings(self, unit: Unit) -> PerLevel[int] | None:
        """The ceilings of the level classes."""
        return PerLevel(*(self._class(unit, level).ceiling_bps for level in Level))

    def current_room(self, unit: Unit) -> int | None:
        """No total is moved."""
        del unit
        return None

    def adjust(
        self,
        unit: Unit,
        ceilings_bps: PerLevel[int],
        *,
        room_bps: int | None = None,
        guarantees_bps: PerLevel[int] | None = None,
    ) -> int:
        """Change what differs; a lending fake moves L0 alone."""
        del room_bps, guarantees_bps
        writes = 0
        for level in (Level.L0,) if self._lends else tuple(Level):
            old = self._class(unit, level)
            if old.ceiling_bps != ceilings_bps[level]:
                new = FakeClass(
                    parent=old.parent, guarantee_bps=old.guarantee_bps, ceiling_bps=ceilings_bps[level]
                )
                self._backend.adjust(level_key(unit.device, unit.direction, level), new)
                writes += 1
        return writes

    def close(self) -> None:
        """Ceilings stay."""
        self.is_closed = True

    def _class(self, unit: Unit, level: Level) -> FakeClass:
        return self._backend.kernel.require(level_key(unit.device, unit.direction, level))


def _copy(things: Mapping[Key, Thing]) -> dict[Hashable, object]:
    return {key: thing for key, thing in things.items()}  # noqa: C416 - dict() keeps the narrower type


def _step(verb: Verb, key: Key, new: Thing, old: Thing | None = None) -> Step[Operation]:
    widens = isinstance(new, FakeMatch) or (
        isinstance(old, FakeClass) and isinstance(new, FakeClass) and new.ceiling_bps > old.ceiling_bps
    )
    detail = f"{old} -> {new}" if old is not None else str(new)
    operation = Operation(verb=verb, subject=" ".join(key), detail=detail, payload=_Write(key=key, thing=new))
    return Step(verb=verb, rank=RANKS[key[0]], widens=widens, what=operation)


def _write(operation: Operation) -> _Write:
    assert isinstance(operation.payload, _Write)
    return operation.payload
