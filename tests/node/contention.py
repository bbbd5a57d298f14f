"""A pod of each level that sends and one that receives, and netqosd: what promises are looked at with.

Who sends is not who receives: the acknowledgements of a flow would wait behind the other flow of the same pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from netqos.model.levels import Level
from tests.node.load import RX, TX, Key, Load
from tests.node.policies import M, Promise
from tests.node.realnode import wait_until
from tests.node.scene import Scene

CLASS = "koordinator.sh/net-qos-class"
SENDERS = {"online": Level.L0, "service": Level.L1, "batch": Level.L2}
RECEIVERS = {f"{name}-in": level for name, level in SENDERS.items()}
LINE_BPS = 50 * M

_TOLD: Mapping[Level, Mapping[str, Any]] = {
    Level.L0: {"annotations": {CLASS: "L0"}},
    Level.L1: {"labels": {"koordinator.sh/qosClass": "LS"}},
    Level.L2: {},
}


class Contention:
    """Six pods, told their levels in three ways, on a node with a policy."""

    def __init__(self, scene: Scene, policy: dict[str, Any], *, line_bps: int = LINE_BPS) -> None:
        """Ready to send when this returns. What arrives comes at `line_bps`, which is more than the policy's total."""
        self.scene = scene
        scene.kube.create_slo(policy)
        scene.limit_line(line_bps)
        self.agent = scene.start_agent()
        wanted = {**SENDERS, **RECEIVERS}
        for name, level in wanted.items():
            scene.pods.create(name, **_TOLD[level])
        for name in wanted:
            scene.pods.wait_running(name)
        expected = {name: level.name for name, level in wanted.items()}
        wait_until(lambda: self._levels() == expected, "all pods are known", 5)

    def load(self) -> Load:
        """Traffic of these pods."""
        return Load(self.scene.pods)

    def start_all(self, load: Load) -> None:
        """Every level sends and receives all that it can."""
        load.start(SENDERS, [TX])
        load.start(RECEIVERS, [RX])

    def start(self, load: Load, wanted: Level) -> None:
        """One level does."""
        load.start([name for name, level in SENDERS.items() if level is wanted], [TX])
        load.start([name for name, level in RECEIVERS.items() if level is wanted], [RX])

    def promised(self, promise: Promise) -> Mapping[Key, float]:
        """By flow."""
        sent = {(name, TX): promise[level, TX] for name, level in SENDERS.items()}
        return {**sent, **{(name, RX): promise[level, RX] for name, level in RECEIVERS.items()}}

    def _levels(self) -> Mapping[str, str]:
        return {one["name"]: one["level"] for one in self.agent.client.get("/v1/pods")["pods"]}
