"""What can be told apart from a container's cgroup namespace."""

from __future__ import annotations

from dataclasses import replace

from netqos.model.ids import CgroupPath
from netqos.testing import states
from netqos_tc import classify, tabletext
from netqos_tc.classify import owner_of
from netqos_tc.keys import ElementKey, ElementMap
from netqos_tc.netclasses import NetClassesSeen
from netqos_tc.owners import Told, collect
from netqos_tc.spec import ElementSpec


def test_a_rule_counts_from_where_the_namespace_begins() -> None:
    """Level 0 is whatever is as deep as the namespace's root; the maps keep the names of the depths."""
    text = tabletext.setup_text(cgroups=True, begins_at=4)
    rules = [line for line in text.splitlines() if "socket cgroupv2" in line]
    assert [line.split("set socket ")[1] for line in rules] == [
        'cgroupv2 level 0 map @cg4 comment "netqos 4 cg4 from 4"',
        'cgroupv2 level 1 map @cg5 comment "netqos 4 cg5 from 4"',
        'cgroupv2 level 2 map @cg6 comment "netqos 4 cg6 from 4"',
    ]
    spec = classify.table_spec(cgroups=True, begins_at=4)
    assert classify.begins_at(spec) == 4
    assert tabletext.text_of(spec) == text
    assert classify.begins_at(classify.table_spec(cgroups=True)) == 0
    assert spec.maps == classify.table_spec(cgroups=True).maps


def test_in_a_container_a_pod_is_known_by_its_containers() -> None:
    """From a cgroup namespace that begins four deep; what has nothing as deep is not enforced, and said so."""
    here = Told(begins_at=4)
    pod = replace(
        states.pod("ns/proxy", host_network=True, cgroup="/k/b/pod"),
        cgroup_id=70,
        inner_cgroups=((CgroupPath("/k/b/pod/c1"), 71), (CgroupPath("/k/b/pod/c2"), 72)),
    )
    unit = replace(states.pod("nginx", host_network=True, cgroup="/system.slice/nginx.service"), cgroup_id=73)
    deep = replace(states.pod("ns/deep", host_network=True, cgroup="/k/b/pod/c3/x"), cgroup_id=74)
    node = replace(
        states.node((pod, unit, deep)), critical_cgroups=((CgroupPath("/system.slice/ssh.service"), 75),)
    )
    claims = collect(node, here, ingress=False)
    assert claims.owners == {
        ElementKey(ElementMap.CG4, 71): owner_of(pod.uid),
        ElementKey(ElementMap.CG4, 72): owner_of(pod.uid),
        ElementKey(ElementMap.CG5, 74): owner_of(deep.uid),
    }
    assert [(one.code, one.subject) for one in claims.findings] == [("not-enforced-cgroup", "pod nginx")]
    everywhere = collect(node, Told(), ingress=False)
    assert {key.value for key in everywhere.owners} == {70, 73, 74, 75}


def test_under_version_1_a_folder_with_no_number_or_ours_is_claimed() -> None:
    """A number of somebody else, and a cgroup without a folder in net_cls, are told."""
    pods = [
        states.pod(f"ns/{name}", host_network=True, cgroup=f"/k/{name}")
        for name in ("new", "old", "others", "gone")
    ]
    numbers = {"/k/new": 0, "/k/old": 0x4E512001, "/k/others": 0x00010001}
    claims = collect(states.node(pods), Told(net_classes=numbers), ingress=False)
    assert claims.owners == {
        ElementKey(ElementMap.NC, "/k/new"): owner_of(pods[0].uid),
        ElementKey(ElementMap.NC, "/k/old"): owner_of(pods[1].uid),
    }
    assert sorted((one.code, one.subject) for one in claims.findings) == [
        ("not-enforced-cgroup", "pod ns/gone"),
        ("not-enforced-cgroup", "pod ns/others"),
    ]
    assert "65537 of somebody else" in str(claims.findings)


def test_the_rule_for_version_1_takes_the_number_for_the_class() -> None:
    spec = classify.table_spec(cgroups=True, net_classes=True)
    assert classify.has_net_classes(spec)
    assert not classify.has_net_classes(classify.table_spec(cgroups=True))
    text = tabletext.text_of(spec)
    assert text == tabletext.setup_text(cgroups=True, net_classes=True)
    assert "meta cgroup & 0xffff0000 == 0x4e510000 meta priority set meta cgroup" in text
    assert "nc" not in {one.value for one in classify.maps(cgroups=True)}


def test_a_folder_that_only_inherits_its_number_is_nobodys() -> None:
    tree = {"/": 0, "/a": 0x4E512001, "/a/x": 0x4E512001, "/b": 0x4E512002, "/b/y": 0x4E512003, "/c": 7}
    named = NetClassesSeen(numbers=tree, owners={"/a": "uid-a"})
    assert named.elements() == {ElementKey(ElementMap.NC, "/a"): ElementSpec(minor=0x2001, owner="uid-a")}
    assert {key.value for key in NetClassesSeen(numbers=tree).elements()} == {"/a", "/b", "/b/y"}  # type: ignore[union-attr]
