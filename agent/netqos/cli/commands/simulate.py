"""netqosctl simulate: what a policy and a demand come to, before anything is switched on.

No daemon is asked: the traffic is a model, the loop that steers it is the daemon's own.
"""

from __future__ import annotations

import sys
from pathlib import Path

from netqos.cli.client import InputRejected, Json
from netqos.cli.commands.common import DONE, Call
from netqos.cli.progress import Progress
from netqos.cli.render import Column, Screen, Span
from netqos.cli.units import count, rate
from netqos.engine.predict import Phase, Prediction, predict
from netqos.engine.scenario import Scenario, read_scenario
from netqos.errors import Rejected
from netqos.model.levels import Direction, Level

STDIN = "-"
LONGEST = 1 << 20
LEVELS = (
    Column(head="level"),
    Column(head="rate", right=True),
    Column(head="guarantee", right=True),
    Column(head="ceiling", right=True),
    Column(head="ceiling now", right=True),
)
WORKLOADS = (
    Column(head="workload", flexible=True),
    Column(head="level"),
    Column(head="rate", right=True),
    Column(head="limit", right=True),
    Column(head="dropped", right=True),
)


def run(call: Call) -> int:
    """Predict, and show it."""
    found = _predict(call.screen, _scenario(call.arguments.file))
    if call.wants_json:
        call.screen.json("simulate", {"directions": {one.direction.value: _as_json(one) for one in found}})
    else:
        for place, one in enumerate(found):
            if place:
                call.screen.line()
            _show(call.screen, one)
    return DONE


def _predict(screen: Screen, scenario: Scenario) -> tuple[Prediction, ...]:
    with Progress(screen.talk) as progress:

        def told(direction: Direction, at_s: float) -> None:
            what = f"{direction.pod_word}: {at_s:.0f}s of {scenario.length_s:.0f}s"
            progress.tell(what, at_s / scenario.length_s)

        return predict(scenario, told)


def _scenario(name: str) -> Scenario:
    shown = "stdin" if name == STDIN else name
    try:
        return read_scenario(_text(name), Path(shown).name)
    except Rejected as problem:
        problems = problem.problems or (problem.message,)
        hint = "docs/loop.md has examples of scenarios"
        raise InputRejected(f"the scenario in {shown} is wrong", hint=hint, problems=problems) from None
    except OSError as problem:
        raise InputRejected(f"{shown} cannot be read: {problem.strerror}", hint="name another file") from None
    except UnicodeDecodeError:
        raise InputRejected(f"{shown} is no text", hint="a scenario is YAML or JSON in UTF-8") from None


def _text(name: str) -> str:
    if name == STDIN:
        raw = sys.stdin.buffer.read(LONGEST + 1)
    else:
        with Path(name).open("rb") as file:
            raw = file.read(LONGEST + 1)
    if len(raw) > LONGEST:
        raise InputRejected(f"{name} is longer than {LONGEST >> 20} MiB", hint="name another file")
    return raw.decode()


def _show(screen: Screen, found: Prediction) -> None:
    screen.line(Span(found.direction.pod_word, "head"), f" under a total of {rate(found.total_bps)}")
    for phase in found.phases:
        screen.line()
        changes = count(phase.changes, "change of ceilings", "changes of ceilings")
        screen.line(Span(f"from {phase.start_s:g}s to {phase.end_s:g}s", "head"), f", {changes}")
        screen.table(LEVELS, [_level(found, phase, level) for level in Level], indent=2)
        screen.line()
        screen.table(WORKLOADS, _workloads(found, phase), indent=2)
        screen.line()
        for reason in phase.reasons:
            screen.prose("  ", reason, hang=4)


def _level(found: Prediction, phase: Phase, level: Level) -> list[Span | str]:
    band = found.bands[level]
    return [
        level.name,
        rate(phase.levels_bps[level]),
        rate(band.guarantee_bps) if band.enabled else "off",
        rate(band.ceiling_bps),
        rate(phase.ceilings_bps[level]),
    ]


def _workloads(found: Prediction, phase: Phase) -> list[list[Span | str]]:
    """A row for each workload; neighbours that are alike are in one."""
    rows: list[list[Span | str]] = []
    names: list[tuple[str, str]] = []
    for one in found.traffic.members:
        lost_bps = phase.lost_bps[one.name]
        figures = [rate(phase.workloads_bps[one.name]), rate(one.limit_bps), rate(lost_bps or None)]
        if rows and rows[-1][1:] == [one.level.name, *figures]:
            names[-1] = (names[-1][0], one.name)
            rows[-1][0] = f"{names[-1][0]} to {one.name}, each"
        else:
            names.append((one.name, one.name))
            rows.append([one.name, one.level.name, *figures])
    return rows


def _as_json(found: Prediction) -> Json:
    return {
        "total_bps": found.total_bps,
        "levels": {
            level.name: {
                "enabled": found.bands[level].enabled,
                "guarantee_bps": found.bands[level].guarantee_bps,
                "ceiling_bps": found.bands[level].ceiling_bps,
            }
            for level in Level
        },
        "phases": [_phase_json(found, phase) for phase in found.phases],
        "series": {
            "at_s": [one.at_s for one in found.moments],
            "levels": {
                level.name: {
                    "rate_bps": [one.levels_bps[level] for one in found.moments],
                    "current_ceiling_bps": [one.ceilings_bps[level] for one in found.moments],
                }
                for level in Level
            },
        },
    }


def _phase_json(found: Prediction, phase: Phase) -> Json:
    return {
        "start_s": phase.start_s,
        "end_s": phase.end_s,
        "contention": phase.contention,
        "changes": phase.changes,
        "levels": {
            level.name: {
                "rate_bps": phase.levels_bps[level],
                "current_ceiling_bps": phase.ceilings_bps[level],
            }
            for level in Level
        },
        "workloads": {
            one.name: {
                "level": one.level.name,
                "limit_bps": one.limit_bps,
                "rate_bps": phase.workloads_bps[one.name],
                "dropped_bps": phase.lost_bps[one.name],
            }
            for one in found.traffic.members
        },
        "reasons": list(phase.reasons),
    }
