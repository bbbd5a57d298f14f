"""Rules in a pod's annotation, by a real API server and with real traffic; network QoS is off, nobody has a limit."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from netqos.testing.meter import Meter, Source
from netqos.testing.netns import Rig
from tests.apiserver.kube import Kube
from tests.kernel.test_tc_rules import Stream
from tests.kube.kubenode import Node
from tests.system.test_rules import counted, send
from tests.waiting import wait_until

pytestmark = [pytest.mark.kernel("htb", "nft", "ifb", "u32", "clsact"), pytest.mark.serial]

QOS_CONFIG = "koordinator.sh/qos-config"


@pytest.fixture
def node(node: Node) -> Node:
    node.daemon.configure({**node.document, "policy": {"enable": False}})
    return node


def port(number: int) -> list[dict[str, str]]:
    return [{"type": "port", "expr": f"={number}", "proto": "udp"}]


def most(value: str) -> list[dict[str, str]]:
    return [{"action": "bandwidth_max", "value": value}]


def rate_mbit(rig: Rig, *, to_port: int, offered_bps: int) -> float:
    """What arrives outside of a stream of the pod, a moment after it has begun."""
    pod, wire = rig.pod("web"), rig.wire
    stream = Stream(address=wire.address, port=to_port, own_port=4711, rate_bps=offered_bps, seconds=1.4)
    running = pod.fork(stream.run)
    time.sleep(0.4)
    with Meter(wire, {"web": Source(address=pod.address)}, interval_s=0.1) as meter:
        time.sleep(0.8)
        series = meter.stop()
    running.result()
    return series.rate_bps("web", series.at_s[0], series.at_s[-1]) / 1e6


def test_rules_alone_are_enforced_changed_and_gone_with_their_annotation(node: Node, kube: Kube) -> None:
    rig, uplink = node.rig, node.rig.uplink
    rules = {"egress": [{"matchs": port(5001), "actions": most("4M")}]}
    kube.create_pod("web", ips=[rig.pod("web").address], annotations={QOS_CONFIG: json.dumps(rules)})
    node.daemon.start()

    def shapes() -> bool:
        return "htb 4e51:" in rig.node.run(["tc", "qdisc", "show", "dev", uplink, "root"]).stdout

    def has(value: str) -> bool:
        return f"ceil {value}" in node.classes()

    def explained() -> dict[str, Any]:
        return dict(node.daemon.client.get(f"/v1/explain?pod={kube.namespace}/web"))

    wait_until(shapes)
    wait_until(lambda: has("4Mbit"))
    assert rate_mbit(rig, to_port=5001, offered_bps=12_000_000) == pytest.approx(4, rel=0.2)
    rig.pod("web").call(send, rig.wire.address, 5003, 0, 20)
    found = counted(explained())
    assert found["tx", 0] > 100
    assert found["tx", None] >= 20
    assert {one["what"]: one["enforced"] for one in explained()["enforcement"]}["rules"] is True
    both = {**rules, "egress": [{"matchs": port(5001), "actions": most("8M")}], "ingress": rules["egress"]}
    kube.annotate_pod("web", {QOS_CONFIG: json.dumps(both)})
    wait_until(lambda: has("8Mbit"))
    assert rate_mbit(rig, to_port=5001, offered_bps=20_000_000) == pytest.approx(8, rel=0.2)
    rig.wire.call(send, rig.pod("web").address, 9, 5001, 30)
    assert counted(explained())["rx", 0] == 30
    kube.annotate_pod("web", {QOS_CONFIG: None})
    wait_until(lambda: not shapes())
    wait_until(lambda: "netqos" not in rig.node.run(["nft", "list", "tables"]).stdout)
    node.daemon.stop()
