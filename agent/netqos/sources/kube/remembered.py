"""Pods as the state folder keeps them: each as the smallest Pod object that says the same. Pure.

So they are read back by the parser that reads every other Pod, and nothing in the state folder is trusted more than
what a server says. Where a pod's cgroup is does not belong to it: after a reboot ids are others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from netqos.sources.kube.pods import CRITICAL_CLASSES, HASH, MIRROR, KubePod, parse_pod

MOST_BYTES = 8 << 20
"""Of all pods together as they are written: ten times what 500 pods with large annotations have."""

MOST_OF_ONE = 256 << 10
"""Of one pod: as much as the API server takes of its annotations, where hardly a character is escaped."""


def bounded(pods: Sequence[KubePod]) -> list[KubePod]:
    """The pods with so little text that they can be written, and read back: the same objects where nothing is cut.

    One that is too large loses its longest texts, and stays known. Where all together are too large, the largest lose
    theirs first, none below an equal share of the bound: nobody's texts cost another pod its own.
    """
    found = [_cut(pod, MOST_OF_ONE) for pod in pods]
    sizes = [size_bytes(pod) for pod in found]
    share, over = MOST_BYTES // max(len(pods), 1), sum(sizes) - MOST_BYTES
    for number in sorted(range(len(pods)), key=lambda one: -sizes[one]):
        if over <= 0:
            break
        found[number] = _cut(found[number], share)
        over -= sizes[number] - size_bytes(found[number])
    return found


def size_bytes(pod: KubePod) -> int:
    """How much of the document a pod takes: of control characters and the like each is six bytes."""
    return len(json.dumps(written(pod), separators=(",", ":"))) + 1


def _cut(pod: KubePod, most: int) -> KubePod:
    """The pod within the bound, without those of its texts that are longest; without all of them at the least."""
    over = size_bytes(pod) - most
    if over <= 0:
        return pod
    texts = {**pod.facts.annotations, **pod.facts.labels}
    sizes = {key: len(json.dumps(text)) for key, text in texts.items()}
    left = set(texts)
    for key in sorted(texts, key=lambda one: (-sizes[one], one)):
        if over <= 0:
            break
        left.discard(key)
        over -= sizes[key]
    labels, annotations = (
        {key: text for key, text in some.items() if key in left}
        for some in (pod.facts.labels, pod.facts.annotations)
    )
    return replace(pod, facts=replace(pod.facts, labels=labels, annotations=annotations))


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
