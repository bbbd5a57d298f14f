"""The real daemon before other programs: while it steers and not otherwise, with the right to and without."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from netqos.model.levels import Level
from netqos.testing.daemon import Daemon, Document, workload
from netqos.testing.netns import Rig

pytestmark = pytest.mark.kernel("htb", "nft", "nft-fib", "nft-socket")

_MAY = "import os; os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))"
_WITHOUT = ["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"]


@pytest.fixture
def rig() -> Iterator[Rig]:
    with Rig(pods=("web",)) as rig:
        yield rig


def document(rig: Rig, *, enable: bool) -> Document:
    return {
        "node": {"bandwidth": {"tx": "200M", "rx": "150M"}},
        "policy": {"enable": enable},
        "workloads": [workload(rig, "web", Level.L0)],
    }


def become(pid: int, policy: int) -> bool:
    """Whether all threads of a process come to be scheduled so."""
    end_s = time.monotonic() + 10
    while time.monotonic() < end_s:
        tasks = [int(one.name) for one in Path(f"/proc/{pid}/task").iterdir()]
        if {os.sched_getscheduler(task) for task in tasks} == {policy}:
            return True
        time.sleep(0.05)
    return False


def test_it_goes_first_while_it_steers(rig: Rig) -> None:
    """Where nobody may (no CAP_SYS_NICE, or no share for the cgroup) it is one program among others throughout."""
    may = subprocess.run([sys.executable, "-c", _MAY], capture_output=True, check=False).returncode == 0
    ahead = os.SCHED_RR if may else os.SCHED_OTHER
    daemon = Daemon(rig, document(rig, enable=True))
    daemon.start()
    try:
        assert become(daemon.pid, ahead)
        daemon.configure(document(rig, enable=False))
        assert become(daemon.pid, os.SCHED_OTHER)
        daemon.configure(document(rig, enable=True))
        assert become(daemon.pid, ahead)
    finally:
        daemon.stop()


class Ordinary(Daemon):
    @property
    def command(self) -> list[str]:
        return [*_WITHOUT, *super().command]


def test_without_the_right_it_works_as_one_among_others_and_says_so_once(rig: Rig) -> None:
    daemon = Ordinary(rig, document(rig, enable=True))
    daemon.start()
    try:
        daemon.client.wait_until("/v1/status", lambda status: status["loop"]["ticks"] > 20, timeout_s=10)
        assert become(daemon.pid, os.SCHED_OTHER)
    finally:
        daemon.stop()
    assert daemon.log_end(100).count("loop_among_other_programs") == 1
