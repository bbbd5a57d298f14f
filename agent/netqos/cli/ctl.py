"""netqosctl: asks the daemon on this node, and tells it.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the daemon is not reachable, 4 no such pod or override, 5 input rejected.
Commands are loaded when they are given, so that each starts at once.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence

from netqos.cli.arguments import build_parser
from netqos.cli.client import Problem, StatusClient
from netqos.cli.commands.common import Call
from netqos.cli.render import Screen

DONE, FAILED, INTERRUPTED = 0, 1, 130

Runner = Callable[[Call], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run netqosctl with the given arguments and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["demo"]:
        return _demo(words[1:])
    arguments = build_parser().parse_args(words)
    if arguments.command == "demo":
        return _demo(["--json"] if arguments.json else [])
    _write_out_what_cannot_be_shown()
    screen = Screen.of_terminal(arguments.color)
    call = Call(arguments=arguments, client=StatusClient(arguments.socket), screen=screen)
    try:
        code = _runner(arguments.runs)(call)
        sys.stdout.flush()
    except Problem as problem:
        screen.say(problem.message, hint=problem.hint, problems=problem.problems)
        return problem.code
    except BrokenPipeError:
        return _reader_gone()
    except KeyboardInterrupt:
        screen.say("interrupted")
        return INTERRUPTED
    except OSError as problem:
        screen.say(f"cannot write the answer: {problem.strerror or problem}")
        return FAILED
    return code


def _runner(name: str) -> Runner:
    module, _, function = name.partition(":")
    runner: Runner = getattr(importlib.import_module(f"netqos.cli.commands.{module}"), function)
    return runner


def _demo(words: Sequence[str]) -> int:
    from netqos.cli import demo  # noqa: PLC0415 - loaded by those who want it

    return int(demo.main(words))


def _write_out_what_cannot_be_shown() -> None:
    """A character that the terminal's encoding lacks is shown as its number instead of ending the command."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _reader_gone() -> int:
    """The reader of a pipe has had enough: no error, and nothing may be flushed to it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return DONE


if __name__ == "__main__":
    sys.exit(main())
