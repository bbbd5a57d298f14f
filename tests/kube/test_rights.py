"""The daemon with nothing but its service account's rights, as the API server's audit log saw it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from netqos.observe.kubereporter import STATUS_KEY
from netqos.testing.daemon import Daemon
from netqos.testing.faultproxy import FaultProxy
from netqos.testing.faultreplies import gone
from netqos.testing.netns import Rig
from netqos.testing.relay import Relay
from tests.apiserver.client import Document
from tests.apiserver.fixtures import MakeProxy, StartServer
from tests.apiserver.kube import CORE, NODES, NODESLOS, RBAC, Kube
from tests.apiserver.launch import write_kubeconfig
from tests.apiserver.server import ApiServer
from tests.kube.manifests import DAEMONSET, by_name, helm, kustomize, with_component
from tests.waiting import wait_until

pytestmark = [pytest.mark.kernel("htb", "nft"), pytest.mark.timeout(120)]

EGRESS = "koordinator.sh/egress-bandwidth"
NAMESPACE = "netqos-system"
ACCOUNT = f"{CORE}/namespaces/{NAMESPACE}/serviceaccounts"

Right = tuple[str, str, str]
"""(API group, resource, verb)."""

Play = Callable[..., "Scene"]


@pytest.fixture
def server(start_apiserver: StartServer) -> ApiServer:
    return start_apiserver(audit=True)


@pytest.fixture
def cluster(server: ApiServer, request: pytest.FixtureRequest) -> Kube:
    return Kube(server.admin, request.node.name)


def install(server: ApiServer, objects: list[Document]) -> str:
    """Create the service account and its rights as the manifests have them; its token."""
    found = by_name(objects)
    server.admin.create(f"{CORE}/namespaces", {"metadata": {"name": NAMESPACE}})
    server.admin.create(ACCOUNT, found["ServiceAccount", "netqos"])
    server.admin.create(f"{RBAC}/clusterroles", found["ClusterRole", "netqos"])
    server.admin.create(f"{RBAC}/clusterrolebindings", found["ClusterRoleBinding", "netqos"])
    answer = server.admin.create(f"{ACCOUNT}/netqos/token", {"spec": {"expirationSeconds": 3600}})
    return str(answer["status"]["token"])


def granted(objects: list[Document]) -> set[Right]:
    rules = by_name(objects)["ClusterRole", "netqos"]["rules"]
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def audited(server: ApiServer) -> list[Document]:
    """What it asked and was answered; that a request has come is an event of its own, without an answer."""
    user = f"system:serviceaccount:{NAMESPACE}:netqos"
    return [one for one in server.requests() if one["user"]["username"] == user and "responseStatus" in one]


def refused(events: list[Document]) -> list[Document]:
    return [one for one in events if one["responseStatus"]["code"] in {401, 403}]


def used(events: list[Document]) -> set[Right]:
    refs = [(one["objectRef"], one["verb"]) for one in events]
    return {(ref.get("apiGroup", ""), ref["resource"], verb) for ref, verb in refs}


class Scene:
    """A node whose daemon has that token and reaches that server, through a proxy that can spoil a watch."""

    def __init__(self, rig: Rig, kube: Kube, proxy: FaultProxy, *, token: str, kubernetes: Document) -> None:
        kubeconfig = write_kubeconfig(rig.folder / "kubeconfig", proxy.url, proxy.ca_file, token=token)
        document = {
            "node": {"name": kube.node, "bandwidth": {"tx": "200M", "rx": "150M"}},
            "kubernetes": {"enable": True, "kubeconfig": str(kubeconfig), **kubernetes},
        }
        self.rig, self.kube, self.proxy = rig, kube, proxy
        self.daemon = Daemon(rig, document)

    def classes(self) -> str:
        return self.rig.node.run(["tc", "class", "show", "dev", self.rig.uplink]).stdout

    def total_bps(self) -> int:
        return int(self.daemon.client.get("/v1/status")["directions"]["tx"]["total_bps"])

    def ceiling_bps(self) -> int | None:
        levels = self.daemon.client.get("/v1/status")["directions"]["tx"]["levels"]
        return levels["L2"]["ceiling_bps"] if levels else None

    def play(self) -> None:
        """Everything for which the daemon may ask the server, each thing until it was taken."""
        kube = self.kube
        kube.create_pod("web", ips=[self.rig.pod("web").address], annotations={EGRESS: "10M"})
        self.daemon.start()
        wait_until(lambda: "ceil 10Mbit" in self.classes())
        kube.annotate_pod("web", {EGRESS: "20M"})
        wait_until(lambda: "ceil 20Mbit" in self.classes())
        kube.create_pod("bad", ips=["10.88.0.12"], annotations={EGRESS: "12Mbps"})
        path = f"/apis/events.k8s.io/v1/namespaces/{kube.namespace}/events"
        wait_until(lambda: len(kube.api.get(path)["items"]) == 1)
        kube.create_slo(strategy("40M"))
        wait_until(lambda: self.ceiling_bps() == 40_000_000)
        kube.patch_slo(strategy("60M"))
        wait_until(lambda: self.ceiling_bps() == 60_000_000)
        kube.annotate_node({"node.koordinator.sh/network-bandwidth": "100M"})
        wait_until(lambda: self.total_bps() == 100_000_000)
        self.relist()
        kube.delete_slo()
        wait_until(lambda: self.ceiling_bps() is None)
        kube.remove_pod("web")
        wait_until(lambda: "ceil 20Mbit" not in self.classes())

    def relist(self) -> None:
        """Every watch is refused as too old, once, and so every list is read again."""
        before = len(self.lists())
        for path in ("/api/v1/pods", "/api/v1/nodes", NODESLOS):
            self.proxy.answer(gone(), path=path, watch=True, times=1)
        self.proxy.reset()
        wait_until(lambda: len(self.lists()) >= before + 3)

    def lists(self) -> list[str]:
        return [one.path for one in self.proxy.requests if one.method == "GET" and not one.is_watch]


def strategy(limit: str) -> Document:
    return {"resourceQOSStrategy": {"beClass": {"networkQOS": {"enable": True, "egressLimit": limit}}}}


@pytest.fixture
def play(server: ApiServer, cluster: Kube, make_proxy: MakeProxy) -> Iterator[Play]:
    """Play everything with the rights of these manifests: `play(objects, **kubernetes)`."""
    with ExitStack() as stack:

        def run(objects: list[Document], **kubernetes: object) -> Scene:
            token = install(server, objects)
            proxy = make_proxy(server)
            rig = stack.enter_context(Rig(pods=("web",)))
            stack.enter_context(Relay(rig, int(proxy.url.rpartition(":")[2])))
            scene = Scene(rig, cluster, proxy, token=token, kubernetes=kubernetes)
            scene.play()
            return scene

        yield run


def test_it_is_never_refused_and_uses_every_right_of_its_role(
    play: Play, server: ApiServer, renderer: Path
) -> None:
    objects = kustomize(renderer, "plain")
    play(objects)
    events = audited(server)
    assert refused(events) == []
    assert used(events) == granted(objects)


@pytest.fixture(params=["kustomize", "helm"])
def publishing(request: pytest.FixtureRequest, renderer: Path, tmp_path: Path) -> list[Document]:
    """The objects with kubernetes.publishStatus switched on, by both ways."""
    if request.param == "kustomize":
        return with_component(renderer, "plain", "publish-status", tmp_path)
    return helm(renderer, NAMESPACE, {"config": {"kubernetes": {"publishStatus": True}}})


def test_publishing_the_status_uses_the_one_right_more(
    publishing: list[Document], play: Play, server: ApiServer, renderer: Path
) -> None:
    assert granted(publishing) - granted(kustomize(renderer, "plain")) == {("", "nodes", "patch")}
    scene = play(publishing, publishStatus=True)
    node = scene.kube.api.get(f"{NODES}/{scene.kube.node}")
    assert json.loads(node["metadata"]["annotations"][STATUS_KEY])["tx"]["total"]
    events = audited(server)
    assert refused(events) == []
    assert used(events) == granted(publishing)
    assert {one["objectRef"]["name"] for one in events if one["verb"] == "patch"} == {scene.kube.node}


def test_the_component_switches_the_status_on_where_the_daemon_reads_it(
    renderer: Path, tmp_path: Path
) -> None:
    objects = by_name(with_component(renderer, "plain", "publish-status", tmp_path))
    data = objects["ConfigMap", "netqos"]["data"]
    assert data["netqos.yaml"] == (DAEMONSET / "base" / "netqos.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load(data["publish-status.yaml"]) == {"kubernetes": {"publishStatus": True}}
    volumes = objects["DaemonSet", "netqos"]["spec"]["template"]["spec"]["volumes"]
    assert {one["name"] for one in volumes} == {"config", "net", "run", "state", "cgroup"}
    (config,) = [one["configMap"] for one in volumes if one["name"] == "config"]
    assert config["name"] == "netqos"
    assert {(one["key"], one["path"]) for one in config["items"]} == {
        ("netqos.yaml", "netqos.yaml"),
        ("publish-status.yaml", "conf.d/publish-status.yaml"),
    }
