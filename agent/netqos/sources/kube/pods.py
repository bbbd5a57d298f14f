"""One pod of the API server or the kubelet -> what the engine needs of it. Pure; never raises, whatever the object is.

Only what counts is kept, and of that a bounded amount: a node's pods fit into memory whatever stands in their
annotations. Who keeps which address, and where a pod's cgroup is, is decided in `podset` and by the host.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from netqos.model import addresses
from netqos.model.ids import PodUid
from netqos.model.inputs import KubernetesQos, PodFacts
from netqos.model.levels import Direction
from netqos.model.texts import LONGEST_TEXT
from netqos.settings.annotations import BANDWIDTHS, NET_QOS_CLASS, QOS_CLASS, QOS_CONFIG
from netqos.settings.networkqos import NETWORK_QOS
from netqos.sources.kube.podqos import qos_of_name, qos_of_spec

LABELS = (QOS_CLASS,)
ANNOTATIONS = (
    NET_QOS_CLASS,
    NETWORK_QOS,
    QOS_CONFIG,
    *(
        BANDWIDTHS.format(domain=domain, word=direction.pod_word)
        for domain in ("koordinator.sh", "kubernetes.io")
        for direction in Direction
    ),
)
CRITICAL_CLASSES = ("system-node-critical", "system-cluster-critical")
FINISHED = ("Succeeded", "Failed")

MIRROR = "kubernetes.io/config.mirror"
HASH = "kubernetes.io/config.hash"
_SOURCE = "kubernetes.io/config.source"
_LONGEST_NAME = 253
_MOST_ADDRESSES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class KubePod:
    """`created` is its time of creation as the API writes it, which sorts as text.

    `cgroup_uid` names its cgroup: of a static pod, which the API server knows by its mirror, the uid that the kubelet
    gave it.
    """

    facts: PodFacts
    created: str
    is_running: bool
    is_ending: bool
    cgroup_uid: PodUid


def parse_pod(document: object) -> tuple[str, KubePod | None] | None:
    """(uid, pod) as a source's parser gives it.

    The pod is None when it is finished: its address may be somebody else's already. None instead of the pair: an
    object without uid or name.
    """
    metadata, spec, status = (_map(document, key) for key in ("metadata", "spec", "status"))
    uid, name = (_text(metadata.get(key), _LONGEST_NAME) for key in ("uid", "name"))
    namespace = _text(metadata.get("namespace"), _LONGEST_NAME)
    if not uid or not name or not namespace:
        return None
    phase = status.get("phase")
    if phase in FINISHED:
        return uid, None
    annotations = _map(metadata, "annotations")
    facts = PodFacts(
        uid=PodUid(uid),
        namespace=sys.intern(namespace),
        name=name,
        addresses=tuple(_addresses(status)),
        host_network=spec.get("hostNetwork") is True,
        labels=_kept(_map(metadata, "labels"), LABELS),
        annotations=_kept(annotations, ANNOTATIONS),
        kubernetes_qos=_qos(spec, status),
        system_critical=is_static(annotations) or spec.get("priorityClassName") in CRITICAL_CLASSES,
    )
    return uid, KubePod(
        facts=facts,
        created=_text(metadata.get("creationTimestamp"), 40),
        is_running=phase == "Running",
        is_ending=metadata.get("deletionTimestamp") is not None,
        cgroup_uid=PodUid(_cgroup_uid(annotations) or uid),
    )


def is_static(annotations: Mapping[str, object]) -> bool:
    """Whether the kubelet has the pod from somewhere else than the API server."""
    source = annotations.get(_SOURCE)
    return MIRROR in annotations or (isinstance(source, str) and source not in {"", "api"})


def _cgroup_uid(annotations: Mapping[str, object]) -> str:
    found = _text(annotations.get(HASH), _LONGEST_NAME) if MIRROR in annotations else ""
    return found if found.replace("-", "").isalnum() else ""


def _qos(spec: Mapping[str, object], status: Mapping[str, object]) -> KubernetesQos | None:
    told = qos_of_name(status.get("qosClass"))
    return told if told is not None else qos_of_spec(spec)


def _addresses(status: Mapping[str, object]) -> Iterator[str]:
    """The pod's addresses in the order given, each once and in its shortest form."""
    listed = status.get("podIPs")
    said = [_map({"one": one}, "one").get("ip") for one in listed] if isinstance(listed, list) else []
    found: dict[str, None] = {}
    for value in (*said[:_MOST_ADDRESSES], status.get("podIP")):
        text = _text(value, 64)
        if text:
            found.setdefault(addresses.plain(text))
    yield from found


def _kept(texts: Mapping[str, object], wanted: tuple[str, ...]) -> Mapping[str, str]:
    found = {key: texts[key] for key in wanted if key in texts}
    kept = {key: _text(value, LONGEST_TEXT + 1) for key, value in found.items() if isinstance(value, str)}
    return kept or _NOTHING


_NOTHING: Mapping[str, str] = {}


def _map(document: object, key: str) -> Mapping[str, object]:
    value = document.get(key) if isinstance(document, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _text(value: object, longest: int) -> str:
    """A text that can be written as UTF-8; empty for anything else."""
    if not isinstance(value, str):
        return ""
    text = value[:longest]
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
