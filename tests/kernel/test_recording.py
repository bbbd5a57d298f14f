"""Recordings of a real daemon under real traffic in both directions are replayed to the same decisions, bit for bit."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from netqos.cli.ctl import main
from netqos.model.levels import Level
from netqos.testing.daemon import Daemon, netqosctl, running, workload
from netqos.testing.netns import Rig
from netqos.testing.traffic import Traffic

pytestmark = [
    pytest.mark.kernel("htb", "nft", "u32", "ifb", "clsact", "nft-fib", "nft-socket"),
    pytest.mark.serial,
]

LEVELS = {"web": Level.L0, "api": Level.L1, "batch": Level.L2}
OTHER = "policy: {enable: true, levels: {l1: {txMin: 10%, rxMin: 10%}, l2: {txMin: 10%, rxMin: 10%}}}"


@pytest.fixture
def rig() -> Iterator[Rig]:
    with Rig(pods=tuple(LEVELS)) as rig:
        yield rig


@pytest.fixture
def daemon(rig: Rig) -> Iterator[Daemon]:
    workloads = [workload(rig, name, level) for name, level in LEVELS.items()]
    config = {"node": {"bandwidth": {"tx": "80M", "rx": "60M"}}, "policy": {"enable": True}}
    with running(rig, {**config, "workloads": workloads}) as daemon:
        yield daemon


@contextmanager
def recording(daemon: Daemon, file: Path) -> Iterator[None]:
    """A recording of what happens in the block."""
    command = netqosctl(daemon, ["record", str(file), "--for", "50s"])
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        wait_for(file, "round", 2)
        yield
        process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=30)
    assert process.returncode == 0, told


def wait_for(file: Path, key: str, count: int) -> None:
    """Wait until a recording has so many lines of a kind."""
    end_s = time.monotonic() + 20
    while time.monotonic() < end_s:
        if file.exists() and file.read_text(encoding="ascii").count(f'{{"{key}":') >= count:
            return
        time.sleep(0.05)
    raise TimeoutError(f"no {count} lines of {key}")


def replayed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    code = main(["replay", "--json", *words])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (code, found["equal"], found["unequal"]) == (0, True, [])
    return found


def test_real_traffic_in_both_directions_is_decided_the_same_again(
    rig: Rig, daemon: Daemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, other = tmp_path / "loop.jsonl", tmp_path / "other.yaml"
    other.write_text(OTHER, encoding="ascii")
    with recording(daemon, file):
        traffic = Traffic(rig)
        traffic.tcp("batch").start()
        traffic.tcp("batch", towards_pod=True).start()
        time.sleep(1)  # alone they fill both directions, on any machine
        traffic.tcp("web").start()
        traffic.tcp("api", towards_pod=True).start()
        time.sleep(1)
        traffic.stop()
    found = replayed(capsys, str(file))
    assert {(one["device"], one["direction"]) for one in found["units"]} == {
        (rig.uplink, "tx"),
        ("netqos-ifb", "rx"),
    }
    assert found["decisions"] > 60
    assert all(one["recorded"]["contention_s"] > 0.5 for one in found["units"])
    changed = replayed(capsys, str(file), "--policy", str(other))
    lowest = {
        one["direction"]: [
            one[which]["levels"]["L0"]["lowest_ceiling_bps"] // 1_000_000 for which in ("recorded", "other")
        ]
        for one in changed["units"]
    }
    assert 55 <= lowest["tx"][0] <= 57
    assert 69 <= lowest["tx"][1] <= 73
    assert lowest["rx"][0] < lowest["rx"][1]
    assert changed["differing_ticks"] > 0
    assert "L2 keeps its guarantee of 8M" in str(changed["differences"])


def test_a_changed_policy_and_a_killed_daemon_are_in_the_recording(
    rig: Rig, daemon: Daemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "loop.jsonl"
    workloads = [workload(rig, name, level) for name, level in LEVELS.items()]
    with recording(daemon, file):
        traffic = Traffic(rig)
        traffic.tcp("web").start()
        traffic.tcp("batch").start()
        smaller = {"node": {"bandwidth": {"tx": "50M", "rx": "60M"}}, "policy": {"enable": True}}
        daemon.configure({**smaller, "workloads": workloads})
        wait_for(file, "policies", 2)
        daemon.kill()
        wait_for(file, "gap", 1)
        daemon.start()
        wait_for(file, "recording", 2)
        wait_for(file, "policies", 3)
        time.sleep(0.5)
        traffic.stop()
    found = replayed(capsys, str(file))
    assert [one["why"] for one in found["gaps"]] == ["the daemon was not there"]
    lines = [json.loads(line) for line in file.read_text(encoding="ascii").splitlines()]
    assert sum("recording" in line for line in lines) == 2
    assert found["units"][0]["recorded"]["decisions"] > 20
