"""Limits of one real pod while it sends and receives: by annotation, by an operator, wrong ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from netqos.model.levels import Direction
from tests.node.agent import Agent
from tests.node.load import RX, TX, Load
from tests.node.pods import Pod
from tests.node.policies import PROPOSAL, M
from tests.node.realnode import RealNode, wait_until
from tests.node.scene import Scene

EGRESS, INGRESS = "koordinator.sh/egress-bandwidth", "koordinator.sh/ingress-bandwidth"
BOTH = "koordinator.sh/networkQOS"

pytestmark = pytest.mark.timeout(120)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One pod on a node of 60 and 45 Mbit/s."""

    scene: Scene
    agent: Agent
    pod: Pod
    load: Load

    def annotate(self, **annotations: str | None) -> None:
        keys = {"egress": EGRESS, "ingress": INGRESS, "both": BOTH}
        self.scene.kube.annotate_pod("web", {keys[name]: value for name, value in annotations.items()})

    @contextmanager
    def greedy(self, direction: Direction) -> Iterator[Callable[[float], None]]:
        """The pod sends or receives all that it can meanwhile; says how many Mbit/s must arrive."""
        self.load.start(["web"], [direction])
        yield lambda rate: self.load.expect({("web", direction): rate * M}, seconds=1)
        self.load.stop("web")

    def limit(self, direction: Direction) -> tuple[int | None, str | None]:
        """As the daemon tells it."""
        (found,) = self.agent.client.get("/v1/pods")["pods"]
        told = found["limits"][direction.pod_word]
        return told["bps"], told["source"]


@pytest.fixture(scope="module")
def shared(realnode: RealNode) -> Iterator[Stage]:
    with Scene(realnode, "limits") as scene:
        scene.kube.create_slo(PROPOSAL)
        scene.limit_line(50 * M)
        agent = scene.start_agent()
        pod = scene.pods.start("web")
        with Load(scene.pods) as load:
            yield Stage(scene=scene, agent=agent, pod=pod, load=load)


@pytest.fixture
def stage(shared: Stage) -> Iterator[Stage]:
    """One for both tests; the pod is silent after each, and without limits."""
    yield shared
    shared.load.stop("web")
    shared.annotate(egress=None, ingress=None, both=None)


def test_a_limit_by_annotation_is_set_changed_wrong_and_removed(stage: Stage) -> None:
    with stage.greedy(TX) as expect:
        expect(60)
        stage.annotate(egress="10M")
        expect(10)
        stage.annotate(egress="5M", ingress="8M")
        expect(5)
        stage.annotate(egress="12Mbps", ingress="9M")
        wait_until(lambda: stage.limit(RX) == (9 * M, f"annotation {INGRESS}"), "the right one is taken", 5)
        expect(5)
        choices = stage.agent.ask("explain", stage.pod.full_name)["choices"]["egress"]
        assert [one["value"] for one in choices if one["verdict"] == "rejected"] == ["12Mbps"]
        stage.annotate(egress=None)
        expect(60)
    wait_until(lambda: "12Mbps" in str(events(stage)), "an Event tells of the wrong one", 10)
    with stage.greedy(RX) as expect:
        expect(9)
        stage.annotate(ingress=None)
        expect(45)
        stage.annotate(both='{"IngressLimit": "20M", "egressLimit": 25}')
        expect(20)
    assert stage.limit(TX) == (15 * M, f"annotation {BOTH} egressLimit")


def events(stage: Stage) -> list[str]:
    path = f"/apis/events.k8s.io/v1/namespaces/{stage.pod.namespace}/events"
    return [one.get("note", "") for one in stage.scene.kube.api.get(path)["items"]]


def test_an_operator_turns_a_pod_down_and_up_again(stage: Stage) -> None:
    name, ctl = stage.pod.full_name, stage.agent.ctl
    stage.annotate(egress="20M")
    with stage.greedy(TX) as expect:
        expect(20)
        limit = ("limit", name, "--egress", "4M", "--ingress", "6M", "--for", "10m", "--reason", "noisy")
        assert ctl(*limit).split() == f"{name}: egress 4 Mbit/s, ingress 6 Mbit/s for 10m".split()
        expect(4)
        stage.agent.restart()
        expect(4)
        assert "noisy" in ctl("limits")
    with stage.greedy(RX) as expect:
        expect(6)
        ctl("limits", "--delete", name)
        expect(45)
    status = stage.scene.kube.api.get(f"/api/v1/namespaces/{stage.pod.namespace}/pods/web")["status"]
    assert [one["restartCount"] for one in status["containerStatuses"]] == [0]
