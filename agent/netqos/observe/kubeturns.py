"""Which rejection is told next, and when: every namespace and in it every pod has its turn. Pure: time is passed in.

Nothing queues: what stands now and was not told yet is what waits, so that one pod that is patched again and again has
one turn among the others' however often it changes, and nothing is lost that still holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from netqos.model.composed import PodView
from netqos.observe.kubeevents import Rejection, rejections

MOST_REMEMBERED = 5_000
"""Told ones that stand no more are forgotten above this."""

FIRST_S, MOST_S = 1.0, 300.0
"""How soon a refused one is tried again, doubling, and the longest."""

BURST, EVERY_S = 20, 3.0
"""As many Events at once, and one more each so many seconds."""

Key = tuple[str, str, str]


class Bucket:
    """How many may be sent now. Pure but for its own count."""

    def __init__(self, *, burst: int = BURST, every_s: float = EVERY_S) -> None:
        """Full at the start."""
        self._burst = burst
        self._every_s = every_s
        self._left = float(burst)
        self._at_s: float | None = None

    def wait_s(self, now_s: float) -> float:
        """Take one and return 0, or return how long until there is one."""
        if self._at_s is not None:
            self._left = min(self._burst, self._left + (now_s - self._at_s) / self._every_s)
        self._at_s = now_s
        if self._left >= 1:
            self._left -= 1
            return 0.0
        return (1 - self._left) * self._every_s

    def give_back(self) -> None:
        """The one that was taken last cost nothing."""
        self._left = min(self._burst, self._left + 1)


@dataclass(slots=True)
class BackOff:
    """When something that failed is tried again."""

    chance: Callable[[], float]
    failures: int = 0
    until_s: float = 0.0

    def failed(self, now_s: float, *, asked_s: float | None = None) -> None:
        """Once more; `asked_s` is what the server asked for."""
        wait_s = min(FIRST_S * 2.0 ** min(self.failures, 20), MOST_S) * (0.5 + self.chance() / 2)
        self.failures += 1
        self.until_s = now_s + max(wait_s, min(asked_s or 0.0, MOST_S))

    def works(self) -> None:
        """All is well."""
        self.failures, self.until_s = 0, 0.0


@dataclass(slots=True)
class Turns:
    """Remembers what was told, and whose turn was when. `chance()` is in [0, 1)."""

    chance: Callable[[], float]
    _told: dict[Key, None] = field(default_factory=dict)
    _turns: dict[str, int] = field(default_factory=dict)
    _count: int = 0
    _away: dict[str, BackOff] = field(default_factory=dict)

    def next(self, pods: Sequence[PodView], now_s: float) -> tuple[Rejection | None, float | None]:
        """The one to tell now; else in how many seconds there may be one, None: nothing waits."""
        standing = list(rejections(pods))
        self._forget(standing)
        waiting = [one for one in standing if _key(one) not in self._told]
        due = [one for one in waiting if self._until_s(one) <= now_s]
        if due:
            return min(due, key=self._place), None
        until_s = min(map(self._until_s, waiting), default=None)
        return None, None if until_s is None else until_s - now_s

    def told(self, rejection: Rejection) -> None:
        """It need not be told again."""
        self._had_turn(rejection)
        self._told[_key(rejection)] = None
        self._away.pop(rejection[0].namespace, None)

    def failed(self, rejection: Rejection, now_s: float, *, asked_s: float | None = None) -> None:
        """It was refused: its namespace waits, the others go on."""
        self._had_turn(rejection)
        self._away.setdefault(rejection[0].namespace, BackOff(self.chance)).failed(now_s, asked_s=asked_s)

    def _had_turn(self, rejection: Rejection) -> None:
        self._count += 1
        pod = rejection[0]
        self._turns[pod.namespace] = self._turns[pod.uid] = self._count

    def _place(self, rejection: Rejection) -> tuple[int, int]:
        pod = rejection[0]
        return self._turns.get(pod.namespace, 0), self._turns.get(pod.uid, 0)

    def _until_s(self, rejection: Rejection) -> float:
        away = self._away.get(rejection[0].namespace)
        return away.until_s if away is not None else 0.0

    def _forget(self, standing: Sequence[Rejection]) -> None:
        """What is gone: told rejections above the bound, and turns of namespaces and pods without any."""
        if len(self._told) > MOST_REMEMBERED:
            self._told = {key: None for key in map(_key, standing) if key in self._told}
        if len(self._turns) > MOST_REMEMBERED:
            names = {name for pod, _ in standing for name in (pod.namespace, str(pod.uid))}
            self._turns = {name: at for name, at in self._turns.items() if name in names}
            self._away = {name: one for name, one in self._away.items() if name in names}


def _key(rejection: Rejection) -> Key:
    pod, finding = rejection
    return pod.uid, finding.code, finding.message
