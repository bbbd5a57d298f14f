"""One host for the contract suite, and what the suite does on it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Hashable, Mapping

from netqos.backend import Backend
from netqos.errors import NetqosError
from netqos.model.desired import DesiredState
from netqos.model.plan import Plan

Scenario = Callable[["Session"], Awaitable[None]]


class Harness(ABC):
    """One host. A fresh one has nothing of the backend's on it."""

    @abstractmethod
    def backend(self) -> Backend:
        """A new backend object on this host; the second one is what a restarted daemon has."""

    @abstractmethod
    def drift(self) -> None:
        """Change or remove one object of the backend's, as somebody else would."""

    @abstractmethod
    def fail_next(self, times: int) -> None:
        """Make the next writes fail, whatever they are; after `times` of them everything works again."""

    def heal(self) -> None:  # noqa: B027 - where failures are counted there is nothing to do
        """End what `fail_next` began; needed where failures are not counted."""

    def foreign(self) -> object:
        """Everything on the host that is not the backend's, in a form that compares."""
        return None

    def comparable(self, ours: Mapping[Hashable, object]) -> object:
        """Observed objects without what may differ between two ways to one desired state."""
        return dict(ours)

    def close(self) -> None:  # noqa: B027 - most hosts are values
        """Throw the host away."""


class Session:
    """The backends of one check on one host; they are closed when the check ends."""

    def __init__(self, harness: Harness) -> None:
        """No backend yet."""
        self.harness = harness
        self._made: list[Backend] = []

    async def start(self) -> Backend:
        """A new backend, probed as the agent does before anything else."""
        backend = self.harness.backend()
        self._made.append(backend)
        await backend.probe()
        return backend

    async def ours(self, backend: Backend) -> object:
        """What is there of the backend's, in a form that compares."""
        return self.harness.comparable((await backend.observe()).ours)

    async def run(self, scenario: Scenario) -> None:
        """Run a scenario."""
        try:
            await scenario(self)
        finally:
            for backend in self._made:
                await backend.close()


async def converge(backend: Backend, desired: DesiredState) -> Plan:
    """One pass: observe, plan, apply; the plan. Every operation must succeed."""
    plan = backend.plan(desired, await backend.observe())
    if plan:
        result = await backend.apply(plan)
        assert result.ok, result.failures
        assert result.applied > 0, "operations that write nothing do not belong into a plan"
    return plan


async def expect_settled(backend: Backend, desired: DesiredState) -> None:
    """Nothing is left to do."""
    plan = backend.plan(desired, await backend.observe())
    assert not plan, f"still to do: {[(one.verb, one.subject, one.detail) for one in plan.operations]}"


async def succeeds(backend: Backend, plan: Plan) -> bool:
    """Whether applying a plan went well; a failure may be told in the result or raised as one of our errors."""
    try:
        return (await backend.apply(plan)).ok
    except NetqosError:
        return False
