"""That the network namespace of a process is told without the right to trace it (case E5)."""

from __future__ import annotations

import os
import sys
import time

import pytest

from netqos.host.cgroups import Cgroups
from netqos.testing.namespaces import Namespace
from netqos.testing.processes import run_tool

pytestmark = pytest.mark.kernel("tool:setpriv")

PROGRAM = """
import sys
from netqos.host.cgroups import Cgroups
cgroups = Cgroups()
print([cgroups._network(pid) == cgroups._network("self") for pid in sys.argv[1:]])
"""


def test_the_network_of_others_without_the_right_to_trace_them() -> None:
    namespace = Namespace("other")
    try:
        process = namespace.popen(["sleep", "60"])
        while process.pid not in namespace.pids():
            time.sleep(0.01)
        drop = ["setpriv", "--bounding-set=-all,+net_admin", "--inh-caps=-all"] if os.geteuid() == 0 else []
        pids = [str(process.pid), str(os.getpid()), "1"]
        done = run_tool([*drop, sys.executable, "-c", PROGRAM, *pids])
        here = Cgroups()._network("self") == Cgroups()._network("1")
        assert done.stdout == f"[False, True, {here}]\n"
    finally:
        namespace.remove()
