"""Where the kubelet puts a pod's cgroup: names of both drivers, both ways (case E2). Pure.

systemd: `kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod<uid with _>.slice`; cgroupfs:
`kubepods/besteffort/pod<uid>`. Guaranteed pods stand directly below `kubepods`. The kubelet's --cgroup-root comes
before all of it (`kubelet.slice/kubelet-kubepods.slice/...`, `kubelet/kubepods/...`). From the kubelet's
pkg/kubelet/cm/{cgroup_manager_linux,pod_container_manager_linux}.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from netqos.model.ids import CgroupPath, PodUid
from netqos.model.inputs import KubernetesQos

_POD = re.compile(r"(?:.*-)?pod([0-9A-Za-z][0-9A-Za-z_-]*?)(\.slice)?")
_FOLDERS = {
    KubernetesQos.GUARANTEED: "",
    KubernetesQos.BURSTABLE: "burstable",
    KubernetesQos.BEST_EFFORT: "besteffort",
}


def is_pods_root(name: str) -> bool:
    """Whether a folder's name is that of the tree of all pods, of either driver."""
    return name in {"kubepods", "kubepods.slice"} or name.endswith("-kubepods.slice")


def pod_paths(root: str, uid: PodUid, qos: KubernetesQos | None) -> Iterator[CgroupPath]:
    """Where the pod's cgroup may be below one tree of pods, `root` (`/kubepods.slice`); `qos` None: of any class."""
    is_systemd = root.endswith(".slice")
    for one in KubernetesQos if qos is None else (qos,):
        yield CgroupPath(
            _systemd(root, uid, _FOLDERS[one]) if is_systemd else _cgroupfs(root, uid, _FOLDERS[one])
        )


def pod_uid(path: str) -> PodUid | None:
    """The pod whose cgroup this is, or holds this one (a container's); None for all others."""
    parts = path.strip("/").split("/")
    if not any(is_pods_root(part) for part in parts):
        return None
    for part in parts:
        found = _POD.fullmatch(part)
        if found:
            # A systemd slice name uses - for its own parents, so the driver writes the uid's as _.
            return PodUid(found[1].replace("_", "-") if found[2] else found[1])
    return None


def _systemd(root: str, uid: PodUid, folder: str) -> str:
    base = root.rsplit("/", 1)[1].removesuffix(".slice")
    name = f"{base}-{folder}" if folder else base
    parent = f"{root}/{name}.slice" if folder else root
    return f"{parent}/{name}-pod{uid.replace('-', '_')}.slice"


def _cgroupfs(root: str, uid: PodUid, folder: str) -> str:
    return f"{root}/{folder}/pod{uid}" if folder else f"{root}/pod{uid}"
