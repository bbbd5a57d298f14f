"""docs/tutorial.md, as a person types it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.gobuild import ROOT
from tests.node.programs import NodePrograms
from tests.node.tutorial import Step, steps

TUTORIAL = ROOT / "docs" / "tutorial.md"
_END = "--- end of step"


class Shell:
    """One bash that runs step after step."""

    def __init__(self, state: Path) -> None:
        """Started where the checkout is; a node of the test's own is remembered in `state`."""
        self._process = subprocess.Popen(
            ["bash"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={
                **os.environ,
                "NETQOS_NODE_STATE": str(state),
                "NETQOS_NODE_OWNER": str(os.getpid()),
                "COLUMNS": "200",
            },
        )

    def run(self, command: str) -> tuple[int, str]:
        """Exit status and output."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(f"{command}\necho '{_END}' $?\n")
        stdin.flush()
        lines: list[str] = []
        for line in stdout:
            if line.startswith(_END):
                return int(line.removeprefix(_END)), "".join(lines)
            lines.append(line)
        raise AssertionError(f"the shell ended: {''.join(lines)}")

    def close(self) -> None:
        """End it, and a node that is left."""
        self.run("./dev node stop")
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=10)
        self._process.stdout.close()


@pytest.fixture
def shell(node_programs: NodePrograms, tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path / "node.json")
    yield shell
    shell.close()


@pytest.mark.timeout(300)
def test_every_command_does_what_the_tutorial_says(shell: Shell) -> None:
    listed = steps(TUTORIAL.read_text(encoding="utf-8"))
    assert len(listed) > 10
    for step in listed:
        do(shell, step)


def do(shell: Shell, step: Step) -> None:
    """Once, or again where the reader is told so; a command that fails is no reason to wait."""
    end_s = time.monotonic() + step.within_s
    while True:
        status, output = shell.run(step.command)
        missing = step.missing(output)
        if status == 0 and not missing:
            return
        if status != 0 or time.monotonic() >= end_s:
            raise AssertionError(f"{step.command}ended with {status}, without {missing}:\n{output}")
        time.sleep(0.5)
