"""Recorded rounds run again through the real step, with the recorded policies and, beside it, with others. Pure.

With the recorded policies every decision must be the recorded one again. With others it is told what would have been
decided of the same samples; the traffic itself would have reacted, which no recording knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from netqos.engine.recording import Gap, Head, Policies, RecordedRound, is_a_time
from netqos.engine.rounds import Steering, decide
from netqos.engine.why import Ground, grounds
from netqos.errors import Rejected
from netqos.model.levels import Level, PerLevel
from netqos.model.traffic import Decision, Unit

MOST_SHOWN = 20

Change = Callable[[Policies], Policies]


@dataclass(slots=True)
class Tally:
    """What was decided of one unit. Means are weighted by the time between two samples."""

    decisions: int = 0
    seconds: float = 0.0
    contention_s: float = 0.0
    writes: int = 0
    changes: list[int] = field(default_factory=lambda: [0, 0, 0])
    lowest_bps: list[int | None] = field(default_factory=lambda: [None, None, None])
    bit_sums: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    last: Decision | None = None

    def add(self, made: Decision) -> None:
        """Count one decision."""
        self.decisions += 1
        self.seconds += made.elapsed_s
        self.contention_s += made.elapsed_s if made.contention else 0.0
        self.writes += made.changed
        for place, ceiling_bps in enumerate(made.ceilings_bps):
            low = self.lowest_bps[place]
            self.lowest_bps[place] = ceiling_bps if low is None else min(low, ceiling_bps)
            self.bit_sums[place] += ceiling_bps * made.elapsed_s
            if self.last is not None and tuple(self.last.ceilings_bps)[place] != ceiling_bps:
                self.changes[place] += 1
        self.last = made

    def mean_bps(self, level: Level) -> int | None:
        """The level's mean ceiling, None where no time passed."""
        return round(self.bit_sums[level.value] / self.seconds) if self.seconds else None


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two courses differ in another way than before: what was decided of the same samples, and from what."""

    line: int
    unix_s: float
    one: Ground
    other: Ground


@dataclass(frozen=True, slots=True)
class Unequal:
    """A recorded decision that is another one when it is run again; None where there is none at all."""

    line: int
    recorded: Decision | None
    again: Decision | None


@dataclass(slots=True)
class Replayed:
    """What a replay has come to."""

    heads: list[Head] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    rounds: int = 0
    decisions: int = 0
    policies: dict[Unit, object] = field(default_factory=dict)
    recorded: dict[Unit, Tally] = field(default_factory=dict)
    other: dict[Unit, Tally] = field(default_factory=dict)
    unequal: list[Unequal] = field(default_factory=list)
    unequal_count: int = 0
    differences: list[Difference] = field(default_factory=list)
    differing: int = 0


class _Course:
    """The state of every backend's loop along one set of policies."""

    def __init__(self, change: Change | None = None) -> None:
        self._change = change
        self._steering: dict[str, Steering] = {}
        self._changed: tuple[Policies | None, Policies] = (None, {})

    def run(self, recorded: RecordedRound) -> tuple[Ground, ...]:
        """The decisions of a round, each with what it was made from."""
        policies = self._policies(recorded.policies)
        before = self._begin(recorded)
        after, decisions = decide(before, recorded.samples, policies)
        self._steering[recorded.backend] = after
        return grounds(decisions, policies, after.states)

    def _policies(self, recorded: Policies) -> Policies:
        if self._change is None:
            return recorded
        if self._changed[0] is not recorded:
            self._changed = recorded, self._change(recorded)
        return self._changed[1]

    def _begin(self, recorded: RecordedRound) -> Steering:
        """Where a recording begins anew, so does its own course; another keeps what it knows of each unit."""
        begins, known = recorded.begins, self._steering.get(recorded.backend)
        if known is None or (begins is not None and self._change is None):
            assert begins is not None
            return begins
        if begins is None:
            return known
        states = {unit: known.states.get(unit, state) for unit, state in begins.states.items()}
        return Steering(states=states, sharing=known.sharing)


class Replay:
    """Takes what a recording says, entry by entry; everything but the tallies is forgotten again."""

    def __init__(self, change: Change | None = None) -> None:
        """`change` gives the other policies for recorded ones; None: only the recorded ones."""
        self.found = Replayed()
        self._own = _Course()
        self._other = _Course(change) if change is not None else None
        self._apart: set[Unit] = set()

    def take(self, entry: Head | Gap | RecordedRound) -> None:
        """One entry, in order."""
        match entry:
            case Head():
                self.found.heads.append(entry)
            case Gap():
                self.found.gaps.append(entry)
            case RecordedRound():
                try:
                    self._round(entry)
                except (ArithmeticError, AssertionError, LookupError, ValueError) as problem:
                    message = f"these are no values that a loop ever had ({type(problem).__name__})"
                    hint = "the file was changed or is damaged; make another recording"
                    raise Rejected(message, subject=f"line {entry.line}", hint=hint) from None

    def _round(self, entry: RecordedRound) -> None:
        own = self._own.run(entry)
        self.found.rounds += 1
        self.found.decisions += len(entry.decisions)
        self.found.policies |= entry.policies
        self._compare(entry, tuple(ground.decision for ground in own))
        _tally(self.found.recorded, entry.decisions)
        if self._other is not None:
            other = self._other.run(entry)
            _tally(self.found.other, tuple(ground.decision for ground in other))
            self._tell_apart(entry.line, own, other)

    def _compare(self, entry: RecordedRound, again: tuple[Decision, ...]) -> None:
        if again == entry.decisions:
            return
        for recorded, ours in _paired(entry.decisions, again):
            if recorded != ours:
                self.found.unequal_count += 1
                if len(self.found.unequal) < MOST_SHOWN:
                    self.found.unequal.append(Unequal(entry.line, recorded, ours))

    def _tell_apart(self, line: int, own: tuple[Ground, ...], other: tuple[Ground, ...]) -> None:
        by_unit = {ground.decision.unit: ground for ground in other}
        for one in own:
            unit = one.decision.unit
            another = by_unit.get(unit)
            if another is None or _outcome(one.decision) == _outcome(another.decision):
                self._apart.discard(unit)
                continue
            self.found.differing += 1
            is_news = unit not in self._apart or one.decision.changed or another.decision.changed
            if is_news and len(self.found.differences) < MOST_SHOWN:
                unix_s = _when(self.found.heads[-1], one.decision)
                self.found.differences.append(Difference(line, unix_s, one, another))
            self._apart.add(unit)


def _tally(tallies: dict[Unit, Tally], made: tuple[Decision, ...]) -> None:
    for one in made:
        tallies.setdefault(one.unit, Tally()).add(one)


def _when(head: Head, made: Decision) -> float:
    unix_s = head.unix_s + made.at_s - head.at_s
    if not is_a_time(unix_s):
        raise ValueError(f"a tick at {unix_s}")
    return unix_s


def _outcome(made: Decision) -> tuple[bool, PerLevel[int], int | None]:
    return made.contention, made.ceilings_bps, made.room_bps


def _paired(
    recorded: tuple[Decision, ...], again: tuple[Decision, ...]
) -> Iterator[tuple[Decision | None, Decision | None]]:
    ours: Mapping[Unit, Decision] = {one.unit: one for one in again}
    theirs: Mapping[Unit, Decision] = {one.unit: one for one in recorded}
    for unit in dict.fromkeys((*theirs, *ours)):
        yield theirs.get(unit), ours.get(unit)
