"""Pods with their cgroups: looked for until they are there, and looked at again now and then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from netqos.host.cgroups import Cgroup
from netqos.model.health import info
from netqos.model.ids import PodUid
from netqos.model.inputs import KubernetesQos, PodFacts
from netqos.sources.kube.pods import KubePod

AGAIN_S = 10.0
"""How often a cgroup that was found is looked at: one that was made anew has another id."""

SOON_S = 0.4
"""How often one that is missing is looked for, and one by which packets are told apart is looked at."""


class Finder(Protocol):
    """`netqos.host.cgroups.Cgroups`."""

    def pods(self, wanted: Mapping[PodUid, KubernetesQos | None]) -> Mapping[PodUid, Cgroup]:
        """The cgroups of pods; those that are not there are left out."""
        ...


@dataclass(frozen=True, slots=True)
class _Known:
    pod: KubePod
    cgroup: Cgroup | None
    facts: PodFacts
    looked_s: float


class Locator:
    """Remembers what it found; equal pods come out as the same object."""

    def __init__(self, finder: Finder) -> None:
        """`finder` is asked for many pods at once."""
        self._finder = finder
        self._known: dict[PodUid, _Known] = {}

    def locate(self, pods: Iterable[KubePod], *, now_s: float) -> tuple[PodFacts, ...]:
        """The pods' facts with their cgroups, in order. Pods that are gone are forgotten."""
        listed = {pod.facts.uid: pod for pod in pods}
        wanted = [pod for uid, pod in listed.items() if self._is_due(pod, self._known.get(uid), now_s)]
        found = self._finder.pods({pod.cgroup_uid: pod.facts.kubernetes_qos for pod in wanted})
        for pod in wanted:
            uid = pod.facts.uid
            self._known[uid] = self._look(pod, found.get(pod.cgroup_uid), self._known.get(uid), now_s)
        self._known = {uid: self._known[uid] for uid in listed}
        return tuple(known.facts for known in self._known.values())

    def _is_due(self, pod: KubePod, known: _Known | None, now_s: float) -> bool:
        if known is None or known.pod is not pod:
            return True
        is_urgent = known.cgroup is None or pod.facts.host_network
        return now_s - known.looked_s >= (SOON_S if is_urgent else AGAIN_S)

    def _look(self, pod: KubePod, cgroup: Cgroup | None, known: _Known | None, now_s: float) -> _Known:
        if known is not None and known.pod is pod and known.cgroup == cgroup:
            return replace(known, looked_s=now_s)
        facts = _with_cgroup(pod, cgroup)
        if known is not None and known.facts == facts:
            facts = known.facts
        return _Known(pod, cgroup, facts, now_s)


def _with_cgroup(pod: KubePod, cgroup: Cgroup | None) -> PodFacts:
    if cgroup is not None:
        return replace(pod.facts, cgroup=cgroup.path, cgroup_id=cgroup.id, inner_cgroups=cgroup.inner)
    if not pod.facts.host_network or not pod.is_running:
        return pod.facts
    pending = info(
        "pod-cgroup-missing",
        pod.facts.subject,
        "its cgroup is not there, and its address is the node's: its packets count as the host's until it is",
        hint="see that the host's cgroup tree is mounted, and paths.cgroup",
    )
    return replace(pod.facts, findings=(*pod.facts.findings, pending))
