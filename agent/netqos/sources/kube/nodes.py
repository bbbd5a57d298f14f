"""The Node object and the NodeSLO object, each followed by its name. Pure; never raises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from netqos.model.health import Finding
from netqos.model.inputs import NodePolicy
from netqos.model.texts import LONGEST_TEXT
from netqos.settings.policy import parse_node_slo

BANDWIDTH_KEY = "node.koordinator.sh/network-bandwidth"
_LONGEST = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeNote:
    """What the Node says. `bandwidth` is the raw text of its annotation, None without one."""

    bandwidth: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSlo:
    """A NodeSLO as a policy, and what is wrong in it."""

    policy: NodePolicy
    findings: tuple[Finding, ...]


def parse_node(document: object) -> tuple[str, NodeNote | None] | None:
    """(uid, note); None for an object without uid."""
    metadata = _metadata(document)
    uid, annotations = metadata.get("uid"), metadata.get("annotations")
    if not isinstance(uid, str):
        return None
    text = annotations.get(BANDWIDTH_KEY) if isinstance(annotations, Mapping) else None
    return uid, NodeNote(bandwidth=text[: LONGEST_TEXT + 1] if isinstance(text, str) else None)


def parse_slo(document: object) -> tuple[str, NodeSlo | None] | None:
    """(uid, NodeSLO); None for an object without uid. What is wrong in it is in its findings."""
    metadata = _metadata(document)
    uid, name = metadata.get("uid"), metadata.get("name")
    if not isinstance(uid, str):
        return None
    subject = f"nodeslo {name[:_LONGEST] if isinstance(name, str) else uid[:_LONGEST]}"
    policy, findings = parse_node_slo(document, subject=subject)
    return uid, NodeSlo(policy=policy, findings=findings)


def _metadata(document: object) -> Mapping[str, object]:
    found = document.get("metadata") if isinstance(document, Mapping) else None
    return found if isinstance(found, Mapping) else {}
