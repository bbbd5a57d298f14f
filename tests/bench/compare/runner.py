"""Running a comparison: enforcers in turns, each run judged as it ends."""

from __future__ import annotations

import os
import platform
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import netqos
from tests.bench.compare.measures import evaluate
from tests.bench.compare.results import Contestant, Result, picture_of, policy_json
from tests.bench.compare.script import Times
from tests.bench.compare.session import Recording, record
from tests.bench.compare.surface import Enforcer, Policy, usual_policy
from tests.bench.moments import longest_gap_s
from tests.bench.options import say

_STALL_S, _REPEATS = 0.25, 2
"""Five readings that did not come; and how many such runs are made again, in all: more would not fit ten minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What to run: enforcers by name, how often, how long, with which congestion control."""

    enforcers: Mapping[str, type[Enforcer]]
    runs: int = 5
    times: Times = field(default_factory=Times)
    policy: Policy = field(default_factory=usual_policy)
    congestion: str = "cubic"

    @property
    def about(self) -> dict[str, object]:
        """For the file: the machine and the lengths."""
        return {
            "netqos": netqos.__version__,
            "kernel": platform.release(),
            "python": platform.python_version(),
            "cpus": os.cpu_count(),
            "congestion": self.congestion,
            "greedy_s": round(self.times.greedy_s, 2),
            "watched_s": round(self.times.join_s, 2),
        }


def run(job: Job) -> tuple[Result, list[str]]:
    """All runs, the enforcers in turns so that a drift of the machine hits them alike; and what failed.

    Ctrl-C ends it; what was measured until then is kept.
    """
    found = {name: Contestant(name=name, how=made.how) for name, made in job.enforcers.items()}
    failed: list[str] = []
    repeated = 0
    for number, name in turns(tuple(job.enforcers), job.runs):
        made = job.enforcers[name]
        start_s = time.monotonic()
        try:
            recording, again = _recorded(made, job, repeats=_REPEATS - repeated)
            found[name] = _with_run(found[name], recording, job.policy)
            repeated += again
        except KeyboardInterrupt:
            failed.append("the rest (interrupted)")
            break
        except Exception:  # noqa: BLE001 - one enforcer that fails does not hide the others
            traceback.print_exc()
            failed.append(f"run {number} of {name}")
        say(f"compare: run {number} of {job.runs}, {name}: {time.monotonic() - start_s:.0f} s")
    about = {"runs": job.runs, "repeated": repeated, **job.about}
    return Result(policy=policy_json(job.policy), contestants=tuple(found.values()), about=about), failed


def turns(names: Sequence[str], runs: int) -> Iterator[tuple[int, str]]:
    """Who runs when: all of them in each round, which begins with another one each time."""
    for number in range(runs):
        first = number % len(names)
        for name in (*names[first:], *names[:first]):
            yield number + 1, name


def _recorded(made: type[Enforcer], job: Job, *, repeats: int) -> tuple[Recording, int]:
    """One run, and how often it was made again: a machine that stood still says nothing about anybody."""
    recording, again = record(made(), job.policy, job.times, congestion=job.congestion), 0
    while (gap_s := longest_gap_s(recording.series)) > _STALL_S and again < repeats:
        say(f"compare: {made.name}: the machine stood still for {gap_s:.2f} s; once more")
        recording, again = record(made(), job.policy, job.times, congestion=job.congestion), again + 1
    return recording, again


def _with_run(one: Contestant, recording: Recording, policy: Policy) -> Contestant:
    return replace(
        one,
        runs=(*one.runs, evaluate(recording, policy)),
        picture=one.picture or picture_of(recording),
    )
