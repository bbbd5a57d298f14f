"""Whether the path behind a unit carries its total, and which limit stands in for a total that it does not. Pure.

A guarantee holds only where the unit's own queue decides who waits. A narrower place behind it has a queue that knows
no levels; then the total must come down to just under what that place lets pass. How much that is can only be tried:

- *suspicion*: the sum of all levels stands still, it is not the unit's queue that holds it, and receivers report gaps
  that no queue of the node made, or a level is under its guarantee while another has more than its own. Or both of
  these, whatever holds the sum: flows that push on fill the unit's queue too;
- *trial down*: a limit a little under the plateau, for a few windows. It is proof when the unit's own queue now holds
  the traffic and the gaps are gone, or, twice, when the level that lacked something has it. Traffic that its senders
  or receivers limit gives neither; then all is as before, and the next trial waits longer each time;
- *trial up*, when packets wait at a limit: a little more. It is proof when the path carries it without new gaps.

Where a limit may not go so far down (`floor_bps`) a shortfall is only told. Bits per second, seconds.
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
    Shortfall,
    Step,
    Trial,
)
from netqos.engine.pathwindow import Window

KEPT, MOST_KEPT = 6, 12
"""Windows without a change that a suspicion needs, and how many are kept: what is told is looked at for longer."""

JUDGED = 3
"""Windows after which a trial is judged."""

SETTLE_S = 0.7
"""After a change: until it is in the kernel, and senders have found their new rates."""

LOSING_PERCENT = 96
"""A limit is this share of a plateau of which a part is lost: what arrives is less than the sum of what leaves."""

ROBBED_PERCENT = 95
"""A limit is this share of a sum that is no plateau, since some flows push on while others lose: what the path carries
is less than that by what is lost."""

LOOK_S, LOOK_EVERY_S = 4.5, 20.0
"""Losses are counted so long each time while the unit's own queue holds the traffic and a level lacks something, and
while the sum stands still for long without any."""

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

TOLD_WORKLOADS = 2
"""Workloads that must lose packets for a shortfall to be told: one alone may have a narrow path of its own."""

TOLD_UNDER = 0.96
"""The share of the total under which a shortfall is told; what is above is within what any total is moved by."""

OVER = 1.05
"""A sum of so many times the plateau shows that the path carries more."""

FORGET_S = 600.0
"""A shortfall that was not seen again for so long is no longer told."""


Outcome = tuple[PathState, Step | None]


def applied_bps(state: PathState, policy: PathPolicy) -> int:
    """What is to be in force in the place of the total."""
    if state.trial is not None:
        return state.trial.applied_bps
    return policy.total_bps if state.limit_bps is None else state.limit_bps


def wants_losses(state: PathState, policy: PathPolicy) -> bool:
    """Whether losses should be counted in the next window: only while they could decide something."""
    recent, applied = state.windows[-2:], applied_bps(state, policy)
    if state.trial is not None or len(recent) < 2:
        return state.trial is not None
    signs, whole, now_s = signs_of(recent), signs_of(state.windows), recent[-1].at_s
    is_turn = now_s % LOOK_EVERY_S < LOOK_S
    if signs.stands_still(applied, policy):
        is_old = len(state.windows) == MOST_KEPT and whole.stands_still(applied, policy)
        return is_turn or not is_old or whole.is_losing
    is_lacking = signs.binds(applied) and bool(signs.lacking(policy.promised(applied)))
    return is_lacking and is_turn and now_s >= state.rest_until_s


def step(state: PathState, window: Window, policy: PathPolicy) -> Outcome:
    """One window more. A window that began before the last change has settled tells nothing."""
    if state.limit_bps is not None and not policy.floor_bps <= state.limit_bps < policy.total_bps:
        out = replace(state, limit_bps=None, trial=None)
        return _changed(state, (out, Reason.OUT_OF_RANGE), window.at_s, policy)
    if window.at_s - window.span_s < state.settled_from_s:
        return state, None
    state = replace(state, windows=(*state.windows, window)[-MOST_KEPT:])
    state = replace(state, shortfall=_shortfall(state, window, policy))
    if state.trial is None:
        found = _watched(state, window.at_s, policy)
    elif len(state.windows) < JUDGED:
        found = None
    else:
        judge = _judged_up if state.trial.is_up else _judged_down
        found = judge(state, state.trial, window.at_s, policy)
    return (state, None) if found is None else _changed(state, found, window.at_s, policy)


Change = tuple[PathState, Reason]


def _watched(state: PathState, now_s: float, policy: PathPolicy) -> Change | None:
    if len(state.windows) >= KEPT and now_s >= state.rest_until_s:
        trial = _suspected(signs_of(state.windows[-KEPT:]), state, policy)
        if trial is not None:
            return replace(state, trial=trial), Reason.TRY_LOWER
    applied, recent = applied_bps(state, policy), state.windows[-2:]
    if state.limit_bps is not None and now_s >= state.raise_at_s and len(recent) == 2:
        signs = signs_of(recent)
        if signs.binds(applied):
            raised = min(policy.total_bps, applied + policy.total_bps * state.raise_percent // 100)
            trial = Trial(applied_bps=raised, before=signs, loss_share=signs.loss_share, is_up=True)
            return replace(state, trial=trial), Reason.TRY_HIGHER
    return None


def _suspected(signs: Signs, state: PathState, policy: PathPolicy) -> Trial | None:
    """The trial down that is due, if there is one."""
    applied = applied_bps(state, policy)
    promised = policy.promised(applied)
    is_free = signs.stands_still(applied, policy) and (signs.is_losing or signs.is_starving(promised))
    if not is_free and not signs.is_robbed(promised):
        return None
    percent = MARGIN_PERCENT if is_free else ROBBED_PERCENT
    target = _target(signs, applied, policy, percent=percent, helped_bps=state.helped_bps)
    return None if target is None else Trial(applied_bps=target, before=signs, loss_share=signs.loss_share)


def _judged_down(state: PathState, trial: Trial, now_s: float, policy: PathPolicy) -> Change:
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
    target = _target(signs, trial.applied_bps, policy)
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


def _judged_up(state: PathState, trial: Trial, now_s: float, policy: PathPolicy) -> Change:
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


def _changed(before: PathState, change: Change, at_s: float, policy: PathPolicy) -> Outcome:
    """Another amount is applied from now on: what was seen under the one before says nothing any more."""
    after, reason = change
    settled = replace(after, windows=(), settled_from_s=at_s + SETTLE_S)
    made = Step(
        at_s=at_s,
        reason=reason,
        before_bps=applied_bps(before, policy),
        after_bps=applied_bps(after, policy),
    )
    return settled, made


def _target(
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


def _shortfall(state: PathState, window: Window, policy: PathPolicy) -> Shortfall | None:
    """What is to be told: seen now, remembered, or over since the path was seen to carry more."""
    known, applied = state.shortfall, applied_bps(state, policy)
    if state.trial is None and len(state.windows) >= KEPT:
        seen = _seen(signs_of(state.windows), applied, policy)
        if seen is not None:
            since_s = window.at_s if known is None else known.since_s
            return replace(seen, since_s=since_s, seen_s=window.at_s)
    if known is None or state.limit_bps is not None:
        return known
    is_over = window.sum_bps > OVER * known.plateau_bps or window.at_s - known.seen_s > FORGET_S
    return None if is_over else known


def _seen(signs: Signs, applied: int, policy: PathPolicy) -> Shortfall | None:
    """A shortfall, where the signs leave no other way to see it."""
    is_much_less = signs.sum_bps < TOLD_UNDER * policy.total_bps
    is_held = signs.stands_still(applied, policy) and signs.is_held_beyond(policy.promised(applied))
    if not (is_much_less and is_held and signs.losing_workloads >= TOLD_WORKLOADS):
        return None
    return Shortfall(plateau_bps=signs.sum_bps, loss_share=signs.loss_share, workloads=signs.losing_workloads)
