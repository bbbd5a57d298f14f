"""guarantee, used and onset: three greedy levels on a full link."""

from __future__ import annotations

from netqos.model.levels import Level
from netqos.testing.analysis import median
from tests.bench.contention import LINKS, Contended, Link, contended, onsets
from tests.bench.figures import Figure, at_least, at_most, number
from tests.bench.options import Options, congestions, say

_KEPT = {"cubic": 98.0, "bbr": 96.0}
_BY_HAND = "static HTB"


def guarantee(options: Options) -> list[Figure]:
    """The worst second of the level that got least of its guarantee, in percent of it."""
    figures = []
    for link in LINKS:
        for congestion in congestions():
            found = _runs("netqosd", link, congestion, options.runs)
            by_level = ", ".join(f"{level.name} {number(_worst(found, level))}" for level in Level)
            figures.append(
                Figure(
                    bench="guarantee",
                    what=f"{link}, {congestion}: worst second",
                    unit="%",
                    runs=_least(found),
                    target=at_least(_KEPT[congestion]),
                    baseline=_least(_runs(_BY_HAND, link, congestion, 1)),
                    baseline_name=_BY_HAND,
                    note=by_level,
                )
            )
    return figures


def used(options: Options) -> list[Figure]:
    """What all levels together carry of the total."""
    return [
        Figure(
            bench="used",
            what=f"{link}, {congestion}: link used",
            unit="%",
            runs=tuple(one.used * 100 for one in _runs("netqosd", link, congestion, options.runs)),
            target=at_least(98),
            baseline=tuple(one.used * 100 for one in _runs(_BY_HAND, link, congestion, 1)),
            baseline_name=_BY_HAND,
        )
        for link in LINKS
        for congestion in congestions()
    ]


def onset(options: Options) -> list[Figure]:
    """From L0's first data until every level stays within 10 percent of its promise."""
    figures = []
    for link in LINKS:
        for congestion in congestions():
            say(f"onset: {options.onsets} times {link}, {congestion}")
            found = [1000 * one for one in onsets("netqosd", link, congestion, options.onsets)]
            by_hand = [1000 * one for one in onsets(_BY_HAND, link, congestion, max(1, options.onsets // 2))]
            what = f"{link}, {congestion}"
            figures += [
                Figure(
                    bench="onset",
                    what=f"{what}: median",
                    unit="ms",
                    runs=tuple(found),
                    target=at_most(150),
                    baseline=tuple(by_hand),
                    baseline_name=_BY_HAND,
                ),
                Figure(
                    bench="onset",
                    what=f"{what}: all but one in ten",
                    unit="ms",
                    runs=(sorted(found)[-1 - len(found) // 10],),
                    target=at_most(400),
                ),
            ]
    return figures


def _runs(shaper: str, link: Link, congestion: str, runs: int) -> list[Contended]:
    say(f"contention: {runs} times {shaper}, {link}, {congestion}")
    return [contended(shaper, link, congestion, run) for run in range(runs)]


def _least(found: list[Contended]) -> tuple[float, ...]:
    return tuple(100 * min(one.worst.values()) for one in found)


def _worst(found: list[Contended], level: Level) -> float:
    return 100 * median([one.worst[level] for one in found])
