"""A node of network namespaces whose daemon follows a real API server, through a proxy that can fail."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from netqos.testing.daemon import Daemon
from netqos.testing.faultproxy import FaultProxy
from netqos.testing.netns import Rig
from netqos.testing.relay import Relay
from tests.apiserver.kube import Kube
from tests.apiserver.launch import write_kubeconfig

EGRESS = "koordinator.sh/egress-bandwidth"
EVENTS = "/apis/events.k8s.io/v1/namespaces"
RULES = [
    {"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["list", "watch"]},
    {"apiGroups": ["slo.koordinator.sh"], "resources": ["nodeslos"], "verbs": ["list", "watch"]},
    {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
]


class Node:
    """A daemon that follows its node in the API server, through a fault proxy."""

    def __init__(self, rig: Rig, kube: Kube, proxy: FaultProxy, token: str) -> None:
        kubeconfig = write_kubeconfig(rig.folder / "kubeconfig", proxy.url, proxy.ca_file, token=token)
        self.document = {
            "node": {"name": kube.node, "bandwidth": {"tx": "200M", "rx": "150M"}},
            "policy": {"enable": True, "systemNamespaces": [f"{kube.namespace}-system"]},
            "kubernetes": {"enable": True, "kubeconfig": str(kubeconfig)},
        }
        self.rig = rig
        self.proxy = proxy
        self.daemon = Daemon(rig, self.document)

    def status(self) -> dict[str, Any]:
        return dict(self.daemon.client.get("/v1/status"))

    def pods(self) -> dict[str, dict[str, Any]]:
        return {pod["name"]: pod for pod in self.daemon.client.get("/v1/pods")["pods"]}

    def sources(self) -> dict[str, str]:
        return {name: one["state"] for name, one in self.status()["sources"].items()}

    def codes(self) -> set[str]:
        return {one["code"] for one in self.status()["findings"]}

    def classes(self) -> str:
        """Without handles of queues, and without L0's, whose ceiling the loop owns."""
        text = re.sub(
            r"leaf \S+ ", "", self.rig.node.run(["tc", "class", "show", "dev", self.rig.uplink]).stdout
        )
        return "\n".join(
            sorted(line for line in text.splitlines() if not line.startswith("class htb 4e51:10 "))
        )


@contextlib.contextmanager
def following(kube: Kube, proxy: FaultProxy) -> Iterator[Node]:
    """A node with the pod `web` and a daemon that is not started yet, with an account of its own."""
    kube.create_service_account("netqos", rules=RULES)
    with Rig(pods=("web",)) as rig, Relay(rig, int(proxy.url.rpartition(":")[2])):
        yield Node(rig, kube, proxy, kube.request_token("netqos"))


def fresh(node: Node) -> bool:
    return set(node.sources().values()) == {"fresh"}
