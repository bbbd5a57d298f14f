"""The kinds of beginnings and ends whose onsets are measured. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations

from netqos.model.levels import Level
from tests.bench.loads import Load, bursts, many_flows, one_flow, short_flows, udp_flood


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Somebody begins with a load, or stops (None); its onset counts unless it is only there to be met by others."""

    level: Level
    load: Load | None
    counts: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Steps one after the other, on an idle link."""

    kind: str
    steps: tuple[Step, ...]


def scenarios() -> Iterator[Scenario]:
    """Each order of starting, with a stop behind it; then one newcomer of every kind and level beside greedy others."""
    for first, second, third in permutations(Level):
        starts = (Step(level=first, load=one_flow, counts=False), *_begin(second), *_begin(third))
        yield Scenario(kind="start and stop", steps=(*starts, Step(level=first, load=None)))
    loads: Mapping[str, Load] = {
        "bursts of 200 ms": bursts,
        "200 short flows": short_flows,
        "UDP flood": udp_flood,
    }
    for kind, load in loads.items():
        for level in Level:
            yield _beside(kind, level, load, one_flow)
    for level in Level:
        yield _beside("one flow beside 64", level, one_flow, many_flows)
        yield _beside("64 flows beside one", level, many_flows, one_flow)


def _begin(level: Level) -> tuple[Step]:
    return (Step(level=level, load=one_flow),)


def _beside(kind: str, newcomer: Level, load: Load, others: Load) -> Scenario:
    there = [Step(level=level, load=others, counts=False) for level in Level if level is not newcomer]
    return Scenario(kind=kind, steps=(*there, Step(level=newcomer, load=load)))
