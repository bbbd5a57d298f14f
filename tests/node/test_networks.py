"""Pods that real CNI plugins connected: bridge and ptp, with masquerade and without; the bandwidth plugin."""

from __future__ import annotations

import pytest

from tests.node.contention import CLASS, Contention
from tests.node.load import RX, TX, Load
from tests.node.policies import PROPOSAL, PROPOSED, M
from tests.node.realnode import wait_until
from tests.node.scene import Scene

K8S_EGRESS, K8S_INGRESS = "kubernetes.io/egress-bandwidth", "kubernetes.io/ingress-bandwidth"

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("network", ["bridge-masquerade", "ptp", "ptp-masquerade"])
def test_levels_hold_on_every_network(scene: Scene, network: str) -> None:
    scene.connect_by(network)
    contention = Contention(scene, PROPOSAL)
    with contention.load() as load:
        contention.start_all(load)
        load.expect(contention.promised(PROPOSED))


def test_what_the_bandwidth_plugin_limits_is_shaped_once(scene: Scene) -> None:
    scene.connect_by("bridge-bandwidth")
    scene.kube.create_slo(PROPOSAL)
    scene.limit_line(50 * M)
    agent = scene.start_agent()
    scene.pods.start("web", annotations={K8S_EGRESS: "9M", K8S_INGRESS: "7M", CLASS: "L1"})

    def is_left_to_the_cni() -> bool:
        (pod,) = agent.client.get("/v1/pods")["pods"]
        return pod["limits"]["egress"]["bps"] is None and pod["limits"]["ingress"]["bps"] is None

    wait_until(is_left_to_the_cni, "the limiter of a pod that has said nothing yet is seen", 15)
    with Load(scene.pods) as load:
        load.start(["web"], [RX])
        load.expect({("web", RX): 7 * M})
        load.stop("web")
        load.start(["web"], [TX])
        load.expect({("web", TX): 9 * M})
        scene.kube.annotate_pod("web", {"koordinator.sh/egress-bandwidth": "4M"})
        load.expect({("web", TX): 4 * M})
