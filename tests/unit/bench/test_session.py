from __future__ import annotations

import os
import subprocess
import sys

import pytest

from netqos.testing.processes import CommandFailed
from tests.bench.compare import session
from tests.bench.compare.surface import KernelOnly, Policy


class Agent(KernelOnly):
    name = "agent"
    how = "a process"

    def __init__(self, number: int | None) -> None:
        super().__init__()
        self._number = number

    @property
    def pid(self) -> int | None:
        return self._number

    def apply(self, policy: Policy) -> None:
        pass


def test_an_agent_that_ended_is_not_measured() -> None:
    session._check_alive(Agent(None))
    session._check_alive(Agent(os.getpid()))
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(CommandFailed, match=r"agent \(process \d+\): ended while it was measured"):
        session._check_alive(Agent(child.pid))
    child.wait()
    with pytest.raises(CommandFailed, match="ended while it was measured"):
        session._check_alive(Agent(child.pid))
