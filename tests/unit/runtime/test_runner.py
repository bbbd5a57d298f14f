from __future__ import annotations

from dataclasses import replace

import pytest

from netqos.model.desired import NOTHING, DesiredState
from netqos.model.ids import CgroupPath
from netqos.model.plan import ApplyResult, Failure, ObservedState, Operation, Plan, Verb
from netqos.runtime.fastloop import FastLoop
from netqos.runtime.runner import BackendRunner
from netqos.settings.values import LoopSettings
from netqos.testing import states
from netqos.testing.clock import FakeClock
from netqos.testing.fakes import FakeBackend

WANTED = states.node()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend()


@pytest.fixture
def runner(backend: FakeBackend, clock: FakeClock) -> BackendRunner:
    loop = FastLoop("fake", LoopSettings(), on_lost=lambda _reason: None)
    return BackendRunner(backend, loop, lambda _desired, _capabilities: {}, clock)


async def test_the_second_reconcile_writes_nothing(runner: BackendRunner, backend: FakeBackend) -> None:
    first = await runner.reconcile(WANTED)
    writes = backend.kernel.writes
    second = await runner.reconcile(WANTED)
    assert (first.ok, first.applied) == (True, writes)
    assert (second.ok, second.applied, backend.kernel.writes) == (True, 0, writes)
    assert not runner.needs(WANTED)
    assert runner.view().state == "ok"


async def test_a_failed_write_is_told_and_made_good_later(
    runner: BackendRunner, backend: FakeBackend, clock: FakeClock
) -> None:
    backend.kernel.fail_next(10_000)
    result = await runner.reconcile(WANTED)
    assert not result.ok
    assert (await runner.is_drifted(), runner.view().state) == (False, "failing")
    assert {one.code for one in runner.view().findings} == {"not-applied"}
    backend.kernel.fail_next(-1)
    backend.kernel._failures.clear()
    clock.advance(0.5)
    assert await runner.is_drifted()
    assert (await runner.reconcile(WANTED)).ok
    assert (runner.view().state, runner.view().findings) == ("ok", ())


@pytest.mark.parametrize(
    "case",
    [
        ((), "failing", ["not-applied"]),
        (("pod default/web",), "degraded", ["not-applied", "not-enforced"]),
        (("rx", "up0"), "degraded", ["not-applied", "not-enforced", "not-enforced"]),
    ],
)
async def test_what_is_refused_for_ever_delays_nothing_else(
    runner: BackendRunner,
    backend: FakeBackend,
    clock: FakeClock,
    case: tuple[tuple[str, ...], str, list[str]],
) -> None:
    concerns, state, codes = case
    apply, tried = backend.apply, []

    async def refusing(plan: Plan) -> ApplyResult:
        *others, last = plan.operations
        if not is_refused(last):
            return await apply(plan)
        tried.append(clock.monotonic())
        done = await apply(replace(plan, operations=tuple(others)))
        failure = Failure(operation=replace(last, concerns=concerns), code="ENOTSUP", message="no")
        return replace(done, failures=(failure,))

    refused = backend.plan(WANTED, await backend.observe()).operations[-1].subject

    def is_refused(operation: Operation) -> bool:
        return operation.subject == refused

    backend.apply = refusing  # type: ignore[method-assign]
    await runner.reconcile(WANTED)
    whole = dict(backend.kernel.things)
    for _ in range(20):
        backend.kernel.behind_your_back()
        clock.advance(100.0)
        assert await runner.is_drifted()
        await runner.reconcile(WANTED)
        assert backend.kernel.things == whole
    assert (runner.view().state, [one.code for one in runner.view().findings]) == (state, codes)
    passes = len(set(tried))
    for _ in range(10):
        clock.advance(1.0)
        assert not await runner.is_drifted()
    assert len(set(tried)) == passes


CHANGED = states.node((*states.PODS, states.pod("ns/new", addresses=("10.88.0.99",), tx_bps=7 * states.M)))


def trusting(backend: FakeBackend) -> list[str]:
    """Let what was observed be trusted for 0.4 s; what is asked of the backend from now on."""
    observe, is_untouched, asked = backend.observe, backend.is_untouched, list[str]()

    async def trusted() -> ObservedState:
        asked.append("observe")
        return replace(await observe(), trusted_s=0.4)

    async def noted() -> bool:
        asked.append("is_untouched")
        return await is_untouched()

    backend.observe, backend.is_untouched = trusted, noted  # type: ignore[method-assign]
    return asked


@pytest.mark.parametrize("case", [(0.3, "observe"), (0.5, "is_untouched")])
async def test_a_change_is_planned_from_what_was_seen_a_moment_ago(
    runner: BackendRunner, backend: FakeBackend, clock: FakeClock, case: tuple[float, str]
) -> None:
    asked = trusting(backend)
    await runner.reconcile(WANTED)
    asked.clear()
    later_s, first = case
    clock.advance(later_s)
    assert (await runner.reconcile(CHANGED)).ok
    assert (asked[0], asked[-1]) == (first, "observe")


async def test_what_others_did_a_moment_ago_is_mended_in_the_same_pass(
    runner: BackendRunner, backend: FakeBackend
) -> None:
    await runner.reconcile(CHANGED)
    wanted = dict(backend.kernel.things)
    trusting(backend)
    await runner.reconcile(WANTED)
    backend.kernel.behind_your_back()
    assert (await runner.reconcile(CHANGED)).ok
    assert backend.kernel.things == wanted


async def test_that_nothing_is_to_do_is_never_taken_on_trust(
    runner: BackendRunner, backend: FakeBackend
) -> None:
    asked = trusting(backend)
    await runner.reconcile(WANTED)
    wanted = dict(backend.kernel.things)
    backend.kernel.behind_your_back()
    asked.clear()
    await runner.reconcile(replace(WANTED, critical_cgroups=((CgroupPath("/a.slice"), 7),)))
    assert (asked, backend.kernel.things) == (["is_untouched", "observe", "observe"], wanted)


async def test_what_follows_the_node_is_no_repair(runner: BackendRunner, backend: FakeBackend) -> None:
    plan = backend.plan

    def following(desired: DesiredState, observed: ObservedState) -> Plan:
        made = plan(desired, observed)
        return replace(made, operations=tuple(replace(one, is_repair=False) for one in made.operations))

    await runner.reconcile(WANTED)
    backend.plan = following  # type: ignore[method-assign]
    for _ in range(5):
        backend.kernel.behind_your_back()
        assert await runner.is_drifted()
        assert (await runner.reconcile(WANTED)).applied
    assert (runner.view().repairs, runner.view().state, runner.view().findings) == (0, "ok", ())


async def test_a_failure_that_is_no_longer_wanted_is_none(
    runner: BackendRunner, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, apply = backend.plan, backend.apply
    gone = Operation(verb=Verb.CREATE, subject="redirect at the egress of veth0")
    plans = iter([(gone,)])

    def with_one_that_goes(desired: DesiredState, observed: ObservedState) -> Plan:
        found = plan(desired, observed)
        return replace(found, operations=(*found.operations, *next(plans, ())))

    async def failing(found: Plan) -> ApplyResult:
        operations = tuple(one for one in found.operations if one is not gone)
        done = await apply(replace(found, operations=operations))
        failed = gone in found.operations
        return replace(
            done, failures=(Failure(operation=gone, code="ENODEV", message="gone"),) if failed else ()
        )

    monkeypatch.setattr(backend, "plan", with_one_that_goes)
    monkeypatch.setattr(backend, "apply", failing)
    assert (await runner.reconcile(WANTED)).ok
    assert (runner.view().state, runner.view().findings) == ("ok", ())


async def test_what_is_removed_behind_us_comes_back(runner: BackendRunner, backend: FakeBackend) -> None:
    await runner.reconcile(WANTED)
    whole = dict(backend.kernel.things)
    backend.kernel.behind_your_back()
    assert await runner.is_drifted()
    await runner.reconcile(WANTED)
    assert backend.kernel.things == whole
    assert (runner.view().repairs, await runner.is_drifted()) == (1, False)


async def test_the_third_repair_within_a_minute_backs_off_and_goes_on_later(
    runner: BackendRunner, backend: FakeBackend, clock: FakeClock
) -> None:
    await runner.reconcile(WANTED)
    whole = dict(backend.kernel.things)
    key = next(reversed(whole))
    for _ in range(3):
        assert backend.kernel.behind_your_back() == key
        assert await runner.is_drifted()
        await runner.reconcile(WANTED)
        clock.advance(5.0)
    assert key not in backend.kernel.things
    assert runner.view().state == "backing-off"
    assert {one.code for one in runner.view().findings} == {"repair-backoff"}
    assert not await runner.is_drifted()
    clock.advance(10.0)
    assert await runner.is_drifted()
    await runner.reconcile(WANTED)
    assert backend.kernel.things == whole
    assert runner.view().state == "ok"


async def test_an_incident_is_repaired_as_a_whole_or_not_at_all(
    runner: BackendRunner, backend: FakeBackend, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await runner.reconcile(WANTED)
    plan = backend.plan

    def as_one_incident(desired: DesiredState, observed: ObservedState) -> Plan:
        found = plan(desired, observed)
        return replace(found, operations=tuple(replace(one, incident="root") for one in found.operations))

    monkeypatch.setattr(backend, "plan", as_one_incident)
    whole = len(backend.kernel.things)
    for lost in (1, 2, 3):
        for _ in range(lost):
            backend.kernel.behind_your_back()
        await runner.reconcile(WANTED)
        clock.advance(5.0)
    assert len(backend.kernel.things) == whole - 3
    assert [one.subject for one in runner.view().findings] == ["root"]


async def test_what_awaits_an_incident_that_is_held_back_is_not_tried_before_and_denied_to_whom_it_concerns(
    runner: BackendRunner, backend: FakeBackend, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await runner.reconcile(WANTED)
    plan, whole = backend.plan, dict(backend.kernel.things)
    for _ in range(3):
        backend.kernel.behind_your_back()
        await runner.reconcile(WANTED)
        clock.advance(5.0)
    (held,) = [one.subject for one in runner.view().findings]

    def awaiting(desired: DesiredState, observed: ObservedState) -> Plan:
        found = plan(desired, observed)
        waiting = [replace(one, awaits=(held,), concerns=("pod ns/a",)) for one in found.operations]
        kept = [
            one if one.subject == held else other
            for one, other in zip(found.operations, waiting, strict=True)
        ]
        return replace(found, operations=tuple(kept))

    monkeypatch.setattr(backend, "plan", awaiting)
    backend.kernel.behind_your_back()
    await runner.reconcile(WANTED)
    assert len(backend.kernel.things) == len(whole) - 2
    assert ("not-enforced", "pod ns/a") in {(one.code, one.subject) for one in runner.view().findings}
    clock.advance(60.0)
    await runner.reconcile(WANTED)
    assert backend.kernel.things == whole


async def test_nothing_removes_everything(runner: BackendRunner, backend: FakeBackend) -> None:
    await runner.reconcile(WANTED)
    await runner.reconcile(NOTHING)
    assert backend.kernel.things == {}
    assert runner.view().state == "off"


async def test_an_unavailable_backend_is_asked_again(runner: BackendRunner, backend: FakeBackend) -> None:
    backend.unavailable = "no such kernel"
    assert (await runner.reconcile(WANTED)).applied == 0
    assert (runner.view().state, runner.needs(WANTED)) == ("unavailable", True)
    backend.unavailable = ""
    assert (await runner.reconcile(WANTED)).applied > 0
    assert runner.view().state == "ok"


async def test_an_exception_of_the_plugin_is_a_finding(
    runner: BackendRunner, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken() -> ObservedState:
        raise KeyError("boom")

    monkeypatch.setattr(backend, "observe", broken)
    result = await runner.reconcile(WANTED)
    assert [failure.code for failure in result.failures] == ["KeyError"]
    assert [one.code for one in runner.view().findings] == ["backend-failed"]
    assert runner.view().state == "failing"


async def test_a_preview_changes_nothing(runner: BackendRunner, backend: FakeBackend) -> None:
    plan = await runner.preview(WANTED)
    assert len(plan.operations) > 0
    assert backend.kernel.things == {}


async def test_what_may_cut_the_node_off_is_put_right_each_time(
    runner: BackendRunner, backend: FakeBackend, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await runner.reconcile(WANTED)
    plan = backend.plan

    def as_vital(desired: DesiredState, observed: ObservedState) -> Plan:
        found = plan(desired, observed)
        return replace(found, operations=tuple(replace(one, is_vital=True) for one in found.operations))

    monkeypatch.setattr(backend, "plan", as_vital)
    whole = dict(backend.kernel.things)
    for _ in range(6):
        backend.kernel.behind_your_back()
        assert await runner.is_drifted()
        await runner.reconcile(WANTED)
        assert backend.kernel.things == whole
        clock.advance(1.0)
    assert runner.view().repairs == 6
    assert {one.code for one in runner.view().findings} == {"repair-backoff"}
