"""Figures: what a benchmark measured, beside what the project claims. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from netqos.testing.analysis import median


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a figure is claimed to be: at least or at most a limit."""

    limit: float
    at_least: bool

    def is_met(self, value: float) -> bool:
        """Whether a value keeps the claim; nan does not."""
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {number(self.limit)}"


def at_least(limit: float) -> Target:
    """The value or more."""
    return Target(limit=limit, at_least=True)


def at_most(limit: float) -> Target:
    """The value or less."""
    return Target(limit=limit, at_least=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured number: `runs` in order, `baseline` the same measured in the same session without the agent."""

    bench: str
    what: str
    unit: str
    runs: tuple[float, ...]
    target: Target | None = None
    baseline: tuple[float, ...] = ()
    baseline_name: str = ""
    note: str = ""

    @property
    def value(self) -> float:
        """The median of the runs."""
        return median(self.runs)

    @property
    def is_met(self) -> bool | None:
        """Whether the median keeps the claim; None where nothing is claimed."""
        return None if self.target is None else self.target.is_met(self.value)

    def as_json(self) -> dict[str, object]:
        """For programs; infinity and nan become None."""
        return {
            "bench": self.bench,
            "what": self.what,
            "unit": self.unit,
            "median": _finite(self.value),
            "runs": [_finite(run) for run in self.runs],
            "target": None if self.target is None else str(self.target),
            "met": self.is_met,
            "baseline": {self.baseline_name: [_finite(run) for run in self.baseline]}
            if self.baseline
            else None,
            "note": self.note,
        }


def number(value: float) -> str:
    """Three digits that mean something, no exponent."""
    if not math.isfinite(value):
        return str(value)
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{value:.{min(digits, 4)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


_HEAD = ("bench", "figure", "median", "runs", "claimed", "met", "baseline", "note")


def table(figures: Sequence[Figure]) -> str:
    """All figures, one a line."""
    rows = [_HEAD, *map(_row, figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def markdown(figures: Sequence[Figure]) -> str:
    """The same for a page of the documentation, one table a benchmark, under the command that makes it."""
    parts = []
    for bench in dict.fromkeys(figure.bench for figure in figures):
        rows = [_row(figure)[1:] for figure in figures if figure.bench == bench]
        lines = [_cells(_HEAD[1:]), _cells(["---"] * (len(_HEAD) - 1)), *map(_cells, rows)]
        parts.append("\n".join([f"## {bench}", "", f"    ./dev bench {bench}", "", *lines]))
    return "\n\n".join(parts) + "\n"


def _cells(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _row(figure: Figure) -> tuple[str, ...]:
    spread = f"{number(min(figure.runs))}..{number(max(figure.runs))}" if len(figure.runs) > 1 else ""
    met = {True: "yes", False: "NO", None: ""}[figure.is_met]
    baseline = f"{number(median(figure.baseline))} ({figure.baseline_name})" if figure.baseline else ""
    target = str(figure.target) if figure.target else ""
    value = f"{number(figure.value)} {figure.unit}".rstrip()
    return (figure.bench, figure.what, value, spread, target, met, baseline, figure.note)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
