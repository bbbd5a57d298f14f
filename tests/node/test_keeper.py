"""`./dev node` at odd moments: interrupted, stopped while it starts, started twice at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.apiserver.gobuild import ROOT
from tests.node.programs import NodePrograms
from tests.node.realnode import wait_until
from tests.node.test_killed import left_overs

pytestmark = pytest.mark.timeout(120)


class Person:
    """Somebody who types `./dev node ...` for a node of the test's own."""

    def __init__(self, folder: Path) -> None:
        self._state = f"NETQOS_NODE_STATE={folder / 'node.json'}"
        self._met: set[int] = set()

    def types(self, *arguments: str) -> subprocess.Popen[str]:
        name, _, value = self._state.partition("=")
        return subprocess.Popen(
            [sys.executable, "-m", "tests.node", *arguments],
            cwd=ROOT,
            env={**os.environ, name: value, "NETQOS_NODE_OWNER": str(os.getpid())},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def keepers(self) -> set[int]:
        """The processes that keep this node."""
        found = {int(entry.name) for entry in Path("/proc").glob("[0-9]*") if self._keeps(entry)}
        self._met |= found
        return found

    def _keeps(self, entry: Path) -> bool:
        try:
            is_keeper = (entry / "cmdline").read_bytes().endswith(b"\0tests.node\0keep\0")
            # A child of it is called the same until it is another program.
            is_keeper = is_keeper and os.getsid(int(entry.name)) == int(entry.name)
            return is_keeper and self._state.encode() in (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            return False

    def wait_for_traces(self) -> None:
        """Until the node is being made."""

        def is_begun() -> bool:
            return any(
                f"-{pid}-" in one.name for pid in self.keepers() for one in Path("/run/netns").iterdir()
            )

        wait_until(is_begun, "a node is being made", 30)

    def assert_nothing_is_left(self) -> None:
        assert self.keepers() == set()
        assert self._met
        assert [one for pid in self._met for one in left_overs(pid)] == []


@pytest.fixture
def person(node_programs: NodePrograms, tmp_path: Path) -> Person:
    return Person(tmp_path)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    said, _ = process.communicate(timeout=60)
    return process.returncode, said


def test_what_is_interrupted_while_it_starts_is_gone(person: Person) -> None:
    starting = person.types()
    person.wait_for_traces()
    starting.send_signal(signal.SIGINT)
    assert ended(starting) == (130, "node: interrupted\n")
    person.assert_nothing_is_left()


def test_it_is_stopped_while_it_starts(person: Person) -> None:
    starting = person.types()
    person.wait_for_traces()
    assert ended(person.types("stop")) == (0, "node: stopped\n")
    status, said = ended(starting)
    assert (status, said.splitlines()[0].partition(";")[0]) == (1, "node: it did not start")
    person.assert_nothing_is_left()


def test_what_is_killed_while_it_starts_is_gone(person: Person) -> None:
    starting = person.types()
    person.wait_for_traces()
    (keeper,) = person.keepers()
    os.kill(keeper, signal.SIGKILL)
    status, said = ended(starting)
    assert (status, said.splitlines()[0].partition(";")[0]) == (1, "node: it did not start")
    person.assert_nothing_is_left()


def test_two_that_are_started_at_once_are_one_and_a_killed_one_is_started_again(person: Person) -> None:
    both = [person.types(), person.types()]
    assert [ended(one)[0] for one in both] == [0, 0]
    (keeper,) = person.keepers()
    os.kill(keeper, signal.SIGKILL)
    assert ended(person.types("env"))[0] == 1
    assert ended(person.types())[0] == 0
    assert len(person.keepers()) == 1
    assert ended(person.types("stop")) == (0, "node: stopped\n")
    assert ended(person.types("stop")) == (0, "node: none is running\n")
    person.assert_nothing_is_left()
