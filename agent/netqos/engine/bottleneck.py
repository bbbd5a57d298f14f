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

Here is decided when a trial begins and what is in force; `netqos.engine.trials` judges it. Where a limit may not go so
far down (`floor_bps`) a shortfall is only told (`netqos.engine.shortfall`). Bits per second, seconds.
"""

from __future__ import annotations

from dataclasses import replace

from netqos.engine.pathsigns import PathPolicy, Signs, signs_of
from netqos.engine.pathstate import KEPT, MARGIN_PERCENT, PathState, Reason, Step, Trial
from netqos.engine.pathwindow import Window
from netqos.engine.shortfall import shortfall_of
from netqos.engine.trials import Change, judged_down, judged_up, target_bps

MOST_KEPT = 12
"""Windows without a change that are kept: what is told is looked at for longer than a suspicion needs."""

JUDGED = 3
"""Windows after which a trial is judged."""

SETTLE_S = 0.7
"""After a change: until it is in the kernel, and senders have found their new rates."""

ROBBED_PERCENT = 95
"""A limit is this share of a sum that is no plateau, since some flows push on while others lose: what the path carries
is less than that by what is lost."""

IDLE = 0.02
"""Under this share of the total there is nothing to judge a path by, and nothing is kept of it."""

LOOK_S, LOOK_EVERY_S = 4.5, 20.0
"""Losses are counted so long each time while the unit's own queue holds the traffic and a level lacks something, and
while the sum stands still for long without any."""

Outcome = tuple[PathState, Step | None]


def wants_losses(state: PathState, policy: PathPolicy) -> bool:
    """Whether losses should be counted in the next window: only while they could decide something."""
    recent, applied = state.windows[-2:], state.applied_bps(policy.total_bps)
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
    if window.sum_bps < IDLE * policy.total_bps and not state.is_in_doubt:
        return (replace(state, windows=()) if state.windows else state), None
    state = replace(state, windows=(*state.windows, window)[-MOST_KEPT:])
    state = replace(state, shortfall=shortfall_of(state, window, policy))
    if state.trial is None:
        found = _watched(state, window.at_s, policy)
    elif len(state.windows) < JUDGED:
        found = None
    else:
        judge = judged_up if state.trial.is_up else judged_down
        found = judge(state, state.trial, window.at_s, policy)
    return (state, None) if found is None else _changed(state, found, window.at_s, policy)


def _watched(state: PathState, now_s: float, policy: PathPolicy) -> Change | None:
    if len(state.windows) >= KEPT and now_s >= state.rest_until_s:
        trial = _suspected(signs_of(state.windows[-KEPT:]), state, policy)
        if trial is not None:
            return replace(state, trial=trial), Reason.TRY_LOWER
    applied, recent = state.applied_bps(policy.total_bps), state.windows[-2:]
    if state.limit_bps is not None and now_s >= state.raise_at_s and len(recent) == 2:
        signs = signs_of(recent)
        if signs.binds(applied):
            raised = min(policy.total_bps, applied + policy.total_bps * state.raise_percent // 100)
            trial = Trial(applied_bps=raised, before=signs, loss_share=signs.loss_share, is_up=True)
            return replace(state, trial=trial), Reason.TRY_HIGHER
    return None


def _suspected(signs: Signs, state: PathState, policy: PathPolicy) -> Trial | None:
    """The trial down that is due, if there is one."""
    applied = state.applied_bps(policy.total_bps)
    promised = policy.promised(applied)
    is_free = signs.stands_still(applied, policy) and (signs.is_losing or signs.is_starving(promised))
    if not is_free and not signs.is_robbed(promised):
        return None
    percent = MARGIN_PERCENT if is_free else ROBBED_PERCENT
    target = target_bps(signs, applied, policy, percent=percent, helped_bps=state.helped_bps)
    return None if target is None else Trial(applied_bps=target, before=signs, loss_share=signs.loss_share)


def _changed(before: PathState, change: Change, at_s: float, policy: PathPolicy) -> Outcome:
    """Another amount is applied from now on: what was seen under the one before says nothing any more."""
    after, reason = change
    settled = replace(after, windows=(), settled_from_s=at_s + SETTLE_S)
    made = Step(
        at_s=at_s,
        reason=reason,
        before_bps=before.applied_bps(policy.total_bps),
        after_bps=after.applied_bps(policy.total_bps),
    )
    return settled, made
