from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.model.ids import PodUid
from netqos.model.inputs import KubernetesQos, PodFacts
from netqos.sources.kube import remembered
from netqos.sources.kube.pods import ANNOTATIONS, KubePod, parse_pod
from netqos.sources.kube.remembered import bounded, read, written
from tests.unit.sources.kube.test_answers import JSON
from tests.unit.sources.kube.test_pods import HASH, pod

WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
UIDS = st.from_regex(r"[a-f0-9]{1,8}-[a-f0-9]{1,8}", fullmatch=True)


@st.composite
def kube_pods(draw: st.DrawFn) -> KubePod:
    uid = draw(UIDS)
    mirror = draw(st.one_of(st.just(uid), UIDS))
    facts = PodFacts(
        uid=PodUid(uid),
        namespace=draw(WORDS),
        name=draw(WORDS),
        addresses=tuple(draw(st.lists(st.ip_addresses().map(str), max_size=3, unique=True))),
        host_network=draw(st.booleans()),
        labels=draw(st.dictionaries(st.just("koordinator.sh/qosClass"), st.text(max_size=5))),
        annotations=draw(st.dictionaries(st.sampled_from(ANNOTATIONS), st.text(max_size=30))),
        kubernetes_qos=draw(st.sampled_from(KubernetesQos)),
        system_critical=mirror != uid or draw(st.booleans()),
    )
    return KubePod(
        facts=facts,
        created=draw(st.sampled_from(["", "2026-01-02T03:04:05Z"])),
        is_running=draw(st.booleans()),
        is_ending=draw(st.booleans()),
        cgroup_uid=PodUid(mirror),
    )


def of(document: object) -> KubePod:
    found = parse_pod(document)
    assert found is not None
    assert found[1] is not None
    return found[1]


def back(pods: list[KubePod]) -> list[KubePod]:
    return list(read(json.loads(json.dumps([written(one) for one in pods]))))


MIRROR = {"kubernetes.io/config.mirror": HASH, "kubernetes.io/config.hash": HASH}


@pytest.mark.parametrize(
    "document",
    [
        pod(),
        pod(annotations={"koordinator.sh/egress-bandwidth": "10M"}, labels={"koordinator.sh/qosClass": "LS"}),
        pod(annotations=MIRROR),
        pod(spec={"hostNetwork": True, "priorityClassName": "system-cluster-critical"}),
        pod(status={"phase": "Pending"}, deletionTimestamp="2026-01-02T03:04:06Z"),
    ],
)
def test_a_pod_comes_back_as_it_was(document: object) -> None:
    assert back([of(document)]) == [of(document)]


@given(st.lists(kube_pods(), max_size=3))
def test_any_pods_come_back_as_they_were(pods: list[KubePod]) -> None:
    normal = [of(written(one)) for one in pods]
    assert back(normal) == normal
    assert [one.cgroup_uid for one in normal] == [one.cgroup_uid for one in pods]


@given(JSON)
def test_whatever_stands_in_the_state_folder_is_no_error(document: object) -> None:
    assert all(isinstance(one, KubePod) for one in read(document))


def test_above_the_bound_the_largest_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "MOST_CHARACTERS", 3_000)
    sizes = {"a": 10, "b": 2_000, "c": 20, "d": 600}
    pods = [
        of(pod(uid=uid, annotations={"koordinator.sh/qos-config": "x" * size})) for uid, size in sizes.items()
    ]
    assert [one.facts.uid for one in bounded(pods)] == ["a", "c", "d"]
    assert bounded(pods[:1]) == pods[:1]
