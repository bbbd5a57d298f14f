"""The HTB tree of one device as specs: total, levels, fixed leaves, a leaf for each workload, filters. Pure.

The IFB's tree differs from an uplink's in what is not the workloads': it has a leaf beside the total for what never
left the node, and none of the node's own, whose packets are not received through it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from netqos.model.levels import Direction, Level, PerLevel
from netqos_tc import numbers, params
from netqos_tc.controls import CONTROL_FILTERS
from netqos_tc.ground import Ground, Member
from netqos_tc.keys import ClassKey, FilterKey, Key, QueueKey, RootKey
from netqos_tc.moves import Steered
from netqos_tc.numbers import kind_on
from netqos_tc.params import Shape
from netqos_tc.ruletree import Branch, Twig, rates_within
from netqos_tc.spec import ClassSpec, LeafQueueSpec, RootSpec, Spec, one_class


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """All objects of one device, and what of them the loop moves (None: nothing is shaped by level)."""

    specs: Mapping[Key, Spec]
    steered: Steered | None


def root_spec(ifindex: int) -> RootSpec:
    """The root of the tree that a device has or may get."""
    return RootSpec(default_minor=kind_on(ifindex).default_minor)


def tree(
    ground: Ground,
    members: Mapping[int, Member],
    met: Mapping[int, ClassSpec],
    branches: Sequence[Branch] = (),
) -> Tree:
    """The tree on one device. `members` by minor; `met` are its classes as observed, some of which the loop moves.

    `branches` are the workloads among `members` that have rules.
    """
    plot = _Plot(ground, members, branches)
    specs: dict[Key, Spec] = {RootKey(ground.ifindex): root_spec(ground.ifindex)}
    steered = plot.add_inner(specs, met)
    if kind_on(ground.ifindex).direction is Direction.TX:
        plot.add_nodes_own(specs)
    else:
        plot.add_local(specs)
    plot.add_unknown(specs)
    plot.add_members(specs, members)
    for branch in branches:
        plot.add_branch(specs, branch)
    return Tree(specs=specs, steered=steered if ground.bands is not None else None)


class _Plot:
    """One tree while it is laid out."""

    def __init__(self, ground: Ground, members: Mapping[int, Member], branches: Sequence[Branch]) -> None:
        self._ground = ground
        self._kind = kind_on(ground.ifindex)
        self._mtu = ground.mtu
        counts = {level: self._count(level, members, branches) for level in Level}
        self._rates = {
            level: params.leaf_rates(level, self._ground.guarantee_bps(level) // ground.parts, counts[level])
            for level in Level
        }
        self._minima = {level: self._admitted(level, counts[level], branches) for level in Level}

    def add_inner(self, specs: dict[Key, Spec], met: Mapping[int, ClassSpec]) -> Steered:
        """The total and the levels, the moved ones as the loop left them; as they are planned."""
        total = _class(
            self._kind.root, params.inner_shape(self._ground.most_bps, self._ground.most_bps, mtu=self._mtu)
        )
        l0, l1, l2 = (self._level(level) for level in Level)
        planned = Steered(
            total=total,
            levels=PerLevel(l0, l1, l2),
            mtu=self._mtu,
            has_room=self._kind.direction is Direction.RX and self._ground.total_bps is not None,
            parts=self._ground.parts,
        )
        left = planned.as_left(met) if self._ground.bands is not None else planned
        for minor, spec in left.classes.items():
            self._put(specs, minor, spec)
        return planned

    def add_nodes_own(self, specs: dict[Key, Spec]) -> None:
        """What an uplink has for the node itself: two leaves under L0, and one that the control filters lead to."""
        l0_bps = self._ground.ceiling_bps(Level.L0)
        host = params.leaf_shape(Level.L0, self._rates[Level.L0].host_bps, l0_bps, mtu=self._mtu)
        for minor in (numbers.HOST, numbers.CRITICAL):
            self._put_leaf(specs, minor, Level.L0, host, prio=0, weight=params.HOST_WEIGHT)
            self._put_queue(specs, minor, self._ground.countable_bps(Level.L0, None))
        control = params.control_shape(self._ground.most_bps, mtu=self._mtu)
        parent = self._kind.class_id(numbers.TOTAL)
        self._put(specs, numbers.CONTROL, _class(parent, control, prio=0, quantum=params.quantum(self._mtu)))
        specs[QueueKey(self._ground.ifindex, numbers.CONTROL)] = LeafQueueSpec(limit=params.CONTROL_QUEUE)
        if self._ground.filters:
            ifindex = self._ground.ifindex
            specs.update({FilterKey(ifindex, number): spec for number, spec in CONTROL_FILTERS.items()})

    def add_local(self, specs: dict[Key, Spec]) -> None:
        """The IFB's leaf for what never left the node."""
        shape = params.local_shape(mtu=self._mtu)
        quantum = params.quantum(self._mtu, weight=params.HOST_WEIGHT)
        self._put(specs, numbers.LOCAL, _class(self._kind.root, shape, prio=0, quantum=quantum))
        specs[QueueKey(self._ground.ifindex, numbers.LOCAL)] = LeafQueueSpec(limit=params.LOCAL_QUEUE)

    def add_unknown(self, specs: dict[Key, Spec]) -> None:
        """The leaf of what nobody claims."""
        l1_bps = self._ground.ceiling_bps(Level.L1)
        unknown = params.leaf_shape(Level.L1, self._rates[Level.L1].pod_bps, l1_bps, mtu=self._mtu)
        self._put_leaf(specs, numbers.UNKNOWN, Level.L1, unknown, prio=self._ground.prio(Level.L1))
        self._put_queue(specs, numbers.UNKNOWN, self._ground.countable_bps(Level.L1, None))

    def add_members(self, specs: dict[Key, Spec], members: Mapping[int, Member]) -> None:
        """The workloads' leaves: the same for all that have one level and limit."""
        made: dict[tuple[Level, int | None], tuple[ClassSpec, LeafQueueSpec]] = {}
        ifindex = self._ground.ifindex
        for minor, one in members.items():
            place = one.level, one.limit_bps
            if place not in made:
                made[place] = self._member(one)
            specs[ClassKey(ifindex, minor)], specs[QueueKey(ifindex, minor)] = made[place]

    def _member(self, member: Member) -> tuple[ClassSpec, LeafQueueSpec]:
        ceil_bps = self._ground.under(member.level, member.limit_bps)
        shape = params.leaf_shape(member.level, self._rates[member.level].pod_bps, ceil_bps, mtu=self._mtu)
        leaf = self._leaf(member.level, shape, prio=self._ground.prio(member.level))
        return leaf, self._ground.queue(self._ground.countable_bps(member.level, member.limit_bps))

    def add_branch(self, specs: dict[Key, Spec], branch: Branch) -> None:
        """The leaves of a workload's rules; those of its own level stand with its own leaf under one class.

        That class lets through what its leaves have together, and borrows up to the workload's limit.
        """
        own = [one for one in branch.twigs if one.level is branch.level]
        for twig in branch.twigs:
            if twig.level is not branch.level:
                parent = self._kind.class_id(numbers.LEVELS[twig.level])
                self._put_twig(specs, twig, self._twig_bps(twig), parent=parent)
        if not branch.group:
            return
        leaf_bps = self._rates[branch.level].pod_bps
        wanted = [leaf_bps, *map(self._twig_bps, own)]
        least_bps = params.smallest_leaf_bps(self._mtu)
        rates = rates_within(wanted, branch.limit_bps, least_bps=least_bps)
        group = self._kind.class_id(branch.group)
        ceil_bps = self._ground.under(branch.level, branch.limit_bps)
        shape = params.leaf_shape(branch.level, sum(rates), ceil_bps, mtu=self._mtu)
        self._put(specs, branch.group, _class(self._kind.class_id(numbers.LEVELS[branch.level]), shape))
        rest = Twig(item=-1, minor=branch.leaf, level=branch.level, minimum_bps=0, maximum_bps=None)
        for twig, rate_bps in zip([rest, *own], rates, strict=True):
            self._put_twig(specs, twig, rate_bps, parent=group, limit_bps=branch.limit_bps)

    def _put_twig(
        self, specs: dict[Key, Spec], twig: Twig, rate_bps: int, *, parent: int, limit_bps: int | None = None
    ) -> None:
        bounds = [bps for bps in (twig.maximum_bps, limit_bps) if bps is not None]
        most_bps = min(bounds, default=None)
        ceil_bps = self._ground.under(twig.level, most_bps)
        shape = params.leaf_shape(twig.level, rate_bps, ceil_bps, mtu=self._mtu)
        quantum = params.quantum(self._mtu)
        self._put(
            specs, twig.minor, _class(parent, shape, prio=self._ground.prio(twig.level), quantum=quantum)
        )
        countable_bps = max(self._ground.countable_bps(twig.level, most_bps), min(rate_bps, ceil_bps))
        self._put_queue(specs, twig.minor, countable_bps)

    def _twig_bps(self, twig: Twig) -> int:
        """A rule's rate: its minimum as far as there is room for it, at least that of any leaf."""
        wanted_bps, room_bps = self._minima[twig.level]
        own_bps = twig.minimum_bps // self._ground.parts
        if wanted_bps > room_bps:
            own_bps = own_bps * room_bps // wanted_bps
        return max(own_bps, self._rates[twig.level].pod_bps)

    def _admitted(self, level: Level, count: int, branches: Sequence[Branch]) -> tuple[int, int]:
        """The minima of a level's rules, and what half of its guarantee has left for them here.

        They were admitted with all of the direction (`netqos.engine.admission`); a device may have less.
        """
        parts, rates = self._ground.parts, self._rates[level]
        wanted_bps = sum(
            one.minimum_bps // parts for branch in branches for one in branch.twigs if one.level is level
        )
        taken_bps = count * rates.pod_bps + 2 * rates.host_bps
        return wanted_bps, max(0, self._ground.guarantee_bps(level) // parts // 2 - taken_bps)

    def _level(self, level: Level) -> ClassSpec:
        shape = params.inner_shape(
            self._ground.guarantee_bps(level), self._ground.ceiling_bps(level), mtu=self._mtu
        )
        return _class(self._kind.class_id(numbers.TOTAL), shape)

    @staticmethod
    def _count(level: Level, members: Mapping[int, Member], branches: Sequence[Branch]) -> int:
        """The leaves that share a level's leaf rates; the unknown leaf is one of L1's."""
        own = sum(one.level is level for one in members.values())
        return own + sum(one.count(level) for one in branches) + (level is Level.L1)

    def _put(self, specs: dict[Key, Spec], minor: int, spec: ClassSpec) -> None:
        specs[ClassKey(self._ground.ifindex, minor)] = spec

    def _put_leaf(
        self, specs: dict[Key, Spec], minor: int, level: Level, shape: Shape, *, prio: int, weight: int = 1
    ) -> None:
        self._put(specs, minor, self._leaf(level, shape, prio=prio, weight=weight))

    def _leaf(self, level: Level, shape: Shape, *, prio: int, weight: int = 1) -> ClassSpec:
        quantum = params.quantum(self._mtu, weight=weight)
        return _class(self._kind.class_id(numbers.LEVELS[level]), shape, prio=prio, quantum=quantum)

    def _put_queue(self, specs: dict[Key, Spec], minor: int, rate_bps: int) -> None:
        specs[QueueKey(self._ground.ifindex, minor)] = self._ground.queue(rate_bps)


def _class(parent: int, shape: Shape, *, prio: int | None = None, quantum: int | None = None) -> ClassSpec:
    spec = ClassSpec(
        parent=parent,
        rate=shape.rate,
        ceil=shape.ceil,
        buffer=shape.buffer,
        cbuffer=shape.cbuffer,
        prio=prio,
        quantum=quantum,
    )
    return one_class(spec)
