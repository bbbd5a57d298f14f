"""What a test wants of a cluster: a namespace and a node of its own, pods as a kubelet reports them, NodeSLOs, tokens.

There is no kubelet, scheduler or controller: what they would write is written here.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address

from tests.apiserver.client import Api, ApiError, Document

CORE = "/api/v1"
NODES = f"{CORE}/nodes"
NODESLOS = "/apis/slo.koordinator.sh/v1alpha1/nodeslos"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
BINDINGS = f"{RBAC}/clusterrolebindings"

Texts = Mapping[str, str]

FIRST_ADDRESS = IPv4Address("10.88.0.1")

_numbers = itertools.count(1)


def pods_path(namespace: str, name: str = "") -> str:
    """The path of a namespace's pods, or of one pod."""
    return f"{CORE}/namespaces/{namespace}/pods" + (f"/{name}" if name else "")


class Kube:
    """One test's part of a cluster. `namespace` and `node` are names of its own, and exist."""

    def __init__(self, api: Api, name: str, *, node: str = "") -> None:
        """`name` is told in the names of what is made. `node` is one that is there; empty: one is made."""
        self.api = api
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:32].strip("-")
        unique = f"{next(_numbers)}-{slug}"
        self._made: list[str] = []
        self._namespaces: list[str] = []
        self.namespace = self.create_namespace(f"ns-{unique}")
        self.node = node or self.create_node(f"node-{unique}")["metadata"]["name"]

    def close(self) -> None:
        """Remove what was made. Namespaces stay, for there is nobody who would finalize them; they are emptied."""
        for namespace in self._namespaces:
            self.api.delete(pods_path(namespace), gracePeriodSeconds=0)
        for path in reversed(self._made):
            with contextlib.suppress(ApiError):
                self.api.delete(path, gracePeriodSeconds=0)

    # -------------------------------------------------------------- namespaces and nodes

    def create_namespace(self, name: str, *, labels: Texts | None = None) -> str:
        """Make a namespace; its name. One that is there already is taken as it is."""
        body = {"metadata": {"name": name, "labels": dict(labels or {})}}
        with contextlib.suppress(ApiError):
            self.api.create(f"{CORE}/namespaces", body)
        self.api.get(f"{CORE}/namespaces/{name}")
        self._namespaces.append(name)
        return name

    def create_node(
        self, name: str, *, annotations: Texts | None = None, labels: Texts | None = None
    ) -> Document:
        """Make a Node."""
        meta = {"name": name, "annotations": dict(annotations or {}), "labels": dict(labels or {})}
        self._made.append(f"{NODES}/{name}")
        return self.api.create(NODES, {"metadata": meta})

    def annotate_node(self, annotations: Mapping[str, str | None], *, node: str | None = None) -> Document:
        """Change annotations of a Node, by default of this test's; None removes one."""
        return self.api.patch(
            f"{NODES}/{node or self.node}", {"metadata": {"annotations": dict(annotations)}}
        )

    # -------------------------------------------------------------- pods

    def create_pod(
        self,
        name: str,
        *,
        ips: Sequence[str] = (),
        phase: str | None = "Running",
        annotations: Texts | None = None,
        labels: Texts | None = None,
        spec: Mapping[str, object] | None = None,
        namespace: str | None = None,
        node: str | None = None,
    ) -> Document:
        """Make a pod that is bound to this test's node, and report it as a kubelet does.

        `spec` adds to the pod's spec or replaces its parts (hostNetwork, priorityClassName, containers with resources).
        With `phase` None nothing is reported: the pod is as the scheduler leaves it, Pending and without address.
        """
        container = {"name": "main", "image": "example.org/none:1"}
        body = {
            "metadata": {"name": name, "annotations": dict(annotations or {}), "labels": dict(labels or {})},
            "spec": {"nodeName": node or self.node, "containers": [container], **(spec or {})},
        }
        made = self.api.create(pods_path(namespace or self.namespace), body)
        return made if phase is None else self.report_pod(name, ips=ips, phase=phase, namespace=namespace)

    def create_pods(
        self, count: int, *, prefix: str = "pod", annotations: Texts | None = None, workers: int = 4
    ) -> list[Document]:
        """Make many pods, `prefix`-0 and on, with the addresses 10.88.0.1 and on; in no order, but listed in it."""

        def create(number: int) -> Document:
            address = str(FIRST_ADDRESS + number)
            return self.create_pod(f"{prefix}-{number}", ips=[address], annotations=annotations)

        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(create, range(count)))

    def report_pod(
        self,
        name: str,
        *,
        ips: Sequence[str] | None = None,
        phase: str | None = None,
        status: Mapping[str, object] | None = None,
        namespace: str | None = None,
    ) -> Document:
        """Write a pod's status as its kubelet does: addresses, phase, or anything else by `status`."""
        told: Document = dict(status or {})
        if phase is not None:
            told["phase"] = phase
        if ips is not None:
            told["podIP"] = ips[0] if ips else None
            told["podIPs"] = [{"ip": ip} for ip in ips] or None
        return self.api.patch(f"{pods_path(namespace or self.namespace, name)}/status", {"status": told})

    def annotate_pod(
        self, name: str, annotations: Mapping[str, str | None], *, namespace: str | None = None
    ) -> Document:
        """Change annotations of a pod; None removes one."""
        path = pods_path(namespace or self.namespace, name)
        return self.api.patch(path, {"metadata": {"annotations": dict(annotations)}})

    def label_pod(
        self, name: str, labels: Mapping[str, str | None], *, namespace: str | None = None
    ) -> Document:
        """Change labels of a pod; None removes one."""
        path = pods_path(namespace or self.namespace, name)
        return self.api.patch(path, {"metadata": {"labels": dict(labels)}})

    def terminate_pod(self, name: str, *, namespace: str | None = None) -> Document:
        """Ask for a pod's end as a user does: it gets a deletionTimestamp and stays until `remove_pod`."""
        return self.api.delete(pods_path(namespace or self.namespace, name))

    def remove_pod(self, name: str, *, namespace: str | None = None) -> Document:
        """Remove a pod at once, as the kubelet does in the end."""
        return self.api.delete(pods_path(namespace or self.namespace, name), gracePeriodSeconds=0)

    # -------------------------------------------------------------- NodeSLO

    def create_slo(self, spec: Document, *, node: str | None = None, **metadata: object) -> Document:
        """Make the NodeSLO of a node, by default of this test's."""
        name = node or self.node
        self._made.append(f"{NODESLOS}/{name}")
        body = {
            "apiVersion": "slo.koordinator.sh/v1alpha1",
            "kind": "NodeSLO",
            "metadata": {"name": name, **metadata},
            "spec": spec,
        }
        return self.api.create(NODESLOS, body)

    def patch_slo(self, spec: Document, *, node: str | None = None) -> Document:
        """Merge into a NodeSLO's spec; None removes a key."""
        return self.api.patch(f"{NODESLOS}/{node or self.node}", {"spec": spec})

    def delete_slo(self, *, node: str | None = None) -> None:
        """Remove a node's NodeSLO."""
        self.api.delete(f"{NODESLOS}/{node or self.node}")

    # -------------------------------------------------------------- rights

    def create_service_account(self, name: str, *, rules: Sequence[Document] = ()) -> str:
        """Make a service account with these cluster-wide RBAC rules; its user name."""
        self.api.create(f"{CORE}/namespaces/{self.namespace}/serviceaccounts", {"metadata": {"name": name}})
        self._made.append(f"{CORE}/namespaces/{self.namespace}/serviceaccounts/{name}")
        if rules:
            role = f"{self.namespace}-{name}"
            self._made.append(f"{RBAC}/clusterroles/{role}")
            self.api.create(f"{RBAC}/clusterroles", {"metadata": {"name": role}, "rules": list(rules)})
            self.bind_role(role, name)
        return f"system:serviceaccount:{self.namespace}:{name}"

    def bind_role(self, role: str, account: str) -> None:
        """Give a ClusterRole to a service account of this test's namespace."""
        name = f"{self.namespace}-{account}-{role}"
        self._made.append(f"{BINDINGS}/{name}")
        body = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": self.namespace}],
        }
        self.api.create(BINDINGS, body)

    def request_token(self, account: str, *, seconds: int = 3600) -> str:
        """A token of a service account, by TokenRequest; the server gives 600 s at least."""
        path = f"{CORE}/namespaces/{self.namespace}/serviceaccounts/{account}/token"
        token: str = self.api.create(path, {"spec": {"expirationSeconds": seconds}})["status"]["token"]
        return token
