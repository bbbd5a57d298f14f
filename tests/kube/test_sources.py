"""What is written to a real API server arrives as facts."""

from __future__ import annotations

import time

import pytest

from netqos.model.inputs import KubernetesQos, Percent
from netqos.model.levels import Level
from netqos.sources.kube.podqos import qos_of_spec
from tests.apiserver.fixtures import StartServer
from tests.apiserver.kube import Kube
from tests.apiserver.server import ApiServer
from tests.kube.conftest import Follow
from tests.kube.followed import Followed

EGRESS = "koordinator.sh/egress-bandwidth"


@pytest.fixture
def followed(follow: Follow, apiserver: ApiServer, kube: Kube) -> Followed:
    return follow(apiserver, kube.node).ready()


def test_a_pod_comes_changes_and_goes(followed: Followed, kube: Kube) -> None:
    made = kube.create_pod(
        "web", ips=["10.88.0.10", "fd00:88::10"], annotations={EGRESS: "10M", "other": "x"}
    )
    followed.until(lambda: bool(followed.pods.get("web") and followed.pods["web"].addresses))
    facts = followed.pods["web"]
    assert (facts.uid, facts.namespace, facts.addresses) == (
        made["metadata"]["uid"],
        kube.namespace,
        ("10.88.0.10", "fd00:88::10"),
    )
    assert (facts.annotations, facts.kubernetes_qos) == ({EGRESS: "10M"}, KubernetesQos.BEST_EFFORT)
    kube.annotate_pod("web", {EGRESS: "20M"})
    followed.until(lambda: followed.pods["web"].annotations == {EGRESS: "20M"})
    kube.annotate_pod("web", {EGRESS: None})
    followed.until(lambda: followed.pods["web"].annotations == {})
    kube.label_pod("web", {"koordinator.sh/qosClass": "BE"})
    followed.until(lambda: followed.pods["web"].labels == {"koordinator.sh/qosClass": "BE"})
    kube.terminate_pod("web")
    time.sleep(0.1)
    assert "web" in followed.pods
    kube.remove_pod("web")
    followed.until(lambda: followed.pods == {})


def test_an_address_comes_late_and_changes(followed: Followed, kube: Kube) -> None:
    kube.create_pod("web", phase=None)
    followed.until(lambda: "web" in followed.pods)
    assert followed.pods["web"].addresses == ()
    kube.report_pod("web", ips=["10.88.0.1"], phase="Running")
    followed.until(lambda: followed.pods["web"].addresses == ("10.88.0.1",))
    kube.report_pod("web", ips=["10.88.0.2"])
    followed.until(lambda: followed.pods["web"].addresses == ("10.88.0.2",))


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_gives_its_address_free(followed: Followed, kube: Kube, phase: str) -> None:
    kube.create_pod("job", ips=["10.88.0.1"])
    followed.until(lambda: "job" in followed.pods)
    kube.report_pod("job", phase=phase)
    kube.create_pod("web", ips=["10.88.0.1"])
    followed.until(
        lambda: list(followed.pods) == ["web"] and followed.pods["web"].addresses == ("10.88.0.1",)
    )
    assert followed.pods["web"].findings == ()


def test_the_same_name_with_a_new_uid_is_another_pod(followed: Followed, kube: Kube) -> None:
    kube.create_pod("web-0", ips=["10.88.0.1"])
    kube.remove_pod("web-0")
    second = kube.create_pod("web-0", ips=["10.88.0.1"])
    followed.until(lambda: [pod.uid for pod in followed.world.pods.value] == [second["metadata"]["uid"]])


def test_two_pods_with_one_address(followed: Followed, kube: Kube) -> None:
    kube.create_pod("old", ips=["10.88.0.1"])
    time.sleep(1.1)
    kube.create_pod("new", ips=["10.88.0.1"])
    followed.until(
        lambda: bool(followed.pods.get("new") and followed.pods["new"].addresses == ("10.88.0.1",))
    )
    assert followed.pods["old"].addresses == ()
    assert [one.code for one in followed.pods["old"].findings] == ["address-conflict"]


def test_pods_of_other_nodes_are_not_ours(followed: Followed, kube: Kube) -> None:
    kube.create_node(f"{kube.node}-2")
    kube.create_pod("theirs", ips=["10.88.0.1"], node=f"{kube.node}-2")
    kube.create_pod("ours", ips=["10.88.0.2"])
    followed.until(lambda: "ours" in followed.pods)
    assert list(followed.pods) == ["ours"]


@pytest.mark.parametrize(
    ("name", "containers"),
    [
        ("guaranteed", [({"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"})]),
        ("limits only", [(None, {"cpu": "1", "memory": "1Gi"})]),
        ("requests only", [({"cpu": "1m"}, None)]),
        ("one of two", [({"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}), (None, None)]),
        ("zero", [({"cpu": "0", "memory": "0"}, None)]),
        ("other words", [({"cpu": "0.5", "memory": "1e9"}, {"cpu": "500m", "memory": "1G"})]),
        ("nothing", [(None, None)]),
    ],
)
def test_the_class_is_computed_as_the_server_does(
    kube: Kube, name: str, containers: list[tuple[dict[str, str] | None, dict[str, str] | None]]
) -> None:
    listed = [
        {"name": f"c{n}", "image": "example.org/none:1", "resources": {"requests": asked, "limits": most}}
        for n, (asked, most) in enumerate(containers)
    ]
    made = kube.create_pod("web", spec={"containers": listed})
    assert qos_of_spec(made["spec"]).value == made["status"]["qosClass"]


def test_a_nodeslo_comes_changes_and_goes(followed: Followed, kube: Kube) -> None:
    assert not followed.world.slo.value
    be = {"networkQOS": {"enable": True, "egressRequest": 10, "egressLimit": 50}}
    kube.create_slo({"resourceQOSStrategy": {"beClass": be}, "extensions": {"x": {"y": 1}}})
    followed.until(lambda: followed.slo is not None)
    assert followed.slo is not None
    assert followed.slo.levels[Level.L2].ceiling.tx == Percent(50)
    assert not followed.findings
    kube.patch_slo({"resourceQOSStrategy": {"beClass": {"networkQOS": {"egressLimit": "lots"}}}})
    followed.until(lambda: followed.slo is not None and followed.slo.invalid == {Level.L2})
    assert {finding.subject for finding in followed.findings} == {f"nodeslo {kube.node}"}
    kube.delete_slo()
    followed.until(lambda: followed.slo is None)
    assert followed.findings == ()


def test_the_nodes_annotation(followed: Followed, kube: Kube) -> None:
    key = "node.koordinator.sh/network-bandwidth"
    kube.annotate_node({key: "10G"})
    followed.until(lambda: followed.bandwidth == "10G")
    kube.annotate_node({key: None})
    followed.until(lambda: followed.bandwidth is None)


def test_a_cluster_without_the_crd_has_no_nodeslo_and_is_complete(
    start_apiserver: StartServer, follow: Follow
) -> None:
    server = start_apiserver(crd=False)
    followed = follow(server, "n1").ready()
    assert (followed.slo, followed.states["nodeslo"].detail) == (None, "absent (404)")


def test_five_hundred_pods(followed: Followed, kube: Kube) -> None:
    kube.create_pods(500, annotations={EGRESS: "10M"})
    followed.until(
        lambda: len(followed.pods) == 500 and all(one.addresses for one in followed.world.pods.value)
    )
    with Followed(followed.settings_path(), kube.node) as second:
        took_s = second.until(lambda: second.complete)
        assert {one.uid for one in second.world.pods.value} == {one.uid for one in followed.world.pods.value}
        assert took_s < 5
