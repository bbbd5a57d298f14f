"""What daemonset/ holds: a real API server takes every object, Helm and kustomize agree, and no right is too many."""

from __future__ import annotations

import contextlib
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from netqos.cli.daemon import main as netqosd
from netqos.runtime.environment import METRICS_LISTEN, metrics_listen
from netqos.settings.values import Settings
from tests.apiserver.client import ApiError, Document
from tests.apiserver.gobuild import ROOT
from tests.apiserver.kube import CORE, NODES, NODESLOS, Kube, pods_path
from tests.apiserver.server import ApiServer
from tests.kube.manifests import (
    CHART,
    DAEMONSET,
    RenderFailed,
    by_name,
    helm,
    is_hook,
    kustomize,
    with_component,
)

OVERLAYS = {"plain": "netqos-system", "koordinator": "koordinator-system", "restricted": "netqos-system"}
CHARTS: dict[str, dict[str, Any]] = {
    "default": {},
    "openshift": {"openshift": True},
    "everything": {
        "image": {"repository": "example.org/netqos", "tag": "9", "pullSecrets": [{"name": "pull"}]},
        "config": {"policy": {"enable": True}, "onExit": "restore"},
        "nodeSelector": {"pool": "online"},
        "tolerations": [],
        "podAnnotations": {"a/b": "c"},
        "podLabels": {"d": "e"},
        "env": [{"name": "X", "value": "y"}],
        "hostFolders": [{"name": "terway", "path": "/var/lib/terway/qos"}],
        "metricsPort": 9999,
    },
}
RIGHTS = {
    ("", "pods"): {"list", "watch"},
    ("", "nodes"): {"list", "watch"},
    ("slo.koordinator.sh", "nodeslos"): {"list", "watch"},
    ("events.k8s.io", "events"): {"create"},
}

Rendered = Callable[[str], list[Document]]


@pytest.fixture
def rendered(renderer: Path) -> Rendered:
    """The objects of `kustomize/OVERLAY` or `helm/VARIANT`."""

    def render(name: str) -> list[Document]:
        kind, _, variant = name.partition("/")
        if kind == "kustomize":
            return kustomize(renderer, variant)
        return helm(renderer, "netqos-system", CHARTS[variant])

    return render


ALL = [*(f"kustomize/{name}" for name in OVERLAYS), *(f"helm/{name}" for name in CHARTS)]


def lasting(documents: list[Document]) -> list[Document]:
    return [one for one in documents if not is_hook(one)]


@pytest.fixture(scope="module")
def openshift(apiserver: ApiServer) -> None:
    """A server that knows SecurityContextConstraints, whose fields stand at the top of the object."""
    group = "security.openshift.io"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "securitycontextconstraints", "kind": "SecurityContextConstraints"}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"securitycontextconstraints.{group}"},
        "spec": {"group": group, "scope": "Cluster", "names": names, "versions": [version]},
    }
    apiserver.admin.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    for _ in apiserver.admin.watch(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        timeout_s=10,
        fieldSelector=f"metadata.name=securitycontextconstraints.{group}",
    ):
        with contextlib.suppress(ApiError):
            apiserver.admin.get(f"/apis/{group}/v1/securitycontextconstraints")
            return


@pytest.mark.parametrize("name", ALL)
def test_the_server_takes_every_object(name: str, rendered: Rendered, kube: Kube, openshift: None) -> None:
    for namespace in set(OVERLAYS.values()):
        kube.create_namespace(namespace)
    for one in rendered(name):
        path = kube.api.path_of(one)
        # `fieldValidation` refuses keys that the server does not know, which it would drop without a word.
        taken = kube.api.apply(path, one, dryRun="All", fieldValidation="Strict")
        assert taken["kind"] == one["kind"]


@pytest.mark.parametrize("name", ALL)
def test_the_pods_are_let_in(name: str, rendered: Rendered, kube: Kube) -> None:
    daemonset = by_name(rendered(name))["DaemonSet", "netqos"]
    labels = {"pod-security.kubernetes.io/enforce": "privileged"}
    namespace = kube.create_namespace(f"{kube.namespace}-own", labels=labels)
    template = daemonset["spec"]["template"]
    pod = {"metadata": {"name": "netqos", **template["metadata"]}, "spec": template["spec"]}
    made = kube.api.create(pods_path(namespace), pod, dryRun="All", fieldValidation="Strict")
    assert made["spec"]["priority"] == 2000001000


def test_the_overlay_brings_the_label_that_lets_its_pods_in(rendered: Rendered) -> None:
    for name in ("kustomize/plain", "kustomize/restricted"):
        namespace = by_name(rendered(name))["Namespace", "netqos-system"]
        assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"


@pytest.mark.parametrize(("overlay", "variant"), [("plain", "default"), ("restricted", "openshift")])
def test_chart_and_overlay_give_the_same_objects(overlay: str, variant: str, rendered: Rendered) -> None:
    expected = by_name(rendered(f"kustomize/{overlay}"))
    del expected["Namespace", "netqos-system"]
    assert by_name(lasting(rendered(f"helm/{variant}"))) == expected


def test_beside_koordinator_only_the_namespace_differs_and_the_crd_is_left_alone(renderer: Path) -> None:
    expected = by_name(lasting(helm(renderer, "koordinator-system")))
    del expected["CustomResourceDefinition", "nodeslos.slo.koordinator.sh"]
    assert by_name(kustomize(renderer, "koordinator")) == expected


@pytest.mark.parametrize("name", ALL)
def test_one_capability_and_no_way_to_more(name: str, rendered: Rendered) -> None:
    pod = by_name(rendered(name))["DaemonSet", "netqos"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    security = container["securityContext"]
    assert security["capabilities"] == {"drop": ["ALL"], "add": ["NET_ADMIN"]}
    assert (security["privileged"], security["allowPrivilegeEscalation"]) == (False, False)
    assert security["readOnlyRootFilesystem"] is True
    assert (pod["hostNetwork"], pod.get("hostPID"), pod.get("hostIPC")) == (True, None, None)
    assert "limits" not in container["resources"] or "cpu" not in container["resources"]["limits"]
    writable = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
    assert writable - {"/var/lib/terway/qos"} == {
        "/var/run/koordinator/net",
        "/run/netqos",
        "/var/lib/netqos",
    }


def test_the_hosts_cgroup_namespace_is_for_those_who_ask_for_it(
    renderer: Path, kube: Kube, tmp_path: Path
) -> None:
    plain = by_name(kustomize(renderer, "plain"))
    objects = by_name(with_component(renderer, "plain", "host-cgroups", tmp_path))
    daemonset = objects.pop(("DaemonSet", "netqos"))
    (container,) = daemonset["spec"]["template"]["spec"]["containers"]
    assert container["securityContext"] == {
        "runAsUser": 0,
        "runAsGroup": 0,
        "privileged": True,
        "readOnlyRootFilesystem": True,
    }
    del plain["DaemonSet", "netqos"]
    assert objects == plain
    daemonset["metadata"]["namespace"] = kube.namespace
    kube.api.apply(kube.api.path_of(daemonset), daemonset, dryRun="All", fieldValidation="Strict")


@pytest.mark.parametrize("name", ALL)
def test_the_role_is_what_the_daemon_uses(name: str, rendered: Rendered) -> None:
    role = by_name(rendered(name))["ClusterRole", "netqos"]
    given = {
        (group, resource): set(rule["verbs"])
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert given == RIGHTS


def test_the_server_grants_the_role_and_no_more(rendered: Rendered, kube: Kube) -> None:
    role = by_name(rendered("kustomize/plain"))["ClusterRole", "netqos"]
    kube.create_service_account("netqos", rules=role["rules"])
    with kube.api.as_user(kube.request_token("netqos")) as daemon:
        kube.create_pod("web")
        kube.create_slo({"networkQOSStrategy": {"enable": True}})
        (pod,) = daemon.get("/api/v1/pods", fieldSelector=f"spec.nodeName={kube.node}")["items"]
        assert pod["metadata"]["name"] == "web"
        for path in (NODES, NODESLOS):
            (one,) = daemon.get(path, fieldSelector=f"metadata.name={kube.node}")["items"]
            assert one["metadata"]["name"] == kube.node
        assert daemon.create(f"/apis/events.k8s.io/v1/namespaces/{kube.namespace}/events", event(pod))
        for method, path in FORBIDDEN:
            with pytest.raises(ApiError) as told:
                daemon.call(method, path.format(namespace=kube.namespace, node=kube.node), {})
            assert (told.value.status, path) == (403, path)


FORBIDDEN = [
    ("GET", f"{NODES}/{{node}}"),
    ("GET", f"{CORE}/namespaces/{{namespace}}/pods/web"),
    ("GET", f"{CORE}/secrets"),
    ("GET", f"{CORE}/configmaps"),
    ("GET", f"{CORE}/namespaces"),
    ("PATCH", f"{CORE}/namespaces/{{namespace}}/pods/web"),
    ("PATCH", f"{CORE}/namespaces/{{namespace}}/pods/web/status"),
    ("DELETE", f"{CORE}/namespaces/{{namespace}}/pods/web"),
    ("PATCH", f"{NODES}/{{node}}"),
    ("PATCH", f"{NODES}/{{node}}/status"),
    ("PATCH", f"{NODESLOS}/{{node}}"),
    ("GET", "/apis/events.k8s.io/v1/events"),
]


def event(pod: Document) -> Document:
    meta = pod["metadata"]
    return {
        "metadata": {"name": "web.1", "namespace": meta["namespace"]},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "netqos.koordinator.sh/netqosd",
        "reportingInstance": "node",
        "action": "Rejected",
        "reason": "AnnotationRejected",
        "type": "Warning",
        "note": "koordinator.sh/egress-bandwidth: 10q is no quantity",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": meta["namespace"],
            "name": meta["name"],
            "uid": meta["uid"],
        },
    }


# ------------------------------------------------------------------ configuration and versions


@pytest.mark.parametrize("name", ALL)
def test_metrics_are_on_the_pods_address_and_the_port_of_the_probes(name: str, rendered: Rendered) -> None:
    pod = by_name(rendered(name))["DaemonSet", "netqos"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    variables = {one["name"]: one for one in container["env"]}
    order = [one["name"] for one in container["env"]]
    assert order.index("POD_IP") < order.index(METRICS_LISTEN)
    assert variables["POD_IP"]["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}
    (port,) = container["ports"]
    for address, listen in (("10.0.0.7", "10.0.0.7"), ("fd00::7", "[fd00::7]")):
        said = variables[METRICS_LISTEN]["value"].replace("$(POD_IP)", address)
        environ = {METRICS_LISTEN: said}
        assert metrics_listen(Settings().metrics_listen, environ) == f"{listen}:{port['containerPort']}"


@pytest.mark.parametrize("variant", CHARTS)
def test_netqosd_takes_the_configuration(variant: str, rendered: Rendered, tmp_path: Path) -> None:
    objects = by_name(rendered(f"helm/{variant}"))
    data = objects["ConfigMap", "netqos"]["data"]
    (volume,) = [
        one
        for one in objects["DaemonSet", "netqos"]["spec"]["template"]["spec"]["volumes"]
        if one["name"] == "config"
    ]
    items = volume["configMap"].get("items") or [{"key": key, "path": key} for key in data]
    for item in items:
        path = tmp_path / item["path"]
        path.parent.mkdir(exist_ok=True)
        path.write_text(data[item["key"]], encoding="utf-8")
    assert netqosd(["--check-config", "--config", str(tmp_path / "netqos.yaml")]) == 0


@pytest.mark.parametrize(
    "values",
    [
        {"imagePullSecrets": []},
        {"metricsPort": 0},
        {"cleanup": {"x": 1}},
        {"hostFolders": [{"name": "x", "path": "relative"}]},
    ],
)
def test_the_chart_refuses_values_that_it_does_not_know(values: dict[str, object], renderer: Path) -> None:
    with pytest.raises(RenderFailed, match=next(iter(values))):
        helm(renderer, "netqos-system", values)


def test_versions_are_the_projects(rendered: Rendered) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert (chart["version"], chart["appVersion"]) == (version, version)
    for name in ("kustomize/plain", "helm/default"):
        daemonset = by_name(rendered(name))["DaemonSet", "netqos"]
        (container,) = daemonset["spec"]["template"]["spec"]["containers"]
        assert container["image"] == f"netqos:{version}"


def test_the_containerfile_builds_on_a_base_that_may_be_chosen() -> None:
    lines = (DAEMONSET / "Containerfile").read_text(encoding="utf-8").splitlines()
    stages = [line.split()[1] for line in lines if line.startswith("FROM ")]
    assert stages == ["${BASE}", "${BASE}"]
    sources = [word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]]
    assert [one for one in sources if not one.startswith(("-", "/")) and not (ROOT / one).exists()] == []
    (entry,) = [line.removeprefix("ENTRYPOINT ") for line in lines if line.startswith("ENTRYPOINT")]
    assert json.loads(entry) == ["netqosd"]
