"""From the desired state to the objects that should be in the kernel. Pure.

It looks at what is there for four things only: which numbers workloads have already, what stands at the root of an
uplink, where the fast loop left what it moves, and behind which devices workloads are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from netqos.engine.units import bands_at
from netqos.model.desired import DesiredState, DesiredUplink
from netqos.model.health import Finding
from netqos.model.levels import Direction
from netqos_tc import bypass, classify, ingress, numbers, obstacles, owners, podrules, ruletree, strangers
from netqos_tc.classify import owner_of
from netqos_tc.describe import Names
from netqos_tc.ground import Ground, member
from netqos_tc.ingress import Ingress, Placed
from netqos_tc.keys import Key, LinkKey, RootKey, TableKey
from netqos_tc.moves import Steered
from netqos_tc.observed import TcObserved
from netqos_tc.options import Options
from netqos_tc.register import Register
from netqos_tc.spec import Spec, TableSpec, element
from netqos_tc.tree import Tree, tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Facilities:
    """What this kernel has beside the parts without which the backend is unavailable."""

    u32: bool = True
    cgroups: bool = True
    begins_at: int = 0
    ingress: bool = True
    sources: bool = True
    choosy: bool = False
    fq_codel: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The objects that should be there, and what cannot be.

    `workloads`: their names by the minors of their leaves, `pods` those by all minors of theirs, `rules` the minors of
    single rules, `behind` the workloads by the devices by which they receive. `steered`: what the loop moves, by
    device. `is_whole` False: too little is known for taking anything away.
    """

    specs: Mapping[Key, Spec]
    findings: tuple[Finding, ...]
    workloads: Mapping[int, str] = field(default_factory=dict)
    pods: Mapping[int, str] = field(default_factory=dict)
    rules: frozenset[int] = frozenset()
    behind: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    steered: Mapping[int, Steered] = field(default_factory=dict)
    is_whole: bool = True

    @property
    def own_devices(self) -> tuple[int, ...]:
        """The devices of our own that should be there."""
        return tuple(key.ifindex for key in self.specs if isinstance(key, LinkKey))

    def names(self, devices: Mapping[int, str]) -> Names:
        """What people call its objects."""
        return Names(
            devices=devices, workloads=self.workloads, pods=self.pods, rules=self.rules, behind=self.behind
        )


def lay_out(desired: DesiredState, observed: TcObserved, options: Options, facilities: Facilities) -> Layout:
    """The objects for a desired state, empty when nothing is to be shaped (contract 2: no qdisc of ours then).

    While there is something to shape but nobody knows where (the default route is away), what is there stays. Where
    uplinks are named it is known: what stands on other devices goes, whether those are there or not.
    """
    past = bypass.findings(desired, observed)
    findings = [*strangers.findings(observed), *past]
    uplinks = _egress_uplinks(desired, observed, options, findings)
    has_ingress = _has_ingress(desired, observed, facilities, findings)
    findings += obstacles.queue_findings(options, has_fq_codel=facilities.fq_codel)
    findings += ruletree.findings(desired, {Direction.TX: bool(uplinks), Direction.RX: has_ingress})
    if not uplinks and not has_ingress:
        is_whole = desired.complete and not _is_blind(desired)
        return Layout(specs={}, findings=tuple(findings), is_whole=is_whole)
    told = owners.Told(
        cgroups=facilities.cgroups, begins_at=facilities.begins_at, net_classes=observed.net_classes
    )
    claims = owners.collect(desired, told, ingress=has_ingress)
    placed = _place(desired, claims, observed)
    inwards = Ingress()
    if has_ingress:
        inwards = ingress.lay_out(
            desired,
            observed,
            placed,
            queue_ms=options.queue_ms,
            codel_ms=options.codel_ms if facilities.fq_codel else None,
            is_choosy=facilities.choosy,
        )
    trees = _egress_trees(
        [_ground(desired, uplink, options, facilities) for uplink in uplinks], placed, observed
    )
    rules = classify.table_spec(
        cgroups=told.cgroups,
        begins_at=told.begins_at,
        sources=facilities.sources,
        net_classes=told.net_classes is not None,
        ruled=bool(placed.ruled) or _is_ruled(desired, observed),
    )
    table: dict[Key, Spec] = {TableKey(): rules}
    chains = {**inwards.chains, **(ruletree.chains_of(placed.ruled, Direction.TX) if trees else {})}
    steered = {numbers.IFB_INDEX: inwards.steered} | {one: made.steered for one, made in trees.items()}
    return Layout(
        specs=table
        | {**placed.elements, **inwards.specs}
        | _joined(made.specs for made in trees.values())
        | {**podrules.sets_of(chains.values()), **chains},
        findings=(
            *findings,
            *claims.findings,
            *obstacles.source_findings(placed.elements, observed),
            *bypass.unsaid(inwards.findings, past),
        ),
        workloads={**{minor: pod.name for minor, pod in placed.pods.items()}, **placed.names},
        pods={
            **{minor: pod.name for minor, pod in placed.pods.items()},
            **{minor: one.pod.name for one in placed.ruled for minor in one.names},
        },
        rules=frozenset(twig.minor for one in placed.ruled for way in Direction for twig in one.twigs[way]),
        behind=inwards.behind,
        steered={device: one for device, one in steered.items() if one is not None},
        is_whole=desired.complete,
    )


def _egress_uplinks(
    desired: DesiredState, observed: TcObserved, options: Options, findings: list[Finding]
) -> list[DesiredUplink]:
    """The uplinks that get a tree."""
    found = []
    for uplink in desired.uplinks:
        if not _is_needed(desired, uplink, observed):
            continue
        problems = obstacles.root_findings(uplink, observed, options)
        findings += problems
        if not any(one.code == "foreign-root-qdisc" for one in problems):
            findings += obstacles.speed_findings(uplink)
            found.append(uplink)
    return found


def _is_needed(desired: DesiredState, uplink: DesiredUplink, observed: TcObserved) -> bool:
    """Whether anything is to be shaped on an uplink: by level, which takes a total, or of a workload by itself.

    A tree that is there while nothing may be taken away is one of which packets find the leaves.
    """
    is_leveled = desired.directions.tx.levels is not None and uplink.total_bps.tx is not None
    is_held = any(pod.is_held(Direction.TX) for pod in desired.pods)
    is_kept = not desired.complete and RootKey(uplink.index) in observed.specs
    return uplink.index > 0 and (is_leveled or is_held or is_kept)


def _is_ruled(desired: DesiredState, observed: TcObserved) -> bool:
    """Whether workloads that are not known yet may have rules."""
    table = observed.specs.get(TableKey())
    return not desired.complete and isinstance(table, TableSpec) and classify.is_ruled(table)


def _egress_trees(grounds: Iterable[Ground], placed: Placed, observed: TcObserved) -> dict[int, Tree]:
    members = {minor: member(pod.level, pod.limits_bps.tx) for minor, pod in placed.pods.items()}
    branches = [one.branch(Direction.TX) for one in placed.ruled]
    return {
        ground.ifindex: tree(ground, members, observed.classes_on(ground.ifindex), branches)
        for ground in grounds
    }


def _joined(parts: Iterable[Mapping[Key, Spec]]) -> dict[Key, Spec]:
    return {key: spec for part in parts for key, spec in part.items()}


def _has_ingress(
    desired: DesiredState, observed: TcObserved, facilities: Facilities, findings: list[Finding]
) -> bool:
    """Whether the ingress direction is shaped; without a known uplink nobody can tell what comes from outside."""
    is_kept = not desired.complete and LinkKey(numbers.IFB_INDEX) in observed.specs
    is_wanted = any(uplink.index > 0 for uplink in desired.uplinks) and (
        ingress.is_needed(desired) or is_kept
    )
    if is_wanted and not ingress.is_possible(observed):
        findings.append(ingress.foreign_ifb(observed))
        return False
    return is_wanted and facilities.ingress


def _is_blind(desired: DesiredState) -> bool:
    """Whether something is to be shaped, and neither a route nor the configuration says where."""
    is_wanted = _is_leveled(desired) or _is_held(desired)
    return is_wanted and not desired.uplinks and not desired.missing_uplinks


def _is_leveled(desired: DesiredState) -> bool:
    return any(desired.directions[way].levels is not None for way in Direction)


def _is_held(desired: DesiredState) -> bool:
    return any(pod.is_held(way) for pod in desired.pods for way in Direction)


def _place(desired: DesiredState, claims: owners.Claims, observed: TcObserved) -> Placed:
    """A leaf for every workload whose packets can be known; one without any element needs none yet."""
    by_owner = {owner_of(pod.uid): pod for pod in desired.pods}
    claimed = set(claims.owners.values())
    known = {owner: pod for owner, pod in by_owner.items() if owner in claimed}
    minors, ruled = ruletree.assign(desired, known, Register(observed, keep=not desired.complete))
    elements: dict[Key, Spec] = {
        key: element(minors.get(owner, numbers.CRITICAL), owner) for key, owner in claims.owners.items()
    }
    return Placed(
        pods={minor: by_owner[owner] for owner, minor in minors.items()},
        elements=elements,
        ruled=tuple(ruled),
    )


def _ground(desired: DesiredState, uplink: DesiredUplink, options: Options, facilities: Facilities) -> Ground:
    total_bps, pool_bps = uplink.total_bps.tx, uplink.pool_bps.tx
    sharing = [one for one in desired.uplinks if one.pool_bps.tx is not None]
    return Ground(
        ifindex=uplink.index,
        mtu=uplink.mtu,
        total_bps=total_bps,
        bands=bands_at(desired.directions.tx, total_bps if pool_bps is None else pool_bps),
        queue_ms=options.queue_ms,
        codel_ms=options.codel_ms if facilities.fq_codel else None,
        filters=facilities.u32,
        parts=1 if pool_bps is None else len(sharing),
    )
