"""What several commands show: findings, verdicts, and the border that catches an answer of another shape."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from netqos.cli.client import Json, Problem, StatusClient
from netqos.cli.render import Column, Screen, Span

DONE, FAILED = 0, 1

SEVERITY_STYLE = {"error": "bad", "warning": "warn", "info": "dim"}
FINDINGS = (Column(head="severity"), Column(head="about"), Column(head="finding"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One invocation: what was asked, of whom, and where to write."""

    arguments: argparse.Namespace
    client: StatusClient
    screen: Screen

    @property
    def wants_json(self) -> bool:
        """Whether the answer is for a program."""
        return bool(self.arguments.json)


@contextmanager
def known_shape() -> Iterator[None]:
    """Turn the stumbling over an answer of another version into one clear message."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as problem:
        hint = "netqosctl and netqosd should be of one version: netqosctl --version, netqosd --version"
        raise Problem(f"the daemon's answer has an unknown shape ({problem!r})", hint=hint) from None


def tell(call: Call, name: str, answer: Json, show: Callable[[Screen, Json], None]) -> int:
    """The daemon's answer as it is for a program, for people as `show` has it."""
    if call.wants_json:
        call.screen.json(name, answer)
    else:
        with known_shape():
            show(call.screen, answer)
    return DONE


def show_findings(screen: Screen, findings: Sequence[Json], *, head: str = "findings") -> None:
    """Findings with the loudest first, each with its next step; nothing when there are none."""
    if not findings:
        return
    screen.line()
    screen.line(Span(head, "head"))
    loudness = list(SEVERITY_STYLE)
    for one in sorted(findings, key=lambda found: loudness.index(found["severity"])):
        style = SEVERITY_STYLE[one["severity"]]
        screen.prose("  ", Span(one["severity"], style), "  ", one["subject"], ": ", one["message"], hang=11)
        if one["hint"]:
            screen.prose("           ", Span(f"-> {one['hint']}", "dim"), hang=14)


def joined(parts: Sequence[Span | str], separator: str = ", ") -> list[Span | str]:
    """Spans with a separator between them."""
    spans: list[Span | str] = []
    for part in parts:
        spans += [separator, part] if spans else [part]
    return spans
