"""A node whose holder is killed leaves no process, and the next start or stop removes the rest."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from netqos.testing.namespaces import left_over, sweep
from tests.apiserver.gobuild import ROOT
from tests.node.branches import hierarchies, sweep_branches
from tests.node.programs import NodePrograms
from tests.node.realnode import wait_until

_HOLDER = """
import signal
from tests.node.programs import find_node_programs
from tests.node.realnode import RealNode

with RealNode(find_node_programs()) as node:
    print(node.folder, flush=True)
    signal.pause()
"""
_PARAMETERS = ("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys")


@pytest.mark.timeout(120)
def test_a_killed_holder_leaves_nothing_that_runs_and_the_rest_is_swept(node_programs: NodePrograms) -> None:
    before = parameters(), mounts()
    command = [sys.executable, "-c", _HOLDER]
    holder = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    folder = holder.stdout.readline().strip()
    assert folder
    assert (parameters(), mounts()) == before
    of_it = processes(folder)
    assert len(of_it) > 4
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in of_it), "no process is left", 10)
    sweep()
    sweep_branches()
    assert left_overs(holder.pid) == []
    assert (parameters(), mounts()) == before


def left_overs(owner: int) -> list[Path]:
    places = [Path("/run/netns"), Path(tempfile.gettempdir()), *(one.path for one in hierarchies())]
    return [found for place in places for found in left_over(place) if f"-{owner}-" in found.name]


def processes(folder: str) -> list[int]:
    """Those whose command line names a node's folder, and all in the pid namespaces that these are in but for ours."""
    ours = Path("/proc/self/ns/pid").readlink()
    spaces = {space for pid, space in _spaces() if folder in _command(pid)} - {ours}
    named = [pid for pid, _ in _spaces() if folder in _command(pid)]
    return sorted({*named, *(pid for pid, space in _spaces() if space in spaces)})


def _spaces() -> list[tuple[int, Path]]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            found.append((int(entry.name), (entry / "ns/pid").readlink()))
        except OSError:
            continue
    return found


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def parameters() -> list[str]:
    return [Path("/proc/sys", name).read_text(encoding="ascii") for name in _PARAMETERS]


def mounts() -> list[str]:
    """But those of namespaces, which other tests make meanwhile."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return sorted(line.split()[4] for line in lines if "/netns" not in line)
