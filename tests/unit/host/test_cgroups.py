"""Cases E1, E2, E5, E7 on trees of plain folders."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.host.cgroups import Cgroup, Cgroups
from netqos.host.cgrouptree import Hierarchy, Mode, detect
from netqos.host.podcgroups import pod_paths, pod_uid
from netqos.model.health import Severity
from netqos.model.ids import CgroupPath, PodUid
from netqos.model.inputs import KubernetesQos
from tests.unit.host.trees import FakeHost

UID = PodUid("0f3b7d52-6c1e-4f8a-9b0d-2a4e6c8f1a3b")
UID_ = UID.replace("-", "_")
NGINX = CgroupPath("/system.slice/nginx.service")


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("v2", Hierarchy(mode=Mode.UNIFIED, tree=Path("/R"))),
        (
            "hybrid",
            Hierarchy(
                mode=Mode.HYBRID,
                tree=Path("/R/unified"),
                prefix="unified",
                net_cls=Path("/R/net_cls,net_prio"),
            ),
        ),
        ("v1", Hierarchy(mode=Mode.LEGACY, tree=Path("/R/systemd"), net_cls=Path("/R/net_cls,net_prio"))),
        ("nothing", Hierarchy(mode=Mode.NONE)),
    ],
)
def test_the_hierarchy_is_told_by_what_is_mounted(tmp_path: Path, mode: str, expected: Hierarchy) -> None:
    host = FakeHost(tmp_path, mode)
    found = detect(host.cgroup, proc_root=host.proc)
    assert str(found).replace(str(host.cgroup), "/R") == str(expected)


def test_v1_without_a_tree_of_systemds_own(tmp_path: Path) -> None:
    host = FakeHost(tmp_path, "v1")
    mounts = host.proc / "self/mountinfo"
    mounts.write_text(
        mounts.read_text().replace("name=systemd", "memory").replace("/systemd rw", "/memory rw")
    )
    found = detect(host.cgroup, proc_root=host.proc)
    assert (found.mode, found.tree) == (Mode.LEGACY, None)
    cgroups = host.cgroups()
    assert (cgroups.unit("nginx"), cgroups.locate(NGINX), cgroups.pod(UID)) == (None, None, None)


def test_of_two_mounts_at_one_place_the_later_counts(host: FakeHost) -> None:
    with (host.proc / "self/mountinfo").open("a") as mounts:
        mounts.write("garbage\n9 1 0:9 / - x\n")
        mounts.write(f"9 1 0:9 / {str(host.cgroup).replace(' ', chr(92) + '040')} rw - tmpfs tmpfs rw\n")
    assert detect(host.cgroup, proc_root=host.proc).mode is Mode.NONE


def test_a_tree_that_is_mounted_from_below_its_root_is_a_part(host: FakeHost) -> None:
    mounts = host.proc / "self/mountinfo"
    mounts.write_text(mounts.read_text().replace("0:2 / ", "0:2 /docker/0a1b "))
    assert not detect(host.cgroup, proc_root=host.proc).is_whole


def test_the_hosts_tree_is_whole_from_a_containers_namespace_too(host: FakeHost) -> None:
    mounts = host.proc / "self/mountinfo"
    mounts.write_text(mounts.read_text().replace("0:2 / ", "0:2 /../../.. "))
    assert detect(host.cgroup, proc_root=host.proc).is_whole
    mounts.write_text(mounts.read_text().replace("0:2 /../../.. ", "0:2 /../x "))
    assert not detect(host.cgroup, proc_root=host.proc).is_whole


def test_in_a_container_what_is_below_a_pod_is_listed_as_deep_as_can_be_matched(host: FakeHost) -> None:
    """The pod is three deep, the namespace begins four deep; one that is as deep itself stands for itself."""
    pod = CgroupPath(f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID_}.slice")
    containers = [f"{pod}/cri-containerd-{name}.scope" for name in ("a", "b")]
    host.make(*containers, f"{containers[0]}/init", NGINX, "/a/b/c/d")
    found = host.cgroups()
    assert (found.hierarchy.begins_at, found.locate(pod)) == (0, Cgroup(path=pod, id=host.inode(pod)))
    mounts = host.proc / "self/mountinfo"
    mounts.write_text(mounts.read_text().replace("0:2 / ", "0:2 /../../../.. "))
    cgroups = host.cgroups()
    assert cgroups.hierarchy.begins_at == 4
    assert cgroups.pods({UID: None}) == {
        UID: Cgroup(path=pod, id=host.inode(pod), inner=host.ids(containers))  # type: ignore[arg-type]
    }
    found_one = cgroups.locate(CgroupPath("/a"))
    assert found_one is not None
    assert found_one.inner == (("/a/b/c/d", host.inode("/a/b/c/d")),)
    deep = cgroups.locate(CgroupPath("/a/b/c/d"))
    assert deep == Cgroup(path=CgroupPath("/a/b/c/d"), id=host.inode("/a/b/c/d"))
    assert cgroups.locate(NGINX) == Cgroup(path=NGINX, id=host.inode(NGINX))


def test_a_link_to_the_tree_is_the_tree(host: FakeHost, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(host.cgroup)
    assert detect(tmp_path / "link", proc_root=host.proc).mode is Mode.UNIFIED


def test_without_proc_there_is_no_hierarchy(tmp_path: Path) -> None:
    assert detect(tmp_path, proc_root=tmp_path) == Hierarchy(mode=Mode.NONE)


@pytest.mark.parametrize(
    ("mode", "codes"),
    [("v2", []), ("hybrid", []), ("v1", ["cgroup-v1-only"]), ("nothing", ["cgroup-missing"])],
)
def test_what_a_hierarchy_cannot_do_is_told(tmp_path: Path, mode: str, codes: list[str]) -> None:
    assert [one.code for one in FakeHost(tmp_path, mode).cgroups().findings()] == codes


@pytest.mark.parametrize(
    ("own", "severity"),
    [("/", Severity.WARNING), ("/system.slice/netqosd.service", Severity.INFO)],
    ids=["a-container", "a-node-in-a-container"],
)
def test_a_part_of_the_tree_is_noticed(host: FakeHost, own: str, severity: Severity) -> None:
    """What is seen is a node's where this process is a unit of it."""
    host.put("/", "cgroup.type", "domain\n")
    host.place_self(f"0::{own}")
    found = [(one.code, one.severity) for one in host.cgroups().findings()]
    assert found == [("cgroup-namespace", severity)]


def test_a_part_of_the_tree_with_the_own_pod_in_it_is_a_nodes(host: FakeHost) -> None:
    host.put("/", "cgroup.type", "domain\n")
    host.place_self("0::/")
    host.run(f"/kubepods/burstable/pod{UID}/container", os.getpid())
    assert [one.severity for one in host.cgroups().findings()] == [Severity.INFO]


def test_this_machine_has_some_hierarchy() -> None:
    cgroups = Cgroups()
    assert cgroups.hierarchy.mode is not Mode.NONE
    if cgroups.hierarchy.mode is not Mode.LEGACY:
        assert cgroups.hierarchy.tree is not None
        inode = cgroups.hierarchy.tree.stat().st_ino
        assert cgroups.locate(CgroupPath("/")) == Cgroup(path=CgroupPath("/"), id=inode)


@pytest.mark.parametrize("mode", ["v2", "hybrid"])
def test_a_cgroup_comes_goes_and_comes_back_as_another(tmp_path: Path, mode: str) -> None:
    host = FakeHost(tmp_path, mode)
    cgroups = host.cgroups()
    assert cgroups.locate(NGINX) is None
    host.make(NGINX)
    assert cgroups.locate(NGINX) == Cgroup(path=NGINX, id=host.inode(NGINX))
    shutil.move(host.tree / NGINX[1:], tmp_path / "gone")  # keeps the old inode taken
    assert cgroups.locate(NGINX) is None
    host.make(NGINX)
    assert cgroups.locate(NGINX) == Cgroup(path=NGINX, id=host.inode(NGINX))


def test_in_v1_a_cgroup_has_a_path_but_no_id(tmp_path: Path) -> None:
    host = FakeHost(tmp_path, "v1")
    host.make(NGINX)
    assert host.cgroups().locate(NGINX) == Cgroup(path=NGINX, id=None)
    assert host.cgroups().unit("nginx") == NGINX


@pytest.mark.parametrize("path", ["/../outside", "/a/../../outside", "outside", "", "/x\0y", "/cgroup.procs"])
def test_a_path_never_leaves_the_tree(host: FakeHost, tmp_path: Path, path: str) -> None:
    (tmp_path / "outside").mkdir()
    host.put("/", "cgroup.procs", "")
    assert host.cgroups().locate(CgroupPath(path)) is None


def test_units_are_found_below_any_slice(host: FakeHost) -> None:
    paths = {
        "nginx.service": "/system.slice/nginx.service",
        "web@blue.service": "/system.slice/system-web.slice/web@blue.service",
        r"a\x2db.service": r"/special.slice/special-deep.slice/a\x2db.service",
        "memory.service": "/system.slice/_memory.service",
        "docker-0a1b.scope": "/system.slice/docker-0a1b.scope",
        "special-deep.slice": "/special.slice/special-deep.slice",
        "init.scope": "/init.scope",
    }
    host.make(*paths.values())
    assert host.cgroups().units(paths) == paths
    assert host.cgroups().unit("nginx") == paths["nginx.service"]


def test_what_is_inside_a_service_or_a_pod_is_no_unit(host: FakeHost) -> None:
    host.make(
        "/user.slice/user-1000.slice/user@1000.service/app.slice/nginx.service",
        "/machine.slice/machine-a.scope/system.slice/nginx.service",
        f"/kubepods.slice/kubepods-pod{UID_}.slice/nginx.service",
    )
    assert host.cgroups().unit("nginx") is None


def test_a_unit_that_moved_is_found_again(host: FakeHost) -> None:
    cgroups = host.cgroups()
    host.make(NGINX)
    assert cgroups.unit("nginx") == NGINX
    (host.tree / NGINX[1:]).rmdir()
    assert cgroups.unit("nginx") is None
    host.make("/web.slice/nginx.service")
    assert cgroups.unit("nginx") == "/web.slice/nginx.service"


@pytest.mark.parametrize("name", ["", "../x", "a/b.service", "a b", "x\n"])
def test_what_cannot_be_a_unit_is_not_looked_for(host: FakeHost, name: str) -> None:
    host.make("/system.slice/x.service")
    assert host.cgroups().unit(name) is None


def test_links_and_files_are_no_cgroups(host: FakeHost, tmp_path: Path) -> None:
    (tmp_path / "elsewhere/nginx.service").mkdir(parents=True)
    (host.tree / "trap.slice").symlink_to(tmp_path / "elsewhere")
    host.put("/system.slice", "nginx.service", "a file")
    assert host.cgroups().unit("nginx") is None


KUBELET_POD = f"kubelet-kubepods-besteffort-pod{UID_}.slice"
PODS = [
    (
        f"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{UID_}.slice",
        KubernetesQos.BEST_EFFORT,
    ),
    (f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID_}.slice", KubernetesQos.BURSTABLE),
    (f"/kubepods.slice/kubepods-pod{UID_}.slice", KubernetesQos.GUARANTEED),
    (f"/kubepods/besteffort/pod{UID}", KubernetesQos.BEST_EFFORT),
    (f"/kubepods/burstable/pod{UID}", KubernetesQos.BURSTABLE),
    (f"/kubepods/pod{UID}", KubernetesQos.GUARANTEED),
    (
        f"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/{KUBELET_POD}",
        KubernetesQos.BEST_EFFORT,
    ),
    (f"/kubelet/kubepods/besteffort/pod{UID}", KubernetesQos.BEST_EFFORT),
]


@pytest.mark.parametrize(("path", "qos"), PODS)
def test_a_pod_is_found_with_either_driver_and_root(host: FakeHost, path: str, qos: KubernetesQos) -> None:
    cgroups = host.cgroups()
    assert cgroups.pod(UID, qos) is None
    host.make(path, "/system.slice/kubepods.service")
    assert cgroups.pod(UID, qos) == path
    assert cgroups.pod(UID) == path
    others = [other for other in KubernetesQos if other is not qos]
    assert [cgroups.pod(UID, other) for other in others] == [None, None]
    assert pod_uid(path) == UID
    assert pod_uid(f"{path}/cri-containerd-0a.scope") == UID


def test_of_two_trees_the_one_with_processes_counts(host: FakeHost) -> None:
    cgroups = host.cgroups()
    left_over, used = PODS[0][0], PODS[3][0]
    host.make(left_over, used)
    assert cgroups.pod(UID) == left_over
    host.put(used, "cgroup.events", "populated 1\nfrozen 0\n")
    assert cgroups.pod(UID) == used


@pytest.mark.parametrize("uid", ["../../x", "a/b", ".", "..", "/x"])
def test_a_hostile_uid_finds_nothing(host: FakeHost, uid: str) -> None:
    host.make("/kubepods/podx", "/x")
    assert host.cgroups().pod(PodUid(uid)) is None


@given(
    st.sampled_from(["/kubepods", "/kubepods.slice", "/a/kubepods", "/a.slice/a-kubepods.slice"]),
    st.uuids().map(lambda made: PodUid(str(made))),
    st.none() | st.sampled_from(KubernetesQos),
)
def test_every_path_of_a_pod_names_it(root: str, uid: PodUid, qos: KubernetesQos | None) -> None:
    paths = list(pod_paths(root, uid, qos))
    assert len(paths) == (3 if qos is None else 1)
    assert {pod_uid(path) for path in paths} == {uid}


@pytest.mark.parametrize(
    "path", ["/", "/system.slice/podman.service", "/kubepods.slice", "/kubepods/burstable", "/podx"]
)
def test_other_cgroups_name_no_pod(path: str) -> None:
    assert pod_uid(path) is None


def test_a_static_pod_has_a_uid_without_dashes(host: FakeHost) -> None:
    uid = PodUid("6d4b75cb6d4b75cb6d4b75cb6d4b75cb")
    host.make(f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{uid}.slice")
    path = host.cgroups().pod(uid)
    assert path is not None
    assert pod_uid(path) == uid


def test_what_keeps_the_node_reachable(host: FakeHost) -> None:
    critical = [
        "/runtime.slice/containerd.service",
        "/runtime.slice/kubelet.service",
        "/system.slice/netqosd.service",
        "/system.slice/ssh.service",
        "/system.slice/system-sshd.slice",
    ]
    host.make(*critical, NGINX)
    host.place_self("3:cpu:/elsewhere", "0::/system.slice/netqosd.service")
    assert host.cgroups().critical() == host.ids(critical)


@pytest.mark.parametrize(
    "pod",
    [
        f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID_}.slice",
        f"/kubepods.slice/kubepods-pod{UID_}.slice",
        f"/kubepods/besteffort/pod{UID}",
    ],
)
def test_a_daemon_in_a_container_is_found_by_its_number(host: FakeHost, pod: str) -> None:
    host.run(pod.replace("0f3b7d52", "11111111"), 7, 0)
    host.make(pod)
    host.place_self("0::/")
    host.put(f"{pod}/cri-containerd-1.scope", "cgroup.procs", f"0\n{os.getpid()}\n")
    cgroups = host.cgroups()
    assert cgroups.critical() == host.ids([pod])
    assert cgroups.own() == pod


@pytest.mark.parametrize(
    "own", ["0::/", "0::/user.slice/user-0.slice/session-3.scope", "0::/../../x", "4:memory:/x", "garbage"]
)
def test_a_daemon_started_by_hand_does_not_make_its_session_critical(host: FakeHost, own: str) -> None:
    host.make("/user.slice/user-0.slice/session-3.scope", "/x")
    host.place_self(own)
    assert host.cgroups().critical() == ()


def test_in_v1_nothing_is_critical_by_cgroup(tmp_path: Path) -> None:
    host = FakeHost(tmp_path, "v1")
    host.make("/system.slice/ssh.service")
    assert host.cgroups().critical() == ()


def test_processes_of_another_network_namespace(host: FakeHost) -> None:
    cgroups = host.cgroups()
    host.run("/system.slice/host.service", 11)
    host.run("/system.slice/podman.scope/container", 12, network=2)
    host.put("/system.slice/gone.service", "cgroup.procs", "999\n")
    host.put("/system.slice/foreign.service", "cgroup.procs", "0\n")
    paths = ["host.service", "podman.scope", "gone.service", "foreign.service", "missing.service"]
    assert [cgroups.is_elsewhere(CgroupPath(f"/system.slice/{path}")) for path in paths] == [
        False,
        True,
        False,
        False,
        False,
    ]
