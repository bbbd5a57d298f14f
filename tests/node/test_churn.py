"""Many real pods that come and go."""

from __future__ import annotations

import re

import pytest

from netqos.testing.analysis import percentile
from tests.node.churn import Listener, churn
from tests.node.contention import SENDERS, Contention
from tests.node.load import TX
from tests.node.policies import PROPOSAL, PROPOSED
from tests.node.realnode import wait_until
from tests.node.scene import Scene

PODS_AT_ONCE = 40
SECONDS = 120.0


@pytest.mark.timeout(420)
def test_forty_pods_churn_and_the_levels_hold(scene: Scene) -> None:
    contention = Contention(scene, PROPOSAL)
    agent = contention.agent
    with Listener(scene.node, scene.kube.namespace) as listener, contention.load() as load:
        load.start(SENDERS, [TX])
        load.rates(0.5)
        made = churn(scene, pods=PODS_AT_ONCE, seconds=SECONDS)
        load.expect({(name, TX): PROPOSED[level, TX] for name, level in SENDERS.items()}, seconds=2)
        known = listener.known()
    assert made > PODS_AT_ONCE
    assert len(known) > PODS_AT_ONCE
    assert percentile([one.delay_s for one in known], 95) < 3  # a bound, no promise: the bench has the figure
    status = agent.client.get("/v1/status")
    assert [one for one in status["findings"] if one["severity"] == "error"] == []
    scene.pods.close()
    wait_until(lambda: leaves(scene) == [], "no leaf of a pod is left", 10)
    assert agent.client.get("/v1/pods")["pods"] == []


def leaves(scene: Scene) -> list[str]:
    """Elements of the maps that know pods: none is left of those that are gone."""
    text = scene.node.node.run(["nft", "list", "map", "inet", "netqos", "tx4"]).stdout
    return re.findall(r"10\.88\.\d+\.\d+", text)
