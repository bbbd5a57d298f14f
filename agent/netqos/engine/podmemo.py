"""What was worked out of each pod in the step before: a pod whose inputs are the same costs a look, and no more.

It changes how long a step takes, never its result. Results of equal inputs are the same objects, so that whoever
compares two states compares a pod that did not change by its identity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from netqos.engine.addresses import Claimed
from netqos.engine.pods import NO_RULES, PodContext, ResolvedPod, Rules, resolve_pod
from netqos.model.composed import PodView
from netqos.model.desired import DesiredPod
from netqos.model.ids import PodUid
from netqos.model.inputs import PodFacts
from netqos.model.levels import PerDirection
from netqos.settings.values import Settings

LastLimits = PerDirection[tuple[int, str] | None]


@dataclass(frozen=True, slots=True)
class _Known:
    """A pod that was resolved, and all that its result followed from."""

    facts: PodFacts
    settings: Settings
    inputs: tuple[object, ...]
    resolved: ResolvedPod


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedPod:
    """One pod's part of a composition, and what it followed from. `accepted`: the limits to remember, if any."""

    resolved: ResolvedPod
    claimed: Claimed
    rules: Rules
    desired: DesiredPod
    view: PodView
    accepted: LastLimits | None


class PodMemo:
    """The pods as they were in the last step; those that are not in this one are forgotten."""

    def __init__(self) -> None:
        """Nothing was worked out yet."""
        self._known: dict[PodUid, _Known] = {}
        self._finished: dict[PodUid, FinishedPod] = {}

    def resolve(self, pods: Sequence[PodFacts], context: PodContext) -> list[ResolvedPod]:
        """Every pod by itself, in order."""
        self._known = {facts.uid: self._resolved(facts, context) for facts in pods}
        return [known.resolved for known in self._known.values()]

    def finish(
        self, pods: Sequence[ResolvedPod], claims: Mapping[PodUid, Claimed], rules: Mapping[PodUid, Rules]
    ) -> list[FinishedPod]:
        """Every pod with what it has of what pods share, in order."""
        self._finished = {
            pod.facts.uid: self._one(pod, claims[pod.facts.uid], rules.get(pod.facts.uid, NO_RULES))
            for pod in pods
        }
        return list(self._finished.values())

    def _resolved(self, facts: PodFacts, context: PodContext) -> _Known:
        uid, last = facts.uid, context.last_good
        inputs = (
            *(context.total_bps, context.overrides.get(uid), context.held_of(facts)),
            *(last.limits.get(uid), last.rules.get(uid)),
        )
        known = self._known.get(uid)
        is_same = known is not None and known.facts is facts and known.settings is context.settings
        if known is not None and is_same and known.inputs == inputs:
            return known
        return _Known(facts, context.settings, inputs, resolve_pod(facts, context))

    def _one(self, pod: ResolvedPod, claimed: Claimed, rules: Rules) -> FinishedPod:
        known = self._finished.get(pod.facts.uid)
        if known is not None and known.resolved is pod and known.claimed == claimed and known.rules == rules:
            return known
        accepted = PerDirection(tx=pod.limits.tx.last_good, rx=pod.limits.rx.last_good)
        return FinishedPod(
            resolved=pod,
            claimed=claimed,
            rules=rules,
            desired=_desired(pod, claimed, rules),
            view=_view(pod, claimed),
            accepted=None if accepted.tx is None and accepted.rx is None else accepted,
        )


def _desired(pod: ResolvedPod, claimed: Claimed, rules: Rules) -> DesiredPod:
    facts, limits = pod.facts, pod.limits
    return DesiredPod(
        uid=facts.uid,
        name=facts.full_name,
        level=pod.level.level,
        limits_bps=PerDirection(tx=limits.tx.applied.bps, rx=limits.rx.applied.bps),
        rules=rules,
        addresses=claimed.addresses,
        cgroup=facts.cgroup,
        cgroup_id=facts.cgroup_id,
        inner_cgroups=facts.inner_cgroups,
        host_network=facts.host_network,
    )


def _view(pod: ResolvedPod, claimed: Claimed) -> PodView:
    facts = pod.facts
    return PodView(
        uid=facts.uid,
        namespace=facts.namespace,
        name=facts.name,
        level=pod.level.level,
        level_source=pod.level.source,
        level_choices=pod.level.choices,
        limits=PerDirection(tx=pod.limits.tx.applied, rx=pod.limits.rx.applied),
        addresses=claimed.addresses,
        cgroup=facts.cgroup,
        host_network=facts.host_network,
        findings=(*pod.findings, *claimed.findings),
    )
