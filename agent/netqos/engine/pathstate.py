"""What is known of the path behind a unit: the limit, the trial, what is to be told, and each change with its reason.

`netqos.engine.bottleneck` makes it. Bits per second, seconds.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from netqos.engine.pathsigns import Signs
from netqos.engine.pathwindow import Window

KEPT = 6
"""Windows without a change that a suspicion, and what is told, need."""

MARGIN_PERCENT = 98
"""A limit is this share of a plateau: the unit's queue must be the slower one."""

FIRST_PATIENCE_S, FIRST_RAISE_S, FIRST_RAISE_PERCENT = 60.0, 30.0, 5
"""The rests before the next trial down and up, and the step of a trial up in percent of the total, to begin with."""


class Reason(enum.Enum):
    """Why a limit came, moved or went."""

    TRY_LOWER = "the sum of all levels stands still, and not by the node's own queue: a little less is tried"
    EASED = "with less, nothing is lost beyond the node: the path carries no more"
    GAINED = "with less, a level that lacked its guarantee has it: that is tried once more"
    GAINED_AGAIN = "with less, a level that lacked its guarantee had it twice: the path carries no more"
    NOT_PROVEN = "less made no difference: senders or receivers ask for no more, or lose packets elsewhere"
    TRY_HIGHER = "packets wait at the limit: a little more is tried"
    RAISED = "the path carries more"
    NOT_RAISED = "the path still carries no more"
    WHOLE = "the path carries the total again"
    OUT_OF_RANGE = "the configuration allows this limit no more"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """What the path was seen to carry instead of the total, and the packets that were lost: of how many workloads.

    `since_s` and `seen_s`: when it was seen first and last.
    """

    plateau_bps: int
    loss_share: float
    workloads: int
    since_s: float = 0.0
    seen_s: float = 0.0

    @property
    def proposed_bps(self) -> int:
        """The total with which the unit's own queue would decide."""
        return self.plateau_bps * MARGIN_PERCENT // 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A change of what is applied."""

    at_s: float
    reason: Reason
    before_bps: int
    after_bps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What is applied for a while, what was seen before the first trial in a row, and the losses before this one."""

    applied_bps: int
    before: Signs
    loss_share: float
    is_up: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PathState:
    """What the next step must know. `limit_bps` is what is proven, None while the total is not in doubt.

    `helped_bps` is a limit under which a level gained once. No trial down begins before `rest_until_s`, none up before
    `raise_at_s`. Windows that began before `settled_from_s` saw another limit.
    """

    limit_bps: int | None = None
    trial: Trial | None = None
    helped_bps: int | None = None
    windows: tuple[Window, ...] = ()
    settled_from_s: float = 0.0
    shortfall: Shortfall | None = None
    rest_until_s: float = 0.0
    patience_s: float = FIRST_PATIENCE_S
    raise_at_s: float = 0.0
    raise_s: float = FIRST_RAISE_S
    raise_percent: int = FIRST_RAISE_PERCENT

    @property
    def is_in_doubt(self) -> bool:
        """Whether anything is applied, tried or told in the place of the total."""
        return any(one is not None for one in (self.limit_bps, self.trial, self.helped_bps, self.shortfall))

    def applied_bps(self, total_bps: int) -> int:
        """What is to be in force in the place of the total."""
        if self.trial is not None:
            return self.trial.applied_bps
        return total_bps if self.limit_bps is None else self.limit_bps
