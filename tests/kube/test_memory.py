"""What a daemon knows of its pods when it starts while the API server is away (contract 1.8)."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable

import pytest

from tests.apiserver.kube import Kube
from tests.kube.kubenode import EGRESS, Node, fresh
from tests.waiting import wait_until

M = 1_000_000

pytestmark = pytest.mark.kernel("htb", "nft")

End = Callable[[Node], object]


def ended(node: Node) -> None:
    node.daemon.stop()


def killed(node: Node) -> None:
    """Once what it knows is written, which takes it some seconds."""
    wait_until(lambda: "12M" in kept(node))
    node.daemon.kill()


def kept(node: Node) -> str:
    path = node.daemon.paths.state / "pods.json"
    return path.read_text() if path.exists() else ""


def ceilings(classes: str) -> list[str]:
    """Without the classes' numbers, which may be others."""
    return sorted(re.findall(r"ceil \w+", classes))


def published(node: Node) -> set[str]:
    written = json.loads((node.daemon.paths.net / "pods").read_text())
    return {one["pod"] for one in written.values()}


def leave(node: Node, kube: Kube, end: End) -> str:
    """Two pods are enforced, then the server goes, and the daemon after it; the classes that it left."""
    kube.create_pod("web", ips=[node.rig.pod("web").address], annotations={EGRESS: "10M"})
    kube.create_slo(
        {"resourceQOSStrategy": {"beClass": {"networkQOS": {"enable": True, "egressLimit": "60M"}}}}
    )
    node.daemon.start()
    wait_until(lambda: fresh(node) and "ceil 10Mbit" in node.classes())
    kube.create_pod("db", ips=["10.88.0.99"], annotations={EGRESS: "12M"})
    wait_until(lambda: "ceil 12Mbit" in node.classes())
    node.proxy.refuse()
    node.proxy.reset()
    wait_until(lambda: "source-away" in node.codes())
    before = node.classes()
    end(node)
    return before


@pytest.mark.parametrize("end", [ended, killed])
def test_pods_are_shown_explained_limited_and_stale(node: Node, kube: Kube, end: End) -> None:
    before = leave(node, kube, end)
    status = node.daemon.start()
    wait_until(lambda: set(node.pods()) == {"web", "db"})
    assert node.classes() == before
    assert node.sources() == {"file": "fresh", "pods": "stale", "nodeslo": "stale", "node": "stale"}
    assert 0 < node.status()["sources"]["pods"]["age_s"] < 90
    assert (status["ready"], set(status["waited_for"])) == (False, {"pods", "nodeslo", "node"})
    name = f"{kube.namespace}/web"
    explained = node.daemon.client.get(f"/v1/explain?pod={name}")
    used = [one["source"] for one in explained["choices"]["egress"] if one["verdict"] == "used"]
    assert used == [f"annotation {EGRESS}"]
    uid = node.pods()["web"]["uid"]
    node.daemon.client.put(f"/v1/overrides/{uid}", {"egress": "7M", "ttl": "10m"})
    wait_until(lambda: "ceil 7Mbit" in node.classes())


def test_all_comes_back_where_the_kernel_forgot_it(node: Node, kube: Kube) -> None:
    before = leave(node, kube, ended)
    node.rig.node.run(["tc", "qdisc", "del", "dev", node.rig.uplink, "root"])
    node.rig.node.run(["nft", "delete", "table", "inet", "netqos"])
    shutil.rmtree(node.daemon.paths.net)
    node.daemon.start()
    wait_until(lambda: ceilings(node.classes()) == ceilings(before))
    wait_until(lambda: published(node) == {f"{kube.namespace}/web", f"{kube.namespace}/db"})
    assert node.status()["directions"]["tx"]["levels"]["L2"]["ceiling_bps"] == 60 * M


def test_the_first_list_replaces_what_was_remembered(node: Node, kube: Kube) -> None:
    leave(node, kube, killed)
    kube.remove_pod("db")
    kube.annotate_pod("web", {EGRESS: "20M"})
    node.daemon.start()
    wait_until(lambda: set(node.pods()) == {"web", "db"})
    node.proxy.restore()
    wait_until(lambda: set(node.pods()) == {"web"} and "ceil 20Mbit" in node.classes(), 3)
    wait_until(lambda: "ceil 12Mbit" not in node.classes())
    wait_until(lambda: fresh(node) and node.status()["ready"])
    assert node.status()["waited_for"] == {}
    wait_until(lambda: "20M" in kept(node) and "12M" not in kept(node))


def test_a_single_pass_remembers_and_takes_what_is_remembered(node: Node, kube: Kube) -> None:
    kube.create_pod("web", ips=["10.88.0.11"], annotations={EGRESS: "12M"})
    command = [*node.daemon.command, "--once"]
    assert node.rig.node.popen(command, own_sysfs=True).wait(30) == 0
    node.rig.node.run(["tc", "qdisc", "del", "dev", node.rig.uplink, "root"])
    node.proxy.refuse()
    assert node.rig.node.popen(command, own_sysfs=True).wait(30) == 1
    assert "ceil 12Mbit" in node.classes()
