"""The unit as it is shipped, under a real systemd: in namespaces and a cgroup of its own, with netqosd itself."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from netqos.host.cgroups import Cgroups
from netqos.testing.processes import run_tool
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
SYSTEMD = Path("/lib/systemd/systemd")
CONFIG = "node: {bandwidth: {tx: 100M, rx: 100M}}\npolicy: {enable: true}\n"

# What a booting machine would have done: file systems, a network with a way out, and the service to start.
BOOT = """
set -e
echo $$ > "$1/cgroup.procs"
exec unshare --mount --pid --fork --kill-child --uts --ipc --net --cgroup sh -ec '
    mount --make-rprivate /
    mount -t proc proc /proc
    mount -t sysfs sysfs /sys
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    mount -t tmpfs tmpfs /run
    mount -t tmpfs tmpfs /var/lib
    mkdir -p /run/systemd/system
    cp -r "$1"/. /run/systemd/system/
    ip link set lo up
    ip link add up0 type veth peer name far0
    ip link set up0 up
    ip link set far0 up
    ip addr add 198.18.0.2/24 dev up0
    ip route add default via 198.18.0.1
    export container=test
    exec "$2" --system --unit=test.target --log-target=null --show-status=0
' sh "$2" "$3"
"""
TARGET = "[Unit]\nDefaultDependencies=no\nAllowIsolate=yes\n"


class Machine:
    """A systemd with our unit, not started yet."""

    def __init__(self, folder: Path, program: str) -> None:
        tree = Cgroups().hierarchy.tree
        assert tree is not None
        self.cgroup = tree / f"netqos-test-{os.getpid()}"
        self.units = folder / "units"
        self.etc = folder / "etc"
        self.etc.mkdir()
        drop_in = self.units / "netqosd.service.d/test.conf"
        drop_in.parent.mkdir(parents=True)
        drop_in.write_text(_drop_in(f"{program} --config {self.etc}/netqos.yaml"))
        (self.units / "test.target").write_text(TARGET)
        (self.units / "netqosd.service").write_bytes((ROOT / "systemd/netqosd.service").read_bytes())

    def boot(self) -> None:
        self.cgroup.mkdir()
        self.process = subprocess.Popen(
            ["sh", "-c", BOOT, "sh", str(self.cgroup), str(self.units), str(SYSTEMD)], start_new_session=True
        )
        wait_until(lambda: self.systemctl("is-active", "test.target").strip() == "active")

    def halt(self) -> None:
        if self.cgroup.is_dir():
            (self.cgroup / "cgroup.kill").write_text("1")
            self.process.wait(10)
            wait_until(lambda: _remove_tree(self.cgroup))

    def pid(self) -> str:
        """Its systemd, seen from here; empty while there is none."""
        with suppress(OSError):
            return Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().strip()
        return ""

    def run(self, *argv: str) -> str:
        """The output of a program inside, whatever its exit status."""
        if not (pid := self.pid()):
            return ""
        inside = ["nsenter", f"--target={pid}", "--mount", "--pid", "--uts", "--ipc", "--net"]
        return run_tool([*inside, *argv], check=False).stdout

    def systemctl(self, *argv: str) -> str:
        return self.run("systemctl", *argv)

    def show(self, name: str) -> str:
        return self.systemctl("show", "--value", "--property", name, "netqosd").strip()

    def status(self) -> Any:
        connection = HTTPConnection("netqos", timeout=5)
        connection.sock = socket.socket(socket.AF_UNIX)
        with connection.sock:
            connection.sock.connect(f"/proc/{self.pid()}/root/run/netqos/netqosd.sock")
            connection.request("GET", "/v1/status")
            return json.loads(connection.getresponse().read())

    def qdisc(self) -> str:
        return self.run("tc", "qdisc", "show", "dev", "up0", "root").split(" refcnt")[0]


def _drop_in(command: str) -> str:
    """The unit's own program is not installed here; and systemd must not hide the checkout from it."""
    lines = [
        "[Unit]",
        "DefaultDependencies=no",
        "[Service]",
        "ExecStart=",
        f"ExecStart={command}",
        "WatchdogSec=3",
    ]
    lines += ["RestartSec=0.1", "StandardOutput=null", "StandardError=null"]
    places = [str(Path(place).resolve()) for place in (ROOT, sys.prefix, sys.base_prefix)]
    if any(place.startswith(("/home/", "/root/", "/run/user/")) for place in places):
        lines += ["ProtectHome=no"]
    return "\n".join([*lines, "PrivateTmp=no"]) + "\n"  # the configuration is in the test's folder


def _remove_tree(path: Path) -> bool:
    for folder, _, _ in os.walk(path, topdown=False):
        with suppress(OSError):
            Path(folder).rmdir()
    return not path.exists()


@pytest.fixture
def machine(tmp_path: Path, require_kernel: Callable[..., None]) -> Iterator[Machine]:
    require_kernel("veth", "htb", "nft", "tool:systemctl", "tool:nsenter")
    made = Machine(tmp_path, str(Path(sys.executable).with_name("netqosd")))
    try:
        made.boot()
    except PermissionError:
        pytest.skip("making cgroups is root's, or of whom it delegates them to")
    try:
        yield made
    finally:
        made.halt()


def test_a_life_under_systemd(machine: Machine) -> None:
    config = machine.etc / "netqos.yaml"
    config.write_text(CONFIG)
    machine.systemctl("start", "netqosd")  # returns when it says that it is ready
    assert (machine.show("SubState"), machine.show("StatusText")) == ("running", "enforcing")
    assert machine.qdisc() == "qdisc htb 4e51: root"
    assert machine.run("stat", "-c", "%a", *FOLDERS).split() == list(FOLDERS.values())

    config.write_text(CONFIG.replace("100M", "50M"))
    machine.systemctl("reload", "netqosd")
    wait_until(lambda: machine.status()["directions"]["tx"]["total_bps"] == 50_000_000)
    wait_until(lambda: machine.show("SubState") == "running")

    machine.systemctl("kill", "--signal=KILL", "netqosd")
    assert machine.qdisc() == "qdisc htb 4e51: root"
    wait_until(lambda: machine.show("NRestarts") == "1" and machine.show("SubState") == "running")

    hanging = int(machine.show("MainPID"))
    machine.systemctl("kill", "--signal=STOP", "netqosd")
    wait_until(lambda: machine.show("NRestarts") == "2" and machine.show("SubState") == "running")
    assert int(machine.show("MainPID")) != hanging

    machine.systemctl("stop", "netqosd")
    assert (machine.show("SubState"), machine.show("Result")) == ("dead", "success")
    assert machine.qdisc() == "qdisc htb 4e51: root"


FOLDERS = {
    "/run/netqos": "755",
    "/run/netqos/netqosd.sock": "660",
    "/run/koordinator/net": "755",
    "/run/koordinator/net/node": "644",
    "/var/lib/netqos": "700",
}


def test_a_broken_configuration_is_not_tried_again_and_again(machine: Machine) -> None:
    config = machine.etc / "netqos.yaml"
    config.write_text("nonsense: 1\n")
    machine.systemctl("start", "netqosd")
    assert (machine.show("ExecMainStatus"), machine.show("SubState"), machine.show("NRestarts")) == (
        "5",
        "failed",
        "0",
    )
    config.write_text(CONFIG)
    machine.systemctl("start", "netqosd")
    assert machine.show("SubState") == "running"
    config.write_text("nonsense: 1\n")
    machine.systemctl("restart", "netqosd")
    assert machine.show("SubState") == "running"  # with what was accepted before
    assert machine.status()["sources"]["file"]["state"] == "stale"
