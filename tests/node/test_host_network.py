"""A real pod on the host's network: it has the node's address, and is told apart by its cgroup."""

from __future__ import annotations

import pytest

from tests.node.contention import CLASS
from tests.node.load import TX, Load
from tests.node.policies import PROPOSAL, M
from tests.node.realnode import wait_until
from tests.node.scene import Scene
from tests.node.test_limits import EGRESS

pytestmark = pytest.mark.timeout(120)


def test_its_level_and_its_limit_hold_for_what_it_sends(scene: Scene) -> None:
    scene.kube.create_slo(PROPOSAL)
    agent = scene.start_agent()
    scene.pods.start("online", annotations={CLASS: "l0"})
    with Load(scene.pods) as load:
        load.start(["online"], [TX])
        command = load.hear("proxy", 5301)
        proxy = scene.pods.start("proxy", hostNetwork=True, annotations={CLASS: "l2"}, command=command)
        assert proxy.address == scene.node.node.address

        def is_enforced() -> bool:
            asked = agent.ask("explain", proxy.full_name)["enforcement"]
            return bool(asked[0]["enforced"]) and asked[0]["what"] == "level"

        wait_until(is_enforced, "its level is enforced", 10)
        load.expect({("online", TX): 48 * M, ("proxy", TX): 12 * M})
        scene.kube.annotate_pod("proxy", {EGRESS: "4M"})
        load.expect({("online", TX): 56 * M, ("proxy", TX): 4 * M})
        scene.kube.annotate_pod("proxy", {CLASS: "l0", EGRESS: None})
        wait_until(lambda: is_of_one_level(load), "the two share L0, by no law but TCP's", 30)


def is_of_one_level(load: Load) -> bool:
    """Whether a pod that was L2 has much more than L2 had beside L0, and all together what there is."""
    rates = load.rates(1.5, settle_s=0.5)
    online_bps, proxy_bps = rates["online", TX], rates["proxy", TX]
    return proxy_bps > 15 * M and online_bps > 5 * M and 54 * M < online_bps + proxy_bps < 62 * M
