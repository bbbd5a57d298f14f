"""What is written to a real API server arrives as facts."""

from __future__ import annotations

import contextlib
import time

import pytest
import yaml

from netqos.model.inputs import KubernetesQos, Percent
from netqos.model.levels import Level
from netqos.sources.kube.asking import Pace
from netqos.sources.kube.podqos import qos_of_spec
from tests.apiserver.client import ApiError
from tests.apiserver.fixtures import CRD_FILE, StartServer
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


def test_the_successor_is_seen_before_the_end_of_the_pod_whose_name_it_has(
    followed: Followed, kube: Kube
) -> None:
    """The events of one that ends, goes and comes again arrive together (case G2)."""
    first = kube.create_pod("web-0", ips=["10.88.0.1"])
    followed.until(lambda: "web-0" in followed.pods)
    kube.terminate_pod("web-0")
    kube.remove_pod("web-0")
    second = kube.create_pod("web-0", ips=["10.88.0.2"], annotations={EGRESS: "10M"})
    kube.annotate_pod("web-0", {EGRESS: "20M"})
    followed.until(lambda: bool(followed.pods and followed.pods["web-0"].annotations == {EGRESS: "20M"}))
    (pod,) = followed.world.pods.value
    assert pod.uid == second["metadata"]["uid"] != first["metadata"]["uid"]
    assert pod.addresses == ("10.88.0.2",)


def test_a_mirror_pod_is_static_and_one_on_the_hosts_network_keeps_its_address(
    followed: Followed, kube: Kube
) -> None:
    mirror = {
        f"kubernetes.io/config.{key}": value
        for key, value in (("mirror", "h1"), ("hash", "h1"), ("source", "file"))
    }
    kube.create_pod("static", ips=["10.88.0.1"], annotations=mirror)
    kube.create_pod("host", ips=["192.0.2.1"], spec={"hostNetwork": True})
    kube.create_pod("host-too", ips=["192.0.2.1"], spec={"hostNetwork": True})
    followed.until(lambda: len(followed.pods) == 3 and all(one.addresses for one in followed.pods.values()))
    assert {name: pod.system_critical for name, pod in followed.pods.items()} == {
        "static": True,
        "host": False,
        "host-too": False,
    }
    assert followed.pods["host"].addresses == followed.pods["host-too"].addresses == ("192.0.2.1",)
    assert not [
        one for pod in followed.pods.values() for one in pod.findings if one.code == "address-conflict"
    ]


def test_the_largest_annotations_that_the_server_takes(followed: Followed, kube: Kube) -> None:
    """256 KiB of a pod, of which an annotation of ours is one, beside a pod of the usual kind."""
    largest = {EGRESS: "9" * (256 * 1024 - 100 - len(EGRESS)), "x": "y" * 90}
    kube.create_pod("huge", ips=["10.88.0.1"], annotations=largest)
    kube.create_pod("web", ips=["10.88.0.2"], annotations={EGRESS: "10M"})
    followed.until(lambda: len(followed.pods) == 2 and bool(followed.pods["web"].addresses))
    assert len(followed.pods["huge"].annotations[EGRESS]) == (64 << 10) + 1
    assert followed.pods["web"].annotations == {EGRESS: "10M"}
    assert followed.freshness()["pods"] == "fresh"


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
    followed = follow(server, Kube(server.admin, "no-crd").node).ready()
    assert (followed.slo, followed.states["nodeslo"].detail) == (None, "absent (404)")


def test_the_kind_comes_later_and_a_schema_that_knows_nothing_of_networks_gives_no_policy(
    start_apiserver: StartServer, follow: Follow
) -> None:
    """An old CRD drops what it does not know without a word: such an object says nothing, and is no error."""
    server = start_apiserver(crd=False)
    kube = Kube(server.admin, "old-schema")
    followed = follow(server, kube.node, pace=Pace(absent_s=0.2)).ready()
    assert [one.code for one in followed.findings] == ["nodeslo-kind-missing"]
    old = yaml.safe_load(CRD_FILE.read_text(encoding="utf-8"))
    old["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = {
        "type": "object",
        "properties": {"extensions": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    kube.api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", old)
    followed.until(lambda: followed.findings == ())

    def written() -> bool:
        with contextlib.suppress(ApiError):
            assert kube.create_slo({"extensions": {}, "networkQOSStrategy": {"enable": True}})["spec"] == {
                "extensions": {}
            }
            return True
        return False

    followed.until(written, 20)
    followed.until(lambda: followed.slo is not None)
    assert followed.slo is not None
    assert (followed.slo.enabled, followed.slo.invalid, followed.findings) == (None, frozenset(), ())


def test_five_hundred_pods(followed: Followed, kube: Kube) -> None:
    kube.create_pods(500, annotations={EGRESS: "10M"})
    followed.until(
        lambda: len(followed.pods) == 500 and all(one.addresses for one in followed.world.pods.value)
    )
    with Followed(followed.settings_path(), kube.node) as second:
        took_s = second.until(lambda: second.complete)
        assert {one.uid for one in second.world.pods.value} == {one.uid for one in followed.world.pods.value}
        assert took_s < 5
