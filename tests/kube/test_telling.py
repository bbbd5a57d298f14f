"""What the daemon tells a real API server arrives, whatever happens meanwhile."""

from __future__ import annotations

import json

import pytest

from netqos.observe.kubereporter import STATUS_KEY
from netqos.testing.faultreplies import Body, status
from tests.apiserver.kube import NODES, RBAC, Kube
from tests.kube.kubenode import EGRESS, EVENTS, Node, fresh
from tests.waiting import wait_until

pytestmark = pytest.mark.kernel("htb", "nft")

PATCH = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["patch"]}


def test_the_status_says_what_was_read_and_a_missing_right_is_told_until_it_is_given(
    node: Node, kube: Kube
) -> None:
    kube.create_pod("bad", ips=["10.88.0.12"], annotations={EGRESS: "12Mbps"})
    node.document["kubernetes"]["publishStatus"] = True
    node.daemon.configure(node.document)
    node.daemon.start()
    wait_until(lambda: "status-not-published" in node.codes())
    kube.api.create(f"{RBAC}/clusterroles", {"metadata": {"name": kube.namespace}, "rules": [PATCH]})
    kube.bind_role(kube.namespace, "netqos")

    def annotations() -> dict[str, str]:
        return dict(kube.api.get(f"{NODES}/{kube.node}")["metadata"].get("annotations") or {})

    wait_until(lambda: STATUS_KEY in annotations())
    said = json.loads(annotations()[STATUS_KEY])
    assert (said["pods"], said["rejected"]) == (1, 1)
    wait_until(lambda: "status-not-published" not in node.codes())
    kube.api.delete(f"{RBAC}/clusterroles/{kube.namespace}")


def test_events_that_are_refused_are_a_finding_and_come_later(node: Node, kube: Kube) -> None:
    for number in range(3):
        kube.create_pod(f"bad-{number}", ips=[f"10.88.0.{number + 1}"], annotations={EGRESS: "12Mbps"})
    node.proxy.answer(status(403), method="POST")
    node.daemon.start()
    wait_until(lambda: "events-not-sent" in node.codes())
    node.proxy.clear()
    wait_until(lambda: len(kube.api.get(f"{EVENTS}/{kube.namespace}/events")["items"]) == 3)
    wait_until(lambda: "events-not-sent" not in node.codes())


def test_an_event_is_sent_when_the_answer_is_that_event(node: Node, kube: Kube) -> None:
    """A proxy in between may answer anything with 200, and nothing was stored."""
    kube.create_pod("bad", ips=["10.88.0.1"], annotations={EGRESS: "12Mbps"})
    node.proxy.answer(Body(content=b'{"kind": "Status", "status": "Success"}'), method="POST")
    node.daemon.start()
    wait_until(lambda: any(one.method == "POST" for one in node.proxy.requests))
    node.proxy.clear()
    wait_until(lambda: len(kube.api.get(f"{EVENTS}/{kube.namespace}/events")["items"]) == 1)


def events(node: Node) -> list[dict[str, object]]:
    """The log's lines about inputs."""
    lines = [json.loads(line) for line in node.daemon.log_end(1000).splitlines()]
    return [line for line in lines if line["logger"] == "netqos.inputs"]


def test_the_log_tells_of_an_outage_and_of_what_is_rejected_once_each(node: Node, kube: Kube) -> None:
    kube.create_pod("bad", ips=["10.88.0.12"], annotations={EGRESS: "12Mbps"})
    kube.create_pod("twin", ips=["10.88.0.12"])
    node.daemon.start()
    wait_until(lambda: node.status()["rejected"]["inputs"] == 2)
    kube.annotate_pod("bad", {EGRESS: "13Mbps"})
    kube.create_slo(
        {"resourceQOSStrategy": {"beClass": {"networkQOS": {"enable": True, "egressLimit": "x"}}}}
    )
    wait_until(lambda: f"nodeslo {kube.node}" in {line.get("subject") for line in events(node)})
    node.proxy.answer(status(401))
    node.proxy.reset()
    wait_until(lambda: sum("401" in str(line.get("detail")) for line in events(node)) == 3)
    node.proxy.clear()
    wait_until(lambda: fresh(node))
    wait_until(lambda: [line["event"] for line in events(node)][-3:] == ["source-fresh"] * 3)
    assert sum("12Mbps" in str(line) for line in events(node)) == 1
    assert sum("13Mbps" in str(line) for line in events(node)) == 1
    assert sum(line["event"] == "address-conflict" for line in events(node)) == 1
