"""The contract that every backend keeps, as a test suite that any plugin author can run.

Subclass `BackendContract`, give it a `Harness` (one host, or a model of one, on which the backend works) and let
pytest collect it, or call `check_all`. Each check makes a harness of its own and runs in an event loop of its own.

    class TestMine(BackendContract):
        def make(self) -> Harness:
            return MyHarness()
"""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING

from netqos.backend import Capabilities
from netqos.model.desired import NOTHING, DesiredState
from netqos.model.levels import Level, PerLevel
from netqos.model.plan import ApplyResult, Plan, Verb
from netqos.testing import states
from netqos.testing.harness import Harness, Scenario, Session, converge, expect_settled, succeeds

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["BackendContract", "Harness"]


class BackendContract:
    """The checks. Attributes may be overridden: other states where the backend's host has another uplink."""

    first: DesiredState = states.node()
    second: DesiredState = states.with_pods(
        states.without(
            states.node(
                tx=states.direction(800 * states.M, (200 * states.M, 350 * states.M, 250 * states.M)),
                uplinks=(states.uplink(tx_bps=800 * states.M),),
            ),
            "prod/web",
        ),
        states.pod("prod/db", Level.L2, addresses=("10.88.0.11",), rx_bps=30 * states.M),
        states.pod("dev/shell", Level.L1, addresses=("10.88.0.14",)),
    )
    max_examples = 25

    def make(self) -> Harness:
        """A harness with a fresh host."""
        raise NotImplementedError

    def desired_states(self) -> SearchStrategy[DesiredState]:
        """The states of the property check."""
        from netqos.testing.strategies import desired_states  # noqa: PLC0415 - needs hypothesis, which is optional

        return desired_states()

    # ------------------------------------------------------------ the checks

    def test_probing_changes_nothing(self) -> None:
        """`probe` tells what the host can do and leaves it as it was."""

        async def scenario(session: Session) -> None:
            backend, foreign = session.harness.backend(), session.harness.foreign()
            capabilities = await backend.probe()
            assert isinstance(capabilities, Capabilities)
            assert capabilities.available, f"the harness's host must be able: {capabilities.findings}"
            assert (await backend.observe()).ours == {}
            assert session.harness.foreign() == foreign

        self.check(scenario)

    def test_a_fresh_host_needs_only_additions(self) -> None:
        """Operations say what they are for, and none removes or changes what was not there."""

        async def scenario(session: Session) -> None:
            backend = await session.start()
            plan = backend.plan(self.first, await backend.observe())
            assert plan.backend == backend.name
            assert plan, "a node with three pods and limits needs something"
            assert {operation.verb for operation in plan.operations} == {Verb.CREATE}
            assert all(operation.subject and operation.detail for operation in plan.operations)

        self.check(scenario)

    def test_what_is_applied_needs_no_second_plan(self) -> None:
        """Neither by the same backend nor by one that starts later, and nothing is written for it."""

        async def scenario(session: Session) -> None:
            backend = await session.start()
            await converge(backend, self.first)
            await expect_settled(backend, self.first)
            result = await backend.apply(Plan(backend=backend.name))
            assert result == ApplyResult()
            await expect_settled(await session.start(), self.first)

        self.check(scenario)

    def test_planning_is_pure(self) -> None:
        """Equal inputs give equal plans, whoever plans and whatever was planned before; nothing is touched."""

        async def scenario(session: Session) -> None:
            backend = await session.start()
            await converge(backend, self.first)
            observed = await backend.observe()
            before = copy.deepcopy(observed)
            plans = [
                backend.plan(self.second, observed),
                backend.plan(NOTHING, observed),
                backend.plan(self.second, observed),
                (await session.start()).plan(self.second, observed),
            ]
            assert plans[0] == plans[2] == plans[3]
            assert observed == before
            assert (await backend.observe()) == before

        self.check(scenario)

    def test_reverting_restores(self) -> None:
        """There and back again is as if nothing had been."""

        async def scenario(session: Session) -> None:
            backend = await session.start()
            await converge(backend, self.first)
            before = await session.ours(backend)
            await converge(backend, self.second)
            assert await session.ours(backend) != before
            await converge(backend, self.first)
            assert await session.ours(backend) == before

        self.check(scenario)

    def test_nothing_removes_all_of_ours_and_nothing_else(self) -> None:
        """Also when the daemon was restarted in between, and when only limits are left."""

        async def scenario(session: Session) -> None:
            foreign = session.harness.foreign()
            for state in (self.first, states.switched_off(self.first)):
                await converge(await session.start(), state)
                backend = await session.start()
                await converge(backend, NOTHING)
                assert (await backend.observe()).ours == {}
                assert (await (await session.start()).observe()).ours == {}
                assert session.harness.foreign() == foreign

        self.check(scenario)

    def test_an_incomplete_state_only_adds(self) -> None:
        """Until every source has delivered nothing goes, and what is new comes all the same."""

        async def scenario(session: Session) -> None:
            await converge(await session.start(), self.first)
            backend = await session.start()
            before = (await backend.observe()).ours
            fewer = states.incomplete(states.without(self.first, "prod/db", "batch/crunch"))
            unknown = states.incomplete(NOTHING)
            more = states.with_pods(fewer, states.pod("dev/new", Level.L1, addresses=("10.88.0.15",)))
            for state in (fewer, unknown, more):
                plan = backend.plan(state, await backend.observe())
                assert not [one for one in plan.operations if one.verb is Verb.DELETE], plan.operations
                await converge(backend, state)
                await expect_settled(backend, state)
                assert (await backend.observe()).ours.keys() >= before.keys()
            whole = states.with_pods(self.first, states.pod("dev/new", Level.L1, addresses=("10.88.0.15",)))
            after = await session.ours(backend)
            await converge(backend, whole)
            assert await session.ours(backend) == after

        self.check(scenario)

    def test_drift_is_noticed_and_repaired(self) -> None:
        """The cheap check sees it, and the next plan puts it back."""

        async def scenario(session: Session) -> None:
            backend = await session.start()
            await converge(backend, self.first)
            before = await session.ours(backend)
            assert await backend.is_untouched()
            session.harness.drift()
            assert not await backend.is_untouched()
            plan = await converge(backend, self.first)
            assert plan, "the drift was not seen by observe and plan"
            assert await backend.is_untouched()
            assert await session.ours(backend) == before

        self.check(scenario)

    def test_a_failure_is_told_and_survived(self) -> None:
        """Whatever fails, `apply` says so, and once the host is well again one more pass is enough."""

        async def scenario(session: Session) -> None:
            for times, state in ((1, self.first), (3, self.second), (2, NOTHING)):
                backend = await session.start()
                plan = backend.plan(state, await backend.observe())
                session.harness.fail_next(times)
                assert not await succeeds(backend, plan), "a failed write was not told"
                session.harness.heal()
                await converge(backend, state)
                await expect_settled(backend, state)

        self.check(scenario)

    def test_the_fast_path_moves_ceilings_and_is_no_drift(self) -> None:
        """What the loop writes within the promises is neither drift nor a reason for a plan."""

        async def scenario(session: Session) -> None:
            backend = await session.start()
            await converge(backend, self.first)
            path = backend.fast_path()
            if path is None:
                return
            assert all(path.pace_s(unit) >= 0 for unit in path.units)
            samples = path.sample()
            assert len({sample.unit for sample in samples}) == len(samples)
            for sample in samples:
                assert [one.unit for one in path.sample((sample.unit,))] == [sample.unit]
                assert {one.unit for one in path.glance((sample.unit,))} <= {sample.unit}
            for sample in samples:
                levels = self.first.directions[sample.unit.direction].levels
                assert levels is not None
                path.adjust(sample.unit, levels.map(lambda band: band.ceiling_bps))
                lowered = PerLevel(levels.l0.guarantee_bps, levels.l1.ceiling_bps, levels.l2.ceiling_bps)
                path.adjust(sample.unit, lowered)
                assert path.adjust(sample.unit, lowered) == 0, "no change means no write"
            await expect_settled(backend, self.first)
            assert await backend.is_untouched()
            path.close()

        self.check(scenario)

    def test_any_states_in_any_order_converge(self) -> None:
        """Whatever comes after whatever: one pass is enough, and nothing is left at the end."""
        import hypothesis  # noqa: PLC0415 - optional for who runs the other checks only
        from hypothesis import strategies as st  # noqa: PLC0415

        async def scenario(session: Session, sequence: list[DesiredState]) -> None:
            for state in (*sequence, NOTHING):
                backend = await session.start()
                await converge(backend, state)
                await expect_settled(backend, state)
            assert (await (await session.start()).observe()).ours == {}

        @hypothesis.settings(max_examples=self.max_examples, deadline=None)
        @hypothesis.given(st.lists(self.desired_states(), min_size=1, max_size=3))
        def property_holds(sequence: list[DesiredState]) -> None:
            self.check(lambda session: scenario(session, sequence))

        property_holds()

    # ------------------------------------------------------------ running

    def check(self, scenario: Scenario) -> None:
        """Run one scenario on a fresh host."""
        harness = self.make()
        try:
            asyncio.run(Session(harness).run(scenario))
        finally:
            harness.close()

    def check_all(self) -> tuple[str, ...]:
        """Every check, without a test runner; the names of those that passed. A failing one raises."""
        names = tuple(name for name in dir(self) if name.startswith("test_"))
        for name in names:
            getattr(self, name)()
        return names
