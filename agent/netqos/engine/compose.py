"""Inputs -> the desired state, with every choice and every problem on the way (contract 1).

This module only puts the parts together: totals, uplinks, the policy and its bands, each pod by itself, and what pods
have a say in together (addresses, minima, the number of rules). It is pure and does not depend on the order of pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from netqos.engine.addresses import claim
from netqos.engine.bands import NO_LAST_BANDS, Bands, resolve_bands
from netqos.engine.podmemo import FinishedPod, PodMemo
from netqos.engine.pods import NO_RULES, PodContext
from netqos.engine.podset import final_rules, in_order
from netqos.engine.policy import places_in_force, policy_in_force
from netqos.engine.totals import Totals, known_speeds, resolve_totals, with_last_speeds
from netqos.engine.uplinks import desired_uplinks, limits_apart
from netqos.model.composed import Composition, LastGood
from netqos.model.desired import Band, DesiredDirection, DesiredState
from netqos.model.health import Finding, error
from netqos.model.ids import PodUid
from netqos.model.inputs import NodeFacts, NodePolicy, Override, PodFacts
from netqos.model.levels import Direction, Level, PerDirection, PerLevel
from netqos.settings.values import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    """What is decided of the node before any pod is looked at."""

    policy: NodePolicy
    totals: Totals
    bands: Mapping[Direction, Bands]
    findings: tuple[Finding, ...]

    @property
    def is_on(self) -> bool:
        return self.policy.enabled is True

    @property
    def levels(self) -> PerDirection[PerLevel[Band] | None]:
        found = {direction: bands.levels for direction, bands in self.bands.items()}
        return PerDirection(tx=found.get(Direction.TX), rx=found.get(Direction.RX))

    @property
    def directions(self) -> PerDirection[DesiredDirection]:
        total_bps, levels = self.totals.bps, self.levels
        return PerDirection(
            tx=DesiredDirection(total_bps=total_bps.tx, levels=levels.tx),
            rx=DesiredDirection(total_bps=total_bps.rx, levels=levels.rx),
        )


def compose(  # noqa: PLR0913 - one for each source, and what is remembered
    *,
    settings: Settings,
    slo: NodePolicy | None,
    pods: Sequence[PodFacts],
    overrides: Mapping[PodUid, Override],
    node: NodeFacts,
    last_good: LastGood,
    complete: bool,
    memo: PodMemo | None = None,
) -> Composition:
    """What this node's network should look like, and why.

    `overrides` are only those that have not ended; `slo` None: there is no NodeSLO; `complete` False: a source has not
    delivered yet, so the plan only adds, and nothing that is remembered of a pod is forgotten. The findings of `node`
    are its source's and are not repeated. `memo` saves the work on pods that are as they were in the step before.
    """
    node = with_last_speeds(node, last_good.speeds)
    decided = _decide_node(settings, slo, node, last_good)
    uplinks, uplink_findings = desired_uplinks(node, decided.totals)
    context = PodContext(
        settings=settings,
        total_bps=decided.totals.bps,
        last_good=last_good,
        overrides=overrides,
        held=node.held,
    )
    ordered, duplicates = in_order(pods)
    memo = memo or PodMemo()
    resolved = memo.resolve(ordered, context)
    claims = claim(ordered)
    rules = final_rules(resolved, decided.levels)
    finished = memo.finish(resolved, claims, rules.by_pod)
    state = DesiredState(
        enabled=decided.is_on,
        complete=complete,
        uplinks=uplinks,
        directions=decided.directions,
        pods=tuple(pod.desired for pod in finished),
        critical_cgroups=tuple(sorted(node.critical_cgroups)),
        missing_uplinks=tuple(sorted(one.name for one in node.uplinks if not one.present)),
    )
    return Composition(
        desired=state,
        total_sources=decided.totals.sources,
        pods=tuple(pod.view for pod in finished),
        findings=(
            *decided.findings,
            *uplink_findings,
            *limits_apart(state),
            *duplicates,
            *rules.findings,
        ),
        last_good=replace(
            _remember(decided, slo, finished, last_good, complete=complete), speeds=known_speeds(node)
        ),
    )


def _decide_node(settings: Settings, slo: NodePolicy | None, node: NodeFacts, last_good: LastGood) -> _Node:
    policy = policy_in_force(settings, slo, last_on=_last_on(last_good))
    places = places_in_force(settings, slo)
    totals = resolve_totals(settings=settings, slo=slo, node=node, last_good=last_good.totals)
    bands: dict[Direction, Bands] = {}
    findings = list(totals.findings)
    for direction in Direction if policy.enabled else ():
        total_bps = totals.bps[direction]
        if total_bps is None:
            findings.append(_total_unknown(node, direction))
            continue
        last = last_good.bands.get(direction, NO_LAST_BANDS)
        bands[direction] = resolve_bands(policy, direction, total_bps, last, places=places)
        findings += bands[direction].findings
    return _Node(policy=policy, totals=totals, bands=bands, findings=tuple(findings))


def _last_on(last_good: LastGood) -> frozenset[Level]:
    """The classes that are on in either direction by their last good values."""
    bands = [(level, last[level]) for last in last_good.bands.values() for level in Level]
    return frozenset(level for level, band in bands if band is not None and band.enabled)


def _total_unknown(node: NodeFacts, direction: Direction) -> Finding:
    return error(
        "total-unknown",
        f"node {node.name}",
        f"the {direction.value} total is unknown, so {direction.value} is not shaped by level",
        hint="set node.bandwidth, or use an uplink whose speed can be read",
    )


def _remember(
    decided: _Node,
    slo: NodePolicy | None,
    finished: Sequence[FinishedPod],
    last: LastGood,
    *,
    complete: bool,
) -> LastGood:
    """What was accepted now. Of what was not decided (levels while off, pods not listed yet) the old stays."""
    limits = dict(last.limits) if not complete else {}
    rules = dict(last.rules) if not complete else {}
    for pod in finished:
        uid, accepted_rules = pod.desired.uid, pod.resolved.accepted_rules
        limits.pop(uid, None)
        rules.pop(uid, None)
        if pod.accepted is not None:
            limits[uid] = pod.accepted
        if pod.resolved.facts.namespace and accepted_rules != NO_RULES:
            rules[uid] = accepted_rules
    bands = {direction: bands.last_good for direction, bands in decided.bands.items()}
    return LastGood(
        limits=limits,
        rules=rules,
        policy=slo,
        bands={**last.bands, **bands},
        totals=decided.totals.last_good,
    )
