"""`netqosctl demo`: a node out of network namespaces, the real daemon, real traffic, and whether it kept its word."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

from netqos.cli.demo.chart import draw
from netqos.cli.demo.driver import play
from netqos.cli.demo.policy import ShownPolicy, own_policy, read_policy
from netqos.cli.demo.scenario import SHORTEST_S, Scenario, build_scenario
from netqos.cli.demo.show import Screen, opening, table
from netqos.cli.demo.stage import build_stage, require_tools
from netqos.cli.demo.verdict import Recording, Verdict, as_json, judge
from netqos.cli.render import reader_gone
from netqos.cli.units import safe
from netqos.cli.values import with_negative_values
from netqos.errors import NetqosError, Rejected
from netqos.model.levels import Direction
from netqos.model.quantities import parse_bandwidth
from netqos.sources.configfiles import Unreadable, read_documents
from netqos.testing.netns import reexec_in_user_namespace

KEPT, BROKEN, USAGE, INTERRUPTED = 0, 1, 2, 130
USUAL_S = 25.0
LONGEST_S = 3600.0


def main(argv: Sequence[str]) -> int:
    """Run the demo; 0: every promise was kept, 1: not, or it could not run, 2: wrong usage, 130: Ctrl-C."""
    arguments = parser().parse_args(with_negative_values(argv))
    try:
        policy = _policy(arguments)
    except Rejected as problem:
        _complain(problem)
        return USAGE
    try:
        require_tools()
        _enter_namespace()
        with _termination_as_interrupt():
            return _show(arguments, policy)
    except KeyboardInterrupt:
        print("netqosctl demo: interrupted; everything is removed again", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        return reader_gone()
    except NetqosError as problem:
        _complain(problem)
        return BROKEN
    except OSError as problem:
        _complain(_as_told(problem))
        return BROKEN


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="netqosctl demo",
        description="Show a node keeping its promises: network namespaces as node and pods, the real netqosd, real "
        "TCP traffic. Needs no cluster, and no root where user namespaces are allowed; leaves nothing behind.",
        epilog="Exit status: 0 every promise was kept, 1 one was broken or the demo could not run, 2 wrong usage.",
    )
    made.add_argument(
        "--seconds",
        type=_seconds,
        default=USUAL_S,
        metavar="S",
        help=f"length of the whole, {SHORTEST_S:g} to {LONGEST_S:g} (default: %(default)g)",
    )
    made.add_argument(
        "--total",
        type=_bandwidth,
        metavar="BPS",
        help="the uplink's total for egress, e.g. 1G (default: 200M); ingress has three quarters of it",
    )
    made.add_argument(
        "--policy", type=Path, metavar="FILE", help="take the levels from this configuration file of netqosd"
    )
    made.add_argument("--json", action="store_true", help="print the result as JSON instead of a table")
    made.add_argument("--svg", type=_writable, metavar="FILE", help="write a picture of the levels over time")
    return made


def _policy(arguments: argparse.Namespace) -> ShownPolicy:
    path: Path | None = arguments.policy
    if path is None:
        return own_policy(arguments.total)
    try:
        _, text = read_documents(path)[0]  # what conf.d beside it adds is for a node
    except Unreadable as problem:
        hint = "name a configuration file of netqosd with --policy"
        told = tuple(
            f"{path if one.subject == path.name else one.subject}: {one.message}" for one in problem.findings
        )
        raise Rejected("cannot be read", subject=str(path), hint=hint, problems=told) from None
    return read_policy(text, str(path), arguments.total)


def _show(arguments: argparse.Namespace, policy: ShownPolicy) -> int:
    recording, scenario = _record(arguments, policy)
    verdict = judge(scenario, recording)
    _print(verdict, as_document=arguments.json)
    if arguments.svg is not None:
        arguments.svg.write_text(draw(verdict, recording), encoding="utf-8")
    return KEPT if verdict.kept else BROKEN


def _record(arguments: argparse.Namespace, policy: ShownPolicy) -> tuple[Recording, Scenario]:
    """Play the story in the directions that are shaped here; one that is not is told of."""
    with build_stage(policy.sections) as (rig, node):
        missing = node.not_enforced
        sides = {way: policy.sides[way] for way in Direction if way not in missing}
        scenario = build_scenario(seconds=arguments.seconds, sides=sides)
        out = sys.stderr if arguments.json else sys.stdout
        screen = Screen(out, scenario, colors="NO_COLOR" not in os.environ)
        screen.say(opening(scenario))
        for way, reason in missing.items():
            screen.say(f"Not shown: {way.pod_word} ({safe(reason)})")
        try:
            return play(scenario, rig, node, screen.update), scenario
        finally:
            screen.close()


def _print(verdict: Verdict, *, as_document: bool) -> None:
    print(json.dumps(as_json(verdict), indent=2) if as_document else f"\n{table(verdict)}", flush=True)


def _enter_namespace() -> None:
    """Start this program again where it is needed; Ctrl-C meanwhile waits for the new one, which takes it up."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        reexec_in_user_namespace()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@contextlib.contextmanager
def _termination_as_interrupt() -> Iterator[None]:
    """SIGTERM and a closed terminal end the demo as Ctrl-C does: everything is removed."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _as_told(problem: OSError) -> NetqosError:
    """What the system refused, in words: the picture or the answer cannot be written, or the stage cannot be built."""
    reason = problem.strerror or str(problem)
    if problem.filename is None:
        return NetqosError(f"cannot go on: {reason}", hint="see whether there is room where the output goes")
    return NetqosError(
        reason, subject=str(problem.filename), hint="name another place, or see who may write there"
    )


def _complain(problem: NetqosError) -> None:
    details = problem.problems if isinstance(problem, Rejected) else ()
    where = f"{problem.subject}: " if problem.subject else ""
    for line in details or (f"{where}{problem.message}",):
        print(f"netqosctl demo: {safe(line)}", file=sys.stderr)
    if problem.hint:
        print(f"  {safe(problem.hint)}", file=sys.stderr)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = float("nan")
    if not SHORTEST_S <= seconds <= LONGEST_S:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of seconds from {SHORTEST_S:g} to {LONGEST_S:g}"
        )
    return seconds


def _bandwidth(text: str) -> int:
    try:
        return parse_bandwidth(text)
    except Rejected as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None


def _writable(text: str) -> Path:
    """A file that can be written later: said before half a minute of traffic, not after it."""
    path = Path(text)
    try:
        target = path if path.exists() else path.parent
        takes_it = not path.is_dir() and target.exists() and os.access(target, os.W_OK)
    except OSError:  # a folder that may not be looked into
        takes_it = False
    if not takes_it:
        raise argparse.ArgumentTypeError(f"{text!r} cannot be written")
    return path
