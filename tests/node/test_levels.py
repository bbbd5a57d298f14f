"""Levels of real pods: by what they are told, and what their traffic gets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from netqos.model.levels import Level
from tests.node.agent import Agent
from tests.node.contention import CLASS, SENDERS, Contention
from tests.node.load import RX, TX
from tests.node.pods import BURSTABLE, GUARANTEED
from tests.node.policies import PROPOSAL, PROPOSED, UPSTREAM, UPSTREAMED, M
from tests.node.realnode import RealNode, wait_until
from tests.node.scene import Scene

QOS = "koordinator.sh/qosClass"

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def shared(realnode: RealNode) -> Iterator[Contention]:
    with Scene(realnode, "levels") as scene:
        yield Contention(scene, PROPOSAL)


@pytest.fixture
def contention(shared: Contention) -> Iterator[Contention]:
    """One for all tests here; pods and policy are after each as they were."""
    kube, pods = shared.scene.kube, shared.scene.pods
    stay = pods.names
    yield shared
    pods.delete(*pods.names - stay)
    kube.patch_slo({**dict.fromkeys(UPSTREAM), **PROPOSAL})


def levels(agent: Agent) -> Mapping[str, str]:
    return {one["name"]: one["level"] for one in agent.client.get("/v1/pods")["pods"]}


def test_every_way_to_say_a_level(contention: Contention) -> None:
    scene, agent = contention.scene, contention.agent
    wanted: dict[str, tuple[str, dict[str, Any]]] = {
        "annotated": ("L2", {"annotations": {CLASS: "l2"}, "resources": GUARANTEED}),
        "annotated-wrong": ("L1", {"annotations": {CLASS: "l7"}, "resources": BURSTABLE}),
        "system": ("L0", {"labels": {QOS: "SYSTEM"}}),
        "reserved": ("L1", {"labels": {QOS: "LSR"}}),
        "offline": ("L2", {"labels": {QOS: "BE"}, "resources": GUARANTEED}),
        "guaranteed": ("L1", {"resources": GUARANTEED}),
        "burstable": ("L1", {"resources": BURSTABLE}),
        "best-effort": ("L2", {}),
    }
    for name, (_, more) in wanted.items():
        scene.pods.create(name, **more)
    for name in wanted:
        scene.pods.wait_running(name)
    expected = {name: level for name, (level, _) in wanted.items()}
    wait_until(lambda: levels(agent).items() >= expected.items(), "every pod has its level", 5)
    scene.kube.annotate_pod("burstable", {CLASS: "l0"})
    scene.kube.label_pod("offline", {QOS: "LSE"})
    expected |= {"burstable": "L0", "offline": "L1"}
    wait_until(lambda: levels(agent).items() >= expected.items(), "levels are changed without a restart", 5)


def test_three_greedy_levels_get_their_promises_in_both_directions(contention: Contention) -> None:
    with contention.load() as load:
        contention.start_all(load)
        load.expect(contention.promised(PROPOSED), seconds=4)


def test_offline_fills_the_idle_link_and_gives_way(contention: Contention) -> None:
    with contention.load() as load:
        contention.start(load, Level.L2)
        load.expect({("batch", TX): 60 * M, ("batch-in", RX): 45 * M})
        contention.start(load, Level.L0)
        given_way = {("batch", TX): 12 * M, ("batch-in", RX): 16 * M}
        load.expect({**given_way, ("online", TX): 48 * M, ("online-in", RX): 29 * M})


def test_a_policy_is_edited_in_both_shapes_while_traffic_runs(contention: Contention) -> None:
    kube = contention.scene.kube
    with contention.load() as load:
        contention.start_all(load)
        load.expect(contention.promised(PROPOSED))
        change = {"l1": {"txMin": "6M"}, "l2": {"rxMin": "5M"}}
        kube.patch_slo({"networkQOSStrategy": {"nodeBandwidthLimit": change}})
        edited = {**PROPOSED, (Level.L0, TX): 42 * M, (Level.L1, TX): 6 * M}
        edited |= {(Level.L0, RX): 29 * M, (Level.L2, RX): 5 * M}
        load.expect(contention.promised(edited))
        kube.patch_slo({"networkQOSStrategy": None, **UPSTREAM})
        load.expect(contention.promised(UPSTREAMED))
        kube.patch_slo({"resourceQOSStrategy": {"beClass": {"networkQOS": {"egressRequest": "fast"}}}})
        wait_until(lambda: told(contention.agent, "fast"), "the wrong value is told", 5)
        load.expect(contention.promised(UPSTREAMED))


def told(agent: Agent, word: str) -> bool:
    return any(word in one["message"] for one in agent.client.get("/v1/status")["findings"])


def test_a_pod_that_is_deleted_while_it_sends_leaves_its_part_to_the_others(contention: Contention) -> None:
    pods, agent = contention.scene.pods, contention.agent
    with contention.load() as load:
        load.start(["batch"], [TX])
        pods.start("sender", annotations={CLASS: "l0"}, command=load.hear("sender", 5301))
        load.expect({("batch", TX): 12 * M, ("sender", TX): 48 * M})
        pods.delete("sender")
        load.expect({("batch", TX): 60 * M, ("sender", TX): 0})
    wait_until(lambda: "sender" not in levels(agent), "the pod is forgotten", 5)
    assert set(SENDERS) < set(levels(agent))
