"""A node with pods of one kind of network and the real daemon on it; what the kernel's classes counted."""

from __future__ import annotations

import contextlib
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netqos.model.levels import Direction, Level
from netqos.testing.daemon import Daemon, workload
from netqos.testing.exchange import Talk
from netqos.testing.netns import Rig
from netqos.testing.networks import NETWORKS, ROUTED, Network

M = 1_000_000
PODS = {"web": Level.L0, "db": Level.L1, "bulk": Level.L2}
TOTAL_BPS = {Direction.TX: 60 * M, Direction.RX: 45 * M}
GUARANTEES_BPS: Mapping[Direction, Mapping[Level, float]] = {
    Direction.TX: {Level.L0: 30 * M, Level.L1: 18 * M, Level.L2: 12 * M},
    Direction.RX: {Level.L0: 18 * M, Level.L1: 11.25 * M, Level.L2: 15.75 * M},
}
LEVELS = {
    "l1": {"txMin": "30%", "rxMin": "25%"},
    "l2": {"txMin": "20%", "rxMin": "35%"},
}
MAJORS = {Direction.TX: "4e51", Direction.RX: "4e52"}
LEVEL_MINORS = {Level.L0: "10", Level.L1: "11", Level.L2: "12"}
UNKNOWN = "11f"
LOCAL_BYTES = 16 * M
BULK_BYTES = 400_000

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A network, and whether its pods are on the host's."""

    network: Network = ROUTED
    on_host: bool = False

    def is_enforced(self, direction: Direction) -> bool:
        """Whether pods of this kind can be held to their levels in a direction."""
        return not self.network.bypasses and not (self.on_host and direction is Direction.RX)


CASES = {name: Case(network=one) for name, one in NETWORKS.items()} | {"host-network": Case(on_host=True)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node of one network with the daemon on it."""

    case: Case
    rig: Rig
    daemon: Daemon

    def explain(self, pod: str) -> Document:
        found: Document = self.daemon.client.get(f"/v1/explain/workload:{pod}")
        return found

    def verdict(self, pod: str, direction: Direction) -> Document:
        """Whether the pod's level is enforced, and why not."""
        asked: list[Document] = self.explain(pod)["enforcement"]
        return next(one for one in asked if (one["what"], one["direction"]) == ("level", direction.pod_word))

    def leaves(self, pod: str, direction: Direction) -> dict[str, str]:
        """The class of a pod on each device."""
        counters = self.explain(pod)["pod"]["counters"]
        places = [one["where"].split() for one in counters if one["direction"] == direction.value]
        return {device: handle for _, handle, _, device in places}

    def carried(self, talks: Sequence[Talk], device: str, direction: Direction) -> Iterator[int]:
        """Bytes of talks that a device's tree must count: the uplink's own frames, or the pods' on the way in."""
        for one in talks:
            if direction is Direction.RX:
                yield one.pod_bytes(direction)
            elif one.path.uplink == device:
                yield one.uplink_bytes(direction)

    def devices(self, direction: Direction) -> list[str]:
        """The devices with a tree of a direction."""
        listed = self.rig.node.run(["tc", "qdisc", "show"]).stdout
        return re.findall(rf"^qdisc htb {MAJORS[direction]}: dev (\S+) root", listed, re.MULTILINE)

    def sent(self, direction: Direction) -> dict[tuple[str, str], int]:
        """Bytes by device and class."""
        return {
            (device, handle): int(sent)
            for device in self.devices(direction)
            for handle, sent in re.findall(
                r"class htb (\S+) .*\n Sent (\d+) bytes",
                self.rig.node.run(["tc", "-s", "class", "show", "dev", device]).stdout,
            )
        }

    def quiet(self, direction: Direction) -> dict[tuple[str, str], int]:
        """As `sent`, once nothing is sent any more: a killed sender's kernel goes on for a moment."""
        before = self.sent(direction)
        for _ in range(20):
            time.sleep(0.06)
            after = self.sent(direction)
            if before == after:
                return after
            before = after
        raise TimeoutError("traffic does not end within 3 s")


def document(rig: Rig) -> Document:
    """The levels, asymmetric in every value; each uplink has the whole total."""
    bandwidth = {one.value: f"{bps // M}M" for one, bps in TOTAL_BPS.items()}
    return {
        "node": {"uplinks": [{"name": name, "bandwidth": bandwidth} for name in rig.uplinks]},
        "policy": {"enable": True, "levels": LEVELS},
        "workloads": [workload(rig, name, level) for name, level in PODS.items()],
    }


@contextlib.contextmanager
def running(case: Case) -> Iterator[Node]:
    """The node with its daemon, ready; `Unsupported` where pods on the host's network cannot be made."""
    inside, on_host = ((), tuple(PODS)) if case.on_host else (tuple(PODS), ())
    with Rig(inside, host_pods=on_host, network=case.network) as rig:
        add_line(rig)
        daemon = Daemon(rig, document(rig))
        daemon.start()
        yield Node(case=case, rig=rig, daemon=daemon)
        daemon.stop()


def add_line(rig: Rig) -> None:
    """What arrives at a node comes at the speed of its line, a tenth above the total; a veth pair has none."""
    line_bps = int(1.1 * TOTAL_BPS[Direction.RX]) * len(rig.uplinks)
    for number in range(len(rig.uplinks)):
        where = f"qdisc add dev wire{number} root tbf rate {line_bps} burst 20k latency 50ms"
        rig.wire.run(["tc", *where.split()])


def grown(
    before: Mapping[tuple[str, str], int], after: Mapping[tuple[str, str], int]
) -> Counter[tuple[str, str]]:
    return Counter({key: count - before.get(key, 0) for key, count in after.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A second of the levels: what all of them sent, and each one's part of it.

    On a busy machine the moment of a reading is known less well than what was read: the parts do not depend on it.
    """

    total_bps: float
    parts: Mapping[Level, float]


def windows(node: Node, direction: Direction) -> Iterator[Window]:
    """What the levels of the first device with a tree send from now on."""
    device, major = node.devices(direction)[0], MAJORS[direction]
    began_s, before = time.monotonic(), node.sent(direction)
    while True:
        time.sleep(1)
        ended_s, after = time.monotonic(), node.sent(direction)
        counted = grown(before, after)
        levels = {level: counted[device, f"{major}:{minor}"] for level, minor in LEVEL_MINORS.items()}
        total = max(1, sum(levels.values()))
        yield Window(
            total_bps=total * 8 / (ended_s - began_s),
            parts={level: count / total for level, count in levels.items()},
        )
        began_s, before = ended_s, after


def promised(node: Node, direction: Direction) -> Window:
    """Each uplink has a tree with the whole total; on the way in there is one for all of them."""
    trees = len(node.rig.uplinks) if direction is Direction.RX else 1
    total_bps = TOTAL_BPS[direction]
    parts = {level: bps / total_bps for level, bps in GUARANTEES_BPS[direction].items()}
    return Window(total_bps=float(total_bps * trees), parts=parts)
