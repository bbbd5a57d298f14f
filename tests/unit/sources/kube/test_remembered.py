from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.model.ids import PodUid
from netqos.model.inputs import KubernetesQos, PodFacts
from netqos.sources.kube import remembered
from netqos.sources.kube.pods import ANNOTATIONS, KubePod, parse_pod
from netqos.sources.kube.remembered import bounded, read, size_bytes, written
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


EGRESS, CONFIG = "koordinator.sh/egress-bandwidth", "koordinator.sh/qos-config"


def with_texts(uid: str, **texts: str) -> KubePod:
    return of(pod(uid=uid, name=f"name-{uid}", annotations={EGRESS: "3M", **texts}))


@pytest.mark.parametrize("length", [63_000, 40_000])
def test_hostile_texts_cost_their_pod_these_alone(length: int) -> None:
    """The shorter ones are within the bound of one pod, and all of them together are not."""
    hostile = {CONFIG: "\x01" * length}
    quoted = with_texts("quoted", **{CONFIG: '"' * 60_000})
    pods = [with_texts("plain"), *(with_texts(f"bad-{one}", **hostile) for one in range(300)), quoted]
    kept = bounded(pods)
    assert [one.facts.uid for one in kept] == [one.facts.uid for one in pods]
    assert {one.facts.annotations[EGRESS] for one in kept} == {"3M"}
    assert (kept[0], kept[-1]) == (pods[0], quoted)
    assert sum(map(size_bytes, kept)) <= remembered.MOST_BYTES
    assert back(kept) == kept


def test_within_the_bound_nothing_is_cut() -> None:
    pods = [with_texts(str(one), **{CONFIG: "x" * 60_000}) for one in range(100)]
    assert all(kept is one for kept, one in zip(bounded(pods), pods, strict=True))
    assert bounded([]) == []


def test_above_the_bound_the_largest_are_cut_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "MOST_BYTES", 3_200)
    lengths = {"a": 10, "b": 2_000, "c": 20, "d": 600}
    kept = bounded([with_texts(uid, **{CONFIG: "x" * length}) for uid, length in lengths.items()])
    assert [len(one.facts.annotations.get(CONFIG, "")) for one in kept] == [10, 0, 20, 600]


@given(st.lists(kube_pods(), max_size=6), st.integers(5_000, 20_000))
def test_any_pods_keep_their_identity_within_the_bound(pods: list[KubePod], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remembered, "MOST_BYTES", most)
        kept = bounded(pods)
    assert [one.facts.uid for one in kept] == [one.facts.uid for one in pods]
    bare = [replace(one, facts=replace(one.facts, labels={}, annotations={})) for one in pods]
    assert sum(map(size_bytes, kept)) <= most or max(map(size_bytes, bare)) > most // len(pods)
