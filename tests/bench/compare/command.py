"""`./dev bench compare` and `./dev bench diff`: run enforcers in turns, write what came of it, compare two files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from netqos.cli.demo.stage import require_tools
from netqos.errors import NetqosError, Rejected
from netqos.testing.netns import reexec_in_user_namespace
from tests.bench.compare import ours, stepper
from tests.bench.compare.byhand import NaiveTree, Nothing, PodLimits, StaticTree
from tests.bench.compare.chart import draw
from tests.bench.compare.judge import compare
from tests.bench.compare.page import changes, markdown, table, unlike
from tests.bench.compare.results import Result, as_text, read
from tests.bench.compare.runner import Job, run
from tests.bench.compare.script import Times
from tests.bench.compare.surface import Enforcer, load
from tests.bench.options import congestions
from tests.bench.outputs import Output, require_writable, save

BUILT_IN: Mapping[str, type[Enforcer]] = {
    one.name: one for one in (Nothing, StaticTree, NaiveTree, PodLimits, stepper.Adapter, ours.Adapter)
}


def main(argv: Sequence[str]) -> int:
    """Run the comparison; 1 where a run failed, 2 for a wrong command line."""
    arguments = _parser().parse_args(argv)
    try:
        job = _job(arguments)
        require_tools()
        reexec_in_user_namespace()
    except NetqosError as problem:
        print(f"bench: {problem}", file=sys.stderr)
        return 2 if isinstance(problem, Rejected) else 1
    result, failed = run(job)
    print(table(result))
    is_saved = save([(arguments.json, lambda: as_text(result)), *_pages(result, arguments)])
    if failed:
        print(f"bench: failed: {', '.join(failed)}", file=sys.stderr)
    return 0 if is_saved and not failed else 1


def show(argv: Sequence[str]) -> int:
    """Show a result file again; 2 where it is none."""
    parser = argparse.ArgumentParser(
        prog="./dev bench show", description="An earlier result as table and picture."
    )
    parser.add_argument("file", type=Path)
    _add_outputs(parser)
    arguments = parser.parse_args(argv)
    try:
        require_writable((arguments.svg, arguments.markdown))
        result = read(arguments.file)
    except Rejected as problem:
        print(f"bench: {problem}", file=sys.stderr)
        return 2
    print(table(result))
    return 0 if save(_pages(result, arguments)) else 1


def _pages(result: Result, arguments: argparse.Namespace) -> list[Output]:
    return [
        (arguments.svg, lambda: draw(result)),
        (arguments.markdown, lambda: markdown(result, "./dev bench compare")),
    ]


def diff(argv: Sequence[str]) -> int:
    """Compare two result files; 2 where one is none."""
    parser = argparse.ArgumentParser(prog="./dev bench diff", description="What moved between two results.")
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--all", action="store_true", help="show every row, not only what moved")
    arguments = parser.parse_args(argv)
    try:
        before, after = read(arguments.before), read(arguments.after)
    except Rejected as problem:
        print(f"bench: {problem}", file=sys.stderr)
        return 2
    for line in unlike(before, after):
        print(f"note: {line}")
    print(changes(list(compare(before, after)), everything=arguments.all))
    return 0


def _job(arguments: argparse.Namespace) -> Job:
    require_writable((arguments.json, arguments.svg, arguments.markdown))
    added = [load(path) for path in arguments.adapter]
    known = dict(BUILT_IN)
    for one in added:
        if one.name in known:
            raise Rejected(
                f"the name {one.name!r} is taken", subject="adapter", hint=f"taken: {', '.join(known)}"
            )
        known[one.name] = one
    names = arguments.enforcer or list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise Rejected(
            f"unknown: {', '.join(unknown)}", subject="enforcer", hint=f"known: {', '.join(known)}"
        )
    chosen = [*names, *(one.name for one in added if one.name not in names)]
    return Job(
        enforcers={name: known[name] for name in chosen},
        runs=arguments.runs,
        times=Times().scaled(arguments.scale),
        congestion=arguments.congestion,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./dev bench compare",
        description="Enforcers side by side: the same traffic on the same rig, in turns. Under ten minutes.",
    )
    parser.add_argument(
        "--enforcer",
        action="append",
        default=[],
        metavar="NAME",
        help=f"only this one; of {', '.join(BUILT_IN)}",
    )
    parser.add_argument(
        "--adapter", action="append", default=[], type=Path, metavar="FILE", help="one more, of a Python file"
    )
    parser.add_argument("--runs", type=_count, default=5, metavar="N", help="runs of each (default: 5)")
    parser.add_argument(
        "--scale", type=_scale, default=1.0, metavar="X", help="make every part so much longer (default: 1)"
    )
    parser.add_argument("--congestion", choices=congestions(), default="cubic", help="of the greedy flows")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures, run by run")
    _add_outputs(parser)
    return parser


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--svg", type=Path, metavar="FILE", help="write the chart")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the table for a page of the docs"
    )


def _count(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return number


def _scale(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.05 <= value <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0.05 to 100")
    return value
