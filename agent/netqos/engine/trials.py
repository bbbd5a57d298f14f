"""Trials of a path: the limit to try, and what is proven by what was seen under it. Pure.

When one is due `netqos.engine.bottleneck` says. Bits per second, seconds.
"""

from __future__ import annotations

from dataclasses import replace

from netqos.engine.pathsigns import BETTER, FLOODED, HEAVY, PathPolicy, Signs, signs_of
from netqos.engine.pathstate import (
    FIRST_PATIENCE_S,
    FIRST_RAISE_PERCENT,
    FIRST_RAISE_S,
    MARGIN_PERCENT,
    PathState,
    Reason,
    Trial,
)

LOSING_PERCENT = 96
"""A limit is this share of a plateau of which a part is lost: what arrives is less than the sum of what leaves."""

STEP_PERCENT = 12
"""The largest step down into what was not tried yet, of the total."""

HEAVY_STEP_PERCENT = 8
"""A limit is so much of the total under the plateau where much is lost: the sum of what leaves is not what arrives."""

MOST_PATIENCE_S = 3600.0
"""The rest after a trial down that proved nothing is doubled each time, up to this."""

MOST_RAISE_S, AGAIN_S = 600.0, 2.0
"""The rest before a trial up is doubled after each one that failed, up to the first; after one that succeeded it is the
second."""

MOST_RAISE_PERCENT = 20
"""The step of a trial up is doubled after each one that succeeded, up to this, of the total."""

Change = tuple[PathState, Reason]


def judged_down(state: PathState, trial: Trial, now_s: float, policy: PathPolicy) -> Change:
    """After the windows of a trial down: its limit holds, a lower one is tried, or the total is back for a while."""
    signs, before = signs_of(state.windows), trial.before
    is_eased = signs.has_eased(before)
    is_grown = signs.has_grown(before, policy.promised(trial.applied_bps))
    if signs.binds(trial.applied_bps) and (is_eased or is_grown):
        if is_eased or state.helped_bps is not None:
            return _held(state, trial, now_s), Reason.EASED if is_eased else Reason.GAINED_AGAIN
        helped = replace(state, trial=None, helped_bps=trial.applied_bps, rest_until_s=now_s)
        return helped, Reason.GAINED
    is_narrower = not signs.binds(trial.applied_bps) and signs.sum_bps >= 0.9 * min(
        before.sum_bps, trial.applied_bps
    )
    helps = before.is_losing and signs.is_losing and signs.loss_share <= BETTER * trial.loss_share
    is_better = helps or signs.loss_share >= FLOODED
    target = target_bps(signs, trial.applied_bps, policy)
    if target is not None and (is_narrower or is_better):
        further = replace(trial, applied_bps=target, loss_share=signs.loss_share)
        return replace(state, trial=further), Reason.TRY_LOWER
    rest = replace(
        state,
        trial=None,
        helped_bps=None,
        rest_until_s=now_s + state.patience_s,
        patience_s=min(2 * state.patience_s, MOST_PATIENCE_S),
    )
    return rest, Reason.NOT_PROVEN


def _held(state: PathState, trial: Trial, now_s: float) -> PathState:
    """With the limit of a trial down in force."""
    return replace(
        state,
        limit_bps=trial.applied_bps,
        trial=None,
        helped_bps=None,
        patience_s=FIRST_PATIENCE_S,
        raise_at_s=now_s + FIRST_RAISE_S,
        raise_s=FIRST_RAISE_S,
        raise_percent=FIRST_RAISE_PERCENT,
    )


def judged_up(state: PathState, trial: Trial, now_s: float, policy: PathPolicy) -> Change:
    """After the windows of a trial up: its limit holds, or the one before is back for a while."""
    signs = signs_of(state.windows)
    promised = policy.promised(trial.applied_bps)
    lacks_more = signs.lacking(promised).keys() > trial.before.lacking(promised).keys()
    if signs.binds(trial.applied_bps) and not (lacks_more or signs.has_worsened(trial.before)):
        is_whole = trial.applied_bps >= policy.total_bps
        higher = replace(
            state,
            limit_bps=None if is_whole else trial.applied_bps,
            trial=None,
            shortfall=None if is_whole else state.shortfall,
            raise_at_s=now_s + AGAIN_S,
            raise_s=FIRST_RAISE_S,
            raise_percent=min(2 * state.raise_percent, MOST_RAISE_PERCENT),
        )
        return higher, Reason.WHOLE if is_whole else Reason.RAISED
    rest_s = min(2 * state.raise_s, MOST_RAISE_S)
    lower = replace(
        state, trial=None, raise_at_s=now_s + rest_s, raise_s=rest_s, raise_percent=FIRST_RAISE_PERCENT
    )
    return lower, Reason.NOT_RAISED


def target_bps(
    signs: Signs,
    applied: int,
    policy: PathPolicy,
    *,
    percent: int = MARGIN_PERCENT,
    helped_bps: int | None = None,
) -> int | None:
    """The next limit to try, None where no allowed one is under the plateau and under what is applied."""
    wanted = signs.sum_bps * percent // 100
    if wanted < policy.floor_bps:
        return None
    if signs.is_losing:
        wanted = min(wanted, signs.sum_bps * LOSING_PERCENT // 100)
    if signs.loss_share >= HEAVY:
        wanted = min(wanted, signs.sum_bps - policy.total_bps * HEAVY_STEP_PERCENT // 100)
    least = applied - policy.total_bps * STEP_PERCENT // 100 if helped_bps is None else helped_bps
    target = max(wanted, least, policy.floor_bps)
    return target if target < applied else None
