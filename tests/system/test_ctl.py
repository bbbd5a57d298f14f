"""netqosctl beside a real daemon on a real node: overrides, explanations, cleanup, doctor."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netqos.model.levels import Level
from netqos.testing.daemon import Daemon, document, running, workload
from netqos.testing.netns import Rig

pytestmark = pytest.mark.kernel("htb", "nft")

M = 1_000_000
Done = subprocess.CompletedProcess[str]


@pytest.fixture
def rig() -> Iterator[Rig]:
    with Rig(pods=("web", "batch")) as rig:
        rig.node.run(["tc", "qdisc", "add", "dev", rig.uplink, "root", "handle", "9:", "pfifo_fast"])
        yield rig


@pytest.fixture
def daemon(rig: Rig) -> Iterator[Daemon]:
    web = workload(rig, "web", Level.L0, limits={"egress": "80M", "ingress": "20M"})
    workloads = [web, workload(rig, "batch", Level.L2)]
    with running(rig, document(rig, {}, workloads=workloads)) as daemon:
        yield daemon


def ctl(daemon: Daemon, rig: Rig, *words: str) -> Done:
    command = [sys.executable, "-m", "netqos.cli.ctl", "--socket", str(daemon.paths.socket), *words]
    process = rig.node.popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, own_sysfs=True)
    stdout, stderr = process.communicate(timeout=60)
    return subprocess.CompletedProcess(words, process.returncode, stdout.decode(), stderr.decode())


def answer(daemon: Daemon, rig: Rig, *words: str) -> Any:
    done = ctl(daemon, rig, *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def traces(rig: Rig, daemon: Daemon) -> tuple[str, list[str], list[Path]]:
    """What stays in the kernel and in the shared folder; the table of a running daemon's watch does not."""
    qdiscs = rig.node.run(["tc", "qdisc", "show", "dev", rig.uplink]).stdout
    tables = [
        line
        for line in rig.node.run(["nft", "list", "tables"]).stdout.splitlines()
        if "netqos_watch" not in line
    ]
    return str(qdiscs), tables, sorted(daemon.paths.net.glob("*"))


def test_status_pods_and_explain_tell_the_truth(rig: Rig, daemon: Daemon) -> None:
    status = ctl(daemon, rig, "status")
    assert (status.returncode, status.stderr) == (0, "")
    assert "egress  total 200 Mbit/s (file) on up0" in status.stdout
    assert "ingress  total 150 Mbit/s (file) on up0" in status.stdout
    assert "not enforced" not in status.stdout
    pods = {pod["name"]: pod for pod in answer(daemon, rig, "pods")["pods"]}
    assert pods["web"]["limits"]["egress"] == {
        "bps": 80 * M,
        "source": "workload",
        "enforced_by": ["tc"],
        "not_enforced": "",
    }
    assert pods["web"]["limits"]["ingress"] == {
        "bps": 20 * M,
        "source": "workload",
        "enforced_by": ["tc"],
        "not_enforced": "",
    }
    explained = answer(daemon, rig, "explain", "web")
    verdicts = {(one["what"], one["direction"]): one["enforced"] for one in explained["enforcement"]}
    assert verdicts == {
        ("level", "egress"): True,
        ("limit", "egress"): True,
        ("level", "ingress"): True,
        ("limit", "ingress"): True,
    }
    assert {one["direction"]: one["where"].split()[-1] for one in explained["pod"]["counters"]} == {
        "tx": "up0",
        "rx": "netqos-ifb",
    }
    assert {(one["device"], one["direction"]) for one in explained["now"]} == {
        ("up0", "egress"),
        ("netqos-ifb", "ingress"),
    }


def test_a_limit_is_set_listed_and_ended(rig: Rig, daemon: Daemon) -> None:
    assert (
        ctl(daemon, rig, "limit", "batch", "--egress", "30M", "--for", "5m", "--reason", "test").returncode
        == 0
    )
    classes = rig.node.run(["tc", "class", "show", "dev", rig.uplink]).stdout
    assert "ceil 30Mbit" in classes
    listed = answer(daemon, rig, "limits")["overrides"]
    assert [(one["pod"], one["egress_bps"], one["reason"]) for one in listed] == [("batch", 30 * M, "test")]
    assert ctl(daemon, rig, "limits", "--delete", "batch").returncode == 0
    assert "ceil 30Mbit" not in rig.node.run(["tc", "class", "show", "dev", rig.uplink]).stdout
    assert ctl(daemon, rig, "limits", "--delete", "batch").returncode == 4
    wrong = ctl(daemon, rig, "limit", "batch", "--egress", "10Mbps", "--ingress", "x", "--level", "l9")
    assert wrong.returncode == 5
    problems = [line for line in wrong.stderr.splitlines() if line.startswith("  - ")]
    assert [line.split()[1] for line in problems] == ["egress:", "ingress:", "level"]


def test_cleanup_refuses_beside_a_daemon_then_puts_the_node_back(rig: Rig, daemon: Daemon) -> None:
    config = ("--config", str(daemon.paths.config))
    before = traces(rig, daemon)
    assert "htb 4e51:" in before[0]
    refused = ctl(daemon, rig, "cleanup", *config)
    assert (refused.returncode, traces(rig, daemon)) == (1, before)
    assert "systemctl stop netqosd" in refused.stderr
    other = daemon.paths.folder / "other.yaml"
    other.write_text(json.dumps({"paths": {"socket": str(daemon.paths.folder / "other.sock")}}))
    refused = ctl(daemon, rig, "--socket", str(other), "cleanup", "--config", str(other))
    assert (refused.returncode, traces(rig, daemon)) == (1, before)
    assert f"(process {daemon.pid})" in refused.stderr
    daemon.stop()
    dry = ctl(daemon, rig, "cleanup", *config, "--dry-run")
    assert (dry.returncode, traces(rig, daemon)) == (0, before)
    assert "tc: " in dry.stdout
    assert "would be made" in dry.stdout
    done = answer(daemon, rig, "cleanup", *config)
    assert done["ok"]
    qdiscs, tables, files = traces(rig, daemon)
    assert "pfifo_fast 9:" in qdiscs
    assert (tables, files) == ([], [])
    again = ctl(daemon, rig, "cleanup", *config)
    assert again.stdout.splitlines() == [
        f"{name}: nothing of ours is there" for name in ("tc", "terway", "files")
    ]
    assert not daemon.paths.socket.exists()


def test_doctor_tells_what_stands_in_the_way(rig: Rig, daemon: Daemon) -> None:
    config = ("--config", str(daemon.paths.config))
    checks = answer(daemon, rig, "doctor", *config)["checks"]
    told = {(one["name"], one["verdict"]) for one in checks}
    assert {("configuration", "ok"), ("daemon", "ok"), ("rights", "ok"), ("backend tc", "ok")} <= told
    assert [one["text"] for one in checks if one["name"] == "direct packets"] == [
        "none passed the trees unshaped"
    ]
    daemon.stop()
    assert ctl(daemon, rig, "cleanup", *config).returncode == 0
    rate = ["rate", "1gbit", "burst", "1m", "latency", "5ms"]
    rig.node.run(["tc", "qdisc", "replace", "dev", rig.uplink, "root", "tbf", *rate])
    rig.node.run(
        ["nft", "add table inet x; add chain inet x y { type filter hook postrouting priority -150; }"]
    )
    rig.node.run(["nft", "add rule inet x y meta priority set 1:2"])
    found = ctl(daemon, rig, "doctor", *config)
    assert found.returncode == 1
    assert "the root qdisc is tbf" in found.stdout
    assert "inet x sets packets' priority" in found.stdout
    assert "a limiter of others" not in found.stdout, "the uplink is no pod's"
