"""A node that the server does not know, and one whose rights are gone: no answer is taken for the truth about it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from netqos.testing.faultreplies import status
from tests.apiserver.kube import Kube
from tests.apiserver.server import ApiServer
from tests.kube.conftest import Follow
from tests.kube.kubenode import EGRESS, Node, fresh
from tests.waiting import wait_until

pytestmark = pytest.mark.kernel("htb", "nft")


def enforce(node: Node, kube: Kube) -> str:
    """A pod is enforced, and the daemon ends; the classes that it left."""
    kube.create_pod("web", ips=[node.rig.pod("web").address], annotations={EGRESS: "10M"})
    node.daemon.start()
    wait_until(lambda: fresh(node) and "ceil 10Mbit" in node.classes())
    node.daemon.stop()
    return node.classes()


def rename(node: Node, name: str) -> None:
    node.document["node"]["name"] = name
    node.daemon.configure(node.document)


def finding(node: Node) -> dict[str, str]:
    found = [one for one in node.status()["findings"] if one["code"] == "node-unknown"]
    return found[0] if found else {}


def test_under_another_name_nothing_is_removed_and_the_near_name_is_told(node: Node, kube: Kube) -> None:
    name = f"{kube.node}.example.org"
    before = enforce(node, kube)
    files = {path.name: path.read_bytes() for path in node.daemon.paths.net.iterdir()}
    rename(node, name)
    node.proxy.answer(status(503), path="/api/v1/nodes")
    node.daemon.start()
    wait_until(lambda: node.sources()["pods"] == "fresh")
    assert set(node.pods()) == {"web"}, (
        "no pod is listed under this name, and it is not known yet that it is wrong"
    )
    node.proxy.clear()
    wait_until(lambda: bool(finding(node)))
    told = finding(node)
    assert (told["severity"], told["message"]) == (
        "error",
        f"no Node {name} on this server: nothing is removed until there is one",
    )
    assert f"it knows {kube.node}: set node.name" in told["hint"]
    assert (node.status()["ready"], set(node.status()["waited_for"])) == (False, {"node"})
    assert (node.classes(), set(node.pods())) == (before, {"web"})
    assert {path.name: path.read_bytes() for path in node.daemon.paths.net.iterdir()} == files
    dry = node.rig.node.popen([*node.daemon.command, "--dry-run"], stdout=subprocess.PIPE, own_sysfs=True)
    printed = dry.communicate(timeout=40)[0].decode()
    assert (dry.returncode, "delete" in printed, "error: node " in printed) == (1, False, True)


def test_a_node_that_comes_later_is_taken(node: Node, kube: Kube) -> None:
    name = f"{kube.node}-later"
    rename(node, name)
    kube.create_pod("web", ips=[node.rig.pod("web").address], annotations={EGRESS: "10M"}, node=name)
    node.daemon.start()
    wait_until(lambda: bool(finding(node)) and "ceil 10Mbit" in node.classes())
    kube.create_node(name)
    wait_until(lambda: node.status()["ready"] and node.codes() == set())


def test_a_node_that_goes_takes_nothing_with_it(node: Node, kube: Kube) -> None:
    kube.create_pod("web", ips=[node.rig.pod("web").address], annotations={EGRESS: "10M"})
    kube.create_slo(
        {"resourceQOSStrategy": {"beClass": {"networkQOS": {"enable": True, "egressLimit": "60M"}}}}
    )
    node.daemon.start()
    wait_until(lambda: fresh(node) and "ceil 10Mbit" in node.classes() and node.status()["ready"])
    kube.api.delete(f"/api/v1/nodes/{kube.node}")
    wait_until(lambda: bool(finding(node)))
    before = node.classes()
    kube.remove_pod("web")
    kube.delete_slo()
    kube.create_pod("db", ips=["10.88.0.98"], annotations={EGRESS: "13M"})
    wait_until(lambda: "ceil 13Mbit" in node.classes())
    assert set(before.splitlines()) < set(node.classes().splitlines())
    assert set(node.pods()) == {"web", "db"}
    kube.create_node(kube.node)
    wait_until(lambda: set(node.pods()) == {"db"} and "ceil 10Mbit" not in node.classes())
    assert node.codes() == set()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("W1.example.org", "w1.example.org"), ("w2.example.org", "w2"), ("w3", "w3.example.org")],
)
def test_names_that_differ_in_case_or_domain_are_near(
    ours: str, theirs: str, follow: Follow, apiserver: ApiServer
) -> None:
    Kube(apiserver.admin, "near").create_node(theirs)
    followed = follow(apiserver, ours)
    followed.until(lambda: any(f"it knows {theirs}:" in one.hint for one in followed.findings))


@pytest.fixture
def probed(node: Node) -> str:
    """The daemon's /readyz, as the host of the node's namespace asks it."""
    node.document["metrics"] = {"listen": "127.0.0.1:9469"}
    node.daemon.configure(node.document)
    return "http://127.0.0.1:9469/readyz"


READYZ = """
import sys, urllib.error, urllib.request
try:
    answer = urllib.request.urlopen(sys.argv[1], timeout=5)
except urllib.error.HTTPError as problem:
    answer = problem
print(answer.status, answer.read().decode())
"""


def readyz(node: Node, url: str) -> str:
    return node.rig.node.run([sys.executable, "-c", READYZ, url]).stdout


def test_a_new_release_without_its_rights_is_not_ready_though_the_old_one_was(
    node: Node, kube: Kube, probed: str
) -> None:
    before = enforce(node, kube)
    node.proxy.answer(status(403))
    node.daemon.start()
    wait_until(lambda: "source-away" in node.codes())
    answer = readyz(node, probed)
    assert answer.startswith("503 ")
    assert all(f"source {name}: 403" in answer for name in ("pods", "nodeslo", "node"))
    assert node.classes() == before
    node.proxy.clear()
    wait_until(lambda: readyz(node, probed).startswith("200 "))
    node.proxy.refuse()
    node.proxy.reset()
    wait_until(lambda: "source-away" in node.codes())
    assert readyz(node, probed).startswith("200 ")
