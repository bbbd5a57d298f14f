"""What can be told apart from a container's cgroup namespace."""

from __future__ import annotations

from dataclasses import replace

from netqos.model.ids import CgroupPath
from netqos.testing import states
from netqos_tc import classify
from netqos_tc.classify import owner_of
from netqos_tc.owners import Told, collect
from netqos_tc.spec import ElementKey, ElementMap


def test_a_rule_counts_from_where_the_namespace_begins() -> None:
    """Level 0 is whatever is as deep as the namespace's root; the maps keep the names of the depths."""
    text = classify.setup_text(cgroups=True, begins_at=4)
    rules = [line for line in text.splitlines() if "socket cgroupv2" in line]
    assert [line.split("set socket ")[1] for line in rules] == [
        'cgroupv2 level 0 map @cg4 comment "netqos 3 cg4 from 4"',
        'cgroupv2 level 1 map @cg5 comment "netqos 3 cg5 from 4"',
        'cgroupv2 level 2 map @cg6 comment "netqos 3 cg6 from 4"',
    ]
    spec = classify.table_spec(cgroups=True, begins_at=4)
    assert classify.begins_at(spec) == 4
    assert classify.text_of(spec) == text
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
