"""The unit: valid, as narrow as it is said to be, and naming the exit codes and folders that the daemon has."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from configparser import ConfigParser
from pathlib import Path, PurePosixPath

import pytest

from netqos.cli import daemoncommand
from netqos.settings.values import PathSettings

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "systemd/netqosd.service"
PROGRAM = "/usr/local/bin/netqosd"

# Exposure by `systemd-analyze security` in tenths, as systemd/README.md states it.
EXPOSURE = 22


@pytest.fixture(autouse=True)
def _systemd(require_kernel: Callable[..., None]) -> None:
    require_kernel("tool:systemd-analyze")


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit with a program that is there."""
    program = tmp_path / "netqosd"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    text = UNIT.read_text()
    assert text.count(PROGRAM) == 1
    copy = tmp_path / "netqosd.service"
    copy.write_text(text.replace(PROGRAM, str(program)))
    return copy


def values(section: str) -> dict[str, str]:
    parser = ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # keys as they are written
    parser.read(UNIT)
    return dict(parser[section])


def test_systemd_takes_every_line_of_it(unit: Path) -> None:
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    ours = [line for line in done.stderr.splitlines() if "netqosd" in line]
    assert (done.returncode, ours) == (0, [])


def test_it_is_as_narrow_as_it_is_said_to_be(unit: Path) -> None:
    done = subprocess.run(
        [
            "systemd-analyze",
            "security",
            "--offline=true",
            "--json=short",
            f"--threshold={EXPOSURE}",
            str(unit),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout
    kept = {one["json_field"]: one["set"] for one in json.loads(done.stdout)}
    assert kept["CapabilityBoundingSet_CAP_SYS_PTRACE"]
    assert kept["CapabilityBoundingSet_CAP_SYS_ADMIN"]
    assert not kept["CapabilityBoundingSet_CAP_NET_ADMIN"]
    assert f"an exposure of {EXPOSURE / 10}" in (UNIT.parent / "README.md").read_text()


def test_it_knows_the_daemons_exit_codes() -> None:
    assert values("Service")["RestartPreventExitStatus"].split() == ["2", str(daemoncommand.REJECTED)]


def test_the_folders_are_those_of_the_daemon() -> None:
    paths, service = PathSettings(), values("Service")
    runtime = {PurePosixPath("/run") / name for name in service["RuntimeDirectory"].split()}
    net = PurePosixPath("/run") / paths.net.relative_to("/var/run")  # /var/run is /run
    assert runtime == {paths.socket.parent, net}
    assert PurePosixPath("/var/lib") / service["StateDirectory"] == paths.state
    assert service["ExecStart"] == f"{PROGRAM} --config {daemoncommand.DEFAULT_CONFIG}"
