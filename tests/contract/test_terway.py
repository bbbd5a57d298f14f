"""The terway backend keeps the contract, and what else it promises."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from netqos.backend import FastPath
from netqos.errors import Rejected, Retryable
from netqos.model.desired import NOTHING, DesiredState
from netqos.model.ids import IfName
from netqos.model.levels import Direction, Level, PerLevel
from netqos.model.plan import Verb
from netqos.model.traffic import Unit
from netqos.testing import states
from netqos.testing.contract import BackendContract
from netqos.testing.harness import Harness, converge, expect_settled
from netqos.testing.states import M
from netqos_terway import create
from netqos_terway.backend import TerwayBackend
from netqos_terway.encode import NO_LIMITS_TEXT
from netqos_terway.files import CeilingWriter
from tests.contract.terwayhost import TerwayHost
from tests.unit.netqos_terway import reader

TX = Unit(Direction.TX, IfName("up0"))
CONTENDED = PerLevel(500 * M, 300 * M, 200 * M)


class TestTerwayBackend(BackendContract):
    max_examples = 15

    def make(self) -> Harness:
        return TerwayHost()


@pytest.fixture
def host() -> Iterator[TerwayHost]:
    harness = TerwayHost()
    yield harness
    harness.close()


def read(path: Path) -> bytes:
    return path.read_bytes()


def overwrite(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def remove(path: Path) -> None:
    path.unlink()


async def settled(host: TerwayHost, state: DesiredState) -> TerwayBackend:
    """A backend that has brought the host to the state."""
    backend = host.terway()
    await backend.probe()
    await converge(backend, state)
    return backend


def writer_of(backend: TerwayBackend) -> CeilingWriter:
    path = backend.fast_path()
    assert isinstance(path, CeilingWriter)
    return path


class TestCreate:
    def test_by_the_entry_points_name(self, host: TerwayHost) -> None:
        assert create(host.context()).name == "terway"

    def test_wrong_options(self, host: TerwayHost) -> None:
        with pytest.raises(Rejected, match="foldr: unknown option"):
            create(replace(host.context(), options={"foldr": "/x"}))


class TestProbe:
    async def test_without_net_cls_terway_qos_cannot_work(self, host: TerwayHost) -> None:
        """E1: cgroup v2 has no net_cls."""
        remove(host.root / "cgroup" / "net_cls" / "net_cls.classid")
        capabilities = await host.backend().probe()
        assert not capabilities.available
        assert [finding.code for finding in capabilities.findings] == ["terway-no-net-cls"]

    async def test_it_lends_nothing_and_knows_no_rules(self, host: TerwayHost) -> None:
        capabilities = await host.backend().probe()
        assert capabilities.available
        assert capabilities.enforces == frozenset(Direction)
        assert not capabilities.lends
        assert not capabilities.rules


class TestFiles:
    async def test_the_reader_takes_them(self, host: TerwayHost) -> None:
        await settled(host, states.node())
        assert reader.takes_file(read(host.global_file))
        assert {entry["podName"] for entry in reader.read_pods(read(host.pod_file)).values()} == {
            "web",
            "db",
            "crunch",
        }

    async def test_entries_stay_until_every_source_has_delivered(self, host: TerwayHost) -> None:
        await settled(host, states.node())
        limits = read(host.global_file)
        early = states.node((states.pod("dev/new"),), tx=states.direction(100 * M), complete=False)
        await settled(host, early)
        assert len(reader.read_pods(read(host.pod_file))) == 4
        assert read(host.global_file) == limits

    async def test_limits_that_the_reader_refuses_are_replaced_even_when_incomplete(
        self, host: TerwayHost
    ) -> None:
        overwrite(host.global_file, b"hw_tx_bps_max 1\noffline_l1_tx_bps_max 2\n")
        await settled(host, states.incomplete(states.node()))
        assert reader.takes_file(read(host.global_file))

    async def test_guarantees_without_a_way_leave_the_last_file(self, host: TerwayHost) -> None:
        await settled(host, states.node())
        before = read(host.global_file)
        tight = states.node((), tx=states.direction(100 * M, (0, 60 * M, 50 * M), (100 * M, 70 * M, 60 * M)))
        backend = host.terway()
        plan = await converge(backend, tight)
        assert read(host.global_file) == before
        assert "terway-not-writable" in {finding.code for finding in plan.findings}
        await expect_settled(backend, tight)

    async def test_status_shows_asked_against_written(self, host: TerwayHost) -> None:
        backend = await settled(host, states.node())
        plan = backend.plan(states.node(), await backend.observe())
        lowered = [finding for finding in plan.findings if finding.code == "terway-ceiling-lowered"]
        assert [finding.subject for finding in lowered] == ["backend terway tx", "backend terway rx"]
        assert "asked to be 800Mbit/s and 1Gbit/s, written 800Mbit/s and 200Mbit/s" in lowered[0].message

    async def test_foreign_files_are_reported_as_soon_as_they_come(self, host: TerwayHost) -> None:
        """H2: node.json makes terway-qos ignore the text file, per_cgroup_bps_limit fights with pod.json."""
        backend = await settled(host, states.node())
        overwrite(host.folder / "node.json", b"{}")
        assert not await backend.is_untouched()
        observed = await backend.observe()
        assert set(observed.foreign) == {"node.json"}
        overwrite(host.folder / "per_cgroup_bps_limit", b"")
        plan = backend.plan(states.node(), await backend.observe())
        assert not plan
        assert {"terway-foreign-node-file", "terway-foreign-limits"} <= {one.code for one in plan.findings}
        await converge(backend, NOTHING)
        assert read(host.folder / "node.json") == b"{}"


class TestSwitchingOff:
    async def test_no_limits_come_before_the_file_goes(self) -> None:
        """B10: a missing file would leave the reader with its last limits."""
        host = TerwayHost(settle_s=3600)
        try:
            backend = await settled(host, states.node())
            plan = await converge(backend, NOTHING)
            assert [one.verb for one in plan.operations] == [Verb.DELETE] * 3
            assert set(reader.read_global(read(host.global_file)).values()) == {reader.NO_LIMITS}
            assert reader.read_pods(read(host.pod_file)) == {}
            await expect_settled(backend, NOTHING)
        finally:
            host.close()

    async def test_then_the_files_go(self) -> None:
        host = TerwayHost(settle_s=0.02)
        try:
            backend = await settled(host, states.node())
            await converge(backend, NOTHING)
            assert backend.fast_path() is None
            await backend.close()
            assert host.ours() == []
            assert host.state.documents == {}
        finally:
            host.close()

    async def test_limited_pods_stay_without_a_level(self, host: TerwayHost) -> None:
        await settled(host, states.switched_off(states.node()))
        assert [path.name for path in host.ours()] == ["pod.json"]
        entries = reader.read_pods(read(host.pod_file)).values()
        assert {entry["podName"]: entry["prio"] for entry in entries} == {"web": 0, "crunch": 0}


class TestSteering:
    async def test_a_written_ceiling_is_no_drift_and_survives_a_restart(self, host: TerwayHost) -> None:
        backend = await settled(host, states.node())
        writer = writer_of(backend)
        writer.adjust(TX, CONTENDED)
        writer.turn()
        assert reader.read_global(read(host.global_file))["tx"].l1_max == 37_500_000
        assert await backend.is_untouched()
        await expect_settled(backend, states.node())
        await backend.close()
        heir = host.terway()
        await heir.probe()
        await expect_settled(heir, states.node())
        assert writer_of(heir).current_ceilings(TX) == CONTENDED
        await heir.close()

    async def test_a_restart_steers_without_a_write(self, host: TerwayHost) -> None:
        await settled(host, states.node())
        writes = host.files.writes
        heir = host.terway()
        await heir.probe()
        await expect_settled(heir, states.node())
        assert writer_of(heir).current_ceilings(TX) == PerLevel(1000 * M, 800 * M, 200 * M)
        assert host.files.writes == writes
        await heir.close()

    async def test_a_strangers_edit_is_repaired_even_if_it_looks_like_ours(self, host: TerwayHost) -> None:
        backend = await settled(host, states.node())
        before = read(host.global_file)
        overwrite(host.global_file, before.replace(b"l1_tx_bps_max 100000000", b"l1_tx_bps_max 50000000"))
        writer = writer_of(backend)
        writer.adjust(TX, CONTENDED)
        writer.turn()
        assert b"l1_tx_bps_max 50000000" in read(host.global_file), "the writer leaves it to the reconciler"
        assert not await backend.is_untouched()
        plan = await converge(backend, states.node())
        assert [one.verb for one in plan.operations] == [Verb.CHANGE]
        assert plan.disturbs_loop
        assert read(host.global_file) == before
        await backend.close()

    async def test_a_new_policy_retires_the_writer(self, host: TerwayHost) -> None:
        backend = await settled(host, states.node())
        writer = writer_of(backend)
        other = states.node(tx=states.direction(1000 * M, (200 * M, 500 * M, 300 * M)))
        plan = await converge(backend, other)
        assert plan.disturbs_loop
        with pytest.raises(Retryable):
            writer.adjust(TX, CONTENDED)
        after = read(host.global_file)
        assert not backend._steer(writer, NO_LIMITS_TEXT), "a write that was under way comes too late"
        assert read(host.global_file) == after
        assert writer_of(backend).current_ceilings(TX) == PerLevel(1000 * M, 700 * M, 300 * M)
        await backend.close()

    async def test_raised_ceilings_are_written_by_the_next_writer(self, host: TerwayHost) -> None:
        """The file that is there is as good, so nothing is planned for it; only the memory of the policy changes."""
        low = states.direction(1000 * M, (500 * M, 300 * M, 200 * M), (1000 * M, 400 * M, 300 * M))
        backend = await settled(host, states.node(tx=low))
        plan = await converge(backend, states.node())
        assert [one.subject for one in plan.operations] == ["memory of the policy"]
        writer = writer_of(backend)
        writer.turn()
        assert reader.read_global(read(host.global_file))["tx"].l1_max == 100 * M
        await backend.close()

    async def test_off_means_no_fast_path(self, host: TerwayHost) -> None:
        backend = host.terway()
        assert backend.fast_path() is None
        await converge(backend, states.switched_off(states.node()))
        assert backend.fast_path() is None

    async def test_threads_end(self, host: TerwayHost) -> None:
        backend = await settled(host, states.node())
        paths = [cast("FastPath", backend.fast_path()) for _ in range(5)]
        paths[-1].close()
        await backend.close()
        for thread in threading.enumerate():
            if thread.name == "netqos-terway":
                thread.join(10)
        assert not any(thread.name == "netqos-terway" for thread in threading.enumerate())


async def test_a_pod_that_changes_level_keeps_its_entry(host: TerwayHost) -> None:
    backend = await settled(host, states.node())
    plan = await converge(backend, states.with_pods(states.node(), states.pod("prod/db", Level.L2)))
    assert [one.verb for one in plan.operations] == [Verb.CHANGE]
    assert not plan.disturbs_loop
    entries = reader.read_pods(read(host.pod_file))
    assert entries[states.pod("prod/db").uid]["prio"] == 2
