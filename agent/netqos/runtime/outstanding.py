"""What a backend could not apply: each incident is tried again at a pace of its own, and the rest goes on.

So one object that the kernel refuses for ever delays no other one, and no repair.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from netqos.engine.pacing import Pacing, PacingPolicy
from netqos.model.plan import Failure, Operation

_PACE: Final = PacingPolicy()
_VITAL_PACE: Final = PacingPolicy(retry_max_s=1.0)


def incident_of(operation: Operation) -> str:
    """What is applied, repaired, and backed off from, as one."""
    return operation.incident or operation.subject


def needed_by(operation: Operation) -> tuple[str, ...]:
    """The incidents without which an operation is not to be tried: its own, and what it awaits."""
    return incident_of(operation), *operation.awaits


class Outstanding:
    """The failures that stand, by incident."""

    def __init__(self) -> None:
        """Nothing has failed yet."""
        self._failures: dict[str, tuple[Failure, ...]] = {}
        self._paces: dict[str, Pacing] = {}

    def __contains__(self, incident: str) -> bool:
        return incident in self._failures

    @property
    def failures(self) -> tuple[Failure, ...]:
        """All that stand."""
        return tuple(one for failures in self._failures.values() for one in failures)

    def waits(self, operation: Operation, now_s: float) -> bool:
        """Whether an incident that an operation needs failed, and is not to be tried again yet."""
        paces = (self._paces.get(incident) for incident in needed_by(operation))
        return any(pace is not None and not pace.may_run(now_s) for pace in paces)

    def is_due(self, now_s: float) -> bool:
        """Whether something is to be tried again."""
        return any(pace.may_run(now_s) for pace in self._paces.values())

    def notice(self) -> None:
        """Something changed that may let everything succeed: nothing waits any longer."""
        for pace in self._paces.values():
            pace.notice()

    def settle(self, failures: Iterable[Failure], wanted: Collection[str], now_s: float) -> None:
        """A pass ended with these failures; `wanted` are the incidents of what it left undone, tried or not."""
        failed: dict[str, tuple[Failure, ...]] = {}
        for one in failures:
            incident = incident_of(one.operation)
            failed[incident] = (*failed.get(incident, ()), one)
        kept = {incident: met for incident, met in self._failures.items() if incident in wanted}
        self._failures = {**kept, **failed}
        self._paces = {incident: self._pace(incident) for incident in self._failures}
        for incident in failed:
            self._paces[incident].started()
            self._paces[incident].ran(now_s, ok=False)

    def _pace(self, incident: str) -> Pacing:
        is_vital = any(one.operation.is_vital for one in self._failures[incident])
        return self._paces.get(incident) or Pacing(_VITAL_PACE if is_vital else _PACE)
