"""Cases E5, E6, E7: workloads of the configuration as pods."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from netqos.host.links import LinkReport
from netqos.host.node import WorkloadFacts, node_facts, node_name
from netqos.model.health import info
from netqos.model.ids import CgroupPath, IfName, PodUid
from netqos.model.inputs import NodeFacts, PodFacts, UplinkFacts
from netqos.model.levels import Level, PerDirection
from netqos.model.rules import IpMatch, Rule
from netqos.settings.values import Settings, WorkloadMatch, WorkloadSettings
from tests.unit.host.trees import FakeHost

NGINX = CgroupPath("/system.slice/nginx.service")
OWN = frozenset({"198.18.0.2", "fd00:77::2"})
RULE = Rule(matches=(IpMatch(networks=("10.0.0.0/8",)),), dscp=10)


def workload(**match: object) -> WorkloadSettings:
    return WorkloadSettings(name="web", match=WorkloadMatch(**match))  # type: ignore[arg-type]  # one of three keys


def codes(facts: PodFacts) -> list[str]:
    return [one.code for one in facts.findings]


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path)


@pytest.mark.parametrize(
    ("configured", "environ", "expected"),
    [
        ("worker-1", {"NODE_NAME": "worker-2"}, "worker-1"),
        (None, {"NODE_NAME": "worker-2"}, "worker-2"),
        (None, {"NODE_NAME": " "}, socket.gethostname().lower()),
        (None, {}, socket.gethostname().lower()),
    ],
)
def test_the_nodes_name(configured: str | None, environ: dict[str, str], expected: str) -> None:
    assert node_name(Settings(node_name=configured), environ) == expected


def test_the_nodes_facts(host: FakeHost) -> None:
    uplink = UplinkFacts(name=IfName("eth0"), index=2, speed_bps=25_000_000_000)
    told = info("uplink-is-bond", "eth0", "...")
    host.make("/system.slice/kubelet.service")
    host.put("/", "cgroup.type", "domain")
    found = node_facts(
        "worker-1", LinkReport(uplinks=(uplink,), findings=(told,)), host.cgroups(), bandwidth_annotation="5G"
    )
    assert found == NodeFacts(
        name="worker-1",
        uplinks=(uplink,),
        bandwidth_annotation="5G",
        critical_cgroups=(
            (CgroupPath("/system.slice/kubelet.service"), host.inode("/system.slice/kubelet.service")),
        ),
        findings=(told, *host.cgroups().findings()),
    )


def test_a_workload_with_addresses_says_everything_of_itself(host: FakeHost) -> None:
    settings = WorkloadSettings(
        name="web",
        match=WorkloadMatch(addresses=("10.88.0.10", "fd00:88::10")),
        level=Level.L0,
        limits=PerDirection(tx=10_000_000, rx=20_000_000),
        rules=PerDirection(tx=(RULE,), rx=()),
    )
    assert WorkloadFacts().look((settings,), host.cgroups(), own_addresses=OWN) == (
        PodFacts(
            uid=PodUid("workload:web"),
            namespace="",
            name="web",
            addresses=("10.88.0.10", "fd00:88::10"),
            direct_level=Level.L0,
            direct_limits=PerDirection(tx=10_000_000, rx=20_000_000),
            direct_rules=PerDirection(tx=(RULE,), rx=()),
        ),
    )


@pytest.mark.parametrize("own", ["198.18.0.2", "fd00:77::2", "fd00:77:0::0:2", "::ffff:198.18.0.2"])
def test_an_address_of_the_node_is_refused(host: FakeHost, own: str) -> None:
    (found,) = WorkloadFacts().look(
        (workload(addresses=(own, "10.88.0.10")),), host.cgroups(), own_addresses=OWN
    )
    assert found.addresses == ("10.88.0.10",)
    assert codes(found) == ["address-of-node"]


def test_an_address_that_becomes_the_nodes_is_refused_from_then_on(host: FakeHost) -> None:
    facts, listed = WorkloadFacts(), (workload(addresses=("10.88.0.10",)),)
    (found,) = facts.look(listed, host.cgroups(), own_addresses=OWN)
    assert codes(found) == []
    (found,) = facts.look(listed, host.cgroups(), own_addresses=OWN | {"10.88.0.10"})
    assert codes(found) == ["address-of-node"]


@pytest.mark.parametrize("match", [{"unit": "nginx.service"}, {"cgroup": NGINX}])
def test_a_workload_appears_with_its_cgroup(host: FakeHost, match: dict[str, object]) -> None:
    cgroups = host.cgroups()
    (found,) = WorkloadFacts().look((workload(**match),), cgroups, own_addresses=OWN)
    assert (found.cgroup, found.cgroup_id, found.host_network) == (match.get("cgroup"), None, True)
    assert codes(found) == ["workload-pending"]
    assert str(next(iter(match.values()))) in found.findings[0].message
    host.make(NGINX)
    (found,) = WorkloadFacts().look((workload(**match),), cgroups, own_addresses=OWN)
    assert (found.cgroup, found.cgroup_id, found.host_network) == (NGINX, host.inode(NGINX), True)
    assert codes(found) == []


def test_a_workload_of_another_pid_namespace_is_not_known_to_share_the_network(host: FakeHost) -> None:
    host.put(NGINX, "cgroup.procs", "0\n0\n")
    (found,) = WorkloadFacts().look((workload(unit="nginx.service"),), host.cgroups(), own_addresses=OWN)
    assert (found.cgroup, codes(found)) == (NGINX, ["workload-not-seen"])


def test_a_container_is_not_told_by_its_cgroup(host: FakeHost) -> None:
    host.run("/machine.slice/web.scope/payload", 77, network=2)
    (found,) = WorkloadFacts().look((workload(unit="web.scope"),), host.cgroups(), own_addresses=OWN)
    assert found.cgroup == "/machine.slice/web.scope"
    assert codes(found) == ["workload-in-another-namespace"]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("v1", ["workload-not-enforced"]),
        ("v1 with a net_cls that may be written", []),
        ("nothing", ["workload-not-enforced"]),
    ],
)
def test_without_cgroup_v2_a_cgroup_tells_what_net_cls_can(
    tmp_path: Path, mode: str, expected: list[str]
) -> None:
    host = FakeHost(tmp_path, mode.split(maxsplit=1)[0])
    if "written" in mode:
        (host.cgroup / "net_cls,net_prio").mkdir()
        (host.cgroup / "net_cls,net_prio/net_cls.classid").write_text("0")
    host.make(NGINX)
    (found,) = WorkloadFacts().look((workload(unit="nginx.service"),), host.cgroups(), own_addresses=OWN)
    assert found.cgroup_id is None
    assert codes(found) == expected


def test_one_workload_does_not_disturb_the_next(host: FakeHost) -> None:
    listed = (workload(unit="missing.service"), workload(addresses=("198.18.0.2",)), workload(cgroup=NGINX))
    host.make(NGINX)
    found = WorkloadFacts().look(listed, host.cgroups(), own_addresses=OWN)
    assert [codes(one) for one in found] == [["workload-pending"], ["address-of-node"], []]
