"""The daemon as its users run it: a process in a node of network namespaces, seen through kernel, files and socket."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netqos.errors import Rejected
from netqos.model.levels import Level
from netqos.testing import daemon as daemons
from netqos.testing.daemon import Daemon, DaemonFailed
from netqos.testing.netns import Rig
from netqos.testing.traffic import Datagrams, UdpFlood
from tests.waiting import eventually

pytestmark = pytest.mark.kernel("htb", "nft")

M = 1_000_000


@pytest.fixture
def rig() -> Iterator[Rig]:
    with Rig(pods=("web", "batch")) as rig:
        yield rig


def document(rig: Rig, **more: Any) -> dict[str, Any]:
    return daemons.document(rig, {"web": Level.L0, "batch": Level.L2}, **more)


@pytest.fixture
def daemon(rig: Rig) -> Iterator[Daemon]:
    with daemons.running(rig, document(rig)) as daemon:
        yield daemon


IFB = "netqos-ifb"


def classes(rig: Rig, *devices: str) -> str:
    """Every class with its parameters, without the queues' handles, and without L0's, whose ceiling the loop owns."""
    found = [
        line
        for device in devices or (rig.uplink, IFB)
        for line in rig.node.run(["tc", "class", "show", "dev", device], check=False).stdout.splitlines()
        if not line.startswith(("class htb 4e51:10 ", "class htb 4e52:10 "))
    ]
    return "\n".join(sorted(re.sub(r"leaf \S+ ", "", line) for line in found))


def table(rig: Rig) -> str:
    return str(rig.node.run(["nft", "list", "table", "inet", "netqos"]).stdout)


def files(daemon: Daemon) -> dict[str, tuple[int, int]]:
    """Inode and time of every file that the daemon writes."""
    found = [*daemon.paths.net.iterdir(), *daemon.paths.state.rglob("*.json")]
    return {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in found}


def netqosd(rig: Rig, *arguments: str) -> subprocess.CompletedProcess[str]:
    process = rig.node.popen(
        [*Daemon(rig, document(rig)).command, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        own_sysfs=True,
    )
    stdout, stderr = process.communicate(timeout=30)
    return subprocess.CompletedProcess(arguments, process.returncode, stdout.decode(), stderr.decode())


def test_the_node_is_shaped_and_the_files_are_written(rig: Rig, daemon: Daemon) -> None:
    status = daemon.client.get("/v1/status")
    tx, rx = status["directions"]["tx"], status["directions"]["rx"]
    assert (status["ready"], status["enabled"], status["node"]) == (True, True, "rig")
    assert (tx["total_bps"], tx["total_source"], tx["devices"]) == (200 * M, "file", ["up0"])
    assert [tx["levels"][name]["guarantee_bps"] for name in ("L0", "L1", "L2")] == [80 * M, 60 * M, 60 * M]
    assert [tx["levels"][name]["pods"] for name in ("L0", "L1", "L2")] == [1, 0, 1]
    assert tx["levels"]["L0"]["enforced"] is True
    assert (rx["total_bps"], rx["room_bps"], rx["enforced_by"]) == (150 * M, 150 * M, ["tc"])
    assert [rx["levels"][name]["guarantee_bps"] for name in ("L0", "L1", "L2")] == [60 * M, 45 * M, 45 * M]
    assert rx["levels"]["L0"]["enforced"] is True
    node = json.loads((daemon.paths.net / "node").read_text())
    assert (node["hw_tx_bps_max"], node["hw_rx_bps_max"]) == (25 * M, 150 * M // 8)
    pods = json.loads((daemon.paths.net / "pods").read_text())
    assert pods["workload:web"]["priority"] == 0
    assert "rate 200Mbit ceil 200Mbit" in classes(rig, rig.uplink)
    assert "rate 150Mbit ceil 150Mbit" in classes(rig, IFB)


def test_what_the_node_itself_receives_is_kept_free_and_a_restart_leaves_it_so(
    rig: Rig, daemon: Daemon
) -> None:
    def room_bps() -> int:
        return int(daemon.client.get("/v1/status")["directions"]["rx"]["room_bps"])

    assert "class htb 4e52:1 root rate 150Mbit ceil 150Mbit" in classes(rig, IFB)
    flood = UdpFlood(rig.wire, (rig.node.address, 9), Datagrams(rate_bps=60 * M, segments=1))
    flood.start()
    assert eventually(lambda: 70 * M < room_bps() < 110 * M)
    daemon.stop()
    before = rig.node.run(["tc", "class", "show", "dev", IFB]).stdout
    daemon.start()
    assert rig.node.run(["tc", "class", "show", "dev", IFB]).stdout == before
    assert eventually(lambda: 70 * M < room_bps() < 110 * M)
    flood.stop()
    assert daemon.client.get("/v1/status")["directions"]["tx"]["room_bps"] == 200 * M


def test_a_second_start_writes_nothing(rig: Rig, daemon: Daemon) -> None:
    before = (classes(rig), table(rig), files(daemon))
    daemon.stop()
    assert (classes(rig), table(rig)) == before[:2]
    generation = rig.node.run(["nft", "list", "table", "inet", "netqos"]).stdout
    status = daemon.start()
    assert status["backends"]["tc"]["state"] == "ok"
    assert (classes(rig), table(rig), files(daemon)) == before
    assert rig.node.run(["nft", "list", "table", "inet", "netqos"]).stdout == generation


def test_a_killed_daemon_leaves_everything_and_the_next_takes_it_over(rig: Rig, daemon: Daemon) -> None:
    before = (classes(rig), table(rig))
    daemon.kill()
    assert (classes(rig), table(rig)) == before
    daemon.start()
    assert (classes(rig), table(rig)) == before


def test_a_second_daemon_refuses_to_start_and_disturbs_nothing(rig: Rig, daemon: Daemon) -> None:
    before = (classes(rig), table(rig), files(daemon))
    refused = netqosd(rig)
    assert refused.returncode == 1
    assert f"another netqosd shapes this network namespace (process {daemon.pid})" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert (classes(rig), table(rig), files(daemon)) == before
    assert daemon.client.get("/v1/status")["ready"] is True


def test_a_second_daemon_with_paths_of_its_own_refuses_to_start_too(
    rig: Rig, daemon: Daemon, tmp_path: Path
) -> None:
    before = (classes(rig), table(rig), files(daemon))
    other = Daemon(rig, document(rig), folder=tmp_path)
    with pytest.raises(DaemonFailed, match="another netqosd shapes this network namespace"):
        other.start()
    assert (classes(rig), table(rig), files(daemon)) == before


def test_a_limit_is_in_force_when_the_answer_comes_and_survives_a_restart(rig: Rig, daemon: Daemon) -> None:
    limits = {"egress": "7M", "ingress": "9M", "ttl": "10m", "reason": "test"}
    daemon.client.put("/v1/overrides/workload:web", limits)

    def in_force() -> tuple[bool, ...]:
        return tuple(
            f"ceil {limit}bit" in classes(rig, device)
            for device in (rig.uplink, IFB)
            for limit in ("7M", "9M")
        )

    assert in_force() == (True, False, False, True)
    daemon.kill()
    daemon.start()
    assert in_force() == (True, False, False, True)
    assert [one["uid"] for one in daemon.client.get("/v1/overrides")["overrides"]] == ["workload:web"]
    daemon.client.request("DELETE", "/v1/overrides/workload:web")
    assert in_force() == (False,) * 4


def test_a_limit_ends_by_itself(rig: Rig, daemon: Daemon) -> None:
    daemon.client.put("/v1/overrides/workload:web", {"egress": "7M", "ttl": "1s"})
    assert "ceil 7Mbit" in classes(rig)
    assert eventually(lambda: "ceil 7Mbit" not in classes(rig), 3)


@pytest.mark.parametrize(
    "body",
    [
        {"egress": "10Mbps", "ttl": "10m"},
        {"egress": "-1", "ttl": "10m"},
        {"ttl": "10m"},
        {"egress": "10M"},
        {"egress": "10M", "ttl": "25h"},
        {"egress": "10M", "ttl": "10m", "color": "red"},
        {"level": "l7", "ttl": "10m"},
    ],
)
def test_a_wrong_limit_changes_nothing(rig: Rig, daemon: Daemon, body: dict[str, str]) -> None:
    before = classes(rig)
    with pytest.raises(Rejected, match="status 4"):
        daemon.client.put("/v1/overrides/workload:web", body)
    assert (classes(rig), daemon.client.get("/v1/overrides")["overrides"]) == (before, [])


def test_an_edited_file_takes_effect_and_a_broken_one_changes_nothing(rig: Rig, daemon: Daemon) -> None:
    daemon.configure(document(rig, node={"bandwidth": {"tx": "100M", "rx": "80M"}}))
    assert eventually(lambda: "rate 100Mbit ceil 100Mbit" in classes(rig, rig.uplink))
    assert "rate 80Mbit ceil 80Mbit" in classes(rig, IFB)
    before = classes(rig)
    daemon.paths.config.write_text("node: {bandwidth: {tx: [")
    assert eventually(
        lambda: any(
            one["code"] == "configuration-invalid" for one in daemon.client.get("/v1/status")["findings"]
        )
    )
    assert classes(rig) == before
    assert daemon.client.get("/v1/status")["sources"]["file"]["state"] == "stale"


@pytest.mark.parametrize(
    "mistake", [{"backends": ["tc", "zap"]}, {"backendOptions": {"tc": {"zap": 1}}}, {"backends": ["ct"]}]
)
def test_a_mistake_about_backends_switches_none_off(
    rig: Rig, daemon: Daemon, mistake: dict[str, Any]
) -> None:
    before = classes(rig)
    daemon.configure(document(rig, **mistake))
    assert eventually(lambda: "configuration-invalid" in {one["code"] for one in _findings(daemon)})
    rig.node.run(["tc", "qdisc", "del", "dev", "up0", "root"])
    assert eventually(lambda: classes(rig) == before)
    daemon.configure(document(rig))
    assert eventually(lambda: _findings(daemon, severity="error") == [])


def test_a_file_that_is_broken_at_the_start_leaves_the_last_good_one_in_force(
    rig: Rig, daemon: Daemon
) -> None:
    before = classes(rig)
    assert eventually((daemon.paths.state / "configuration.json").exists)
    daemon.stop()
    good = daemon.paths.config.read_text()
    daemon.paths.config.write_text(good.replace('"enable": true', '"enable": perhaps'))
    daemon.start()
    assert classes(rig) == before
    codes = {one["code"] for one in daemon.client.get("/v1/status")["findings"]}
    assert {"configuration-invalid", "configuration-remembered"} <= codes


def test_a_broken_file_and_nothing_remembered_is_exit_5_and_touches_nothing(rig: Rig, tmp_path: Path) -> None:
    daemon = Daemon(rig, document(rig), folder=tmp_path)
    daemon.paths.config.write_text("workloads: 7\nnods: {}\n")
    with pytest.raises(DaemonFailed, match="ended with 5"):
        daemon.start()
    assert "Traceback" not in daemon.log_end(100)
    assert "nods" in daemon.log_end(100)
    assert "4e51" not in rig.node.run(["tc", "qdisc", "show", "dev", rig.uplink]).stdout


def test_switching_off_removes_everything_of_ours(rig: Rig, daemon: Daemon) -> None:
    daemon.configure(document(rig, policy={"enable": False}))
    assert eventually(lambda: classes(rig) == "")
    assert eventually(lambda: list(daemon.paths.net.iterdir()) == [])
    assert "netqos" not in rig.node.run(["nft", "list", "tables"]).stdout


@pytest.mark.serial
@pytest.mark.parametrize(
    "harm",
    [
        ["tc", "qdisc", "del", "dev", "up0", "root"],
        ["nft", "flush", "ruleset"],
        ["nft", "delete", "table", "inet", "netqos"],
    ],
)
def test_what_somebody_removes_is_back_within_a_second(rig: Rig, daemon: Daemon, harm: list[str]) -> None:
    before = (classes(rig), table(rig))
    rig.node.run(harm)
    removed_s = time.monotonic()
    assert eventually(lambda: daemon.client.get("/v1/status")["backends"]["tc"]["repairs"] == 1)
    assert time.monotonic() - removed_s < 2
    assert (classes(rig), table(rig)) == before


def test_restore_on_exit_puts_the_node_back(rig: Rig) -> None:
    before = rig.node.run(["tc", "qdisc", "show", "dev", rig.uplink]).stdout
    daemon = Daemon(rig, document(rig, onExit="restore"))
    daemon.start()
    assert "4e51" in rig.node.run(["tc", "qdisc", "show", "dev", rig.uplink]).stdout
    assert daemon.stop() == 0
    assert rig.node.run(["tc", "qdisc", "show", "dev", rig.uplink]).stdout == before
    assert rig.node.run(["nft", "list", "tables"]).stdout == ""
    assert list(daemon.paths.net.iterdir()) == []


def test_hup_reads_again_and_term_ends_with_0(daemon: Daemon) -> None:
    daemon.signal(signal.SIGHUP)
    assert daemon.client.get("/v1/status")["ready"] is True
    assert daemon.stop() == 0
    assert not daemon.paths.socket.exists()
    daemon.start()


def test_the_uplink_may_vanish_and_come_back(rig: Rig, daemon: Daemon) -> None:
    before = classes(rig)
    rig.node.run(["ip", "link", "set", "up0", "down"])
    assert eventually(lambda: "uplink-down" in {one["code"] for one in _findings(daemon)})
    rig.node.run(["ip", "link", "set", "up0", "name", "gone0"])
    assert eventually(lambda: "uplink-missing" in {one["code"] for one in _findings(daemon)})
    rig.node.run(["ip", "link", "set", "gone0", "name", "up0"])
    rig.node.run(["ip", "link", "set", "up0", "up"])
    assert eventually(lambda: classes(rig) == before and not _findings(daemon, severity="error"))


def _findings(daemon: Daemon, severity: str = "") -> list[dict[str, str]]:
    found: list[dict[str, str]] = daemon.client.get("/v1/status")["findings"]
    return [one for one in found if not severity or one["severity"] == severity]


def test_dry_run_tells_and_changes_nothing(rig: Rig) -> None:
    told = netqosd(rig, "--dry-run")
    assert told.returncode == 0
    assert "tc: create" in told.stdout
    assert "files: create" in told.stdout
    assert "4e51" not in rig.node.run(["tc", "qdisc", "show", "dev", rig.uplink]).stdout


def test_once_shapes_and_ends(rig: Rig) -> None:
    done = netqosd(rig, "--once")
    assert (done.returncode, done.stderr) == (0, "")
    assert "rate 200Mbit ceil 200Mbit" in classes(rig)
    assert "nothing to change" in netqosd(rig, "--dry-run").stdout
