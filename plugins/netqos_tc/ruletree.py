"""Which classes the rules inside workloads need, and under which classes they stand. Pure.

A rule of the workload's own level that has a minimum or maximum gets a leaf beside that of the rest, and both stand
under a class of the workload (its group), which has the workload's limit. A rule with another level gets a leaf under
that level; only a workload without a limit in that direction may have one, since HTB cannot hold one workload under
two parents (measured: 80 + 520 Mbit/s for a limit of 80). A rule with a code point alone changes no class.

A leaf that gets a child loses its queue, so a workload's leaf never becomes its group: with the first and without the
last rule that needs one, the workload moves to a leaf of another number, as it does between levels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from netqos.model.desired import DesiredPod, DesiredState
from netqos.model.health import Finding, warning
from netqos.model.levels import Direction, Level, PerDirection
from netqos.model.quantities import format_bandwidth
from netqos.model.rules import Rule, level_of
from netqos_tc import numbers, podrules
from netqos_tc.classify import owner_of
from netqos_tc.keys import Key, RulesKey
from netqos_tc.register import Register, group_name, rule_name
from netqos_tc.spec import RulesSpec, Spec

_LEAST_PART_BPS: Final = 1_000
"""What each leaf under a limit has at least; above `params.smallest_leaf_bps` of a frame of 9000 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Twig:
    """The leaf of one rule. Bandwidths are bits per second; the minimum is admitted already."""

    item: int
    minor: int
    level: Level
    minimum_bps: int
    maximum_bps: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One workload that has rules, in one direction: its own leaf, its group (0: none), and its rules' leaves."""

    leaf: int
    group: int
    level: Level
    limit_bps: int | None
    twigs: tuple[Twig, ...] = ()

    def count(self, level: Level) -> int:
        """Its leaves of one level, without its own."""
        return sum(one.level is level for one in self.twigs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruled:
    """A workload with rules, and the numbers of what they need."""

    pod: DesiredPod
    leaf: int
    group: int
    twigs: PerDirection[tuple[Twig, ...]]

    def branch(self, direction: Direction) -> Branch:
        """What stands in the trees of one direction."""
        return Branch(
            leaf=self.leaf,
            group=self.group,
            level=self.pod.level,
            limit_bps=self.pod.limits_bps[direction],
            twigs=self.twigs[direction],
        )

    def rules(self, direction: Direction) -> tuple[RulesKey, RulesSpec] | None:
        """The chain of one direction, None where it has no rules."""
        rules = self.pod.rules[direction]
        if not rules:
            return None
        minors = {one.item: one.minor for one in self.twigs[direction]}
        items = [(rule, minors.get(number, 0)) for number, rule in enumerate(rules)]
        is_addressed = bool(self.pod.addresses) and not self.pod.host_network
        spec = podrules.rules_spec(direction, owner_of(self.pod.uid), items, is_addressed=is_addressed)
        return RulesKey(direction, self.leaf), spec

    def chains(self) -> Iterator[tuple[RulesKey, RulesSpec]]:
        """The chains of both directions."""
        return (one for way in Direction if (one := self.rules(way)) is not None)

    @property
    def names(self) -> dict[int, str]:
        """For people, by minor."""
        found = {self.group: f"{self.pod.name} in all"} if self.group else {}
        for way in Direction:
            for one in self.twigs[way]:
                found[one.minor] = f"{self.pod.name}, {way.pod_word} rule {one.item}"
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    """The rules of one workload that need a class, by direction and item, each with its level."""

    owner: str
    pod: DesiredPod
    levels: Mapping[tuple[Direction, int], Level]

    @property
    def has_group(self) -> bool:
        return any(level is self.pod.level for level in self.levels.values())


def assign(
    desired: DesiredState, claimed: Mapping[str, DesiredPod], register: Register
) -> tuple[Mapping[str, int], list[Ruled]]:
    """A leaf for each owner in `claimed`, and the numbers for rules.

    Of a plan that may only add, a workload whose leaf would have to move, or one of whose chains would have to change,
    keeps what it has, and gets no rules yet: classes to which no chain leads would be nobody's at the next look.
    """
    wishes = [_wish(owner, pod, desired) for owner, pod in claimed.items() if _has_rules(pod)]
    level_minors = {owner: numbers.LEVELS[pod.level] for owner, pod in claimed.items()}
    if not wishes:
        return register.assign(level_minors), []
    grouped = {group_name(one.owner): numbers.LEVELS[one.pod.level] for one in wishes if one.has_group}
    groups = register.assign(grouped)
    parents = {one.owner: groups[group_name(one.owner)] for one in wishes if one.has_group}
    leaves = register.assign(level_minors | parents)
    under = {
        rule_name(one.owner, way, item): _parent(one, level, parents)
        for one in wishes
        for (way, item), level in one.levels.items()
    }
    minors = register.assign(under)
    placed = {**groups, **leaves, **minors}
    wanted = {**grouped, **level_minors, **parents, **under}
    ruled = [
        _ruled(one, placed)
        for one in wishes
        if all(register.stands_under(placed[name], wanted[name]) for name in _names(one))
    ]
    return leaves, [one for one in ruled if register.may_write(one.chains())]


def chains_of(ruled: Iterable[Ruled], direction: Direction) -> dict[Key, Spec]:
    """The chains of one direction."""
    return dict(one for each in ruled if (one := each.rules(direction)) is not None)


def findings(desired: DesiredState, shaped: Mapping[Direction, bool]) -> Iterator[Finding]:
    """What of rules is not enforced. `shaped`: the directions in which there is a tree.

    A rule with another level of a pod that has a limit is told where that is decided (`netqos.engine.pods`).
    """
    for pod, way in ((pod, way) for pod in desired.pods if _has_rules(pod) for way in Direction):
        word = way.pod_word
        if pod.rules[way] and not shaped[way]:
            yield warning(
                f"not-enforced-rules-{word}",
                f"pod {pod.name}",
                f"not enforced: its {word} rules; nothing is shaped in that direction",
                hint="levels and minima of rules need network QoS to be on, and a total that is known",
            )
        elif pod.rules[way] and _is_too_small(pod, way):
            yield warning(
                f"not-enforced-rules-{word}",
                f"pod {pod.name}",
                f"not enforced: minima and maxima of its {word} rules; its limit is too small to be parted among "
                f"them; allowed: {format_bandwidth(_LEAST_PART_BPS)} for each rule and the rest",
                hint="raise the limit or remove rules",
            )


def _has_rules(pod: DesiredPod) -> bool:
    return bool(pod.rules.tx or pod.rules.rx)


def _wish(owner: str, pod: DesiredPod, desired: DesiredState) -> _Wish:
    levels: dict[tuple[Direction, int], Level] = {}
    for way in Direction:
        is_leveled = desired.directions[way].levels is not None
        for number, rule in enumerate(pod.rules[way]):
            level = level_of(rule, pod.level, pod.limits_bps[way]) if is_leveled else pod.level
            is_apart = level is not pod.level or rule.minimum_bps or rule.maximum_bps
            if is_apart and podrules.can_match(rule, way) and not _is_too_small(pod, way):
                levels[way, number] = level
    return _Wish(owner=owner, pod=pod, levels=levels)


def _is_too_small(pod: DesiredPod, way: Direction) -> bool:
    """Whether a limit cannot be parted among leaves: what is within the least rate of a leaf asks no parent."""
    limit_bps = pod.limits_bps[way]
    return limit_bps is not None and limit_bps < _LEAST_PART_BPS * (len(pod.rules[way]) + 1)


def _parent(wish: _Wish, level: Level, groups: Mapping[str, int]) -> int:
    return groups[wish.owner] if level is wish.pod.level else numbers.LEVELS[level]


def _names(wish: _Wish) -> Iterator[str]:
    yield wish.owner
    if wish.has_group:
        yield group_name(wish.owner)
    for way, item in wish.levels:
        yield rule_name(wish.owner, way, item)


def _ruled(wish: _Wish, minors: Mapping[str, int]) -> Ruled:
    def twigs(way: Direction) -> tuple[Twig, ...]:
        rules: Sequence[Rule] = wish.pod.rules[way]
        return tuple(
            Twig(
                item=item,
                minor=minors[rule_name(wish.owner, way, item)],
                level=level,
                minimum_bps=rules[item].minimum_bps or 0,
                maximum_bps=rules[item].maximum_bps,
            )
            for (direction, item), level in wish.levels.items()
            if direction is way
        )

    return Ruled(
        pod=wish.pod,
        leaf=minors[wish.owner],
        group=minors[group_name(wish.owner)] if wish.has_group else 0,
        twigs=PerDirection(tx=twigs(Direction.TX), rx=twigs(Direction.RX)),
    )


def rates_within(rates: Sequence[int], limit_bps: int | None, *, least_bps: int) -> list[int]:
    """Rates of leaves that together stay within a limit: what is within its rate asks no parent.

    None is under `least_bps`, the lowest rate that a leaf may have, for all of which the limit has room.
    """
    over = [max(rate - least_bps, 0) for rate in rates]
    total_bps = sum(over)
    if limit_bps is None or least_bps * len(rates) + total_bps <= limit_bps:
        return [least_bps + rate for rate in over]
    room_bps = limit_bps - least_bps * len(rates)
    return [least_bps + rate * room_bps // total_bps for rate in over]
