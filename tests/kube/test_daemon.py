"""The daemon in a node of network namespaces, whose pods are Pod objects of a real API server."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from netqos.testing.daemon import Daemon
from netqos.testing.faultproxy import FaultProxy
from netqos.testing.faultreplies import status
from netqos.testing.netns import Rig
from netqos.testing.relay import Relay
from tests.apiserver.fixtures import MakeProxy
from tests.apiserver.kube import Kube
from tests.apiserver.launch import write_kubeconfig
from tests.apiserver.server import ApiServer

pytestmark = [pytest.mark.kernel("htb", "nft"), pytest.mark.serial]

M = 1_000_000
EGRESS = "koordinator.sh/egress-bandwidth"
EVENTS = "/apis/events.k8s.io/v1/namespaces"
RULES = [
    {"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["list", "watch"]},
    {"apiGroups": ["slo.koordinator.sh"], "resources": ["nodeslos"], "verbs": ["list", "watch"]},
    {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
]


class Node:
    """A daemon that follows its node in the API server, through a fault proxy."""

    def __init__(self, rig: Rig, kube: Kube, proxy: FaultProxy, token: str) -> None:
        kubeconfig = write_kubeconfig(rig.folder / "kubeconfig", proxy.url, proxy.ca_file, token=token)
        self.document = {
            "node": {"name": kube.node, "bandwidth": {"tx": "200M", "rx": "150M"}},
            "policy": {"enable": True, "systemNamespaces": [f"{kube.namespace}-system"]},
            "kubernetes": {"enable": True, "kubeconfig": str(kubeconfig)},
        }
        self.rig = rig
        self.proxy = proxy
        self.daemon = Daemon(rig, self.document)

    def status(self) -> dict[str, Any]:
        return dict(self.daemon.client.get("/v1/status"))

    def pods(self) -> dict[str, dict[str, Any]]:
        return {pod["name"]: pod for pod in self.daemon.client.get("/v1/pods")["pods"]}

    def sources(self) -> dict[str, str]:
        return {name: one["state"] for name, one in self.status()["sources"].items()}

    def codes(self) -> set[str]:
        return {one["code"] for one in self.status()["findings"]}

    def classes(self) -> str:
        """Without handles of queues, and without L0's, whose ceiling the loop owns."""
        text = re.sub(
            r"leaf \S+ ", "", self.rig.node.run(["tc", "class", "show", "dev", self.rig.uplink]).stdout
        )
        return "\n".join(
            sorted(line for line in text.splitlines() if not line.startswith("class htb 4e51:10 "))
        )


@pytest.fixture
def node(kube: Kube, apiserver: ApiServer, make_proxy: MakeProxy) -> Iterator[Node]:
    proxy = make_proxy(apiserver)
    kube.create_service_account("netqos", rules=RULES)
    with ExitStack() as stack:
        rig = stack.enter_context(Rig(pods=("web",)))
        stack.enter_context(Relay(rig, int(proxy.url.rpartition(":")[2])))
        node = Node(rig, kube, proxy, kube.request_token("netqos"))
        yield node


def eventually(check: Callable[[], bool], timeout_s: float = 20.0) -> None:
    end_s = time.monotonic() + timeout_s
    while not check():
        assert time.monotonic() < end_s, f"not within {timeout_s:.0f} s"
        time.sleep(0.02)


def fresh(node: Node) -> bool:
    return set(node.sources().values()) == {"fresh"}


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
    eventually(lambda: fresh(node))
    assert set(node.sources()) == {"file", "pods", "nodeslo", "node"}
    eventually(lambda: "ceil 10Mbit" in node.classes())
    assert {name: pod["level"] for name, pod in node.pods().items()} == {"web": "L2", "dns": "L0"}
    kube.annotate_pod("web", {EGRESS: "20M"})
    eventually(lambda: "ceil 20Mbit" in node.classes())
    kube.label_pod("web", {"koordinator.sh/qosClass": "LS"})
    eventually(lambda: node.pods()["web"]["level"] == "L1")
    kube.create_slo({"resourceQOSStrategy": {"beClass": {"networkQOS": {"enable": True, "egressLimit": 40}}}})
    eventually(lambda: node.status()["directions"]["tx"]["levels"]["L2"]["ceiling_bps"] == 80 * M)
    kube.annotate_node({"node.koordinator.sh/network-bandwidth": "100M"})
    eventually(lambda: node.status()["directions"]["tx"]["total_source"] == "annotation")
    assert node.status()["directions"]["tx"]["total_bps"] == 100 * M
    written = json.loads((node.daemon.paths.net / "pods").read_text())
    assert {one["pod"] for one in written.values()} == {
        f"{kube.namespace}/web",
        f"{kube.namespace}-system/dns",
    }
    kube.remove_pod("web")
    eventually(lambda: "ceil 20Mbit" not in node.classes())
    assert node.codes() == set()


def test_an_outage_keeps_everything_also_over_a_restart(node: Node, kube: Kube) -> None:
    kube.create_pod("web", ips=[node.rig.pod("web").address], annotations={EGRESS: "10M"})
    kube.create_slo(
        {"resourceQOSStrategy": {"beClass": {"networkQOS": {"enable": True, "egressLimit": "60M"}}}}
    )
    kube.annotate_node({"node.koordinator.sh/network-bandwidth": "160M"})
    node.daemon.start()
    eventually(lambda: fresh(node) and "ceil 10Mbit" in node.classes())
    eventually(lambda: "160000000" in (node.daemon.paths.state / "last-good.json").read_text())
    before = node.classes()
    node.proxy.refuse()
    node.proxy.reset()
    eventually(
        lambda: (
            {"pods", "nodeslo", "node"} <= {name for name, one in node.sources().items() if one == "stale"}
        )
    )
    assert node.classes() == before
    node.daemon.stop()
    node.daemon.start()
    eventually(lambda: "source-away" in node.codes())
    assert {node.sources()[name] for name in ("pods", "nodeslo", "node")} == {"stale"}
    time.sleep(1)
    assert node.classes() == before
    assert node.status()["directions"]["tx"]["total_bps"] == 160 * M
    kube.annotate_pod("web", {EGRESS: "20M"})
    node.proxy.restore()
    eventually(lambda: "ceil 20Mbit" in node.classes(), 3)
    eventually(lambda: fresh(node))


def test_a_rejected_annotation_is_told_once_and_touches_no_other(node: Node, kube: Kube) -> None:
    kube.create_pod("good", ips=["10.88.0.11"], annotations={EGRESS: "11M"})
    kube.create_pod(
        "bad", ips=["10.88.0.12"], annotations={EGRESS: "12Mbps", "koordinator.sh/net-qos-class": "l7"}
    )
    node.daemon.start()
    eventually(lambda: "ceil 11Mbit" in node.classes())
    path = f"{EVENTS}/{kube.namespace}/events"
    eventually(lambda: len(kube.api.get(path)["items"]) == 2)
    found = kube.api.get(path)["items"]
    assert {one["regarding"]["name"] for one in found} == {"bad"}
    assert any("12Mbps" in one["note"] for one in found)
    node.daemon.stop()
    node.daemon.start()
    kube.annotate_pod("good", {EGRESS: "13M"})
    eventually(lambda: "ceil 13Mbit" in node.classes())
    time.sleep(1)
    assert len(kube.api.get(path)["items"]) == 2


def test_an_event_that_the_server_did_not_take_comes_later(node: Node, kube: Kube) -> None:
    node.proxy.answer(status(503), method="POST", times=2)
    kube.create_pod("bad", ips=["10.88.0.12"], annotations={EGRESS: "12Mbps"})
    node.daemon.start()
    path = f"{EVENTS}/{kube.namespace}/events"
    eventually(lambda: len(kube.api.get(path)["items"]) == 1)
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
    eventually(lambda: fresh(node))
    eventually(lambda: any(one.method == "POST" for one in node.proxy.requests))
    assert {one.status for one in node.proxy.requests} <= {200, 201}
    asked = {(one.method, one.path.rpartition("/")[2], one.is_watch) for one in node.proxy.requests}
    assert asked == {
        *(("GET", name, watch) for name in ("pods", "nodes", "nodeslos") for watch in (False, True)),
        ("POST", "events", False),
    }
