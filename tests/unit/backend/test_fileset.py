"""Files as a backend's objects: plans, incomplete states, parting words, foreign things in the way."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath

import pytest

from netqos.backend import BackendContext
from netqos.backend.fileset import FileSet
from netqos.backend.filespec import FileChange, FileSpec
from netqos.host.files import AtomicFiles
from netqos.model.desired import NOTHING, DesiredState
from netqos.model.health import Finding, warning
from netqos.model.levels import Level
from netqos.model.plan import ObservedState, Operation, Plan, Verb
from netqos.testing import states
from netqos.testing.contract import BackendContract
from netqos.testing.filehosts import FolderHarness
from netqos.testing.harness import Harness, converge, expect_settled

GOODBYE = b"{}"


class Lists(FileSet):
    """One file of all pods, one of the limited ones; the first says goodbye, the second is refused for dev/odd."""

    def __init__(self, context: BackendContext, *, settle_s: float = 0.0) -> None:
        folder = PurePath(str(context.options["folder"]))
        self.all, self.limited = folder / "all", folder / "limited"
        self.steers = frozenset({self.limited})
        super().__init__(context, (self.all, self.limited), settle_s=settle_s)

    def encode(self, desired: DesiredState) -> Mapping[PurePath, bytes]:
        pods = {pod.name: pod.level.name for pod in desired.pods}
        limits = {pod.name: pod.limits_bps.tx for pod in desired.pods if pod.is_limited}
        return {path: encode(some) for path, some in ((self.all, pods), (self.limited, limits)) if some}

    def refused(self, desired: DesiredState) -> frozenset[PurePath]:
        odd = any(pod.name == "dev/odd" for pod in desired.pods)
        return frozenset({self.limited}) if odd else frozenset()

    def findings(self, desired: DesiredState, observed: ObservedState) -> tuple[Finding, ...]:
        return tuple(warning("odd", str(path), "is refused") for path in sorted(self.refused(desired)))

    def merge(self, path: PurePath, wanted: bytes, found: bytes) -> bytes:
        return encode({**json.loads(found), **json.loads(wanted)}) if path == self.all else found

    def parting(self, path: PurePath) -> bytes | None:
        return GOODBYE if path == self.all else None


def encode(document: object) -> bytes:
    return json.dumps(document, sort_keys=True).encode()


class ListsHarness(FolderHarness):
    def __init__(self) -> None:
        super().__init__("lists", Lists, AtomicFiles(), lambda folder: {"folder": str(folder)})


class TestListsKeepTheContract(BackendContract):
    max_examples = 10

    def make(self) -> Harness:
        return ListsHarness()


def read(path: PurePath) -> bytes:
    return Path(path).read_bytes()


def overwrite(path: PurePath, content: bytes) -> None:
    Path(path).write_bytes(content)


def change_mode(path: PurePath, mode: int) -> None:
    Path(path).chmod(mode)


def link(path: PurePath, target: Path) -> None:
    Path(path).symlink_to(target)


@pytest.fixture
def host() -> Iterator[FolderHarness]:
    harness = ListsHarness()
    yield harness
    harness.close()


@pytest.fixture
def lists(host: FolderHarness) -> Lists:
    return Lists(host.context())


def short(plan: Plan) -> list[tuple[Verb, str, str]]:
    return [(one.verb, PurePath(one.subject).name, one.detail) for one in plan.operations]


async def test_details_are_for_people(lists: Lists) -> None:
    state = states.node()
    plan = await converge(lists, state)
    assert short(plan) == [
        (Verb.CREATE, "all", "3 entries, 57 bytes"),
        (Verb.CREATE, "limited", "2 entries, 48 bytes"),
    ]
    changed = states.with_pods(states.without(state, "prod/web"), states.pod("prod/db", Level.L2))
    assert short(lists.plan(changed, await lists.observe())) == [
        (Verb.CHANGE, "all", "remove prod/web; change prod/db L1 -> L2"),
        (Verb.CHANGE, "limited", "remove prod/web"),
    ]
    assert short(lists.plan(NOTHING, await lists.observe())) == [
        (Verb.DELETE, "all", "say that nothing is limited, then remove"),
        (Verb.DELETE, "limited", "remove"),
    ]


async def test_only_a_steered_file_disturbs_the_loop(lists: Lists) -> None:
    await converge(lists, states.node())
    observed = await lists.observe()
    new = states.with_pods(states.node(), states.pod("dev/new"))
    assert not lists.plan(new, observed).disturbs_loop
    assert lists.plan(NOTHING, observed).disturbs_loop


async def test_a_mode_that_readers_cannot_pass_is_drift(lists: Lists, host: FolderHarness) -> None:
    state = states.node()
    await converge(lists, state)
    change_mode(lists.all, 0o600)
    assert not await lists.is_untouched()
    plan = await converge(lists, state)
    assert short(plan) == [(Verb.CHANGE, "all", "mode 0600 -> 0644")]
    await expect_settled(lists, state)


async def test_an_incomplete_state_merges_what_can_be_merged(lists: Lists) -> None:
    await converge(lists, states.node())
    fewer = states.node(
        (states.pod("prod/web", Level.L2), states.pod("dev/new", tx_bps=states.M)), complete=False
    )
    await converge(lists, fewer)
    assert json.loads(read(lists.all)) == {
        "batch/crunch": "L2",
        "dev/new": "L1",
        "prod/db": "L1",
        "prod/web": "L2",
    }
    assert json.loads(read(lists.limited)) == {
        "batch/crunch": 50 * states.M,
        "prod/web": 80 * states.M,
    }


async def test_a_refused_file_stays_as_it_is(lists: Lists) -> None:
    await converge(lists, states.node())
    before = read(lists.limited)
    odd = states.node((states.pod("dev/odd", tx_bps=states.M),))
    plan = await converge(lists, odd)
    assert [operation.subject for operation in plan.operations] == [f"file {lists.all}"]
    assert [finding.code for finding in plan.findings] == ["odd"]
    assert read(lists.limited) == before


async def test_something_in_the_way_of_one_file_stops_no_other(lists: Lists, host: FolderHarness) -> None:
    link(lists.all, host.folder / "theirs")
    observed = await lists.observe()
    assert observed.foreign == {
        str(lists.all): "is a symbolic link that netqos did not make, so it is left alone"
    }
    plan = lists.plan(states.node(), observed)
    result = await lists.apply(plan)
    assert result.applied == 1
    assert [(one.code, one.operation.subject) for one in result.failures] == [
        ("rejected", f"file {lists.all}")
    ]
    assert "remove it" in result.failures[0].message
    assert not await lists.is_untouched()
    assert host.foreign() == b"not ours"


async def test_a_failure_carries_the_name_of_the_error(lists: Lists, host: FolderHarness) -> None:
    host.fail_next(1)
    result = await lists.apply(lists.plan(states.node(), await lists.observe()))
    assert [(one.code, one.message) for one in result.failures] == [
        ("ENOSPC", "cannot write it (free space)")
    ]


class TestParting:
    async def test_the_reader_gets_time_to_see_the_parting_content(self, host: FolderHarness) -> None:
        lists = Lists(host.context(), settle_s=3600)
        await converge(lists, states.node())
        await converge(lists, NOTHING)
        assert read(lists.all) == GOODBYE
        assert [path.name for path in host.ours()] == ["all"]
        assert (await lists.observe()).ours == {}
        assert await lists.is_untouched()
        await expect_settled(lists, NOTHING)

    async def test_then_the_file_goes_by_itself(self, host: FolderHarness) -> None:
        lists = Lists(host.context(), settle_s=0.01)
        await converge(lists, states.node())
        await converge(lists, NOTHING)
        await lists.close()
        assert host.ours() == []
        assert await lists.is_untouched()

    async def test_a_change_of_mind_keeps_it(self, host: FolderHarness) -> None:
        lists = Lists(host.context(), settle_s=0.01)
        await converge(lists, states.node())
        await converge(lists, NOTHING)
        plan = await converge(lists, states.node())
        assert [verb for verb, name, _ in short(plan) if name == "all"] == [Verb.CREATE]
        await asyncio.sleep(0.03)
        await lists.close()
        assert len(host.ours()) == 2
        await expect_settled(lists, states.node())

    async def test_a_stranger_who_writes_meanwhile_is_seen(self, host: FolderHarness) -> None:
        lists = Lists(host.context(), settle_s=3600)
        await converge(lists, states.node())
        await converge(lists, NOTHING)
        overwrite(lists.all, b"other")
        assert not await lists.is_untouched()
        assert set((await lists.observe()).ours) == {lists.all}

    async def test_after_a_crash_the_next_one_says_it_again(self, host: FolderHarness) -> None:
        await converge(Lists(host.context(), settle_s=3600), states.node())
        crashed = Lists(host.context(), settle_s=3600)
        await converge(crashed, NOTHING)
        heir = Lists(host.context(), settle_s=0.01)
        plan = await converge(heir, NOTHING)
        assert [(verb, name) for verb, name, _ in short(plan)] == [(Verb.DELETE, "all")]
        await heir.close()
        assert host.ours() == []

    async def test_a_failing_removal_is_tried_again(self, host: FolderHarness) -> None:
        lists = Lists(host.context(), settle_s=0.01)
        await converge(lists, states.node())
        await converge(lists, NOTHING)
        host.fail_next(1)
        await lists.close()
        assert not await lists.is_untouched()
        await converge(lists, NOTHING)
        await lists.close()
        assert host.ours() == []


def test_an_operation_carries_what_it_writes(lists: Lists) -> None:
    (operation,) = lists.plan(states.node((states.pod("a/b"),)), ObservedState()).operations
    content = b'{"a/b": "L1"}'
    assert operation == Operation(
        verb=Verb.CREATE,
        subject=f"file {lists.all}",
        detail="1 entry, 13 bytes",
        payload=FileChange(path=lists.all, content=content),
    )
    found = ObservedState(ours={lists.all: FileSpec(content=content)})
    assert not lists.plan(states.node((states.pod("a/b"),)), found)


def test_no_descriptor_is_left_over_many_passes(host: FolderHarness) -> None:
    async def cycle(lists: Lists) -> None:
        for state in (states.node(), NOTHING):
            await converge(lists, state)

    async def many() -> tuple[int, int]:
        lists = Lists(host.context())
        await cycle(lists)
        before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - counting
        for _ in range(100):
            await cycle(lists)
        return before, len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    before, after = asyncio.run(many())
    assert after == before
