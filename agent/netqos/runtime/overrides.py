"""Temporary overrides: accepting, keeping and ending them (contract 1.1 line 0, 1.2 line 1, 1.8).

An override ends when the wall clock or the boot clock says so, whichever comes first, so that setting a clock back
never lengthens it; one of an earlier boot has ended. The book is saved before an override takes effect.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from netqos.errors import Rejected
from netqos.host.clock import Clock
from netqos.model.ids import PodUid
from netqos.model.inputs import Override
from netqos.model.levels import Level, PerDirection
from netqos.model.quantities import parse_limit
from netqos.observe.view import OverrideRequest

LONGEST_S = 24 * 3600.0


def is_active(override: Override, clock: Clock) -> bool:
    """Whether the override still holds at this moment."""
    return (
        override.boot_id == clock.boot_id()
        and clock.wall() < override.expires_wall_s
        and 0 < override.expires_boot_s - clock.boot() <= LONGEST_S
    )


class OverrideBook:
    """All overrides in force, by pod uid."""

    def __init__(self, overrides: Iterable[Override], clock: Clock) -> None:
        """Take over those of `overrides` that still hold."""
        self._clock = clock
        self._book = {one.uid: one for one in overrides if is_active(one, clock)}

    def active(self) -> Mapping[PodUid, Override]:
        """Those that hold now; the ended ones are forgotten."""
        self._book = {uid: one for uid, one in self._book.items() if is_active(one, self._clock)}
        return dict(self._book)

    def next_end_s(self) -> float | None:
        """Seconds until the next override ends, None without any."""
        wall, boot = self._clock.wall(), self._clock.boot()
        ends = [min(one.expires_wall_s - wall, one.expires_boot_s - boot) for one in self._book.values()]
        return max(0.0, min(ends)) if ends else None

    def put(self, override: Override) -> None:
        """Add an override, or replace the pod's earlier one."""
        self._book[override.uid] = override

    def remove(self, uid: PodUid) -> bool:
        """Forget a pod's override; False when there was none."""
        return self._book.pop(uid, None) is not None


def accept(uid: PodUid, request: OverrideRequest, clock: Clock) -> Override:
    """The override that a request asks for; `Rejected` names every problem of it at once."""
    problems: list[str] = []
    limits = PerDirection(
        tx=_limit("egress", request.egress, problems), rx=_limit("ingress", request.ingress, problems)
    )
    level = _level(request.level, problems)
    if not (math.isfinite(request.ttl_s) and 0 < request.ttl_s <= LONGEST_S):
        problems.append(f"ttl {request.ttl_s:g} s: allowed are more than 0 s up to 24 h")
    if request.egress is None and request.ingress is None and request.level is None:
        problems.append("nothing to override: give egress, ingress or level")
    if problems:
        raise Rejected(
            "; ".join(problems),
            subject=f"override of {uid}",
            hint="nothing was changed",
            problems=tuple(problems),
        )
    return Override(
        uid=uid,
        limits=limits,
        level=level,
        expires_wall_s=clock.wall() + request.ttl_s,
        expires_boot_s=clock.boot() + request.ttl_s,
        boot_id=clock.boot_id(),
        reason=request.reason,
        author_uid=request.author_uid,
    )


def _limit(word: str, text: str | None, problems: list[str]) -> int | None:
    if text is None:
        return None
    try:
        return parse_limit(text)
    except Rejected as problem:
        problems.append(f"{word}: {problem.message}")
        return None


def _level(text: str | None, problems: list[str]) -> Level | None:
    if text is None:
        return None
    level = Level.parse(text)
    if level is None:
        problems.append(f"level {text!r}: allowed are l0, l1, l2")
    return level
