"""The API server is known by a name, and the name server goes: what stands stays, and nothing waits for it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from netqos.testing.certificates import NAME
from tests.apiserver.kube import Kube
from tests.apiserver.launch import write_kubeconfig
from tests.kube.kubenode import EGRESS, Node, fresh
from tests.kube.nameserver import ANSWERS, SERVFAIL, SILENT, NameServer
from tests.waiting import wait_until

pytestmark = pytest.mark.kernel("htb", "nft")


@pytest.fixture
def names(node: Node, kube: Kube) -> Iterator[NameServer]:
    token = kube.request_token("netqos")
    url = node.proxy.url.replace("127.0.0.1", NAME)
    write_kubeconfig(node.rig.folder / "kubeconfig", url, node.proxy.ca_file, token=token)
    kube.create_pod("web", ips=["10.88.0.11"], annotations={EGRESS: "11M"})
    with NameServer(node.rig) as names:
        yield names


def are_stale(node: Node) -> bool:
    return {"pods", "nodeslo", "node"} <= {name for name, one in node.sources().items() if one == "stale"}


@pytest.mark.parametrize("mode", [SERVFAIL, SILENT])
def test_the_name_server_goes_and_comes_back(node: Node, kube: Kube, names: NameServer, mode: str) -> None:
    node.daemon.start(env=names.env)
    wait_until(lambda: fresh(node) and "ceil 11Mbit" in node.classes())
    before = node.classes()
    names.mode = mode
    node.proxy.reset()
    wait_until(lambda: are_stale(node))
    kube.annotate_pod("web", {EGRESS: "12M"})
    for _ in range(20):
        began_s = time.monotonic()
        assert are_stale(node)
        assert time.monotonic() - began_s < 1
        time.sleep(0.1)
    asked = names.asked
    assert node.classes() == before
    # The worst moment: just after a question that will not be answered.
    wait_until(lambda: names.asked > asked)
    names.mode = ANSWERS
    began_s = time.monotonic()
    wait_until(lambda: "ceil 12Mbit" in node.classes())
    assert time.monotonic() - began_s < 4
    wait_until(lambda: fresh(node))


def test_neither_start_nor_end_waits_for_a_silent_name_server(node: Node, names: NameServer) -> None:
    node.daemon.start(env=names.env)
    wait_until(lambda: fresh(node) and "ceil 11Mbit" in node.classes())
    before = node.classes()
    names.mode = SILENT
    node.proxy.reset()
    wait_until(lambda: are_stale(node))
    began_s = time.monotonic()
    assert node.daemon.stop() == 0
    node.daemon.start(env=names.env)
    assert node.daemon.stop() == 0
    assert time.monotonic() - began_s < 8
    assert node.classes() == before
