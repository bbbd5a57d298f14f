"""A comparison as tables: for a terminal, for a page of the docs, and what moved between two. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tests.bench.compare.judge import Change, Comparison, compare_runs
from tests.bench.compare.results import Contestant, Result
from tests.bench.compare.rows import MEASURES, Measure
from tests.bench.figures import number
from tests.bench.moments import BIN_S

OURS, BY_HAND, STEPPER = "netqos", "static HTB", "1 s stepper"


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
        yield _against(list(compare_runs(OURS, by_hand.runs, ours.runs)))
    if ours is not None and stepper is not None:
        for way in ("tx", "rx"):
            yield from _times_faster(way, ours.median(f"{way}.settled"), stepper.median(f"{way}.settled"))


def _against(found: Sequence[Comparison]) -> str:
    judged = [one for one in found if not one.measure.key.startswith("agent.")]
    named = {
        change: ", ".join(
            f"{one.measure.title} ({number(one.after)} against {number(one.before)} {one.measure.unit})"
            for one in judged
            if one.change is change
        )
        for change in (Change.BETTER, Change.WORSE)
    }
    return (
        f"{OURS} against {BY_HAND}, where no run of one is among those of the other: "
        f"better in {named[Change.BETTER] or 'no row'}; worse in {named[Change.WORSE] or 'no row'}; "
        f"the same in all others of {len(judged)} rows"
    )


def _times_faster(way: str, ours_ms: float | None, stepper_ms: float | None) -> Iterator[str]:
    if ours_ms is None or stepper_ms is None:
        return
    word = {"tx": "egress", "rx": "ingress"}[way]
    bin_ms = 1000 * BIN_S
    if math.isinf(ours_ms) or math.isinf(stepper_ms):
        yield f"{word}: steady after {_cell(ours_ms)} ms, the {STEPPER} after {_cell(stepper_ms)} ms"
        return
    ratio = (stepper_ms + bin_ms) / (ours_ms + bin_ms)
    yield (
        f"{word}: steady {number(ratio)} times faster than the {STEPPER}, each counted to the end "
        f"of its first good bin ({number(ours_ms + bin_ms)} against {number(stepper_ms + bin_ms)} ms)"
    )


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
