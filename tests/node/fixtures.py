"""The fixtures of all tests that need a real node. README.md beside this file tells how to use them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.apiserver.fixtures import needed, own_timeout
from tests.apiserver.kube import Kube
from tests.node.pods import BURSTABLE, GUARANTEED, Pods
from tests.node.programs import NodePrograms, find_node_programs
from tests.node.realnode import RealNode, wait_until
from tests.node.scene import Scene

FIXTURES = frozenset({"node_programs", "image_archive"})
KERNEL = ("veth", "bridge", "htb", "tbf", "ifb", "u32", "nft", "nft-fib", "nft-socket")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One node serves all of them, alone; a build or start is not counted as a test's time."""
    for item in items:
        if isinstance(item, pytest.Function) and not FIXTURES.isdisjoint(item.fixturenames):
            item.add_marker("node")
            item.add_marker(pytest.mark.kernel(*KERNEL))
            item.add_marker(pytest.mark.timeout(own_timeout(item), func_only=True), append=False)


@pytest.fixture(scope="session")
def node_programs() -> NodePrograms:
    """The programs of a node, built now where need be; without them the test is skipped."""
    return needed("node to test with", find_node_programs)


@pytest.fixture(scope="session")
def realnode(node_programs: NodePrograms) -> Iterator[RealNode]:
    """The session's node, Ready. Tests leave it running, in order and without pods."""
    with RealNode(node_programs) as node:
        warm_up(node)
        yield node


def warm_up(node: RealNode) -> None:
    """The first pods of a node make what stays: the bridge, the cgroups of all classes, iptables' own chains."""
    for action in ("-A", "-D"):
        node.node.run(["iptables", "-t", "nat", action, "POSTROUTING", "-j", "ACCEPT"])
    pods = Pods(node, Kube(node.api, "warm-up", node=node.name))
    for name, resources in (("guaranteed", GUARANTEED), ("burstable", BURSTABLE), ("best-effort", {})):
        pods.create(name, resources=resources)
    for name in ("guaranteed", "burstable", "best-effort"):
        pods.wait_running(name)
    pods.close()
    wait_until(lambda: "/pod" not in str(node.machine.cgroups()), "the cgroups of pods are gone", 20)


@pytest.fixture
def scene(realnode: RealNode, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """The test's part of it; the node must be at the end as it was before."""
    with Scene(realnode, request.node.name) as scene:
        yield scene
