"""Pods of an API server whose limits the CNI enforces already: told, left to it, and never doubled."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.apiserver.kube import Kube
from tests.kernel.foreign import limit_as_cni
from tests.kube.kubenode import EGRESS, Node
from tests.waiting import wait_until

pytestmark = pytest.mark.kernel("htb", "nft", "tbf", "ifb", "u32")

K8S_EGRESS, K8S_INGRESS = "kubernetes.io/egress-bandwidth", "kubernetes.io/ingress-bandwidth"


def last_choice(node: Node, kube: Kube, way: str) -> dict[str, Any]:
    answer = node.daemon.client.get(f"/v1/explain?pod={kube.namespace}/web")
    return dict(answer["choices"][way][-1])


def test_the_annotation_of_kubernetes_is_left_to_the_cni_and_ours_still_counts(
    node: Node, kube: Kube
) -> None:
    limit_as_cni(node.rig, "web", tx="7mbit", rx="9mbit")
    kube.create_pod(
        "web", ips=[node.rig.pod("web").address], annotations={K8S_EGRESS: "7M", K8S_INGRESS: "9M"}
    )
    node.daemon.start()
    wait_until(lambda: "web" in node.pods())
    assert "limited-by-cni" in node.codes()
    assert node.pods()["web"]["limits"]["egress"]["bps"] is None
    link = node.rig.pod("web").link
    assert last_choice(node, kube, "egress") == {
        "source": f"annotation {K8S_EGRESS}",
        "value": "7M",
        "verdict": "shadowed",
        "reason": f"left to the CNI, which enforces it by tbf 7M on bwp0123456789a, fed by {link}",
    }
    assert f"tbf 9M on {link}" in last_choice(node, kube, "ingress")["reason"]
    (written,) = json.loads((node.daemon.paths.net / "pods").read_text()).values()
    assert "bandwidth_max" not in json.dumps(written)
    kube.annotate_pod("web", {EGRESS: "5M"})
    wait_until(lambda: "ceil 5Mbit" in node.classes())
    assert "tbf 1: root" in node.rig.node.run(["tc", "qdisc", "show", "dev", link]).stdout
    node.daemon.stop()
