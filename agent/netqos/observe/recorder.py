"""Counts and distributions of what happens, for the metrics; cheap and without a lock.

Every thread that records has shares of its own and writes only those, so the fast loop's thread never waits for the
one that answers a scrape (a lock held by a thread that lost the interpreter would cost it a whole switch interval).
A reader adds the shares up; it may miss what is being recorded at that very moment, and the next reading has it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from threading import get_ident

from netqos.model.health import Finding
from netqos.settings.issues import Code

LATENCY_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
TICK_S = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)

OTHER = "other"
REASONS: tuple[str, ...] = (
    *(code.value for code in Code if code is not Code.NOT_ENFORCED),
    "not-allowed",
    "total-too-small",
    "limit-of-unknown-total",
    "address-conflict",
    "address-of-node",
    "address-unusable",
    "configuration-empty",
    "configuration-invalid",
    "configuration-missing",
    "configuration-not-a-file",
    "configuration-not-text",
    "configuration-too-large",
    "configuration-unreadable",
    "configuration-unsteady",
    "duplicate-uid",
    "invalid-override",
    "too-many-rules",
    OTHER,
)
"""Why an input can be rejected: the codes of the findings that say so. Each has its counter from the start."""

REJECTIONS = frozenset(REASONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """A histogram's state: how many values were at most each bound (cumulative, infinity last), and their sum."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float


class Histogram:
    """Counts values by bucket."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        """`bounds` are the buckets' upper ends, ascending; values above the last are counted under infinity."""
        self._bounds = bounds
        # By thread: a count for each bucket. And the sums, in lists so that they are changed in place.
        self._counts: dict[int, list[int]] = {}
        self._sums: dict[int, list[float]] = {}

    def add(self, value: float) -> None:
        """Record one value."""
        thread = get_ident()
        counts = self._counts.get(thread)
        if counts is None:
            self._sums[thread] = [0.0]
            counts = self._counts[thread] = [0] * (len(self._bounds) + 1)
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[thread][0] += value

    def read(self) -> Distribution:
        """The distribution of all values so far."""
        shares = [list(share) for share in list(self._counts.values())]
        cumulative, total = [], 0
        for bucket in range(len(self._bounds) + 1):
            total += sum(share[bucket] for share in shares)
            cumulative.append(total)
        return Distribution(
            bounds=self._bounds,
            counts=tuple(cumulative),
            sum=sum(share[0] for share in list(self._sums.values())),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Everything recorded, at one moment."""

    event_to_applied: Distribution
    reconcile_duration: Distribution
    tick_duration: Distribution
    tick_lateness: Distribution
    rejected: Mapping[str, int]


class Recorder:
    """What the runtime tells as it happens; every method may be called from any thread and returns at once."""

    def __init__(self) -> None:
        """Start at zero."""
        self._event_to_applied = Histogram(LATENCY_S)
        self._reconcile_duration = Histogram(LATENCY_S)
        self._tick_duration = Histogram(TICK_S)
        self._tick_lateness = Histogram(TICK_S)
        self._rejected: dict[int, dict[str, int]] = {}
        self._seen: frozenset[Finding] = frozenset()

    def tick(self, *, late_s: float, took_s: float) -> None:
        """One tick of a fast loop: how late it began, and how long it took."""
        self._tick_lateness.add(late_s)
        self._tick_duration.add(took_s)

    def reconciled(self, *, took_s: float, event_to_applied_s: float | None = None) -> None:
        """One pass of the reconciler; with the time from the event to its last write, when there was both."""
        self._reconcile_duration.add(took_s)
        if event_to_applied_s is not None:
            self._event_to_applied.add(event_to_applied_s)

    def rejected(self, reason: str) -> None:
        """An input was rejected; a reason that is not in `REASONS` is counted as `other`."""
        share = self._rejected.setdefault(get_ident(), dict.fromkeys(REASONS, 0))
        share[reason if reason in share else OTHER] += 1

    def saw(self, findings: Iterable[Finding]) -> None:
        """All findings of this moment, from one task only: each rejection is counted once, when it appears."""
        rejections = frozenset(one for one in findings if one.code in REJECTIONS)
        for finding in rejections - self._seen:
            self.rejected(finding.code)
        self._seen = rejections

    def read(self) -> Recorded:
        """Everything so far."""
        shares = list(self._rejected.values())
        return Recorded(
            event_to_applied=self._event_to_applied.read(),
            reconcile_duration=self._reconcile_duration.read(),
            tick_duration=self._tick_duration.read(),
            tick_lateness=self._tick_lateness.read(),
            rejected={reason: sum(share[reason] for share in shares) for reason in REASONS},
        )
