"""What a recording of the fast loop is: lines of JSON that hold all that it takes to run its rounds again. Pure.

The first line is the head, with the form of all values (`netqos.model.packing`). Each round has its samples and what
was decided; before it comes the state from which it began, and the policies, where these do not follow from the lines
before. After a gap both are told anew, so every stretch can be run again by itself.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import netqos
from netqos.engine.rounds import Steering, Taken
from netqos.engine.unitstate import LoopPolicy
from netqos.errors import Rejected
from netqos.model.packing import form, pack, unpack
from netqos.model.texts import shown
from netqos.model.traffic import Decision, Unit, UnitSample

VERSION = 1
LONGEST_LINE = 4 << 20
LATEST_UNIX_S = 253_402_300_800.0
"""The first second of the year 10000, which no calendar of Python's has."""

Policies = Mapping[Unit, LoopPolicy]
_SAMPLES = tuple[UnitSample, ...]
_DECISIONS = tuple[Decision, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Where a recording comes from. `unix_s` was the time when the node's monotonic clock was at `at_s`."""

    node: str
    netqos: str
    at_s: float
    unix_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Rounds that are missing: `why`, and how many where that is known."""

    why: str
    rounds: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRound:
    """One round of a backend's loop. `begins` is the state from which it began where that does not follow."""

    line: int
    backend: str
    begins: Steering | None
    policies: Policies
    samples: tuple[UnitSample, ...]
    decisions: tuple[Decision, ...]


def is_a_time(unix_s: float) -> bool:
    """Whether seconds since 1970 can be told as a date; NaN cannot."""
    return 0 <= unix_s < LATEST_UNIX_S


class RoundWriter:
    """Makes the lines of rounds, which are numbered: a number that is left out is a gap."""

    def __init__(self) -> None:
        """Nothing is written yet."""
        self._known: dict[str, tuple[Policies, Steering]] = {}
        self._following: int | None = None

    def lines(self, number: int, backend: str, taken: Taken) -> Iterator[str]:
        """The lines of one round, without line breaks."""
        if self._following is not None and number != self._following:
            missed = number - self._following
            yield gap_line(f"the reader was too slow for {missed} rounds", missed)
            self._known.clear()
        self._following = number + 1
        policies, steering = self._known.get(backend, (None, None))
        if policies is not taken.policies and policies != taken.policies:
            yield _line({"policies": pack(taken.policies), "of": backend})
        if steering is not taken.before and steering != taken.before:
            yield _line({"state": pack(taken.before), "of": backend})
        yield _line({"round": [pack(taken.samples), pack(taken.decisions)], "of": backend})
        self._known[backend] = taken.policies, taken.after


def head_line(head: Head) -> str:
    """The first line."""
    told = {"node": head.node, "netqos": head.netqos, "at_s": head.at_s, "unix_s": head.unix_s}
    return _line({"recording": VERSION, **told, "forms": forms()})


def gap_line(why: str, rounds: int | None = None) -> str:
    """The line that says that something is missing here."""
    return _line({"gap": why, "rounds": rounds})


def forms() -> dict[str, list[str]]:
    """The form of all values of a recording."""
    return {**form(Taken), **form(Steering)}


def is_of_this_form(head: Mapping[str, object]) -> bool:
    """Whether a head's recording can be read by this netqos."""
    return head.get("recording") == VERSION and head.get("forms") == forms()


class RoundReader:
    """Reads lines one by one, and remembers what later ones build upon."""

    def __init__(self) -> None:
        """The first line has to be a head."""
        self._node: str | None = None
        self._policies: dict[str, Policies] = {}
        self._begins: dict[str, Steering] = {}
        self._is_begun: set[str] = set()

    def read(self, lines: Iterable[tuple[int, str]]) -> Iterator[Head | Gap | RecordedRound]:
        """What numbered lines say; `Rejected` with the line for the first that is wrong."""
        for number, text in lines:
            try:
                found = self._entry(number, _object(text))
            except Rejected as problem:
                hint = problem.hint or "the file was changed or is damaged; make another recording"
                raise Rejected(problem.message, subject=f"line {number}", hint=hint) from None
            if found is not None:
                yield found

    def _entry(self, number: int, entry: Mapping[str, object]) -> Head | Gap | RecordedRound | None:
        if "recording" in entry:
            return self._head(entry)
        if self._node is None:
            raise Rejected("this is no recording of netqos", hint="netqosctl record FILE makes one")
        match entry:
            case {"gap": str(why), "rounds": int() | None as rounds}:
                self._forget()
                return Gap(why=why, rounds=rounds)
            case {"policies": tree, "of": str(backend)}:
                self._policies[backend] = unpack(Mapping[Unit, LoopPolicy], tree)  # type: ignore[type-abstract]
            case {"state": tree, "of": str(backend)}:
                self._begins[backend] = unpack(Steering, tree)
                self._is_begun.add(backend)
            case {"round": [samples, decisions], "of": str(backend)}:
                return self._round(number, backend, samples, decisions)
            case _:
                raise Rejected(f"no line of a recording: its keys are {shown(', '.join(entry))}")
        return None

    def _head(self, entry: Mapping[str, object]) -> Head:
        if entry["recording"] != VERSION:
            met = shown(entry["recording"])
            raise Rejected(f"a recording of version {met}; version {VERSION} can be read", hint=_other(entry))
        if entry.get("forms") != forms():
            changed = ", ".join(_differing(entry.get("forms")))
            message = f"another netqos made this recording: {changed} had other fields"
            raise Rejected(message, hint=_other(entry))
        match entry:
            case {"node": str(node), "netqos": str(version), "at_s": float(at_s), "unix_s": float(unix_s)}:
                self._begin(node, at_s, unix_s)
                return Head(node=node, netqos=version, at_s=at_s, unix_s=unix_s)
            case _:
                raise Rejected("the head lacks node, netqos, at_s or unix_s, or one is of the wrong type")

    def _begin(self, node: str, at_s: float, unix_s: float) -> None:
        if not (is_a_time(unix_s) and math.isfinite(at_s)):
            raise Rejected(
                f"the head's times are {shown(at_s)} and {shown(unix_s)}, which no clock ever showed"
            )
        if self._node not in {None, node}:
            hint = "replay each node's recording by itself"
            raise Rejected(f"here begins one of {shown(node)}, after one of {shown(self._node)}", hint=hint)
        self._node = node
        self._forget()

    def _round(self, number: int, backend: str, samples: object, decisions: object) -> RecordedRound:
        if backend not in self._is_begun or backend not in self._policies:
            raise Rejected(f"a round of {shown(backend)} before its policies and its state")
        return RecordedRound(
            line=number,
            backend=backend,
            begins=self._begins.pop(backend, None),
            policies=self._policies[backend],
            samples=unpack(_SAMPLES, samples),
            decisions=unpack(_DECISIONS, decisions),
        )

    def _forget(self) -> None:
        self._policies.clear()
        self._begins.clear()
        self._is_begun.clear()


def _line(entry: Mapping[str, object]) -> str:
    return json.dumps(entry, separators=(",", ":"), allow_nan=False)


def _object(text: str) -> Mapping[str, object]:
    if len(text) > LONGEST_LINE:
        raise Rejected(f"longer than {LONGEST_LINE >> 20} MiB", hint="this is no recording of netqos")
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        raise Rejected(f"{shown(text)} is no JSON") from None
    if not isinstance(entry, dict):
        raise Rejected(f"{shown(text)} is no JSON object")
    return entry


def _differing(found: object) -> list[str]:
    ours, theirs = forms(), found if isinstance(found, dict) else {}
    return sorted(name for name in {*ours, *map(str, theirs)} if ours.get(name) != theirs.get(name))


def _other(entry: Mapping[str, object]) -> str:
    return f"replay it with netqosctl {shown(entry.get('netqos'))}; this is {netqos.__version__}"
