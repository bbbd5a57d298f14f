"""Events of the cluster about rejected annotations: which findings are told, and what an Event says. Pure.

The Event's name follows from its content, so that a restart does not repeat it (the server answers 409 then, which is
as good as sent).
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterable, Iterator

from netqos.model.composed import PodView
from netqos.model.health import Finding
from netqos.model.ids import WORKLOAD_PREFIX
from netqos.observe.recorder import REASONS

CONTROLLER = "koordinator.sh/netqosd"
_LONGEST_NOTE = 1024

TOLD = frozenset(code for code in REASONS if not code.startswith("address-"))
"""What a pod's owner can mend; who has which address is nobody's annotation."""

Rejection = tuple[PodView, Finding]


def rejections(pods: Iterable[PodView]) -> Iterator[Rejection]:
    """Every finding that is worth an Event, with its pod."""
    for pod in pods:
        if pod.findings and pod.namespace and not pod.uid.startswith(WORKLOAD_PREFIX):
            yield from ((pod, finding) for finding in pod.findings if finding.code in TOLD)


def event_name(pod: PodView, finding: Finding) -> str:
    """A name that is the same for the same finding of the same pod, within 253 characters."""
    content = "\0".join((pod.uid, finding.code, finding.message))
    return f"{pod.name[:200].rstrip('.-')}.{hashlib.sha256(content.encode()).hexdigest()[:16]}"


def event(pod: PodView, finding: Finding, *, name: str, node: str, wall_s: float) -> dict[str, object]:
    """An events.k8s.io/v1 Event about a pod."""
    moment = dt.datetime.fromtimestamp(wall_s, dt.UTC)
    note = f"{finding.message} ({finding.hint})" if finding.hint else finding.message
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": pod.namespace},
        "eventTime": moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "type": "Warning",
        "reason": "".join(word.capitalize() for word in finding.code.split("-")),
        "action": "Reject",
        "note": _cut(note),
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": pod.namespace,
            "name": pod.name,
            "uid": pod.uid,
        },
        "reportingController": CONTROLLER,
        "reportingInstance": node[:128],
    }


def _cut(note: str) -> str:
    """The server takes fewer than 1024 bytes."""
    return note.encode()[: _LONGEST_NOTE - 4].decode(errors="ignore")
