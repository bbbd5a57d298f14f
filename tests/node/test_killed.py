"""A node whose holder is killed leaves no process, and the next start or stop removes the rest."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from netqos.testing.namespaces import left_over, sweep
from tests.apiserver.gobuild import ROOT
from tests.node.branches import hierarchies, sweep_branches
from tests.node.programs import NodePrograms
from tests.node.realnode import wait_until

_HOLDER = """
import signal
from tests.apiserver.kube import Kube
from tests.node.load import RX, TX, Load
from tests.node.pods import Pods
from tests.node.programs import find_node_programs
from tests.node.realnode import RealNode

with RealNode(find_node_programs()) as node:
    pods = Pods(node, Kube(node.api, "held", node=node.name))
    pods.start("busy")
    load = Load(pods)
    load.start(["busy"], [TX, RX])
    pods.place("busy").popen(["iperf3", "--server"])  # in a namespace that no sweep of anybody finds
    print("it is there", flush=True)
    signal.pause()
"""
_PARAMETERS = ("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys")


@pytest.mark.timeout(120)
def test_a_killed_holder_leaves_nothing_that_runs_and_the_rest_is_swept(node_programs: NodePrograms) -> None:
    before = parameters(), mounts()
    command = [sys.executable, "-c", _HOLDER]
    holder = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "it is there\n"
    assert (parameters(), mounts()) == before
    of_it = descendants(holder.pid)
    assert len(of_it) > 12
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    wait_until(lambda: of_it.isdisjoint(dict(running())), "no process is left", 2)
    sweep()
    sweep_branches()
    assert left_overs(holder.pid) == []
    assert (parameters(), mounts()) == before


def left_overs(owner: int) -> list[Path]:
    places = [Path("/run/netns"), Path(tempfile.gettempdir()), *(one.path for one in hierarchies())]
    return [found for place in places for found in left_over(place) if f"-{owner}-" in found.name]


def descendants(ancestor: int) -> set[int]:
    """What a process has started, and what that has, whatever namespaces they are in; without those that have ended."""
    parents = dict(running())
    found = {ancestor}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {ancestor}


def running() -> Iterator[tuple[int, int]]:
    """Processes that have not ended, with their parents."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            text = (entry / "stat").read_text(encoding="utf-8", errors="replace")
            state, parent = text.rpartition(")")[2].split()[:2]
            if state not in {"Z", "X"}:
                yield int(entry.name), int(parent)


def parameters() -> list[str]:
    return [Path("/proc/sys", name).read_text(encoding="ascii") for name in _PARAMETERS]


def mounts() -> list[str]:
    """But those of namespaces and in folders for temporary files, which others make meanwhile."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    places = [line.split()[4] for line in lines]
    return sorted(one for one in places if "/netns" not in one and not one.startswith(tempfile.gettempdir()))
