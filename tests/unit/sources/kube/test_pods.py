from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.engine import pods as engine_pods
from netqos.engine.pods import PodContext, resolve_pod
from netqos.model.composed import EMPTY_LAST_GOOD
from netqos.model.ids import PodUid
from netqos.model.inputs import KubernetesQos, PodFacts
from netqos.model.levels import PerDirection
from netqos.model.texts import LONGEST_TEXT
from netqos.settings.annotations import parse_annotations
from netqos.settings.values import Settings
from netqos.sources.kube.nodes import NodeNote, parse_node, parse_slo
from netqos.sources.kube.pods import ANNOTATIONS, KubePod, parse_pod
from tests.unit.sources.kube.test_answers import JSON

HASH = "a5f3c2d1e0b94876a5f3c2d1e0b94876"


def pod(
    *,
    spec: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    annotations: dict[str, Any] | None = None,
    labels: dict[str, Any] | None = None,
    **metadata: Any,
) -> dict[str, Any]:
    meta = {
        "uid": "u-1",
        "name": "web-0",
        "namespace": "shop",
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "annotations": annotations,
        "labels": labels,
        **metadata,
    }
    running = {
        "phase": "Running",
        "podIP": "10.88.0.7",
        "podIPs": [{"ip": "10.88.0.7"}, {"ip": "FD00::0007"}],
    }
    return {
        "metadata": meta,
        "spec": spec or {"containers": [{}]},
        "status": running if status is None else status,
    }


def read(document: object) -> KubePod:
    parsed = parse_pod(document)
    assert parsed is not None
    assert parsed[1] is not None
    return parsed[1]


def facts(**more: Any) -> PodFacts:
    return read(pod(**more)).facts


def test_a_usual_pod() -> None:
    document = pod(
        annotations={"koordinator.sh/egress-bandwidth": "10M", "kubectl/last-applied": "x" * 9000},
        labels={"koordinator.sh/qosClass": "LS", "app": "web"},
    )
    assert read(document) == KubePod(
        facts=PodFacts(
            uid=PodUid("u-1"),
            namespace="shop",
            name="web-0",
            addresses=("10.88.0.7", "fd00::7"),
            labels={"koordinator.sh/qosClass": "LS"},
            annotations={"koordinator.sh/egress-bandwidth": "10M"},
            kubernetes_qos=KubernetesQos.BEST_EFFORT,
        ),
        created="2026-01-02T03:04:05Z",
        is_running=True,
        is_ending=False,
        cgroup_uid=PodUid("u-1"),
    )


def test_all_that_the_engine_reads_is_kept() -> None:
    assert set(ANNOTATIONS) == set(engine_pods._RELEVANT)


def test_a_pod_without_a_status_is_known_without_an_address() -> None:
    document = pod()
    del document["status"]
    found = read(document)
    assert (found.facts.addresses, found.is_running) == ((), False)
    assert found.facts.kubernetes_qos is KubernetesQos.BEST_EFFORT


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_is_none_whatever_its_address(phase: str) -> None:
    assert parse_pod(pod(status={"phase": phase, "podIP": "10.88.0.7"})) == ("u-1", None)


def test_a_terminating_pod_stays() -> None:
    found = read(pod(deletionTimestamp="2026-01-02T03:05:00Z"))
    assert (found.is_ending, found.facts.addresses) == (True, ("10.88.0.7", "fd00::7"))


@pytest.mark.parametrize(
    ("status", "addresses"),
    [
        ({"podIP": "10.0.0.1"}, ("10.0.0.1",)),
        ({"podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.1"}], "podIP": "10.0.0.1"}, ("10.0.0.1",)),
        ({"podIPs": [{"ip": "::ffff:10.0.0.1"}, {}, None, {"ip": 7}, "x"]}, ("10.0.0.1",)),
        ({"podIPs": "10.0.0.1"}, ()),
        ({"podIPs": [{"ip": "not an address"}]}, ("not an address",)),
        ({"podIPs": [{"ip": f"10.0.0.{n}"} for n in range(200)]}, tuple(f"10.0.0.{n}" for n in range(16))),
    ],
)
def test_addresses(status: dict[str, Any], addresses: tuple[str, ...]) -> None:
    assert facts(status=status).addresses == addresses


def test_a_host_network_pod() -> None:
    assert facts(spec={"hostNetwork": True}).host_network
    assert not facts(spec={"hostNetwork": "true"}).host_network


@pytest.mark.parametrize("name", ["system-node-critical", "system-cluster-critical"])
def test_system_critical_by_its_priority_class(name: str) -> None:
    assert facts(spec={"priorityClassName": name}).system_critical


@pytest.mark.parametrize("name", [None, 7, "", "System-node-critical", "high"])
def test_not_system_critical(name: object) -> None:
    assert not facts(spec={"priorityClassName": name}).system_critical


def test_a_mirror_pod_is_system_critical_and_has_the_cgroup_of_its_static_pod() -> None:
    found = read(
        pod(
            annotations={
                "kubernetes.io/config.mirror": HASH,
                "kubernetes.io/config.hash": HASH,
                "kubernetes.io/config.source": "file",
            }
        )
    )
    assert (found.facts.system_critical, found.facts.uid, found.cgroup_uid) == (True, "u-1", HASH)


def test_a_static_pod_from_the_kubelet() -> None:
    found = read(pod(uid=HASH, annotations={"kubernetes.io/config.source": "file"}))
    assert (found.facts.system_critical, found.cgroup_uid) == (True, HASH)
    assert not facts(annotations={"kubernetes.io/config.source": "api"}).system_critical


@pytest.mark.parametrize("hostile", ["../../x", "", 7, None, "a/b"])
def test_a_mirror_with_a_hostile_hash_keeps_its_own_uid(hostile: object) -> None:
    mirror = {"kubernetes.io/config.mirror": "x", "kubernetes.io/config.hash": hostile}
    assert read(pod(annotations=mirror)).cgroup_uid == "u-1"


def test_the_class_of_the_status_counts_before_the_spec() -> None:
    assert facts(status={"qosClass": "Guaranteed"}).kubernetes_qos is KubernetesQos.GUARANTEED
    assert facts(status={"qosClass": "Best"}).kubernetes_qos is KubernetesQos.BEST_EFFORT


@pytest.mark.parametrize(
    ("key", "text", "more"),
    [
        ("koordinator.sh/networkQOS", '{"EgressLimit": "50M"}', " " * 66_000 + "GARBAGE"),
        ("koordinator.sh/networkQOS", '{"EgressLimit": "50M", "x": "', "x" * 70_000 + '"}'),
        ("koordinator.sh/qos-config", "[", " " * 70_000 + "]"),
        ("koordinator.sh/egress-bandwidth", "5M", "0" * 250_000),
        ("koordinator.sh/net-qos-class", "L1", " " * 70_000),
    ],
)
def test_what_is_too_long_says_so_and_is_not_judged_by_its_beginning(key: str, text: str, more: str) -> None:
    kept = facts(annotations={key: text + more}).annotations
    inputs = parse_annotations(kept, {}, subject="pod x")
    assert ["longer than 64 KiB" in one.message for one in inputs.findings]
    assert all("longer than 64 KiB" in one.message for one in inputs.findings)
    assert [one.amount for one in inputs.limits.tx if one.amount is not None] == []


def test_a_huge_annotation_is_bounded_and_then_refused_by_its_parser() -> None:
    huge = facts(
        annotations={"koordinator.sh/qos-config": "[" * 250_000, "koordinator.sh/egress-bandwidth": "5M"}
    )
    assert len(huge.annotations["koordinator.sh/qos-config"]) == LONGEST_TEXT + 1
    context = PodContext(
        settings=Settings(), total_bps=PerDirection(tx=None, rx=None), last_good=EMPTY_LAST_GOOD, overrides={}
    )
    resolved = resolve_pod(huge, context)
    assert resolved.findings
    assert resolved.limits.tx.applied.bps == 5_000_000


def test_texts_that_are_no_unicode_are_made_so() -> None:
    found = facts(name="\ud800x", annotations={"koordinator.sh/net-qos-class": "\udfff"})
    assert found.name.encode()
    assert found.annotations["koordinator.sh/net-qos-class"].encode()


@pytest.mark.parametrize(
    "document",
    [
        None,
        7,
        [],
        {},
        {"metadata": {}},
        {"metadata": {"uid": "u", "name": "n"}},
        {"metadata": {"uid": 7}},
        "x",
    ],
)
def test_an_object_without_identity_is_none(document: object) -> None:
    assert parse_pod(document) is None


@given(JSON)
def test_any_json_is_read_without_an_error(document: object) -> None:
    parse_pod(document)
    parse_node(document)
    parse_slo(document)


@given(
    st.fixed_dictionaries(
        {
            "metadata": st.fixed_dictionaries(
                {"uid": st.text(min_size=1), "name": st.text(min_size=1), "namespace": st.text(min_size=1)},
                optional={
                    "annotations": JSON,
                    "labels": JSON,
                    "deletionTimestamp": JSON,
                    "creationTimestamp": JSON,
                },
            )
        },
        optional={
            "spec": JSON
            | st.fixed_dictionaries(
                {},
                optional={
                    "containers": st.lists(JSON),
                    "resources": JSON,
                    "hostNetwork": JSON,
                    "priorityClassName": JSON,
                },
            ),
            "status": JSON
            | st.fixed_dictionaries(
                {}, optional={"podIPs": st.lists(JSON), "podIP": JSON, "phase": JSON, "qosClass": JSON}
            ),
        },
    )
)
def test_any_pod_is_read_without_an_error(document: object) -> None:
    assert parse_pod(document) is not None


def test_the_nodes_annotation() -> None:
    key = "node.koordinator.sh/network-bandwidth"
    node = {"metadata": {"uid": "n", "name": "n1", "annotations": {key: "10G", "x": "y"}}}
    assert parse_node(node) == ("n", NodeNote(bandwidth="10G"))
    assert parse_node({"metadata": {"uid": "n"}}) == ("n", NodeNote(bandwidth=None))
    assert parse_node({"metadata": {"uid": "n", "annotations": {key: 7}}}) == ("n", NodeNote(bandwidth=None))


def test_a_nodeslo_with_its_findings() -> None:
    parsed = parse_slo(
        {
            "metadata": {"uid": "s", "name": "n1"},
            "spec": {
                "resourceQOSStrategy": {"beClass": {"networkQOS": {"enable": True, "egressRequest": "x"}}}
            },
        }
    )
    assert parsed is not None
    assert parsed[1] is not None
    assert parsed[1].policy.source == "nodeslo"
    assert [finding.subject for finding in parsed[1].findings] == ["nodeslo n1"]
