"""A real node with netqos on it as a cluster has it: its own image, its own manifests, a controller of DaemonSets."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from netqos.testing.processes import run_tool
from netqos.testing.statusclient import NotReachable, StatusClient
from tests.apiserver.client import ApiError, Document
from tests.apiserver.kube import CORE, NODESLOS, Kube, pods_path
from tests.kube.manifests import is_hook
from tests.node.agent import SOCKET
from tests.node.managers import Managers
from tests.node.pods import BURSTABLE, Pods
from tests.node.realnode import RealNode, wait_until

NAMESPACE = "netqos-system"
DAEMONSET = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/netqos"
ROLLED_OUT_S = 60.0
GONE_S = 60.0
PUT_BACK_S = 120.0
SERVICE_RULES = """table ip rig_pod_services {{
    chain prerouting {{
        type nat hook prerouting priority -100;
        ip daddr 10.0.0.1 tcp dport 443 dnat to 127.0.0.1:{port}
    }}
}}
"""

SLO = {
    "systemStrategy": {"totalNetworkBandwidth": "200M"},
    "resourceQOSStrategy": {
        "lsClass": {"networkQOS": {"enable": True, "egressRequest": 30, "ingressRequest": 25}},
        "beClass": {"networkQOS": {"enable": True, "egressRequest": 20, "ingressRequest": 15}},
    },
}
"""In force at a node whose levels are on."""

# A namespace comes before what is in it, rights before who uses them.
_ORDER = ("CustomResourceDefinition", "Namespace", "ServiceAccount", "ClusterRole", "ConfigMap")


class Cluster:
    """netqos on a node whose API server makes ServiceAccounts count (`RealNode(accounts=True)`)."""

    def __init__(self, node: RealNode, controllers: Path) -> None:
        """`controllers` is the program of `managers.find_controllers`. Nothing of netqos is there yet."""
        self.node = node
        self.client = StatusClient(node.machine.folder / SOCKET.lstrip("/"))
        self.managers = Managers(node.machine, controllers, node.server.access)
        self.managers.start()
        self._serve_pods()

    def switch_on(self) -> None:
        """Give the node a NodeSLO."""
        head = {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeSLO"}
        self.node.api.create(NODESLOS, {**head, "metadata": {"name": self.node.name}, "spec": SLO})

    def deploy(self, documents: Iterable[Document]) -> None:
        """`kubectl apply --server-side` of manifests, and wait until their DaemonSet is rolled out."""
        self.apply(documents)
        self.wait_rolled_out()

    def apply(self, documents: Iterable[Document]) -> None:
        """The same without waiting."""
        ordered = sorted(documents, key=lambda one: _place(one["kind"]))
        for one in ordered:
            path = self.node.api.path_of(one)
            wait_until(partial(self.node.api.apply, path, one), path, 10)

    def wait_rolled_out(self) -> float:
        """Until the one pod of the DaemonSet is that of its newest template, and Ready; seconds."""

        def is_done() -> bool:
            found = self.node.api.get(DAEMONSET)
            status = found.get("status", {})
            is_seen = status.get("observedGeneration") == found["metadata"]["generation"]
            counts = [status.get(key, 0) for key in ("desiredNumberScheduled", "updatedNumberScheduled")]
            return is_seen and counts == [1, 1] and status.get("numberReady") == 1

        return wait_until(is_done, "the DaemonSet is rolled out", ROLLED_OUT_S)

    def pod(self) -> Document:
        """The DaemonSet's pod; LookupError where it has not one alone."""
        found = self.node.api.get(pods_path(NAMESPACE), labelSelector="app.kubernetes.io/name=netqos")[
            "items"
        ]
        if len(found) != 1:
            raise LookupError(f"{len(found)} pods of netqos")
        pod: Document = found[0]
        return pod

    def container(self) -> str:
        """The identity of its running container, as the runtime knows it."""
        (status,) = self.pod()["status"]["containerStatuses"]
        identity: str = status["containerID"]
        return identity.partition("//")[2]

    def pid(self) -> int:
        """Of netqosd, as it is seen from here: process 1 of its container."""
        identity = self.container()
        for cgroup in Path("/proc").glob("[0-9]*/cgroup"):
            with contextlib.suppress(OSError):
                status = (cgroup.parent / "status").read_text(encoding="utf-8")
                if identity in cgroup.read_text(encoding="utf-8") and re.search(
                    r"^NSpid:.*\s1$", status, re.MULTILINE
                ):
                    return int(cgroup.parent.name)
        raise LookupError(f"no process of container {identity}")

    def classes(self) -> set[str]:
        """Handles and parents of all classes on the uplink but that of the daemon's pod, another after an update."""
        meta = self.pod()["metadata"]
        counters = self.ask("explain", f"{meta['namespace']}/{meta['name']}")["pod"]["counters"]
        own = {one["where"].split()[1] for one in counters}
        shown = self.node.node.run(["tc", "class", "show", "dev", self.node.uplink]).stdout
        found = re.findall(r"^class htb (\S+) (root|parent \S+)", shown, re.MULTILINE)
        return {f"{name} {place}" for name, place in found if name not in own}

    def run(self, *command: str) -> str:
        """What a program prints in the container, as by `kubectl exec`."""
        words = ("tasks", "exec", "--exec-id", f"run-{time.monotonic_ns()}", self.container())
        return self.node.containerd.ctr(*words, *command)

    def ctl(self, *arguments: str) -> str:
        """What netqosctl prints there."""
        return self.run("netqosctl", *arguments)

    def ask(self, *arguments: str) -> Document:
        """The same as JSON."""
        answer: Document = json.loads(self.ctl("--json", *arguments))
        return answer

    def kubectl(self, *arguments: str) -> str:
        """What kubectl prints of netqos's namespace."""
        access = ("kubectl", f"--kubeconfig={self.node.server.access.kubeconfig}", f"--namespace={NAMESPACE}")
        return run_tool([*access, *arguments], timeout_s=ROLLED_OUT_S).stdout

    def show_pods(self) -> None:
        """Pods come and go: what the node makes for the first of each class stays."""
        kube = Kube(self.node.api, "first", node=self.node.name)
        self.wait_for_account(kube.namespace)
        pods = Pods(self.node, kube)
        for name, resources in (("first", BURSTABLE), ("second", {})):
            pods.start(name, resources=resources)
        pods.close()
        kube.close()
        wait_until(self._has_no_pod_cgroup, "their cgroups are gone", GONE_S)

    def wait_for_account(self, namespace: str) -> None:
        """Until pods of a new namespace are taken: their default account is a controller's to make."""
        path = f"{CORE}/namespaces/{namespace}/serviceaccounts/default"
        wait_until(lambda: self.node.api.get(path), path, 10)

    def is_ready(self) -> bool:
        """Whether the daemon on the node answers that it is."""
        try:
            return bool(self.client.get("/v1/status")["ready"])
        except NotReachable:
            return False

    def uninstall(self, chart: Iterable[Document]) -> None:
        """`helm uninstall`: the hook that puts the node back, then everything but the CRD."""
        documents = list(chart)
        hooks = [one for one in documents if is_hook(one)]
        self.apply(hooks)
        (job,) = [self.node.api.path_of(one) for one in hooks if one["kind"] == "Job"]
        wait_until(
            lambda: self.node.api.get(job)["status"].get("succeeded"), "the node is put back", PUT_BACK_S
        )
        self.remove(documents)

    def delete_daemonset(self) -> None:
        """`kubectl delete daemonset`, alone, and wait until its pod is gone."""
        self.kubectl("delete", "daemonset", "netqos")
        wait_until(self._has_no_pod, "netqos's pods are gone", GONE_S)

    def remove(self, documents: Iterable[Document]) -> None:
        """`kubectl delete` of manifests but CRDs and namespaces, and wait until the pods are gone."""
        for one in documents:
            if one["kind"] not in {"CustomResourceDefinition", "Namespace"}:
                self._delete(self.node.api.path_of(one))
        wait_until(self._has_no_pod, "netqos's pods are gone", GONE_S)

    def remove_empty_folders(self) -> None:
        """What is left of a node's own: folders that the kubelet made for the pod to have them."""
        self.node.machine.run(["rmdir", "/run/netqos", "/run/koordinator/net", "/var/lib/netqos"])

    def _delete(self, path: str) -> None:
        try:
            self.node.api.delete(path, propagationPolicy="Background")
        except ApiError as problem:
            if problem.status != 404:
                raise

    def _has_no_pod(self) -> bool:
        return not self.node.api.get(pods_path(NAMESPACE))["items"]

    def _has_no_pod_cgroup(self) -> bool:
        return not any("/pod" in one for one in self.node.machine.cgroups())

    def _serve_pods(self) -> None:
        """The service `kubernetes` for pods with addresses of their own: what kube-proxy would do for them."""
        port = self.node.server.access.url.rpartition(":")[2]
        self.node.node.set_sysctls({"net/ipv4/conf/all/route_localnet": 1})
        self.node.node.run(["nft", "-f", "-"], text=SERVICE_RULES.format(port=port))


def _place(kind: str) -> int:
    return _ORDER.index(kind) if kind in _ORDER else len(_ORDER)
