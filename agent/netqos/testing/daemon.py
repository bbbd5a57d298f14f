"""The real netqosd as a process in a rig's node, with its files, socket and state in a folder of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netqos.errors import NetqosError
from netqos.model.levels import Level
from netqos.testing.netns import Rig
from netqos.testing.statusclient import StatusClient

Document = dict[str, Any]


class DaemonFailed(NetqosError):
    """netqosd ended, or did not get ready; the message holds the end of its log."""


@dataclass(frozen=True, slots=True)
class Paths:
    """Where one daemon keeps its things."""

    folder: Path

    @property
    def config(self) -> Path:
        """The configuration file."""
        return self.folder / "netqos.yaml"

    @property
    def socket(self) -> Path:
        """The status socket."""
        return self.folder / "netqosd.sock"

    @property
    def state(self) -> Path:
        """What it keeps over a restart."""
        return self.folder / "state"

    @property
    def net(self) -> Path:
        """The node and pods files."""
        return self.folder / "net"

    @property
    def log(self) -> Path:
        """What it wrote to stderr, all its starts together."""
        return self.folder / "netqosd.log"


def workload(rig: Rig, name: str, level: Level, **more: object) -> Document:
    """A pod of the rig, by its addresses or its cgroup, as an entry of the configuration's `workloads`."""
    found = rig.host_pods.get(name)
    match = {"addresses": list(rig.addresses(name))} if found is None else {"cgroup": found.path}
    return {"name": name, "match": match, "level": level.name.lower(), **more}


def document(rig: Rig, levels: Mapping[str, Level], **more: object) -> Document:
    """A small configuration: totals of 200M out and 150M in, levels on, pods of the rig with theirs."""
    return {
        "node": {"bandwidth": {"tx": "200M", "rx": "150M"}},
        "policy": {"enable": True},
        "workloads": [workload(rig, name, level) for name, level in levels.items()],
        **more,
    }


def complete_config(rig: Rig, paths: Paths, document: Mapping[str, Any]) -> Document:
    """A configuration with what the rig decides filled in: uplinks, paths; metrics and Kubernetes off unless given."""
    node = {"name": "rig", "uplinks": list(rig.uplinks), **document.get("node", {})}
    own = {"net": str(paths.net), "socket": str(paths.socket), "state": str(paths.state)}
    defaults = {"metrics": {"listen": None}, "kubernetes": {"enable": False}, "backends": ["tc"]}
    return {**defaults, **document, "node": node, "paths": {**own, **document.get("paths", {})}}


class Daemon:
    """One configuration, started as often as wanted."""

    def __init__(self, rig: Rig, document: Mapping[str, Any], *, folder: Path | None = None) -> None:
        """Write the configuration; nothing runs yet. JSON is YAML, so no writer of YAML is needed."""
        self._rig = rig
        self.paths = Paths(folder or rig.folder)
        self.client = StatusClient(self.paths.socket)
        self._process: subprocess.Popen[bytes] | None = None
        self.configure(document)

    def configure(self, document: Mapping[str, Any]) -> None:
        """Replace the configuration, as an editor does; a running daemon sees it."""
        text = json.dumps(complete_config(self._rig, self.paths, document), indent=1)
        fresh = self.paths.config.with_suffix(".new")
        fresh.write_text(text, encoding="utf-8")
        fresh.rename(self.paths.config)

    @property
    def command(self) -> list[str]:
        """The command line of netqosd."""
        return [sys.executable, "-m", "netqos.cli.daemon", "--config", str(self.paths.config)]

    @property
    def pid(self) -> int:
        """The running process."""
        assert self._process is not None
        return self._process.pid

    def spawn(self, *, env: Mapping[str, str] | None = None) -> None:
        """Start the process and wait for nothing."""
        with self.paths.log.open("ab") as log:
            self._process = self._rig.node.popen(
                self.command, stdout=log, stderr=log, env=env, own_sysfs=True
            )

    def start(self, *, timeout_s: float = 15, env: Mapping[str, str] | None = None) -> Document:
        """Start it and wait until it has brought the node to what it knows; its status."""
        self.spawn(env=env)
        return self.wait_ready(timeout_s=timeout_s)

    def wait_ready(self, *, timeout_s: float = 15) -> Document:
        """Wait until a pass is done, whatever is waited for; its status. `DaemonFailed` when it takes too long."""

        def is_ready(status: Document) -> bool:
            return bool(status["ready"] or status["passes"])

        end_s = time.monotonic() + timeout_s
        while time.monotonic() < end_s:
            self.check()
            with contextlib.suppress(TimeoutError):
                status: Document = self.client.wait_until("/v1/status", is_ready, timeout_s=0.2)
                return status
        raise DaemonFailed(
            f"not ready after {timeout_s:.0f} s; its log ends with\n{self.log_end()}", subject="netqosd"
        )

    def check(self) -> None:
        """`DaemonFailed` unless it runs."""
        if self._process is None or self._process.poll() is not None:
            code = None if self._process is None else self._process.returncode
            raise DaemonFailed(f"ended with {code}; its log ends with\n{self.log_end()}", subject="netqosd")

    def log_end(self, lines: int = 15) -> str:
        """The last lines of its log."""
        text = self.paths.log.read_text(encoding="utf-8", errors="replace") if self.paths.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def signal(self, number: int) -> None:
        """Send a signal to the running process."""
        os.kill(self.pid, number)

    def stop(self, *, timeout_s: float = 10) -> int:
        """SIGTERM, and wait for the end; its exit code."""
        assert self._process is not None
        if self._process.poll() is None:
            self.signal(signal.SIGTERM)
        return self._process.wait(timeout=timeout_s)

    def kill(self) -> None:
        """End it as a power cut would, and wait for the end."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def running(rig: Rig, document: Mapping[str, Any]) -> Iterator[Daemon]:
    """A daemon with a configuration, ready, and stopped in the end unless it is gone by then."""
    daemon = Daemon(rig, document)
    daemon.start()
    try:
        yield daemon
    finally:
        daemon.stop()


def netqosctl(daemon: Daemon, arguments: Sequence[str]) -> list[str]:
    """The command line that asks a daemon."""
    return [sys.executable, "-m", "netqos.cli.ctl", "--socket", str(daemon.paths.socket), *arguments]
