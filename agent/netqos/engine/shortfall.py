"""What is told of a path that does not carry its total: where the signs leave no other way to see it. Pure.

Either the sum of all levels stands still far under the total, or so much is lost beyond the node that no sum says any
more what arrives.
"""

from __future__ import annotations

from dataclasses import replace

from netqos.engine.pathsigns import FLOODED, PathPolicy, Signs, signs_of
from netqos.engine.pathstate import KEPT, PathState, Shortfall
from netqos.engine.pathwindow import Window

TOLD_WORKLOADS = 2
"""Workloads that must lose packets for a shortfall to be told: one alone may have a narrow path of its own."""

TOLD_UNDER = 0.95
"""The share of the total under which a shortfall is told; what is above, or is taken for less by a percent that any
reading is off, is within what any total is moved by."""

OVER = 1.05
"""A sum of so many times the plateau shows that the path carries more."""

FORGET_S = 600.0
"""A shortfall that was not seen again for so long is no longer told."""


def shortfall_of(state: PathState, window: Window, policy: PathPolicy) -> Shortfall | None:
    """What is to be told: seen now, remembered, or over since the path was seen to carry more."""
    known, applied = state.shortfall, state.applied_bps(policy.total_bps)
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
    promised = policy.promised(applied)
    is_much_less = signs.sum_bps < TOLD_UNDER * policy.total_bps
    is_held = signs.stands_still(applied, policy) and signs.is_held_beyond(promised)
    is_flooded = signs.loss_share >= FLOODED and signs.is_robbed(promised) and not signs.binds(applied)
    if signs.losing_workloads < TOLD_WORKLOADS or not ((is_much_less and is_held) or is_flooded):
        return None
    return Shortfall(plateau_bps=signs.sum_bps, loss_share=signs.loss_share, workloads=signs.losing_workloads)
