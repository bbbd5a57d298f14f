"""netqosd: the command line of the daemon.

Exit codes: 0 done, 1 failed (the last line on stderr says why), 2 wrong usage, 5 the configuration was rejected and
there is no earlier one to go on with, 130 interrupted before it served (afterwards Ctrl-C is a request to end: 0).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import netqos
from netqos.cli.interrupts import INTERRUPTED, raise_as_usual
from netqos.errors import NetqosError, Rejected

DEFAULT_CONFIG = Path("/etc/netqos/netqos.yaml")
DONE, FAILED, REJECTED = 0, 1, 5


def run(words: Sequence[str]) -> int:
    """Run netqosd with these words and return its exit code."""
    try:
        return _run(_parser().parse_args(words))
    except Rejected as problem:
        _complain(problem)
        return REJECTED
    except NetqosError as problem:
        _complain(problem)
        return FAILED
    except KeyboardInterrupt:
        print("netqosd: interrupted", file=sys.stderr)
        return INTERRUPTED
    finally:
        raise_as_usual()


def _run(arguments: argparse.Namespace) -> int:
    if arguments.list_backends:
        return _list_backends()
    from netqos.runtime import modes, supervisor  # noqa: F401, PLC0415 - `--version` and `--help` load nothing of this

    raise_as_usual()
    if arguments.check_config:
        return _print(modes.check_config(arguments.config))
    if arguments.dry_run:
        return _print(modes.dry_run(arguments.config))
    if arguments.once:
        return _print(modes.once(arguments.config))
    return modes.serve(arguments.config)


def _list_backends() -> int:
    from netqos.backend.registry import list_backends  # noqa: PLC0415 - as above

    for one in list_backends():
        print(f"{one.name}\t{one.distribution} {one.version}\t{one.state}")
    return DONE


def _print(answer: tuple[int, str]) -> int:
    code, text = answer
    try:
        print(text, flush=True)
    except BrokenPipeError:
        from netqos.cli.render import reader_gone  # noqa: PLC0415 - for those whose reader has had enough

        reader_gone()
    return code


def _complain(problem: NetqosError) -> None:
    details = problem.problems if isinstance(problem, Rejected) else ()
    for line in details or (str(problem),):
        print(f"netqosd: {line}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="netqosd",
        description="Keeps this node's network fair between the levels L0, L1 and L2.",
        epilog="Exit codes: 0 done, 1 failed, 2 wrong usage, 5 configuration rejected, 130 interrupted.",
    )
    parser.add_argument(
        "--config",
        type=Path,
        default=DEFAULT_CONFIG,
        metavar="FILE",
        help="configuration file; conf.d/*.yaml beside it is read after it (default: %(default)s)",
    )
    parser.add_argument("--version", action="version", version=f"netqosd {netqos.__version__}")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--check-config", action="store_true", help="report all problems of the configuration and exit"
    )
    mode.add_argument(
        "--dry-run", action="store_true", help="print what would be changed on this node and exit"
    )
    mode.add_argument("--once", action="store_true", help="bring the node to the wanted state once and exit")
    mode.add_argument(
        "--list-backends",
        action="store_true",
        help="list the installed backends and whether each loads, and exit; what works here netqosctl doctor tells",
    )
    return parser
