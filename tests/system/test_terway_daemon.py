"""netqosd with the terway backend alone, in a node of network namespaces: files, steering, off and on again."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netqos.model.levels import Level
from netqos.testing import daemon as daemons
from netqos.testing.daemon import Daemon
from netqos.testing.netns import Rig
from tests.unit.netqos_terway import reader
from tests.waiting import eventually

pytestmark = pytest.mark.kernel("veth", "nft")

M = 1_000_000


@pytest.fixture
def rig() -> Iterator[Rig]:
    with Rig(pods=("web", "batch")) as rig:
        yield rig


def document(rig: Rig, *, enable: bool = True) -> dict[str, Any]:
    """Small totals, and a hierarchy of cgroups that only says that net_cls is there."""
    net_cls = rig.folder / "cgroup" / "net_cls"
    net_cls.mkdir(parents=True, exist_ok=True)
    (net_cls / "net_cls.classid").write_text("0\n")
    return daemons.document(
        rig,
        {"web": Level.L0, "batch": Level.L2},
        policy={"enable": enable},
        backends=["terway"],
        backendOptions={"terway": {"folder": str(rig.folder / "qos")}},
        paths={"cgroup": str(rig.folder / "cgroup")},
    )


@pytest.fixture
def daemon(rig: Rig) -> Iterator[Daemon]:
    with daemons.running(rig, document(rig)) as daemon:
        yield daemon


def limits(rig: Rig) -> dict[str, reader.GlobalConfig]:
    content = (rig.folder / "qos" / "global_bps_config").read_bytes()
    assert reader.takes_file(content)
    return reader.read_global(content)


def files(rig: Rig) -> dict[str, tuple[int, int]]:
    found: list[Path] = [*(rig.folder / "qos").iterdir()]
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in found}


def flood(address: str, seconds: float, bps: int) -> None:
    """UDP at about this rate; nobody listens."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        started_s, sent = time.monotonic(), 0
        while (elapsed_s := time.monotonic() - started_s) < seconds:
            if sent * 8 > bps * elapsed_s:
                time.sleep(0.001)
                continue
            try:
                sent += sender.sendto(b"x" * 1400, (address, 9))
            except OSError:
                time.sleep(0.001)


def test_the_files_are_those_that_terway_qos_takes(rig: Rig, daemon: Daemon) -> None:
    assert limits(rig)["tx"] == reader.GlobalConfig(
        hw=25 * M,
        l0_min=10 * M,
        l0_max=25 * M,
        l1_min=7_500_000,
        l1_max=17_500_000,
        l2_min=7_500_000,
        l2_max=7_500_000,
    )
    pods = reader.read_pods((rig.folder / "qos" / "pod.json").read_bytes())
    assert {entry["podName"]: entry["prio"] for entry in pods.values()} == {"web": 0, "batch": 2}
    status = daemon.client.get("/v1/status")
    assert status["backends"]["terway"]["state"] == "ok"
    codes = {finding["code"] for finding in status["backends"]["terway"]["findings"]}
    assert {"terway-ceiling-lowered", "terway-pod-without-cgroup"} <= codes


def test_ceilings_move_to_the_level_that_uses_them(rig: Rig, daemon: Daemon) -> None:
    call = rig.pod("batch").fork(flood, rig.wire.address, 4.0, 100 * M)
    assert eventually(lambda: limits(rig)["tx"].l2_max > 15 * M)
    assert limits(rig)["tx"].l1_max == 7_500_000
    call.result()
    status = daemon.client.get("/v1/status")
    assert status["backends"]["terway"]["state"] == "ok"


def test_a_second_start_writes_nothing(rig: Rig, daemon: Daemon) -> None:
    before, ruleset = files(rig), rig.node.run(["nft", "list", "ruleset"]).stdout
    daemon.stop()
    daemon.start()
    assert files(rig) == before
    assert rig.node.run(["nft", "list", "ruleset"]).stdout == ruleset


def test_switching_off_tells_the_reader_first(rig: Rig, daemon: Daemon) -> None:
    daemon.configure(document(rig, enable=False))
    assert eventually(lambda: set(limits(rig).values()) == {reader.NO_LIMITS})
    assert eventually(lambda: files(rig) == {}, timeout_s=15)
    assert "netqos_meter" not in rig.node.run(["nft", "list", "ruleset"]).stdout
    daemon.configure(document(rig))
    assert eventually(lambda: set(files(rig)) == {"global_bps_config", "pod.json"})


def test_what_somebody_changes_comes_back(rig: Rig, daemon: Daemon) -> None:
    before = (rig.folder / "qos" / "global_bps_config").read_bytes()
    (rig.folder / "qos" / "global_bps_config").write_bytes(b"")
    (rig.folder / "qos" / "pod.json").unlink()
    assert eventually(lambda: set(files(rig)) == {"global_bps_config", "pod.json"})
    assert eventually(lambda: (rig.folder / "qos" / "global_bps_config").read_bytes() == before)
    rig.node.run(["nft", "delete", "table", "inet", "netqos_meter"])
    assert eventually(lambda: "netqos_meter" in rig.node.run(["nft", "list", "ruleset"]).stdout)


def test_restoring_at_the_end_lets_the_reader_go_too(rig: Rig) -> None:
    daemon = Daemon(rig, {**document(rig), "onExit": "restore"})
    daemon.start()
    assert set(files(rig)) == {"global_bps_config", "pod.json"}
    assert daemon.stop(timeout_s=20) == 0
    assert files(rig) == {}
    assert "netqos_meter" not in rig.node.run(["nft", "list", "ruleset"]).stdout
    assert "Traceback" not in daemon.log_end(1000)


def test_without_net_cls_it_says_why_it_cannot_work(rig: Rig) -> None:
    config = document(rig)
    (rig.folder / "cgroup" / "net_cls" / "net_cls.classid").unlink()
    daemon = Daemon(rig, config)
    status = daemon.start()
    try:
        assert status["backends"]["terway"]["state"] == "unavailable"
        findings = json.dumps(status["backends"]["terway"]["findings"])
        assert "terway-no-net-cls" in findings
        assert not (rig.folder / "qos").exists()
    finally:
        daemon.stop()
