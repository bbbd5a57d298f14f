"""What a comparison found: a value that is written to and read from JSON. Infinity is null in the file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netqos.errors import Rejected
from netqos.model.levels import Direction, Level
from netqos.testing.analysis import median
from tests.bench.compare.rows import MEASURES
from tests.bench.compare.script import NODE, source_name
from tests.bench.compare.session import Recording
from tests.bench.compare.surface import Policy

KIND, VERSION = "netqos-bench-compare", 1
PICTURE_BIN_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One run for the chart: rates in bits per second in bins, and where each mark began, in seconds from the first."""

    bin_s: float
    rates_bps: Mapping[str, tuple[float, ...]]
    marks: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """One enforcer's runs in their order, each by the keys of `MEASURES`."""

    name: str
    how: str
    runs: tuple[Mapping[str, float], ...] = ()
    picture: Picture | None = None

    def values(self, key: str) -> tuple[float, ...]:
        """One measure in all runs that have it."""
        return tuple(run[key] for run in self.runs if key in run)

    def median(self, key: str) -> float | None:
        """Of all runs; None where no run has it."""
        found = self.values(key)
        return median(found) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """All of them, and what was the same for all: policy, lengths, machine."""

    policy: Mapping[str, Any]
    contestants: tuple[Contestant, ...]
    about: Mapping[str, Any] = field(default_factory=dict)

    def contestant(self, name: str) -> Contestant | None:
        """One by its name."""
        return next((one for one in self.contestants if one.name == name), None)


def policy_json(policy: Policy) -> dict[str, Any]:
    """A policy for the file and the chart."""
    return {
        way.value: {
            "total_bps": policy.totals_bps[way],
            "levels": {
                level.name: {
                    "guarantee_bps": policy.bands[way][level].guarantee_bps,
                    "ceiling_bps": policy.bands[way][level].ceiling_bps,
                }
                for level in Level
            },
        }
        for way in Direction
    }


def pictured() -> tuple[str, ...]:
    """Whose rates a picture has."""
    return (*(source_name(way, level) for way in Direction for level in Level), NODE)


def picture_of(recording: Recording) -> Picture:
    """A run's rates for the chart."""
    series = recording.series
    start_s, end_s = series.at_s[0], series.at_s[-1]
    words = {"join": "+", "gone": "-", "back": "+"}
    return Picture(
        bin_s=PICTURE_BIN_S,
        rates_bps={name: series.bins(name, start_s, end_s, width_s=PICTURE_BIN_S) for name in pictured()},
        marks=(
            *((one.start_s - start_s, f"{words[one.kind]}{one.level.name}") for one in recording.marks),
            (recording.node_s[0] - start_s, "+node"),
        ),
    )


def as_text(result: Result) -> str:
    """A result as the text of its file."""
    document = {
        "kind": KIND,
        "version": VERSION,
        **result.about,
        "policy": result.policy,
        "measures": {
            key: {"title": one.title, "unit": one.unit, "less_is_better": one.less_is_better, "how": one.how}
            for key, one in MEASURES.items()
        },
        "enforcers": [_contestant_json(one) for one in result.contestants],
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def read(path: Path) -> Result:
    """Read one; `Rejected` says why a file is none."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise Rejected(f"cannot be read: {problem}", subject=str(path)) from problem
    if not isinstance(document, dict) or (document.get("kind"), document.get("version")) != (KIND, VERSION):
        raise Rejected(
            f'is no result of this comparison: it needs "kind": {KIND!r} and "version": {VERSION}',
            subject=str(path),
            hint="./dev bench compare --json FILE writes one",
        )
    try:
        return Result(
            policy=_policy(document["policy"]),
            contestants=tuple(_contestant(one) for one in document["enforcers"]),
            about={
                key: value
                for key, value in document.items()
                if key not in {"kind", "version", "policy", "measures", "enforcers"}
            },
        )
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
        raise Rejected(f"is damaged: {type(problem).__name__}: {problem}", subject=str(path)) from problem


def _contestant_json(one: Contestant) -> dict[str, Any]:
    picture = one.picture
    return {
        "name": one.name,
        "how": one.how,
        "medians": {key: _finite(value) for key in MEASURES if (value := one.median(key)) is not None},
        "runs": [{key: _finite(value) for key, value in run.items()} for run in one.runs],
        "picture": None
        if picture is None
        else {
            "bin_s": picture.bin_s,
            "rates_bps": {name: [round(rate) for rate in rates] for name, rates in picture.rates_bps.items()},
            "marks": [[round(at_s, 3), word] for at_s, word in picture.marks],
        },
    }


def _policy(found: Mapping[str, Any]) -> dict[str, Any]:
    """As `policy_json` makes it, and nothing else."""
    return {
        way.value: {
            "total_bps": _bps(found[way.value]["total_bps"]),
            "levels": {
                level.name: {
                    key: _bps(found[way.value]["levels"][level.name][key])
                    for key in ("guarantee_bps", "ceiling_bps")
                }
                for level in Level
            },
        }
        for way in Direction
    }


def _contestant(one: Mapping[str, Any]) -> Contestant:
    return Contestant(
        name=str(one["name"]),
        how=str(one["how"]),
        runs=tuple({str(key): _number(value) for key, value in run.items()} for run in one["runs"]),
        picture=None if one["picture"] is None else _picture(one["picture"]),
    )


def _picture(one: Mapping[str, Any]) -> Picture:
    rates: Mapping[str, Sequence[float]] = one["rates_bps"]
    return Picture(
        bin_s=_positive(one["bin_s"]),
        rates_bps={name: tuple(_exactly(rate) for rate in rates[name]) for name in pictured()},
        marks=tuple((_exactly(at_s), str(word)) for at_s, word in one["marks"]),
    )


def _finite(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None


def _number(value: float | None) -> float:
    return math.inf if value is None else _exactly(value)


def _exactly(value: object) -> float:
    """A finite number; `ValueError` for anything else that JSON may hold."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no number")
    return float(value)


def _positive(value: object) -> float:
    number = _exactly(value)
    if number <= 0:
        raise ValueError(f"{value!r} is not above 0")
    return number


def _bps(value: object) -> int:
    return int(_positive(value))
