"""One test's part of the session's node: a namespace, pods, netqosd. It leaves the node as it was, and checks that."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from tests.apiserver.kube import Kube
from tests.node.agent import Agent
from tests.node.cni import NETWORKS
from tests.node.footprint import footprint, wait_as_before
from tests.node.pods import Pods
from tests.node.realnode import WIRE_DEVICE, RealNode

Document = Mapping[str, Any]


class Scene:
    """What a test has; use it in a `with` statement."""

    def __init__(self, node: RealNode, name: str) -> None:
        """Nothing is made yet; `name` is told in the names of what is made."""
        self.node = node
        self._name = name
        self._stack = ExitStack()

    def __enter__(self) -> Scene:
        """Remember how the node is, make the namespace."""
        self._before = footprint(self.node)
        self.kube = Kube(self.node.api, self._name, node=self.node.name)
        self.pods = Pods(self.node, self.kube)
        self._stack.callback(wait_as_before, self.node, self._before)
        self._stack.callback(self.kube.close)
        self._stack.callback(self.pods.close)
        return self

    def __exit__(self, *_: object) -> None:
        """End all of it; AssertionError where the node is not as it was."""
        self._stack.close()

    def start_agent(self, document: Document | None = None) -> Agent:
        """netqosd, ready; at the end it is stopped and cleaned up after."""
        agent = Agent(self.node, document)
        self._stack.callback(agent.cleanup)
        agent.start()
        return agent

    def limit_line(self, rate_bps: int) -> None:
        """What arrives at the node comes at the speed of its line, until the end; a veth pair has none."""
        self._stack.callback(self.node.wire.run, ["tc", "qdisc", "del", "dev", WIRE_DEVICE, "root"])
        shape = ["tbf", "rate", str(rate_bps), "burst", "20k", "latency", "50ms"]
        self.node.wire.run(["tc", "qdisc", "add", "dev", WIRE_DEVICE, "root", *shape])

    def connect_by(self, network: str) -> None:
        """Pods that are started from now on are connected in another way, until the end."""
        self._stack.callback(self.node.set_network, NETWORKS["bridge"])
        self._stack.callback(self.pods.close)
        self.node.set_network(NETWORKS[network])
