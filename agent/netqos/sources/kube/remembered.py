"""Pods as the state folder keeps them: each as the smallest Pod object that says the same. Pure.

So they are read back by the parser that reads every other Pod, and nothing in the state folder is trusted more than
what a server says. Where a pod's cgroup is does not belong to it: after a reboot ids are others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from netqos.sources.kube.pods import CRITICAL_CLASSES, HASH, MIRROR, KubePod, parse_pod

MOST_CHARACTERS = 8 << 20
"""Of all pods together: ten times what 500 pods with large annotations have."""


def bounded(pods: Sequence[KubePod]) -> Sequence[KubePod]:
    """The pods, without those with the most text where all together are above the bound."""
    sizes = [_size(pod) for pod in pods]
    if sum(sizes) <= MOST_CHARACTERS:
        return pods
    kept, left = set(), MOST_CHARACTERS
    for size, number in sorted(zip(sizes, range(len(pods)), strict=True)):
        left -= size
        if left >= 0:
            kept.add(number)
    return [pod for number, pod in enumerate(pods) if number in kept]


def written(pod: KubePod) -> dict[str, object]:
    """One pod's object."""
    facts = pod.facts
    is_mirror = pod.cgroup_uid != facts.uid
    mirror = {MIRROR: pod.cgroup_uid, HASH: pod.cgroup_uid} if is_mirror else {}
    metadata = {
        "uid": facts.uid,
        "namespace": facts.namespace,
        "name": facts.name,
        "creationTimestamp": pod.created,
        "labels": dict(facts.labels),
        "annotations": {**facts.annotations, **mirror},
        **({"deletionTimestamp": pod.created} if pod.is_ending else {}),
    }
    return {"metadata": metadata, "spec": _spec(pod), "status": _status(pod)}


def read(document: object) -> Iterator[KubePod]:
    """The pods of a list of what `written` gave; what is no pod is left out."""
    for one in document if isinstance(document, list) else ():
        parsed = parse_pod(one)
        if parsed is not None and parsed[1] is not None:
            yield parsed[1]


def _spec(pod: KubePod) -> Mapping[str, object]:
    is_critical, is_host = pod.facts.system_critical, pod.facts.host_network
    return {
        **({"priorityClassName": CRITICAL_CLASSES[0]} if is_critical else {}),
        **({"hostNetwork": True} if is_host else {}),
    }


def _status(pod: KubePod) -> Mapping[str, object]:
    qos = pod.facts.kubernetes_qos
    return {
        "phase": "Running" if pod.is_running else "Pending",
        "podIPs": [{"ip": address} for address in pod.facts.addresses],
        **({"qosClass": qos.value} if qos is not None else {}),
    }


def _size(pod: KubePod) -> int:
    facts = pod.facts
    texts = (
        *facts.annotations.values(),
        *facts.labels.values(),
        facts.name,
        facts.namespace,
        *facts.addresses,
    )
    return 400 + sum(map(len, texts))
