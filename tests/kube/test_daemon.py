"""The daemon in a node of network namespaces, whose pods are Pod objects of a real API server."""

from __future__ import annotations

import json
import time

import pytest

from netqos.testing.faultreplies import status
from tests.apiserver.kube import Kube
from tests.kube.kubenode import EGRESS, EVENTS, Node, fresh
from tests.waiting import wait_until

pytestmark = pytest.mark.kernel("htb", "nft")

M = 1_000_000

M = 1_000_000


def test_pods_nodeslo_and_node_of_the_api_server_are_enforced(node: Node, kube: Kube) -> None:
    kube.create_pod("web", ips=[node.rig.pod("web").address], annotations={EGRESS: "10M"})
    kube.create_namespace(f"{kube.namespace}-system")
    kube.create_pod(
        "dns",
        namespace=f"{kube.namespace}-system",
        ips=["10.88.0.99"],
        spec={"priorityClassName": "system-node-critical"},
    )
    node.daemon.start()
    wait_until(lambda: fresh(node))
    assert set(node.sources()) == {"file", "pods", "nodeslo", "node"}
    wait_until(lambda: "ceil 10Mbit" in node.classes())
    assert {name: pod["level"] for name, pod in node.pods().items()} == {"web": "L2", "dns": "L0"}
    kube.annotate_pod("web", {EGRESS: "20M"})
    wait_until(lambda: "ceil 20Mbit" in node.classes())
    kube.label_pod("web", {"koordinator.sh/qosClass": "LS"})
    wait_until(lambda: node.pods()["web"]["level"] == "L1")
    kube.create_slo({"resourceQOSStrategy": {"beClass": {"networkQOS": {"enable": True, "egressLimit": 40}}}})
    wait_until(lambda: node.status()["directions"]["tx"]["levels"]["L2"]["ceiling_bps"] == 80 * M)
    kube.annotate_node({"node.koordinator.sh/network-bandwidth": "100M"})
    wait_until(lambda: node.status()["directions"]["tx"]["total_source"] == "annotation")
    assert node.status()["directions"]["tx"]["total_bps"] == 100 * M
    written = json.loads((node.daemon.paths.net / "pods").read_text())
    assert {one["pod"] for one in written.values()} == {
        f"{kube.namespace}/web",
        f"{kube.namespace}-system/dns",
    }
    kube.remove_pod("web")
    wait_until(lambda: "ceil 20Mbit" not in node.classes())
    assert node.codes() == set()


def test_an_outage_keeps_everything_also_over_a_restart(node: Node, kube: Kube) -> None:
    kube.create_pod("web", ips=[node.rig.pod("web").address], annotations={EGRESS: "10M"})
    kube.create_slo(
        {"resourceQOSStrategy": {"beClass": {"networkQOS": {"enable": True, "egressLimit": "60M"}}}}
    )
    kube.annotate_node({"node.koordinator.sh/network-bandwidth": "160M"})
    node.daemon.start()
    wait_until(lambda: fresh(node) and "ceil 10Mbit" in node.classes())
    wait_until(lambda: "160000000" in (node.daemon.paths.state / "last-good.json").read_text())
    before = node.classes()
    node.proxy.refuse()
    node.proxy.reset()
    wait_until(
        lambda: (
            {"pods", "nodeslo", "node"} <= {name for name, one in node.sources().items() if one == "stale"}
        )
    )
    assert node.classes() == before
    node.daemon.stop()
    node.daemon.start()
    wait_until(lambda: "source-away" in node.codes())
    assert {node.sources()[name] for name in ("pods", "nodeslo", "node")} == {"stale"}
    time.sleep(1)
    assert node.classes() == before
    assert node.status()["directions"]["tx"]["total_bps"] == 160 * M
    kube.annotate_pod("web", {EGRESS: "20M"})
    node.proxy.restore()
    wait_until(lambda: "ceil 20Mbit" in node.classes(), 3)
    wait_until(lambda: fresh(node))


def test_a_rejected_annotation_is_told_once_and_touches_no_other(node: Node, kube: Kube) -> None:
    kube.create_pod("good", ips=["10.88.0.11"], annotations={EGRESS: "11M"})
    kube.create_pod(
        "bad", ips=["10.88.0.12"], annotations={EGRESS: "12Mbps", "koordinator.sh/net-qos-class": "l7"}
    )
    node.daemon.start()
    wait_until(lambda: "ceil 11Mbit" in node.classes())
    path = f"{EVENTS}/{kube.namespace}/events"
    wait_until(lambda: len(kube.api.get(path)["items"]) == 2)
    found = kube.api.get(path)["items"]
    assert {one["regarding"]["name"] for one in found} == {"bad"}
    assert any("12Mbps" in one["note"] for one in found)
    node.daemon.stop()
    node.daemon.start()
    kube.annotate_pod("good", {EGRESS: "13M"})
    wait_until(lambda: "ceil 13Mbit" in node.classes())
    time.sleep(1)
    assert len(kube.api.get(path)["items"]) == 2


def test_an_event_that_the_server_did_not_take_comes_later(node: Node, kube: Kube) -> None:
    node.proxy.answer(status(503), method="POST", times=2)
    kube.create_pod("bad", ips=["10.88.0.12"], annotations={EGRESS: "12Mbps"})
    node.daemon.start()
    path = f"{EVENTS}/{kube.namespace}/events"
    wait_until(lambda: len(kube.api.get(path)["items"]) == 1)
    assert [one.status for one in node.proxy.requests if one.method == "POST"] == [503, 503, 201]


def test_a_single_pass_takes_what_the_server_says(node: Node, kube: Kube) -> None:
    kube.create_pod("web", ips=["10.88.0.11"], annotations={EGRESS: "11M"})
    command = [*node.daemon.command, "--once"]
    process = node.rig.node.popen(command, own_sysfs=True)
    assert process.wait(30) == 0
    assert "ceil 11Mbit" in node.classes()


def test_the_daemon_asks_for_no_right_that_it_does_not_have(node: Node, kube: Kube) -> None:
    kube.create_pod("bad", ips=["10.88.0.12"], annotations={EGRESS: "12Mbps"})
    node.daemon.start()
    wait_until(lambda: fresh(node))
    wait_until(lambda: any(one.method == "POST" for one in node.proxy.requests))
    assert {one.status for one in node.proxy.requests} <= {200, 201}
    asked = {(one.method, one.path.rpartition("/")[2], one.is_watch) for one in node.proxy.requests}
    assert asked == {
        *(("GET", name, watch) for name in ("pods", "nodes", "nodeslos") for watch in (False, True)),
        ("POST", "events", False),
    }
