"""Real pods: made by the API, run by the kubelet, connected by the CNI; and how to get at them from outside."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netqos.testing.namespaces import Foothold
from tests.apiserver.client import ApiError, Document
from tests.apiserver.kube import Kube, Texts, pods_path
from tests.node.podimage import NAME
from tests.node.realnode import RealNode, wait_until

RUNNING_S = 30.0
GONE_S = 40.0

# With a grace of 0 the object would be gone before the pod is.
IDLE = ("sh", "-c", "trap 'exit 0' TERM; sleep 1000000000 & wait")
GUARANTEED = {name: {"cpu": "10m", "memory": "16Mi"} for name in ("requests", "limits")}
BURSTABLE = {"requests": {"cpu": "10m"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One that runs. `inside` is its network namespace: the node's for a pod on the host's network."""

    name: str
    namespace: str
    uid: str
    address: str
    inside: Foothold

    @property
    def full_name(self) -> str:
        """As netqosctl wants it."""
        return f"{self.namespace}/{self.name}"


class Pods:
    """The pods of one test on a node."""

    def __init__(self, node: RealNode, kube: Kube) -> None:
        """None is there yet."""
        self._node = node
        self._kube = kube
        self._running: dict[str, Pod] = {}

    @property
    def wire(self) -> Foothold:
        """The world."""
        return self._node.wire

    def place(self, name: str) -> Foothold:
        """Where a pod's traffic is made."""
        return self._running[name].inside

    def __getitem__(self, name: str) -> Pod:
        """One that was waited for."""
        return self._running[name]

    @property
    def names(self) -> frozenset[str]:
        """Of all that were waited for."""
        return frozenset(self._running)

    def create(
        self,
        name: str,
        *,
        labels: Texts | None = None,
        annotations: Texts | None = None,
        command: Sequence[str] = IDLE,
        resources: Mapping[str, object] | None = None,
        **spec: Any,
    ) -> None:
        """Ask for one; `spec` adds to the pod's."""
        container = {
            "name": "main",
            "image": NAME,
            "imagePullPolicy": "Never",
            "command": list(command),
            "resources": dict(resources or {}),
        }
        whole = {"containers": [container], "terminationGracePeriodSeconds": 1, **spec}
        self._kube.create_pod(name, phase=None, labels=labels, annotations=annotations, spec=whole)

    def start(self, name: str, **wanted: Any) -> Pod:
        """As `create`, and wait until it runs."""
        self.create(name, **wanted)
        return self.wait_running(name)

    def wait_running(self, name: str) -> Pod:
        """Wait until it runs and has its address."""

        def is_running() -> bool:
            status = self._get(name)["status"]
            return status.get("phase") == "Running" and "podIP" in status

        wait_until(is_running, f"pod {name} runs", RUNNING_S)
        document = self._get(name)
        uid, address = document["metadata"]["uid"], document["status"]["podIP"]
        on_host = document["spec"].get("hostNetwork", False)
        inside = self._node.node if on_host else Foothold(self._network_of(uid), address=address)
        pod = Pod(
            name=name,
            namespace=self._kube.namespace,
            uid=uid,
            address=address,
            inside=inside,
        )
        self._running[name] = pod
        return pod

    def delete(self, *names: str, wait: bool = True) -> None:
        """Ask for their end, and wait until they are gone."""
        for name in names:
            known = self._running.pop(name, None)
            if known is not None and known.inside is not self._node.node:
                known.inside.leave()
            self._kube.terminate_pod(name)
        if wait:
            wait_until(lambda: all(map(self._is_gone, names)), f"pods {names} are gone", GONE_S)

    def close(self) -> None:
        """End all of them, and wait until the node has none."""
        listed = self._kube.api.get(pods_path(self._kube.namespace))["items"]
        self.delete(*(one["metadata"]["name"] for one in listed))

    def _get(self, name: str) -> Document:
        return self._kube.api.get(pods_path(self._kube.namespace, name))

    def _is_gone(self, name: str) -> bool:
        try:
            self._get(name)
        except ApiError as problem:
            return problem.status == 404
        return False

    def _network_of(self, uid: str) -> Path:
        """The namespace that containerd made for a pod, as the CRI tells it; that of an earlier sandbox is gone."""
        kind, pod = (f'labels."{name}"==' for name in ("io.cri-containerd.kind", "io.kubernetes.pod.uid"))
        ctr = self._node.containerd.ctr
        for identity in ctr("containers", "ls", "-q", f"{kind}sandbox,{pod}{uid}").split():
            linux = json.loads(ctr("containers", "info", identity))["Spec"]["linux"]
            (path,) = [one["path"] for one in linux["namespaces"] if one["type"] == "network"]
            found = self._node.machine.path(path)
            if found.exists():
                return found
        raise LookupError(f"no sandbox of pod {uid}")
