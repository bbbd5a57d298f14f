"""`python -m tests.bench.rulestart`: starts of netqosd with 500 limited workloads, without and with rules.

Four rules in each direction of each are 4,000 classes.

Each start is timed from the process to the first pass done; the second one of each finds everything there.
"""

from __future__ import annotations

import statistics
import time

from netqos.testing.daemon import Daemon, Document
from netqos.testing.netns import Rig
from tests.bench import crowd
from tests.bench.cost import cpu_s, resident_mib

PODS, RUNS = 500, 3


def main() -> None:
    """Print a table of medians."""
    print("| rules of each in each direction | start | it took | CPU | objects written | RSS |")
    print("|---|---|---|---|---|---|")
    for rules in (0, 4):
        runs = [_starts(rules) for _ in range(RUNS)]
        for number, name in enumerate(("first", "second")):
            took_s, spent_s, written, mib = (
                statistics.median(values) for values in zip(*(run[number] for run in runs), strict=True)
            )
            print(f"| {rules} | {name} | {took_s:.2f} s | {spent_s:.2f} s | {written:.0f} | {mib:.0f} MiB |")


def _starts(rules: int) -> list[tuple[float, float, float, float]]:
    """Seconds, seconds of the processor, writes and MiB of the first start and the second."""
    with Rig(pods=(crowd.NAME,)) as rig:
        crowd.settle(rig, PODS)
        workloads = crowd.workloads(PODS, limit=lambda place: f"{20 + place % 7}M")
        for one in workloads:
            one["rules"] = {way: [_rule(number) for number in range(rules)] for way in ("egress", "ingress")}
        daemon = Daemon(rig, crowd.config(workloads))
        return [_start(daemon), _start(daemon)]


def _start(daemon: Daemon) -> tuple[float, float, float, float]:
    began_s = time.monotonic()
    daemon.spawn()
    status = daemon.wait_ready(timeout_s=60)
    took_s = time.monotonic() - began_s
    written = status["backends"]["tc"]["last_result"]["applied"]
    found = took_s, cpu_s(daemon.pid), float(written), resident_mib(daemon.pid)
    daemon.stop()
    return found


def _rule(number: int) -> Document:
    return {
        "matchs": [{"type": "port", "expr": f"={8000 + number}"}],
        "actions": [{"type": "bandwidth_max", "value": f"{5 + number}M"}],
    }


if __name__ == "__main__":
    main()
