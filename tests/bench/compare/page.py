"""A comparison as tables: for a terminal, for a page of the docs, and what moved between two. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tests.bench.compare.judge import FEWEST, Change, Comparison, compare_runs
from tests.bench.compare.results import Contestant, Result
from tests.bench.compare.rows import MEASURES, Measure
from tests.bench.figures import number
from tests.bench.moments import BIN_S

OURS, BY_HAND, STEPPER = "netqos", "static HTB", "1 s stepper"
CONDITIONS = ("kernel", "python", "cpus", "congestion", "greedy_s", "watched_s")
"""What has to be the same for two results to be compared, beside the policy."""


def table(result: Result) -> str:
    """Medians, one row a measure, one column an enforcer."""
    head = ["median of the runs", "unit", *(one.name for one in result.contestants)]
    rows = [
        [measure.title, measure.unit, *(_median(one, measure) for one in result.contestants)]
        for measure in _measured(result)
    ]
    return _aligned([head, *rows]) + "\n\n" + "\n".join(summary(result))


def markdown(result: Result, command: str) -> str:
    """The same for a page, with how each row was measured and what each enforcer is."""
    names = [one.name for one in result.contestants]
    runs = max((len(one.runs) for one in result.contestants), default=0)
    rows = [["median of the runs", "unit", *names], ["---"] * (2 + len(names))]
    rows += [
        [measure.title, measure.unit, *(_median(one, measure, spread=True) for one in result.contestants)]
        for measure in _measured(result)
    ]
    parts = [
        f"    {command}",
        _conditions(result, runs),
        "\n".join(f"| {' | '.join(row)} |" for row in rows),
        "\n".join(f"- {line}" for line in summary(result)),
        "How each row was measured:",
        "\n".join(f"- *{_titles(result, how)}*: {how}" for how in _hows(result)),
        "What each column is:",
        "\n".join(f"- *{one.name}*: {one.how}" for one in result.contestants),
    ]
    return "\n\n".join(parts) + "\n"


def summary(result: Result) -> Iterator[str]:
    """How netqos stands against the tree by hand, and how fast it settles against a stepper."""
    ours, by_hand, stepper = (result.contestant(name) for name in (OURS, BY_HAND, STEPPER))
    if ours is not None and by_hand is not None:
        if min(len(ours.runs), len(by_hand.runs)) < FEWEST:
            yield f"{OURS} and {BY_HAND} are not told apart: that takes {FEWEST} runs of each"
        else:
            yield from _against(list(compare_runs(OURS, by_hand.runs, ours.runs)))
    if ours is not None and stepper is not None:
        watched_ms = 1000 * float(result.about.get("watched_s", math.nan))
        for way, word in (("tx", "egress"), ("rx", "ingress")):
            own, other = (one.median(f"{way}.settled") for one in (ours, stepper))
            if own is not None and other is not None:
                yield f"{word}: {_faster(own, other, watched_ms=watched_ms)}"


def _against(found: Sequence[Comparison]) -> Iterator[str]:
    judged = [one for one in found if not one.measure.key.startswith("agent.")]
    apart = [one for one in judged if one.change is not Change.SAME]
    counts = {change: sum(one.change is change for one in judged) for change in Change}
    yield (
        f"{OURS} against {BY_HAND} in {len(judged)} rows: better in {counts[Change.BETTER]}, worse in "
        f"{counts[Change.WORSE]}, no further apart than their own runs in {counts[Change.SAME]}"
    )
    for one in apart:
        figures = f"{_cell(one.after)} against {_cell(one.before)} {one.measure.unit}"
        yield f"{one.change.value}: {one.measure.title}: {figures}"


def _faster(ours_ms: float, stepper_ms: float, *, watched_ms: float) -> str:
    """Each counted to the end of its first good bin, so that nothing is faster than can be seen."""
    if math.isinf(ours_ms):
        return f"{OURS} was not steady in the time watched"
    own_ms = ours_ms + 1000 * BIN_S
    if math.isinf(stepper_ms):
        least = number(watched_ms / own_ms)
        return (
            f"{OURS} is steady after {number(own_ms)} ms, the {STEPPER} not within {number(watched_ms)} ms: "
            f"more than {least} times faster"
        )
    other_ms = stepper_ms + 1000 * BIN_S
    return (
        f"{OURS} is steady after {number(own_ms)} ms, the {STEPPER} after {number(other_ms)} ms: "
        f"{number(other_ms / own_ms)} times faster"
    )


def unlike(before: Result, after: Result) -> Iterator[str]:
    """What keeps two results from being compared: conditions, enforcers in one alone, too few runs."""
    for key in CONDITIONS:
        then, now = before.about.get(key), after.about.get(key)
        if then != now:
            yield f"{key} was {then}, then {now}"
    if before.policy != after.policy:
        yield "the policies are not the same"
    for one, other, word in ((before, after, "before"), (after, before, "after")):
        alone = [each.name for each in one.contestants if other.contestant(each.name) is None]
        if alone:
            yield f"only {word}: {', '.join(alone)}"
    for earlier in before.contestants:
        later = after.contestant(earlier.name)
        if later is not None and min(len(earlier.runs), len(later.runs)) < FEWEST:
            counts = f"{len(earlier.runs)} and {len(later.runs)} runs"
            yield f"{earlier.name}: {counts}; figures are told apart from {FEWEST} of each on"


def changes(found: Sequence[Comparison], *, everything: bool) -> str:
    """What moved beyond the spread of the runs, or every row."""
    shown = [one for one in found if everything or one.change is not Change.SAME]
    head = ["enforcer", "measure", "unit", "before", "after", "ratio", ""]
    rows = [
        [
            one.who,
            one.measure.title,
            one.measure.unit,
            _cell(one.before),
            _cell(one.after),
            "" if math.isnan(one.ratio) else number(one.ratio),
            "" if one.change is Change.SAME else one.change.value,
        ]
        for one in shown
    ]
    count = sum(one.change is not Change.SAME for one in found)
    closing = f"{count} of {len(found)} figures moved beyond the spread of their runs"
    return f"{_aligned([head, *rows])}\n\n{closing}" if rows else closing


def _measured(result: Result) -> list[Measure]:
    return [
        measure
        for key, measure in MEASURES.items()
        if any(one.median(key) is not None for one in result.contestants)
    ]


def _hows(result: Result) -> list[str]:
    return list(dict.fromkeys(measure.how for measure in _measured(result)))


def _titles(result: Result, how: str) -> str:
    titles = (one.title for one in _measured(result) if one.how == how)
    words = (title.removeprefix("egress: ").removeprefix("ingress: ") for title in titles)
    return "; ".join(dict.fromkeys(words))


def _conditions(result: Result, runs: int) -> str:
    totals = ", ".join(f"{way} {side['total_bps'] // 1_000_000}M" for way, side in result.policy.items())
    about = ", ".join(f"{key} {value}" for key, value in result.about.items() if not isinstance(value, dict))
    return f"Totals: {totals}. {runs} runs of each, in turns; a cell is the median (least..most). {about}."


def _median(one: Contestant, measure: Measure, *, spread: bool = False) -> str:
    values = one.values(measure.key)
    if not values:
        return ""
    middle = one.median(measure.key)
    assert middle is not None
    low, high = _cell(min(values)), _cell(max(values))
    return f"{_cell(middle)} ({low}..{high})" if spread and low != high else _cell(middle)


def _cell(value: float) -> str:
    return "never" if math.isinf(value) else number(value)


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])
