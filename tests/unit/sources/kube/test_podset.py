from __future__ import annotations

from dataclasses import replace

import pytest

from netqos.host.cgroups import Cgroup
from netqos.model.ids import CgroupPath, PodUid
from netqos.model.inputs import KubernetesQos, PodFacts
from netqos.sources.kube.located import Locator
from netqos.sources.kube.pods import KubePod
from netqos.sources.kube.podset import joined, merge, settle_addresses


def pod(
    uid: str,
    *addresses: str,
    created: str = "2026-01-01T00:00:00Z",
    running: bool = True,
    ending: bool = False,
    host: bool = False,
    cgroup_uid: str = "",
) -> KubePod:
    facts = PodFacts(
        uid=PodUid(uid), namespace="ns", name=f"name-{uid}", addresses=addresses, host_network=host
    )
    return KubePod(
        facts=facts,
        created=created,
        is_running=running,
        is_ending=ending,
        cgroup_uid=PodUid(cgroup_uid or uid),
    )


def test_earlier_pods_are_joined_unless_their_place_is_taken() -> None:
    new, changed = pod("new", "10.0.0.1"), pod("b", "10.0.0.3")
    earlier = (pod("a", "10.0.0.1", "10.0.0.9"), pod("b", "10.0.0.2"), pod("c", "10.0.0.4"), pod("d"))
    assert joined((new, changed), earlier) == (new, changed, earlier[2], earlier[3])


def owners(*pods: KubePod, of_node: frozenset[str] = frozenset()) -> dict[str, tuple[str, ...]]:
    return {one.facts.uid: one.facts.addresses for one in settle_addresses(pods, of_node=of_node)}


def codes(*pods: KubePod, of_node: frozenset[str] = frozenset()) -> dict[str, list[str]]:
    return {
        one.facts.uid: [finding.code for finding in one.facts.findings]
        for one in settle_addresses(pods, of_node=of_node)
    }


OLD = pod("a", "10.0.0.1", "fd00::1")
NEW = pod("b", "10.0.0.1", created="2026-01-01T00:00:01Z")


@pytest.mark.parametrize("pods", [(OLD, NEW), (NEW, OLD)])
def test_the_newer_pod_has_the_address_and_the_other_a_finding(pods: tuple[KubePod, ...]) -> None:
    assert owners(*pods) == {"a": ("fd00::1",), "b": ("10.0.0.1",)}
    assert codes(*pods) == {"a": ["address-conflict"], "b": []}


def test_a_running_pod_has_it_before_a_newer_one_that_does_not_run() -> None:
    assert owners(OLD, replace(NEW, is_running=False))["a"] == ("10.0.0.1", "fd00::1")


def test_a_pod_that_stays_has_it_before_one_that_ends() -> None:
    assert owners(OLD, replace(NEW, is_ending=True))["a"] == ("10.0.0.1", "fd00::1")


def test_the_same_name_with_a_new_uid_takes_over() -> None:
    successor = replace(NEW, facts=replace(NEW.facts, name=OLD.facts.name))
    assert owners(replace(OLD, is_ending=True), successor) == {"a": ("fd00::1",), "b": ("10.0.0.1",)}


def test_host_network_pods_share_the_nodes_address() -> None:
    one, two = pod("a", "192.0.2.1", host=True), pod("b", "192.0.2.1", host=True)
    assert settle_addresses((one, two), of_node=frozenset({"192.0.2.1"})) == (one, two)


def test_no_pod_takes_the_nodes_own_address() -> None:
    found = pod("a", "192.0.2.1", "10.0.0.1")
    node = frozenset({"192.0.2.1"})
    assert owners(found, of_node=node) == {"a": ("10.0.0.1",)}
    assert codes(found, of_node=node) == {"a": ["address-of-node"]}


def test_pods_without_a_conflict_stay_the_same_objects() -> None:
    pods = (OLD, pod("c", "10.0.0.3"))
    assert all(one is other for one, other in zip(settle_addresses(pods), pods, strict=True))


A, B, C = pod("a", "10.0.0.1"), pod("b", "10.0.0.2"), pod("c", "10.0.0.3")


@pytest.mark.parametrize(
    ("api", "kubelet", "is_current", "expected"),
    [
        (None, None, False, None),
        ((A, B), None, False, ("a", "b")),
        (None, (A,), False, ("a",)),
        ((), None, True, ()),
        ((A, B), (B, C), True, ("a", "b", "c")),
        ((A, B), (B, C), False, ("b", "c")),
    ],
)
def test_both_sources_by_uid(
    api: tuple[KubePod, ...] | None,
    kubelet: tuple[KubePod, ...] | None,
    is_current: bool,
    expected: tuple[str, ...] | None,
) -> None:
    found = merge(api, kubelet, is_api_current=is_current)
    assert (None if found is None else tuple(one.facts.uid for one in found)) == expected


def test_a_mirror_and_its_static_pod_are_one() -> None:
    mirror, static = pod("m", "10.0.0.1", cgroup_uid="hash"), pod("hash", "10.0.0.1")
    assert merge((mirror,), (static,), is_api_current=True) == (mirror,)
    assert merge((mirror,), (static,), is_api_current=False) == (mirror,)


def test_while_the_server_is_away_the_kubelet_knows_a_late_address() -> None:
    found = merge((pod("a", running=False),), (pod("a", "10.0.0.9"),), is_api_current=False)
    assert found == (pod("a", "10.0.0.9"),)


class Tree:
    def __init__(self) -> None:
        self.found: dict[str, Cgroup] = {}
        self.asked: list[set[str]] = []

    def pods(self, wanted: dict[PodUid, KubernetesQos | None]) -> dict[PodUid, Cgroup]:
        self.asked.append(set(wanted))
        return {uid: self.found[uid] for uid in wanted if uid in self.found}


def test_cgroups_are_looked_for_until_found_and_again_later() -> None:
    tree = Tree()
    locator = Locator(tree)  # type: ignore[arg-type] # a dict is a mapping
    first = locator.locate((A, B), now_s=0)
    assert [one.cgroup for one in first] == [None, None]
    tree.found["a"] = Cgroup(path=CgroupPath("/kubepods/poda"), id=7)
    assert locator.locate((A, B), now_s=0.2)[0] is first[0]
    found = locator.locate((A, B), now_s=1)
    assert (found[0].cgroup, found[0].cgroup_id) == ("/kubepods/poda", 7)
    assert found[1] is first[1]
    locator.locate((A, B), now_s=2)
    tree.found["a"] = Cgroup(path=CgroupPath("/kubepods/poda"), id=8)
    assert locator.locate((A, B), now_s=11)[0].cgroup_id == 8
    assert tree.asked == [{"a", "b"}, set(), {"a", "b"}, {"b"}, {"a", "b"}]


def test_a_changed_pod_is_looked_at_at_once_and_one_that_is_gone_forgotten() -> None:
    tree = Tree()
    locator = Locator(tree)  # type: ignore[arg-type] # a dict is a mapping
    locator.locate((A,), now_s=0)
    changed = replace(A, facts=replace(A.facts, addresses=("10.0.0.8",)))
    assert locator.locate((changed,), now_s=0.1)[0].addresses == ("10.0.0.8",)
    assert locator.locate((), now_s=0.2) == ()


def test_a_host_network_pod_without_a_cgroup_is_told() -> None:
    found = Locator(Tree()).locate((pod("a", host=True),), now_s=0)  # type: ignore[arg-type] # a dict is a mapping
    assert [one.code for one in found[0].findings] == ["pod-cgroup-missing"]


def test_a_host_network_pod_is_looked_at_twice_a_second_with_its_containers() -> None:
    tree = Tree()
    locator = Locator(tree)  # type: ignore[arg-type] # a dict is a mapping
    path, hosted = CgroupPath("/kubepods/poda"), pod("a", host=True)
    for at_s, inner in ((0.0, 8), (0.6, 9)):
        tree.found["a"] = Cgroup(path=path, id=7, inner=((CgroupPath(f"{path}/c"), inner),))
        (found,) = locator.locate((hosted,), now_s=at_s)
        assert (found.cgroup_id, found.inner_cgroups) == (7, ((f"{path}/c", inner),))
