"""netqos itself in the comparison: the real daemon with its tc backend."""

from __future__ import annotations

from netqos.model.levels import Direction, Level
from netqos.testing.daemon import Daemon, Document, workload
from netqos.testing.netns import Rig
from tests.bench.compare.surface import Policy, Reading


class Adapter:
    """One netqosd."""

    name = "netqos"
    how = "netqosd with its tc backend, as installed: levels, both totals, and nothing else configured"

    def __init__(self) -> None:
        """Nothing runs."""
        self._rig: Rig | None = None
        self._daemon: Daemon | None = None

    def start(self, rig: Rig) -> None:
        """Keep the rig."""
        self._rig = rig

    def apply(self, policy: Policy) -> None:
        """Configure it, and wait until the node is as asked."""
        assert self._rig is not None
        self._daemon = Daemon(self._rig, config(self._rig, policy))
        self._daemon.start()

    @property
    def pid(self) -> int | None:
        """The daemon."""
        return None if self._daemon is None else self._daemon.pid

    def reading(self) -> Reading:
        """What its status tells of the fast loop."""
        assert self._daemon is not None
        loop = self._daemon.client.get("/v1/status")["loop"]
        return Reading(writes=loop["writes"], late_p99_ms=1000 * loop["late_p99_s"])

    def stop(self) -> None:
        """End it."""
        if self._daemon is not None:
            self._daemon.kill()


def config(rig: Rig, policy: Policy) -> Document:
    """The daemon's configuration for a policy."""
    levels = {
        level.name.lower(): {
            f"{way.value}{word}": str(bps)
            for way in Direction
            for word, bps in (
                ("Min", policy.bands[way][level].guarantee_bps),
                ("Max", policy.bands[way][level].ceiling_bps),
            )
        }
        for level in (Level.L1, Level.L2)
    }
    return {
        "node": {"bandwidth": {way.value: str(policy.totals_bps[way]) for way in Direction}},
        "policy": {"enable": True, "levels": levels},
        "workloads": [workload(rig, name, level) for name, level in policy.pods.items()],
    }
