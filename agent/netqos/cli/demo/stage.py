"""The demo's node: a rig with the scenario's workloads as pods, and the real netqosd in it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from netqos.cli.demo.scenario import WORKLOADS
from netqos.errors import NetqosError, Unsupported
from netqos.model.ids import workload_uid
from netqos.model.levels import Direction
from netqos.model.quantities import format_bandwidth
from netqos.testing.daemon import Daemon, workload
from netqos.testing.netns import Rig
from netqos.testing.processes import tool_environment

_TOOLS = {
    "ip": "iproute2",
    "tc": "iproute2",
    "nft": "nftables",
    "iperf3": "iperf3",
    "unshare": "util-linux",
    "nsenter": "util-linux",
}
_LIMIT_FOR = "10m"


def missing_tools() -> dict[str, str]:
    """Programs that the demo needs and this machine lacks, with the Debian package of each."""
    path = tool_environment()["PATH"]
    return {tool: package for tool, package in _TOOLS.items() if shutil.which(tool, path=path) is None}


def require_tools() -> None:
    """`Unsupported` names every missing program at once."""
    missing = missing_tools()
    if missing:
        packages = " ".join(sorted(set(missing.values())))
        raise Unsupported(
            f"these programs are missing: {', '.join(missing)}", hint=f"on Debian: apt-get install {packages}"
        )


class DaemonNode:
    """A node whose uplink netqosd shapes."""

    def __init__(self, daemon: Daemon) -> None:
        """The daemon runs and is ready."""
        self._daemon = daemon

    def limit(self, workload: str, limits_bps: Mapping[Direction, int]) -> None:
        """What `netqosctl limit WORKLOAD --egress BPS --ingress BPS --for 10m` does; in force when this returns."""
        limits = {way.pod_word: format_bandwidth(bps) for way, bps in limits_bps.items()}
        body = {**limits, "ttl": _LIMIT_FOR, "reason": "demo"}
        self._daemon.client.put(f"/v1/overrides/{workload_uid(workload)}", body)

    @property
    def not_enforced(self) -> Mapping[Direction, str]:
        """The directions that are not shaped here, and why."""
        directions = self._daemon.client.get("/v1/status")["directions"]
        return {
            way: directions[way.value]["not_enforced"]
            for way in Direction
            if directions[way.value]["not_enforced"]
        }

    def check(self) -> None:
        """Raise, with the end of its log, when the daemon has ended."""
        self._daemon.check()


@contextmanager
def build_stage(sections: Mapping[str, Any]) -> Iterator[tuple[Rig, DaemonNode]]:
    """Build the rig and start netqosd in it with these sections of a configuration; nothing stays afterwards."""
    with Rig(pods=[one.name for one in WORKLOADS]) as rig:
        workloads = [workload(rig, one.name, one.level) for one in WORKLOADS]
        daemon = Daemon(rig, {**sections, "workloads": workloads, "onExit": "restore"})
        status = daemon.start()
        node = DaemonNode(daemon)
        if len(node.not_enforced) == len(Direction):
            raise _not_enforced(status)
        yield rig, node
        daemon.stop()


def _not_enforced(status: Mapping[str, Any]) -> NetqosError:
    found = [
        *status["findings"],
        *(one for backend in status["backends"].values() for one in backend["findings"]),
    ]
    told = "; ".join(f"{one['subject']}: {one['message']}" for one in found) or "no reason given"
    return Unsupported(
        f"netqosd runs, but cannot shape here: {told}", hint="netqosctl doctor tells what is missing"
    )
