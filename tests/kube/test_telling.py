"""What the daemon tells a real API server arrives, whatever happens meanwhile."""

from __future__ import annotations

import json

import pytest

from netqos.observe.kubereporter import STATUS_KEY
from netqos.testing.faultreplies import status
from tests.apiserver.kube import NODES, RBAC, Kube
from tests.kube.test_daemon import EGRESS, EVENTS, Node, eventually, node

__all__ = ["node"]

pytestmark = [pytest.mark.kernel("htb", "nft"), pytest.mark.serial]

PATCH = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["patch"]}


def test_the_status_says_what_was_read_and_a_missing_right_is_told_until_it_is_given(
    node: Node, kube: Kube
) -> None:
    kube.create_pod("bad", ips=["10.88.0.12"], annotations={EGRESS: "12Mbps"})
    node.document["kubernetes"]["publishStatus"] = True
    node.daemon.configure(node.document)
    node.daemon.start()
    eventually(lambda: "status-not-published" in node.codes())
    kube.api.create(f"{RBAC}/clusterroles", {"metadata": {"name": kube.namespace}, "rules": [PATCH]})
    kube.bind_role(kube.namespace, "netqos")

    def annotations() -> dict[str, str]:
        return dict(kube.api.get(f"{NODES}/{kube.node}")["metadata"].get("annotations") or {})

    eventually(lambda: STATUS_KEY in annotations(), 15)
    said = json.loads(annotations()[STATUS_KEY])
    assert (said["pods"], said["rejected"]) == (1, 1)
    eventually(lambda: "status-not-published" not in node.codes())
    kube.api.delete(f"{RBAC}/clusterroles/{kube.namespace}")


def test_events_that_are_refused_are_a_finding_and_come_later(node: Node, kube: Kube) -> None:
    for number in range(3):
        kube.create_pod(f"bad-{number}", ips=[f"10.88.0.{number + 1}"], annotations={EGRESS: "12Mbps"})
    node.proxy.answer(status(403), method="POST")
    node.daemon.start()
    eventually(lambda: "events-not-sent" in node.codes())
    node.proxy.clear()
    eventually(lambda: len(kube.api.get(f"{EVENTS}/{kube.namespace}/events")["items"]) == 3, 15)
    eventually(lambda: "events-not-sent" not in node.codes())
