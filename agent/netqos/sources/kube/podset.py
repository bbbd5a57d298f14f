"""All pods of the node from both sources, and whose address is whose. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from netqos.model.health import Finding, warning
from netqos.model.ids import PodUid
from netqos.sources.kube.pods import KubePod


def merge(
    api: Sequence[KubePod] | None, kubelet: Sequence[KubePod] | None, *, is_api_current: bool
) -> tuple[KubePod, ...] | None:
    """The pods by uid. None: neither source has delivered.

    A current API server decides on every pod that it knows; the kubelet adds those that it does not know (static pods
    without a mirror, pods that were just bound). Without it the kubelet knows who is still here, and what the API
    server said last of them counts.
    """
    if api is None or kubelet is None:
        found = api if kubelet is None else kubelet
        return None if found is None else tuple(found)
    known = {pod.cgroup_uid: pod for pod in api}
    told = {pod.cgroup_uid: pod for pod in kubelet}
    kept = api if is_api_current else [_newer(pod, told[uid]) for uid, pod in known.items() if uid in told]
    return (*kept, *(pod for pod in kubelet if pod.cgroup_uid not in known))


def joined(pods: Sequence[KubePod], earlier: Sequence[KubePod]) -> tuple[KubePod, ...]:
    """The pods, and of the earlier ones those that are not among them and have no address of theirs."""
    uids = {pod.facts.uid for pod in pods}
    taken = {address for pod in pods for address in pod.facts.addresses}
    kept = (pod for pod in earlier if pod.facts.uid not in uids and taken.isdisjoint(pod.facts.addresses))
    return (*pods, *kept)


def settle_addresses(
    pods: Iterable[KubePod], *, of_node: frozenset[str] = frozenset()
) -> tuple[KubePod, ...]:
    """Each address with one pod: of two that claim it the newer running one has it, and the other a finding.

    `of_node` are the node's own addresses, which no pod may take with it.
    """
    listed = tuple(pods)
    if _are_apart(listed, of_node):
        return listed
    owners: dict[str, KubePod] = {}
    for pod in sorted(listed, key=_claim):
        if not pod.facts.host_network:
            owners.update(dict.fromkeys(pod.facts.addresses, pod))
    return tuple(_settled(pod, owners, of_node) for pod in listed)


def _are_apart(pods: tuple[KubePod, ...], of_node: frozenset[str]) -> bool:
    """Whether no address is claimed twice or is the node's: as it nearly always is, and quickly seen."""
    seen = set(of_node)
    count = len(seen)
    for pod in pods:
        if not pod.facts.host_network:
            seen.update(pod.facts.addresses)
            count += len(pod.facts.addresses)
    return len(seen) == count


def _claim(pod: KubePod) -> tuple[bool, bool, str, PodUid]:
    """Sorts the strongest claim last."""
    return (pod.is_running, not pod.is_ending, pod.created, pod.facts.uid)


def _settled(pod: KubePod, owners: dict[str, KubePod], of_node: frozenset[str]) -> KubePod:
    facts = pod.facts
    if facts.host_network:
        return pod
    kept = tuple(one for one in facts.addresses if owners[one] is pod and one not in of_node)
    if kept == facts.addresses:
        return pod
    findings = [_lost(pod, one, owners[one], of_node) for one in facts.addresses if one not in kept]
    return replace(pod, facts=replace(facts, addresses=kept, findings=(*facts.findings, *findings)))


def _lost(pod: KubePod, address: str, owner: KubePod, of_node: frozenset[str]) -> Finding:
    if address in of_node:
        return warning(
            "address-of-node",
            pod.facts.subject,
            f"{address} is an address of this node: it would take the node's own traffic too; it is left out",
            hint="see why the pod's status names it",
        )
    return warning(
        "address-conflict",
        pod.facts.subject,
        f"{address} is claimed by {owner.facts.full_name} too, which is newer and has it",
        hint="it is settled when one of them is gone",
    )


def _newer(pod: KubePod, told: KubePod) -> KubePod:
    """The API server's pod with the addresses that the kubelet knows by now."""
    addresses = told.facts.addresses or pod.facts.addresses
    if addresses == pod.facts.addresses and told.is_running == pod.is_running:
        return pod
    return replace(pod, facts=replace(pod.facts, addresses=addresses), is_running=told.is_running)
