"""What the Kubernetes sources said last, kept over a restart (contract 1.8): the pods, and until when each was heard.

The NodeSLO and the Node's total are kept with the last good values. Writing costs little: pods a few seconds after one
changed, and in one document; that all is well once a minute.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from netqos.host.clock import Clock
from netqos.host.state import StateFolder
from netqos.observe.logs import get_logger
from netqos.sources.kube.pods import KubePod
from netqos.sources.kube.remembered import bounded, read, written

PODS, HEARD = "pods", "heard"

SAVE_S = 5.0
"""The shortest time between two writes of the pods."""

HEARD_S = 60.0
"""How often it is written that a source is heard: after a kill its age is right to within that."""


@dataclass(frozen=True, slots=True)
class _When:
    wall_s: float
    boot_s: float
    boot_id: str


class KubeMemory:
    """Both documents. `save` is for one thread at a time, and waits for the disk."""

    def __init__(self, state: StateFolder, clock: Clock) -> None:
        """Nothing is read yet."""
        self._state = state
        self._clock = clock
        self._kept: Sequence[KubePod] = ()
        self._saved_s = self._told_s = float("-inf")
        self._told: frozenset[str] = frozenset()

    def pods(self) -> tuple[KubePod, ...]:
        """The pods as they were known last."""
        return tuple(read(self._state.load(PODS)))

    def heard(self) -> Mapping[str, float]:
        """When each source was known to be good, in monotonic time of now (it may be below zero)."""
        document = self._state.load(HEARD)
        entries = document.items() if isinstance(document, dict) else ()
        found = {str(name): _when(entry) for name, entry in entries}
        return {name: self._monotonic_s(when) for name, when in found.items() if when is not None}

    def save(self, pods: Sequence[KubePod], heard: Mapping[str, float], *, at_end: bool = False) -> None:
        """What is due of `pods`, and of when each source was known to be good (monotonic)."""
        now_s = self._clock.monotonic()
        if (at_end or now_s - self._saved_s >= SAVE_S) and self._differs(pods):
            self._saved_s, self._kept = now_s, pods
            kept = bounded(pods)
            cut = sum(one is not pod for one, pod in zip(kept, pods, strict=True))
            if cut:
                get_logger("netqos.state").warning("texts-of-pods-not-kept", pods=cut)
            self._state.save_each(PODS, map(written, kept))
        if at_end or now_s - self._told_s >= HEARD_S or not self._told.issuperset(heard):
            self._told_s, self._told = now_s, frozenset(heard)
            self._tell(heard)

    def _differs(self, pods: Sequence[KubePod]) -> bool:
        is_same = len(pods) == len(self._kept) and all(map(operator.is_, pods, self._kept))
        return not is_same or not self._state.has(PODS)

    def _tell(self, heard: Mapping[str, float]) -> None:
        clock = self._clock
        now_s, wall_s, boot_s, boot_id = clock.monotonic(), clock.wall(), clock.boot(), clock.boot_id()
        times = {
            name: {
                "wall_s": max(0.0, round(wall_s - now_s + at_s, 3)),
                "boot_s": max(0.0, round(boot_s - now_s + at_s, 3)),
                "boot_id": boot_id,
            }
            for name, at_s in heard.items()
        }
        before = self._state.load(HEARD)
        self._state.save(HEARD, {**(before if isinstance(before, dict) else {}), **times})

    def _monotonic_s(self, when: _When) -> float:
        """By the clock that nobody sets, where it is the same boot's."""
        clock = self._clock
        is_same_boot = when.boot_id == clock.boot_id()
        age_s = clock.boot() - when.boot_s if is_same_boot else clock.wall() - when.wall_s
        return clock.monotonic() - max(0.0, age_s)


def _when(entry: object) -> _When | None:
    if not isinstance(entry, dict):
        return None
    wall_s, boot_s, boot_id = (entry.get(key) for key in ("wall_s", "boot_s", "boot_id"))
    if isinstance(wall_s, int | float) and isinstance(boot_s, int | float) and isinstance(boot_id, str):
        return _When(wall_s, boot_s, boot_id)
    return None
