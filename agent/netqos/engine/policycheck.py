"""What is wrong with the policy of the file whatever node it comes to: the engine's own rules, asked beforehand.

Under the total that the file gives, where that is the one that counts: on a node that follows Kubernetes others come
before it. Percentages are in the same proportion under any total, so they need none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from netqos.engine.bandproblems import BandProblem
from netqos.engine.bands import resolve_bands
from netqos.engine.policy import policy_in_force
from netqos.engine.totals import SMALLEST_TOTAL_BPS, configured_total
from netqos.model.inputs import LevelPolicy, NodePolicy, Percent
from netqos.model.levels import Direction, PerLevel
from netqos.model.quantities import format_bandwidth
from netqos.settings.values import Settings, Toggle

ANY_TOTAL_BPS = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyProblem:
    """A problem of one direction of the file's policy."""

    direction: Direction
    problem: BandProblem


def policy_problems(settings: Settings) -> Iterator[PolicyProblem]:
    """Every problem, also of a policy that is switched off: it may be switched on by a NodeSLO.

    Whether the node follows Kubernetes is `kubernetes.enable`, in which `auto` counts as no. One that L1 and L2 have
    together is told of the last of them.
    """
    policy = policy_in_force(replace(settings, policy=_switched_on(settings.policy)), None)
    for direction in Direction:
        total_bps = _total(settings, direction)
        if total_bps is not None:
            say = _percent if total_bps == ANY_TOTAL_BPS else format_bandwidth
            problems = resolve_bands(policy, direction, total_bps, say=say).problems
            shared = [one for one in problems if one.is_shared]
            for problem in [one for one in problems if not one.is_shared] + shared[-1:]:
                yield PolicyProblem(direction=direction, problem=problem)


def _total(settings: Settings, direction: Direction) -> int | None:
    total_bps = configured_total(settings, direction)
    if total_bps is None or settings.kubernetes.enable is Toggle.ON:
        return ANY_TOTAL_BPS if _is_relative(settings.policy, direction) else None
    is_rejected = total_bps < SMALLEST_TOTAL_BPS and not settings.allow_small_total
    return None if is_rejected else total_bps


def _percent(bps: int) -> str:
    return f"{bps * 100 / ANY_TOTAL_BPS:g}%"


def _is_relative(policy: NodePolicy, direction: Direction) -> bool:
    """Whether all its amounts are percentages, or nothing."""
    amounts = [
        amount for level in policy.levels for amount in (level.guarantee[direction], level.ceiling[direction])
    ]
    return all(not amount or isinstance(amount, Percent) for amount in amounts)


def _switched_on(policy: NodePolicy) -> NodePolicy:
    """With every level on, but for the classes that are off and therefore say nothing."""
    off = LevelPolicy(enabled=False)
    levels = [level if level == off else replace(level, enabled=True) for level in policy.levels]
    return replace(policy, enabled=True, invalid=frozenset(), levels=PerLevel(*levels))
