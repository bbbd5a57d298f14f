"""netqosctl: asks the daemon on this node, and tells it.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the daemon is not reachable, 4 no such pod or override, 5 input rejected.
Commands are loaded when they are given, so that each starts at once.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence

from netqos.cli.client import Problem, StatusClient
from netqos.cli.commands.common import Call
from netqos.cli.interrupts import INTERRUPTED, raise_as_usual
from netqos.cli.parser import parse
from netqos.cli.render import Screen, reader_gone

DONE, FAILED = 0, 1

Runner = Callable[[Call], int]


def run(words: Sequence[str]) -> int:
    """Run the command that the words ask for and return its exit code."""
    try:
        if words[:1] == ["demo"]:
            return _demo(words[1:])
        arguments = parse(words)
        if arguments.command == "demo":
            return _demo(["--json"] if arguments.json else [])
        runner = _runner(arguments.runs)
        _write_out_what_cannot_be_shown()
        screen = Screen.of_terminal(arguments.color)
        raise_as_usual()
        call = Call(arguments=arguments, client=StatusClient(arguments.socket), screen=screen)
        return _told(call, runner)
    except KeyboardInterrupt:
        print("netqosctl: interrupted", file=sys.stderr)
        return INTERRUPTED
    finally:
        raise_as_usual()


def _told(call: Call, runner: Runner) -> int:
    """The exit code of a command, whatever keeps it from its end told on stderr."""
    try:
        code = runner(call)
        sys.stdout.flush()
    except Problem as problem:
        call.screen.say(problem.message, hint=problem.hint, problems=problem.problems)
        return problem.code
    except BrokenPipeError:
        return reader_gone()
    except OSError as problem:
        call.screen.say(f"cannot write the answer: {problem.strerror or problem}")
        return FAILED
    return code


def _runner(name: str) -> Runner:
    module, _, function = name.partition(":")
    runner: Runner = getattr(importlib.import_module(f"netqos.cli.commands.{module}"), function)
    return runner


def _demo(words: Sequence[str]) -> int:
    from netqos.cli import demo  # noqa: PLC0415 - loaded by those who want it

    raise_as_usual()
    return int(demo.main(words))


def _write_out_what_cannot_be_shown() -> None:
    """A character that the terminal's encoding lacks is shown as its number instead of ending the command."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
