"""What may be added to an installation: the same by kustomize and by Helm, taken by a real API server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from netqos.observe.kubereporter import STATUS_KEY
from tests.apiserver.client import Api, ApiError, Document
from tests.apiserver.kube import CORE, NODES, Kube
from tests.kube.manifests import DAEMONSET, by_name, helm, kustomize, with_component

OWN_NODE = DAEMONSET / "components" / "publish-status" / "own-node.yaml"


def container_of(objects: dict[tuple[str, str], Document]) -> Document:
    """The daemon's; its environment by name."""
    (container,) = objects["DaemonSet", "netqos"]["spec"]["template"]["spec"]["containers"]
    return {**container, "env": {one["name"]: one for one in container["env"]}}


@pytest.mark.parametrize(
    ("component", "values"),
    [
        ("local-metrics", {"metricsLocal": True}),
        ("kubelet", {"config": {"kubernetes": {"kubelet": "auto"}}}),
        ("publish-status", {"config": {"kubernetes": {"publishStatus": True}}}),
        ("realtime", {"realtime": True}),
    ],
)
def test_the_component_gives_what_the_charts_value_gives(  # noqa: PLR0917 - fixtures and one case
    renderer: Path, kube: Kube, tmp_path: Path, component: str, values: dict[str, Any]
) -> None:
    made = by_name(with_component(renderer, "plain", component, tmp_path))
    chart = by_name(helm(renderer, "netqos-system", values))
    assert made["ClusterRole", "netqos"] == chart["ClusterRole", "netqos"]
    assert container_of(made) == container_of(chart)
    assert made != by_name(kustomize(renderer, "plain"))
    for kind in ("ClusterRole", "DaemonSet"):
        one = made[kind, "netqos"]
        one["metadata"].pop("namespace", None)
        one = (
            {**one, "metadata": {**one["metadata"], "namespace": kube.namespace}}
            if kind == "DaemonSet"
            else one
        )
        kube.api.apply(kube.api.path_of(one), one, dryRun="All", fieldValidation="Strict")


def test_local_metrics_are_where_the_probes_ask(renderer: Path) -> None:
    container = container_of(by_name(helm(renderer, "ns", {"metricsLocal": True, "metricsPort": 9999})))
    assert container["env"]["NETQOS_METRICS_LISTEN"]["value"] == "127.0.0.1:9999"
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["host"] == "127.0.0.1"


@pytest.fixture
def policy(kube: Kube) -> Iterator[None]:
    made = list(yaml.safe_load_all(OWN_NODE.read_text(encoding="utf-8")))
    for one in made:
        kube.api.apply(kube.api.path_of(one), one, fieldValidation="Strict")
    yield
    for one in reversed(made):
        kube.api.delete(kube.api.path_of(one))


def test_a_policy_binds_the_annotation_to_the_own_node(kube: Kube, policy: None) -> None:
    rules = [{"apiGroups": [""], "resources": ["nodes", "nodes/status"], "verbs": ["patch"]}]
    kube.create_service_account("netqos", rules=rules)
    other = kube.create_node(f"{kube.node}-other")["metadata"]["name"]
    pod = kube.create_pod("netqos", spec={"serviceAccountName": "netqos"})["metadata"]
    bound = {"kind": "Pod", "apiVersion": "v1", "name": pod["name"], "uid": pod["uid"]}
    path = f"{CORE}/namespaces/{kube.namespace}/serviceaccounts/netqos/token"
    answer = kube.api.create(path, {"spec": {"expirationSeconds": 3600, "boundObjectRef": bound}})
    ours = {"metadata": {"annotations": {STATUS_KEY: "{}"}}}
    with kube.api.as_user(answer["status"]["token"]) as daemon:
        eventually_refused(daemon, other, ours)
        patch(daemon, kube.node, ours)
        for body in (
            {"metadata": {"annotations": {"a/b": "c"}}},
            {"metadata": {"labels": {"a": "b"}}},
            {"spec": {"unschedulable": True}},
        ):
            with pytest.raises(ApiError) as told:
                patch(daemon, kube.node, body)
            assert (told.value.status, "the annotation" in str(told.value)) == (422, True), body
    with kube.api.as_user(kube.request_token("netqos")) as stranger, pytest.raises(ApiError):
        patch(stranger, kube.node, ours)
    kube.annotate_node({"a/b": "c"}, node=other)


def patch(api: Api, node: str, body: Document) -> None:
    api.patch(f"{NODES}/{node}", body)


def eventually_refused(api: Api, node: str, body: Document) -> None:
    """The server takes a moment until it goes by a new policy."""
    end_s, told = time.monotonic() + 20, ""
    while not told:
        try:
            patch(api, node, body)
        except ApiError as problem:
            told = str(problem)
        assert time.monotonic() < end_s, "another Node was written"
        time.sleep(0.2)
    assert "the Node on which it runs" in told
