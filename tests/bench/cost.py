"""memory: what the daemon itself takes; and how its processor time is told."""

from __future__ import annotations

import os
import time
from pathlib import Path

from netqos.model.levels import Level
from netqos.testing.daemon import Daemon
from netqos.testing.netns import Rig
from tests.bench.figures import Figure, at_most
from tests.bench.options import Options
from tests.bench.shapers import Case, M

_PODS = {"web": Level.L0, "api": Level.L1, "batch": Level.L2}
_CASE = Case(total_bps=200 * M, pods=_PODS)
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """The processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND


def memory(options: Options) -> list[Figure]:
    """Resident memory with both backends, three workloads, status and metrics, after both were asked."""
    figures = []
    for _ in range(options.runs):
        with Rig(pods=tuple(_PODS)) as rig:
            document = {
                **_CASE.config(rig, backends=("tc", "terway")),
                "backendOptions": {"terway": {"folder": str(rig.folder / "terway")}},
                "metrics": {"listen": "127.0.0.1:9469"},
            }
            daemon = Daemon(rig, document)
            daemon.start()
            for _ in range(5):
                daemon.client.get("/v1/status")
                rig.node.call(_scrape)
                time.sleep(1)
            figures.append(resident_mib(daemon.pid))
            daemon.kill()
    return [
        Figure(
            bench="memory",
            what="RSS, tc and terway, 3 workloads, status and metrics",
            unit="MiB",
            runs=tuple(figures),
            target=at_most(56),
        )
    ]


def _scrape() -> None:
    import urllib.request  # noqa: PLC0415 - in the child only

    with urllib.request.urlopen("http://127.0.0.1:9469/metrics", timeout=5) as answer:
        answer.read()


def resident_mib(pid: int) -> float:
    """What a process has in memory."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1]) / 1024
