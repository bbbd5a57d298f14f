"""Minima of rules are admitted, never taken (contract 1.3).

All leaf, rule and minimum rates of a level stay together at or under half of its guarantee: a leaf within its own rate
sends without asking its parents, so a sum beyond that would break the other levels' guarantees. What is too much is
scaled down by one factor for the level. A pod's minima also stay within its own limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from netqos.model.desired import Band
from netqos.model.health import Finding, warning
from netqos.model.ids import PodUid
from netqos.model.levels import Direction, Level, PerLevel
from netqos.model.quantities import format_bandwidth
from netqos.model.rules import Rule, level_of

MINIMUM_SCALED = "minimum-scaled"
MINIMUM_ABOVE_LIMIT = "minimum-above-limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """The rules of one pod in one direction."""

    uid: PodUid
    subject: str
    level: Level
    limit_bps: int | None
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """The rules that changed, by pod, and why."""

    rules: Mapping[PodUid, tuple[Rule, ...]]
    findings: tuple[Finding, ...]


def leaf_rate_bps(level: Level, guarantee_bps: int) -> int:
    """The rate that a leaf of a level has without a minimum (datapath: leaf parameters)."""
    if level is Level.L0:
        return min(max(guarantee_bps // 1024, 64_000), 5_000_000)
    return max(8_000, guarantee_bps // 8192)


def host_rate_bps(guarantee_bps: int) -> int:
    """The rate of the node's own leaf in L0, and of the one for its critical units (contract 8)."""
    return max(guarantee_bps * 2 // 100, 2_000_000)


def admit(asks: Sequence[Ask], bands: PerLevel[Band] | None, direction: Direction) -> Admitted:
    """Scale the minima of one direction. `asks` are all pods of the node; `bands` None: not shaped by level."""
    wanting = [ask for ask in asks if any(rule.minimum_bps for rule in ask.rules)]
    if not wanting:
        return Admitted(rules={}, findings=())
    findings = [_over_limit(ask, direction) for ask in wanting if _is_over_limit(ask)]
    now = [_within_limit(ask) for ask in wanting]
    for level in Level:
        room_bps = 0 if bands is None else _room_bps(asks, level, bands[level].guarantee_bps)
        wanted_bps = sum(_minima_bps(ask, level) for ask in now)
        if wanted_bps > room_bps:
            now = [_scaled(ask, level, room_bps, wanted_bps) for ask in now]
            findings.append(_scaled_down(level, direction, None if bands is None else room_bps, wanted_bps))
    changed = {ask.uid: ask.rules for ask, was in zip(now, wanting, strict=True) if ask.rules != was.rules}
    return Admitted(rules=changed, findings=tuple(findings))


def _room_bps(asks: Sequence[Ask], level: Level, guarantee_bps: int) -> int:
    """Half of the guarantee, less what the leaves of pods and rules have without any minimum."""
    leaves = sum(ask.level is level for ask in asks)
    leaves += sum(_level_of(rule, ask) is level for ask in asks for rule in ask.rules)
    taken_bps = leaves * leaf_rate_bps(level, guarantee_bps)
    if level is Level.L0:
        taken_bps += 2 * host_rate_bps(guarantee_bps)
    return max(0, guarantee_bps // 2 - taken_bps)


def _level_of(rule: Rule, ask: Ask) -> Level:
    return level_of(rule, ask.level, ask.limit_bps)


def _minima_bps(ask: Ask, level: Level | None = None) -> int:
    return sum(rule.minimum_bps or 0 for rule in ask.rules if level in {None, _level_of(rule, ask)})


def _is_over_limit(ask: Ask) -> bool:
    return ask.limit_bps is not None and _minima_bps(ask) > ask.limit_bps


def _within_limit(ask: Ask) -> Ask:
    if ask.limit_bps is None or not _is_over_limit(ask):
        return ask
    return _scaled(ask, ask.level, ask.limit_bps, _minima_bps(ask))


def _scaled(ask: Ask, level: Level, room_bps: int, wanted_bps: int) -> Ask:
    """The minima of one level times room/wanted, rounded down; one that comes to nothing is none."""

    def scale(rule: Rule) -> Rule:
        if rule.minimum_bps is None or _level_of(rule, ask) is not level:
            return rule
        return replace(rule, minimum_bps=rule.minimum_bps * room_bps // wanted_bps or None)

    return replace(ask, rules=tuple(scale(rule) for rule in ask.rules))


def _scaled_down(level: Level, direction: Direction, room_bps: int | None, wanted_bps: int) -> Finding:
    """`room_bps` None: there are no guarantees in this direction."""
    if room_bps is None:
        why = f"{direction.value} is not shaped by level: none is given"
        hint = "minima need network QoS to be on, and a total that is known"
    else:
        share = room_bps * 100 // wanted_bps
        room = format_bandwidth(room_bps)
        why = f"half of the level's guarantee has room for {room}: each has {share}% of what it asks for"
        hint = "lower the minima (bandwidth_min) or raise the level's guarantee"
    asked = f"minima of {format_bandwidth(wanted_bps)} are asked for, and {why}"
    return warning(MINIMUM_SCALED, f"{level.name} {direction.value}", asked, hint=hint)


def _over_limit(ask: Ask, direction: Direction) -> Finding:
    limit_bps = ask.limit_bps or 0
    return warning(
        MINIMUM_ABOVE_LIMIT,
        ask.subject,
        f"{direction.pod_word}: minima of {format_bandwidth(_minima_bps(ask))} are over the pod's own limit "
        f"{format_bandwidth(limit_bps)} and are scaled down to it",
        hint="lower the minima or raise the limit",
    )
