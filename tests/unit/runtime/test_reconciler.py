from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pytest

from netqos.backend import Backend, Capabilities
from netqos.model.composed import EMPTY_LAST_GOOD
from netqos.model.health import Finding, warning
from netqos.model.ids import IfName
from netqos.model.inputs import NodeFacts, NodePolicy, PodFacts, UplinkFacts
from netqos.model.levels import Direction, Level, PerDirection
from netqos.model.traffic import Unit
from netqos.observe.view import OverrideRequest
from netqos.runtime.fastloop import FastLoop
from netqos.runtime.fleet import Fleet
from netqos.runtime.overrides import OverrideBook, accept
from netqos.runtime.reconciler import PassReport, Reconciler, World, loop_policies
from netqos.runtime.runner import BackendRunner
from netqos.runtime.store import Cell, Wake
from netqos.settings.values import Settings
from netqos.testing import states
from netqos.testing.clock import FakeClock
from netqos.testing.fakekernel import FakeKernel
from netqos.testing.fakes import FakeBackend, FakeFastPath
from netqos.testing.filehosts import MemoryState

ON = Settings(
    bandwidth=PerDirection(tx=1000 * states.M, rx=600 * states.M),
    policy=NodePolicy(source="file", enabled=True),
    backends=("fake",),
)
NODE = NodeFacts(name="n1", uplinks=(UplinkFacts(name=IfName("up0"), index=2),))
WEB = PodFacts(
    uid=states.pod_uid("web"), namespace="", name="web", addresses=("10.88.0.10",), direct_level=Level.L0
)


@dataclass
class Host:
    """Kernels, state and clock: what survives a restart of the agent."""

    clock: FakeClock = field(default_factory=FakeClock)
    kernels: dict[str, FakeKernel] = field(default_factory=dict)
    state: MemoryState = field(default_factory=MemoryState)
    broken: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)

    def kernel(self, name: str) -> FakeKernel:
        return self.kernels.setdefault(name, FakeKernel())

    def build(self, _settings: Settings, names: Iterable[str]) -> tuple[list[Backend], list[Finding]]:
        wanted = list(names)
        made = [name for name in wanted if name not in self.refused]
        findings = [
            warning("backend-refused", name, "wrong options") for name in wanted if name in self.refused
        ]
        return [
            FakeBackend(
                self.kernel(name), name=name, unavailable="no such kernel" if name in self.broken else ""
            )
            for name in made
        ], findings

    def runner(self, backend: Backend) -> BackendRunner:
        loop = FastLoop(backend.name, ON.loop, on_lost=lambda _reason: None)
        return BackendRunner(backend, loop, lambda _desired, _capabilities: {}, self.clock)

    def start(self, settings: Settings = ON, pods: tuple[PodFacts, ...] = (WEB,)) -> Started:
        wake = Wake()
        world = World(
            wake=wake,
            settings=Cell(settings, wake=wake),
            node=Cell(NODE, wake=wake),
            workloads=Cell(pods, wake=wake),
            pods=Cell((), wake=wake),
            slo=Cell(None, wake=wake),
            bandwidth_annotation=Cell(None, wake=wake),
            complete=Cell(True, wake=wake),
            path_limits=Cell({}, wake=wake),
        )
        started = Started(self, world)
        started.reconciler = Reconciler(
            world=world,
            book=OverrideBook([], self.clock),
            clock=self.clock,
            fleet=Fleet(build=self.build, make_runner=self.runner, state=self.state),
            publisher=self.runner(FakeBackend(self.kernel("files"), name="files")),
            last_good=EMPTY_LAST_GOOD,
            on_pass=started.take,
        )
        return started


class Started:
    """An agent on a host, without its tasks: the test runs the passes."""

    reconciler: Reconciler

    def __init__(self, host: Host, world: World) -> None:
        self.host = host
        self.world = world
        self.reports: list[PassReport] = []
        self.passed = asyncio.Event()
        self.pass_s = 0.0

    async def next_pass(self) -> None:
        await self.passed.wait()
        self.passed.clear()

    def take(self, report: PassReport) -> None:
        self.host.clock.advance(self.pass_s)
        self.reports.append(report)
        self.passed.set()

    async def run(self) -> dict[str, int]:
        """One pass; the writes of each backend."""
        results = await self.reconciler.run_pass()
        return {name: result.applied for name, result in results.items()}


@pytest.fixture
def host() -> Host:
    return Host()


async def test_a_pass_brings_every_backend_to_the_desired_state_and_the_next_does_nothing(host: Host) -> None:
    agent = host.start()
    first = await agent.run()
    assert first["fake"] > 0
    assert first["files"] > 0
    assert await agent.run() == {}


async def test_a_restart_on_an_unchanged_node_writes_nothing(host: Host) -> None:
    await host.start().run()
    writes = {name: kernel.writes for name, kernel in host.kernels.items()}
    assert await host.start().run() == {"fake": 0, "files": 0}
    assert {name: kernel.writes for name, kernel in host.kernels.items()} == writes


async def test_an_override_is_applied_and_ends(host: Host) -> None:
    agent = host.start()
    await agent.run()
    before = dict(host.kernel("fake").things)
    request = OverrideRequest(egress="10M", ttl_s=60.0)
    agent.reconciler.book.put(accept(WEB.uid, request, host.clock))
    assert (await agent.run())["fake"] > 0
    assert host.kernel("fake").things != before
    host.clock.advance(60.0)
    assert (await agent.run())["fake"] > 0
    assert host.kernel("fake").things == before


async def test_a_backend_that_is_switched_off_removes_its_leftovers_also_after_a_restart(host: Host) -> None:
    await host.start().run()
    agent = host.start(replace(ON, backends=("other",)))
    await agent.run()
    assert host.kernel("fake").things == {}
    assert host.kernel("other").things != {}


async def test_what_has_removed_its_leftovers_is_forgotten(host: Host) -> None:
    await host.start().run()
    assert host.state.documents["backends-used"] == ["fake"]
    agent = host.start(replace(ON, backends=("other",)))
    await agent.run()
    assert list(agent.reconciler.fleet.runners) == ["other"]
    assert host.state.documents["backends-used"] == ["other"]


async def test_a_backend_goes_on_until_its_successor_can_work(host: Host) -> None:
    await host.start().run()
    host.broken.add("other")
    agent = host.start(replace(ON, backends=("other",)))
    await agent.run()
    assert host.kernel("fake").things != {}
    assert "backend-stands-in" in {one.code for one in agent.reconciler.findings()}
    host.broken.clear()
    agent = host.start(replace(ON, backends=("other",)))
    await agent.run()
    assert (host.kernel("fake").things, agent.reconciler.fleet.findings) == ({}, ())


async def test_a_backend_that_never_enforced_leaves_no_trace(host: Host) -> None:
    host.broken.add("other")
    await host.start(replace(ON, backends=("other",))).run()
    assert host.state.documents.get("backends-used", []) == []


async def test_a_backend_that_cannot_work_is_asked_ever_more_rarely(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.broken.add("fake")
    agent = host.start()
    await agent.run()
    asked = 0
    probe = FakeBackend.probe

    async def count(backend: FakeBackend) -> Capabilities:
        nonlocal asked
        asked += backend.name == "fake"
        return await probe(backend)

    monkeypatch.setattr(FakeBackend, "probe", count)
    for _ in range(100):
        host.clock.advance(0.4)
        await agent.run()
    assert 4 <= asked <= 16


async def test_a_preview_remembers_nothing(host: Host) -> None:
    await host.start().reconciler.preview()
    assert host.state.documents == {}


async def test_a_backend_that_cannot_be_made_anew_goes_on_as_it_was(host: Host) -> None:
    agent = host.start()
    await agent.run()
    host.refused.add("fake")
    agent.world.settings.set(replace(ON, backend_options={"fake": {"zap": 1}}))
    await agent.run()
    assert [one.code for one in agent.reconciler.fleet.findings] == ["backend-refused"]
    host.kernel("fake").behind_your_back()
    assert await agent.run() == {"fake": 1}


async def test_a_changed_option_makes_the_backend_anew_without_touching_what_it_enforces(host: Host) -> None:
    agent = host.start()
    await agent.run()
    runner = agent.reconciler.fleet.runners["fake"]
    agent.world.settings.set(replace(ON, backend_options={"fake": {"queue": 1}}))
    assert await agent.run() == {"fake": 0}
    assert agent.reconciler.fleet.runners["fake"] is not runner


async def test_network_qos_off_and_no_limit_leaves_nothing(host: Host) -> None:
    agent = host.start()
    await agent.run()
    agent.world.settings.set(replace(ON, policy=NodePolicy(source="file", enabled=False)))
    await agent.run()
    assert host.kernel("fake").things == {}
    assert host.kernel("files").things == {}


async def test_a_failing_backend_is_retried_ever_more_rarely_and_does_not_hold_up_the_others(
    host: Host,
) -> None:
    host.kernel("fake").fail_next(10_000)
    agent = host.start()
    await agent.run()
    assert host.kernel("files").things != {}
    tried = 0
    for _ in range(100):
        host.clock.advance(0.4)
        tried += "fake" in await agent.run()
    assert 2 <= tried <= 8


async def test_new_input_cuts_the_wait_of_a_failing_backend_short(host: Host) -> None:
    host.kernel("fake").fail_next(10_000)
    agent = host.start()
    await agent.run()
    assert "fake" not in await agent.run()
    agent.world.workloads.set(())
    assert "fake" in await agent.run()


async def test_a_preview_tells_the_changes_and_makes_none(host: Host) -> None:
    agent = host.start()
    plans = {plan.backend: len(plan.operations) for plan in await agent.reconciler.preview()}
    assert host.kernels["fake"].things == {}
    assert plans == await agent.run()


async def test_an_audit_finds_what_somebody_removed(host: Host) -> None:
    agent = host.start()
    await agent.run()
    whole = dict(host.kernel("fake").things)
    host.kernel("fake").behind_your_back()
    assert await agent.run() == {"fake": 1}
    assert host.kernel("fake").things == whole


async def test_a_request_waits_for_its_own_pass(host: Host) -> None:
    agent = host.start()
    request = asyncio.create_task(agent.reconciler.request())
    await asyncio.sleep(0)
    await agent.run()
    assert (await request)["fake"].ok


async def test_running_answers_an_event_and_counts_the_latency_from_it(host: Host) -> None:
    agent = host.start()
    running = asyncio.create_task(agent.reconciler.run())
    async with asyncio.timeout(5):
        await agent.passed.wait()
        agent.passed.clear()
        agent.world.workloads.set(())
        await agent.passed.wait()
    running.cancel()
    assert [report.event_to_applied_s for report in agent.reports[:2]] == [None, 0.0]


def test_each_uplink_is_steered_to_its_own_share_of_the_promises() -> None:
    desired = states.node(
        uplinks=(states.uplink("a0", index=2), states.uplink("b0", index=3, tx_bps=500 * states.M))
    )
    a0, b0, all_rx = (
        Unit(Direction.TX, IfName("a0")),
        Unit(Direction.TX, IfName("b0")),
        Unit(Direction.RX, IfName("ifb")),
    )
    path = FakeFastPath(FakeBackend(), (a0, b0, all_rx), lends=True, monotonic=lambda: 0.0)
    policies = loop_policies(desired, path, ON.loop)
    assert {unit: policy.total_bps for unit, policy in policies.items()} == {
        a0: 1000 * states.M,
        b0: 500 * states.M,
        all_rx: 600 * states.M,
    }
    small = policies[b0].bands
    assert [band.guarantee_bps for band in small] == [250 * states.M, 150 * states.M, 100 * states.M]


async def test_events_that_come_while_a_pass_runs_and_soon_after_are_taken_together(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netqos.runtime.reconciler.MOST_REST_S", 0.01)
    agent = host.start()
    agent.pass_s = 1.0
    agent.world.wake.set()
    task = asyncio.create_task(agent.reconciler.run())
    await agent.next_pass()
    for number in range(5):
        agent.world.pods.set((replace(WEB, uid=states.pod_uid(f"p{number}"), name=f"p{number}"),))
        await asyncio.sleep(0)
    assert agent.reconciler.passes == 1
    await agent.next_pass()
    assert agent.reports[1].event_to_applied_s is not None
    assert not agent.world.wake.is_set
    assert agent.reconciler.composition is not None
    assert {pod.name for pod in agent.reconciler.composition.pods} == {"web", "p4"}
    task.cancel()


async def test_a_change_that_comes_alone_waits_for_nothing(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netqos.runtime.reconciler.MOST_REST_S", 3600.0)
    agent = host.start()
    agent.pass_s = 1.0
    task = asyncio.create_task(agent.reconciler.run())
    await agent.next_pass()
    await asyncio.sleep(0)
    agent.world.pods.set((replace(WEB, uid=states.pod_uid("late"), name="late"),))
    await agent.next_pass()
    task.cancel()
