from __future__ import annotations

from tests.node.load import TX, Load
from tests.node.pods import BURSTABLE, GUARANTEED
from tests.node.scene import Scene


def test_pods_run_reach_the_world_and_leave_nothing(scene: Scene) -> None:
    one = scene.pods.start("one", resources=GUARANTEED)
    two = scene.pods.start("two", resources=BURSTABLE)
    assert one.address != two.address
    with Load(scene.pods) as load:
        load.start(["one"], [TX])
        assert load.rates(0.5)["one", TX] > 1e6
    classes = {
        name: scene.kube.api.get(f"/api/v1/namespaces/{scene.kube.namespace}/pods/{name}")["status"][
            "qosClass"
        ]
        for name in ("one", "two")
    }
    assert classes == {"one": "Guaranteed", "two": "Burstable"}
