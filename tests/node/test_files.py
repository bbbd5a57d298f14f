"""What netqosd publishes on a real node, as a reader of another project would use it."""

from __future__ import annotations

import pytest

from tests.node.agent import NET
from tests.node.contention import CLASS
from tests.node.filereader import FileReader
from tests.node.policies import PROPOSAL, UPSTREAM, M
from tests.node.realnode import wait_until
from tests.node.scene import Scene
from tests.node.test_limits import EGRESS

pytestmark = pytest.mark.timeout(120)


def test_a_reader_never_meets_a_file_that_it_cannot_use(scene: Scene) -> None:
    machine = scene.node.machine
    scene.kube.create_slo(PROPOSAL)
    agent = scene.start_agent()
    with FileReader(machine.path(NET), cgroups=machine.cgroup_tree()) as reader:
        wait_until(lambda: reader.node, "the node file is there", 5)
        assert reader.node is not None
        assert reader.node["hw_tx_bps_max"] * 8 == 60 * M
        one = scene.pods.start("one", annotations={CLASS: "l0", EGRESS: "8M"})
        two = scene.pods.start("two")
        wait_until(lambda: set(reader.pods) == {one.uid, two.uid}, "both pods are published", 5)
        assert [reader.pods[pod.uid]["priority"] for pod in (one, two)] == [0, 2]
        assert reader.pods[one.uid]["pod"] == one.full_name
        assert reader.pods[one.uid]["qos-config"]["egress"] == [
            {"matchs": [{"type": "ip"}], "actions": [{"action": "bandwidth_max", "value": M}]}
        ]
        wait_until(lambda: reader.missing_cgroups() == [], "cgroups are where the file says", 5)
        for number in range(40):
            scene.kube.annotate_pod("two", {EGRESS: f"{number + 1}M", CLASS: f"l{number % 3}"})
        scene.kube.patch_slo({"networkQOSStrategy": None, **UPSTREAM})
        wait_until(lambda: reader.node and reader.node["hw_rx_bps_max"] * 8 == 50 * M, "the other shape", 5)
        scene.kube.annotate_pod("two", {EGRESS: None})
        scene.kube.delete_slo()
        wait_until(lambda: reader.node is None, "the node file goes with the policy", 5)
        scene.pods.delete("one", "two")
        wait_until(lambda: not reader.pods, "nothing is left of the pods", 5)
    assert reader.problems == []
    assert reader.versions > 8
    assert agent.client.get("/v1/status")["ready"]
