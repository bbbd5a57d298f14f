"""Ctrl-C at every stage of a start: quiet, with 130. A signal sent at an import hits the same place every time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SIGNALLED_AT_IMPORT = """
import os, signal, sys
program, stage, *words = sys.argv[1:]
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == stage:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
sys.argv[1:] = words
from importlib import import_module
sys.exit(import_module(f"netqos.cli.{program}").main())
"""
HELD_BACK_OVER_EXEC = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
os.kill(os.getpid(), signal.SIGINT)
os.execv(sys.executable, [sys.executable, "-m", "netqos.cli.ctl", "--version"])
"""


def python(code: str, *words: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False, timeout=30
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("program", "stage", "words"),
    [
        ("ctl", "netqos.cli.arguments", ["status"]),
        ("ctl", "argparse", ["status"]),
        ("ctl", "netqos.cli.commands.status", ["status"]),
        ("ctl", "netqos.runtime.backends", ["doctor"]),
        ("ctl", "netqos.cli.demo", ["demo"]),
        ("ctl", "netqos.cli.demo.chart", ["demo"]),
        ("ctl", "netqos.testing.netns", ["demo"]),
        ("daemon", "argparse", ["--version"]),
        ("daemon", "netqos.runtime.modes", ["--dry-run"]),
        ("daemon", "netqos.runtime.supervisor", []),
        ("daemon", "asyncio", []),
    ],
)
def test_ctrl_c_while_it_loads_is_130_without_a_traceback(program: str, stage: str, words: list[str]) -> None:
    name = {"ctl": "netqosctl", "daemon": "netqosd"}[program]
    assert python(SIGNALLED_AT_IMPORT, program, stage, *words) == (130, "", f"{name}: interrupted\n")


@pytest.mark.parametrize("program", ["ctl", "daemon"])
def test_ctrl_c_before_it_is_provided_for_is_130_too(program: str) -> None:
    assert python(SIGNALLED_AT_IMPORT, program, "netqos.cli.interrupts") == (130, "", "")


def test_ctrl_c_while_a_mode_of_netqosd_works_is_130(tmp_path: Path) -> None:
    config = tmp_path / "netqos.yaml"
    config.write_text("{}", encoding="ascii")
    code = SIGNALLED_AT_IMPORT.replace(
        "sys.exit(",
        "from netqos.runtime import modes\n"
        "modes.dry_run = lambda path: os.kill(os.getpid(), signal.SIGINT)\nsys.exit(",
    )
    assert python(code, "daemon", "", "--dry-run", "--config", str(config)) == (
        *(130, "", "netqosd: interrupted\n"),
    )


def test_ctrl_c_that_was_held_back_over_an_exec_takes_effect() -> None:
    assert python(HELD_BACK_OVER_EXEC) == (130, "", "netqosctl: interrupted\n")


def test_a_job_that_ignores_ctrl_c_goes_on_ignoring_it() -> None:
    code = SIGNALLED_AT_IMPORT.replace("class", "signal.signal(signal.SIGINT, signal.SIG_IGN)\nclass")
    returned, shown, told = python(code, "ctl", "argparse", "--version")
    assert (returned, shown.split()[0], told) == (0, "netqosctl", "")
