"""The `node` and `pods` files keep the contract of a backend."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path, PurePath

import pytest

from netqos.backend import BackendContext
from netqos.host.files import AtomicFiles
from netqos.model.desired import NOTHING
from netqos.model.levels import Level
from netqos.model.plan import Verb
from netqos.runtime.published import NAME, PublishedFiles
from netqos.testing import states
from netqos.testing.contract import BackendContract
from netqos.testing.filehosts import FolderHarness
from netqos.testing.harness import Harness, converge


def create(context: BackendContext) -> PublishedFiles:
    return PublishedFiles(context, PurePath(str(context.options["folder"])))


def make_host() -> FolderHarness:
    return FolderHarness(NAME, create, AtomicFiles(), lambda folder: {"folder": str(folder)})


class TestPublishedFiles(BackendContract):
    max_examples = 15

    def make(self) -> Harness:
        return make_host()


@pytest.fixture
def host() -> Iterator[FolderHarness]:
    harness = make_host()
    yield harness
    harness.close()


def read(path: Path) -> dict[str, dict[str, object]]:
    document = json.loads(path.read_bytes())
    assert isinstance(document, dict)
    return document


def entry_names(host: FolderHarness) -> set[object]:
    return {entry["pod"] for entry in read(host.folder / "pods").values()}


def spoil(path: Path, content: bytes) -> None:
    path.write_bytes(content)


async def test_a_pod_with_a_limit_in_one_direction_is_listed_with_its_level(host: FolderHarness) -> None:
    web = states.pod("prod/web", Level.L2, rx_bps=10 * states.M)
    await converge(create(host.context()), states.node((web, states.pod("prod/db"))))
    entries = read(host.folder / "pods")
    assert {entry["pod"]: entry["priority"] for entry in entries.values()} == {"prod/web": 2, "prod/db": 1}
    assert entries[web.uid]["qos-config"] != entries[states.pod("prod/db").uid]["qos-config"]


async def test_entries_stay_until_every_source_has_delivered(host: FolderHarness) -> None:
    await converge(create(host.context()), states.node())
    early = states.node((states.pod("prod/web", Level.L1), states.pod("dev/new")), complete=False)
    await converge(create(host.context()), early)
    assert entry_names(host) == {"prod/web", "prod/db", "batch/crunch", "dev/new"}
    assert read(host.folder / "pods")[states.pod("prod/web").uid]["priority"] == 1
    await converge(create(host.context()), states.node((states.pod("dev/new"),)))
    assert entry_names(host) == {"dev/new"}


async def test_garbage_is_not_kept_even_by_an_incomplete_state(host: FolderHarness) -> None:
    for name in ("node", "pods"):
        spoil(host.folder / name, b"\x00garbage")
    await converge(create(host.context()), states.incomplete(states.node()))
    assert "hw_tx_bps_max" in read(host.folder / "node")
    assert entry_names(host) == {"prod/web", "prod/db", "batch/crunch"}


async def test_switching_off_and_on_again(host: FolderHarness) -> None:
    files = create(host.context())
    await converge(files, states.node())
    plan = await converge(files, states.switched_off(states.node()))
    assert [(one.verb, PurePath(one.subject).name) for one in plan.operations] == [
        (Verb.CHANGE, "pods"),
        (Verb.DELETE, "node"),
    ]
    assert {entry["priority"] for entry in read(host.folder / "pods").values()} == {0}
    assert entry_names(host) == {"prod/web", "batch/crunch"}
    await converge(files, NOTHING)
    assert host.ours() == []


def test_a_reader_never_sees_what_is_no_json(host: FolderHarness) -> None:
    """H3: a reader in a tight loop, a writer that alternates a few bytes and about a megabyte."""
    many = tuple(states.pod(f"load/{number:04}", tx_bps=states.M) for number in range(4000))
    few, path, done = states.node(()), host.folder / "pods", threading.Event()

    async def write() -> None:
        files = create(host.context())
        for number in range(12):
            await converge(files, (states.node(many), few)[number % 2])

    def run() -> None:
        asyncio.run(write())
        done.set()

    writer = threading.Thread(target=run)
    writer.start()
    sizes = set()
    while not done.is_set():
        if path.exists():
            sizes.add(len(read(path)))
    writer.join()
    assert sizes <= {0, 4000}
    assert path.stat().st_size < 10


def test_1000_cycles_of_on_and_off_leave_no_descriptor(host: FolderHarness) -> None:
    async def cycles(files: PublishedFiles, times: int) -> int:
        for number in range(times):
            await converge(files, states.node() if number % 2 == 0 else NOTHING)
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - counting

    async def run() -> tuple[int, int]:
        files = create(host.context())
        return await cycles(files, 20), await cycles(files, 1000)

    before, after = asyncio.run(run())
    assert after == before
