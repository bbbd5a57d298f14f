"""`python -m tests.bench [NAME...] [--json FILE] [--runs N]`: measure what the project claims.

Without a name it is `compare`, netqos beside other ways (tests/bench/compare); `all` are the benchmarks of this file.
Nothing here passes or fails by the clock of a shared machine: a claim that is not met is shown, and the exit status
stays 0. It is 1 when a benchmark could not be run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import netqos
from netqos.cli.demo.stage import require_tools
from netqos.errors import NetqosError, Rejected
from netqos.testing.netns import reexec_in_user_namespace
from tests.bench.bottleneck import bottleneck
from tests.bench.ceiling import ceiling
from tests.bench.compare import command as comparison
from tests.bench.cost import memory
from tests.bench.figures import Figure, markdown, table
from tests.bench.guarantee import guarantee, onset, used
from tests.bench.kubefaults import kube_outage, kube_quiet, kube_reconnects
from tests.bench.kubelatency import kube_latency
from tests.bench.kubeload import kube_load
from tests.bench.latency import latency_flood, latency_l0
from tests.bench.lateness import lateness
from tests.bench.limits import limit_accuracy
from tests.bench.linkstorm import link_storm
from tests.bench.livechanges import live_changes
from tests.bench.loopcost import loop_cost
from tests.bench.loss import class_changes, move, take_over
from tests.bench.many import many
from tests.bench.nodeagent import node_agent
from tests.bench.nodepods import node_pods
from tests.bench.onsets import onsets
from tests.bench.options import Options, say
from tests.bench.outputs import require_writable, save
from tests.bench.packetcost import packet_cost
from tests.bench.predictions import predictions
from tests.bench.reachable import node_reachable
from tests.bench.rest import rest
from tests.bench.restart import kill9, second_start
from tests.bench.shaping import local, shaping_cost
from tests.bench.streams import streams
from tests.bench.together import together
from tests.bench.uplinks import uplinks
from tests.bench.wake import wake_up

BENCHES: Mapping[str, Callable[[Options], list[Figure]]] = {
    "guarantee": guarantee,
    "used": used,
    "ceiling": ceiling,
    "onset": onset,
    "onsets": onsets,
    "together": together,
    "predictions": predictions,
    "limit-accuracy": limit_accuracy,
    "wake-up": wake_up,
    "move": move,
    "take-over": take_over,
    "class-changes": class_changes,
    "shaping-cost": shaping_cost,
    "packet-cost": packet_cost,
    "local": local,
    "many": many,
    "latency-l0": latency_l0,
    "latency-flood": latency_flood,
    "node-reachable": node_reachable,
    "live-changes": live_changes,
    "uplinks": uplinks,
    "bottleneck": bottleneck,
    "loop-cost": loop_cost,
    "lateness": lateness,
    "rest": rest,
    "link-storm": link_storm,
    "streams": streams,
    "memory": memory,
    "second-start": second_start,
    "kill9": kill9,
    "kube-latency": kube_latency,
    "kube-load": kube_load,
    "kube-outage": kube_outage,
    "kube-reconnects": kube_reconnects,
    "kube-quiet": kube_quiet,
    "node-pods": node_pods,
    "node-agent": node_agent,
}

LONG = frozenset({"bottleneck", "kube-outage", "kube-reconnects", "kube-quiet", "node-pods", "node-agent"})
"""Those of ten minutes to an hour, and those on a real node, run only where they are named."""

ALL = "all"

COMMANDS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "compare": comparison.main,
    "diff": comparison.diff,
    "show": comparison.show,
}


def main(argv: Sequence[str]) -> int:
    """Run the comparison, or the benchmarks named; `all`: those that take no more than a few minutes."""
    if argv and argv[0] in COMMANDS:
        return COMMANDS[argv[0]](argv[1:])
    is_measured = any(word in BENCHES or word in {ALL, "-h", "--help"} for word in argv)
    if is_measured or (argv and not argv[0].startswith("-")):
        return measure(argv)
    return COMMANDS["compare"](argv)


def measure(argv: Sequence[str]) -> int:
    """Run the benchmarks named."""
    arguments = _parser().parse_args(argv)
    options = Options(
        runs=arguments.runs,
        onsets=arguments.onsets,
        kills=arguments.kills,
        reconnects=arguments.reconnects,
        minutes=arguments.minutes,
    )
    try:
        require_writable((arguments.json, arguments.markdown))
        require_tools()
        reexec_in_user_namespace()
    except NetqosError as problem:
        print(f"bench: {problem}", file=sys.stderr)
        return 2 if isinstance(problem, Rejected) else 1
    figures: list[Figure] = []
    failed: list[str] = []
    is_saved = True
    try:
        for name in _chosen(arguments.names):
            found = _run(name, options)
            figures += found or []
            failed += [name] if found is None else []
            is_saved = _save(arguments, figures, options)
    except KeyboardInterrupt:
        failed.append("the rest (interrupted)")
    print(table(figures))
    if failed:
        print(f"bench: could not be run: {', '.join(failed)}", file=sys.stderr)
    return 0 if is_saved and not failed else 1


def _chosen(names: Sequence[str]) -> list[str]:
    short = [name for name in BENCHES if name not in LONG]
    return [one for name in names for one in (short if name == ALL else [name])]


def _save(arguments: argparse.Namespace, figures: Sequence[Figure], options: Options) -> bool:
    """Write what is known so far: a run that is cut short has lost nothing."""
    document = json.dumps(_document(figures, options), indent=2) + "\n"
    return save([(arguments.json, lambda: document), (arguments.markdown, lambda: markdown(figures))])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./dev bench", description="Measure what the project claims.")
    parser.add_argument(
        "names",
        nargs="+",
        metavar="NAME",
        type=_name,
        help=f"compare (the default), diff, show, {ALL}, or some of {', '.join(BENCHES)}",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures, run by run")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the table for a page of the docs"
    )
    parser.add_argument("--runs", type=_positive, default=3, metavar="N", help="runs of each (default: 3)")
    parser.add_argument(
        "--onsets", type=_positive, default=10, metavar="N", help="joins of onset (default: 10)"
    )
    parser.add_argument(
        "--kills", type=_positive, default=200, metavar="N", help="kills of kill9 (default: 200)"
    )
    parser.add_argument(
        "--reconnects", type=_positive, default=1000, metavar="N", help="of kube-reconnects (default: 1000)"
    )
    parser.add_argument(
        "--minutes", type=_positive, metavar="N", help="length of kube-outage (10) and kube-quiet (60)"
    )
    return parser


def _name(text: str) -> str:
    if text not in BENCHES and text != ALL:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join([*COMMANDS, ALL, *BENCHES])}")
    return text


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return number


def _run(name: str, options: Options) -> list[Figure] | None:
    start_s = time.monotonic()
    say(f"{name} ...")
    try:
        return BENCHES[name](options)
    except Exception:  # noqa: BLE001 - one benchmark that fails does not hide the others
        traceback.print_exc()
        return None
    finally:
        say(f"{name} took {time.monotonic() - start_s:.0f} s")


def _document(figures: Sequence[Figure], options: Options) -> dict[str, object]:
    return {
        "netqos": netqos.__version__,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "runs": options.runs,
        "figures": [figure.as_json() for figure in figures],
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
