"""Whatever is wrong in an annotation, a label or a NodeSLO: it is told and counted once, and touches nothing else.

The API server takes any annotation, and of a NodeSLO what its schema allows.
"""

from __future__ import annotations

import json
import re
import time
import urllib.request
from collections import Counter
from typing import Any

import pytest

from tests.apiserver.client import Document
from tests.apiserver.kube import Kube
from tests.kube.kubenode import EGRESS, EVENTS, Node, fresh
from tests.waiting import wait_until

pytestmark = pytest.mark.kernel("htb", "nft")

INGRESS = "koordinator.sh/ingress-bandwidth"
OLD_EGRESS = "kubernetes.io/egress-bandwidth"
NETWORK_QOS = "koordinator.sh/networkQOS"
CONFIG = "koordinator.sh/qos-config"
LEVEL = "koordinator.sh/net-qos-class"
LABEL = "koordinator.sh/qosClass"
HUGE = "9" * 250_000
COUNT = re.compile(r'^netqos_rejected_inputs_total\{reason="([\w-]+)"\} (\d+)', re.MULTILINE)

# At most 20 each, which is how many Events are sent at once.
QUANTITIES = [
    *("-5", "-1M", "10m", "1500m", "1n", "100u", "0.5", "10K", "1_000M", " 10M", "10M\n", "１０M", "NaN", "inf"),
    *("1e30", "10Mbps", "50%", "unlimited", "  ", HUGE),
]  # fmt: skip
OTHERS = [
    *({OLD_EGRESS: text} for text in ("10Mbit", "True", "None", "\x00\x1b[2J")),
    *({LEVEL: text} for text in ("l3", "", "LS", "L0 ", HUGE)),
    *({LABEL: text} for text in ("be", "Be", "LSX")),
]
NETWORK = [
    *("{", "[]", "5", "10M", "NaN", '{"egressLimit": NaN}', "[" * 50_000, HUGE, '{"egresLimit": "10M"}'),
    *('{"egressLimit": "1M", "EgressLimit": "2M"}', '{"egressLimit": "invalid", "ingressLimit": "13M"}'),
    *('{"egressLimit": 101}', '{"egressLimit": -1}', '{"egressLimit": true}', '{"egressLimit": 10.5}'),
    *('{"egressLimit": "30%"}', '{"egressLimit": [1]}'),
]  # fmt: skip


def rule(matches: object = None, actions: object = None) -> str:
    item = {
        "matchs": [{"type": "port", "expr": "=80"}] if matches is None else matches,
        "actions": [{"action": "dscp", "value": 10}] if actions is None else actions,
    }
    return json.dumps({"egress": [item]})


RULES = [
    *("{", "[]", "5", '"x"', "[" * 50_000, HUGE, '{"egress": {}}', '{"egress": [7]}'),
    rule(matches=[{"type": "port", "expr": "=99999"}]),
    rule(matches=[{"type": "ip", "expr": "10.0.0.0/33"}]),
    rule(matches=[{"type": "nothing"}]),
    rule(actions=[{"action": "dscp", "value": 99}]),
    rule(actions=[{"action": "qos-class", "value": "l7"}]),
    rule(actions=[{"action": "bandwidth_max", "value": "10Mbps"}]),
    rule(actions=[{"action": "fly", "value": 1}]),
    rule(actions=[]),
]

BATCHES: dict[str, list[dict[str, str]]] = {
    "quantities": [{EGRESS: text} for text in QUANTITIES],
    "networkQOS": [{NETWORK_QOS: text} for text in NETWORK],
    "rules": [{CONFIG: text} for text in RULES],
    "levels and others": OTHERS,
}


def rejected(node: Node) -> Counter[str]:
    """The counters of rejected inputs by reason, without those at zero."""
    with node.rig.node.entered(), urllib.request.urlopen("http://127.0.0.1:9469/metrics") as answer:
        found = COUNT.findall(answer.read().decode())
    return Counter({reason: int(count) for reason, count in found if int(count)})


def until_told(node: Node, code: str, before: int) -> None:
    """Wait until there is a finding, and more of its kind are counted than before."""
    wait_until(lambda: code in node.codes() and rejected(node)[code] > before)


def start(node: Node) -> None:
    node.daemon.configure({**node.document, "metrics": {"listen": "127.0.0.1:9469"}})
    node.daemon.start()
    wait_until(lambda: fresh(node))


@pytest.mark.parametrize("batch", BATCHES)
def test_a_wrong_annotation_is_told_and_counted_once(node: Node, kube: Kube, batch: str) -> None:
    given = {f"bad-{number}": texts for number, texts in enumerate(BATCHES[batch])}
    kube.create_pod("good", ips=["10.88.9.1"], annotations={EGRESS: "11M", INGRESS: "12M"})
    start(node)
    wait_until(lambda: "ceil 11Mbit" in node.classes())
    good, before = node.pods()["good"], node.classes()
    for number, (name, texts) in enumerate(given.items()):
        labels = {key: text for key, text in texts.items() if key == LABEL}
        annotations = {INGRESS: "13M", **{key: text for key, text in texts.items() if key != LABEL}}
        kube.create_pod(name, ips=[f"10.88.1.{number + 1}"], annotations=annotations, labels=labels)
    wait_until(
        lambda: len(node.pods()) == len(given) + 1 and all(one["addresses"] for one in node.pods().values())
    )
    pods = node.pods()
    found = {
        name: sorted({one["code"] for one in pods[name]["findings"]} - {"not-enforced"}) for name in given
    }
    silent = [given[name] for name, codes in found.items() if len(codes) != 1]
    assert silent == []
    assert all(pods[name]["level"] == "L2" for name in given)
    assert {pods[name]["limits"]["ingress"]["bps"] for name in given} == {13_000_000}
    expected = Counter(codes[0] for codes in found.values())
    wait_until(lambda: rejected(node) == expected)
    path = f"{EVENTS}/{kube.namespace}/events"
    wait_until(lambda: len(kube.api.get(path)["items"]) >= len(given))
    for name in given:
        kube.label_pod(name, {"again": "1"})
    time.sleep(1)
    events = Counter(one["regarding"]["name"] for one in kube.api.get(path)["items"])
    assert events == Counter(dict.fromkeys(given, 1))
    assert rejected(node) == expected
    assert node.pods()["good"] == good
    assert set(before.splitlines()) <= set(node.classes().splitlines())
    assert node.status()["backends"]["tc"]["state"] == "ok"


def be(**values: object) -> Document:
    return {"resourceQOSStrategy": {"beClass": {"networkQOS": {"enable": True, **values}}}}


GOOD: Document = {
    "resourceQOSStrategy": {
        "lsClass": {"networkQOS": {"enable": True, "egressRequest": 30, "egressLimit": 70}},
        "beClass": {"networkQOS": {"enable": True, "egressRequest": 10, "egressLimit": 40}},
    }
}
SLOS: list[tuple[Document, str]] = [
    *(
        (be(egressLimit=value), "invalid-policy")
        for value in ("x", "10Mbps", "-5", "10m", 101, -1, "1" * 5000)
    ),
    (be(egressRequest=50), "invalid-policy"),
    (be(egressRequest=80, egressLimit=90), "invalid-policy"),
    (be(egressRequest="10M"), "mixed-units"),
    ({"systemStrategy": {"totalNetworkBandwidth": "fast"}}, "invalid-total"),
    ({"systemStrategy": {"totalNetworkBandwidth": "-1"}}, "invalid-total"),
    ({"systemStrategy": {"totalNetworkBandwidth": "1000"}}, "total-too-small"),
    ({"resourceQOSStrategy": {"policies": {"netQOSPolicy": "ebpf"}}}, "unknown-backend"),
    ({"networkQOSStrategy": {"enable": True}}, "two-policy-shapes"),
]


def merged(one: Any, other: Any) -> Any:
    if not isinstance(one, dict) or not isinstance(other, dict):
        return other
    return {**one, **{key: merged(one.get(key), value) for key, value in other.items()}}


def test_a_wrong_nodeslo_is_told_and_counted_and_what_is_right_of_it_holds(node: Node, kube: Kube) -> None:
    kube.create_pod("good", ips=["10.88.9.1"], annotations={EGRESS: "11M"})
    start(node)
    kube.create_slo(GOOD)

    def ceilings() -> list[int]:
        levels = node.status()["directions"]["tx"]["levels"]
        return [levels[level]["ceiling_bps"] for level in ("L1", "L2")]

    right = [140_000_000, 80_000_000]
    wait_until(lambda: ceilings() == right and "ceil 11Mbit" in node.classes())
    before = node.classes()
    path = f"/apis/slo.koordinator.sh/v1alpha1/nodeslos/{kube.node}"
    for spec, code in SLOS:
        before_it = rejected(node)[code]
        kube.api.patch(path, {"spec": merged(GOOD, spec)})
        until_told(node, code, before_it)
        assert ceilings() == right, spec
        assert node.classes() == before, spec
        kube.delete_slo()
        wait_until(lambda: ceilings() != right)
        kube.create_slo(GOOD)
        wait_until(lambda: ceilings() == right)
        assert node.codes() == set()


def test_a_wrong_total_of_the_node_is_told_and_another_one_holds(node: Node, kube: Kube) -> None:
    start(node)
    key = "node.koordinator.sh/network-bandwidth"
    wrong = {
        "fast": "invalid-total",
        "-1": "invalid-total",
        "10MB": "invalid-total",
        "1000": "total-too-small",
    }
    for text, code in wrong.items():
        before_it = rejected(node)[code]
        kube.annotate_node({key: text})
        until_told(node, code, before_it)
        assert node.status()["directions"]["tx"]["total_bps"] == 200_000_000
        kube.annotate_node({key: None})
        wait_until(lambda: node.codes() == set())
