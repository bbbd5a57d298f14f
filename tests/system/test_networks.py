"""One suite over every kind of pod network: the real daemon, real packets, and what the kernel's classes counted.

Everything is asked for in both directions by one set of tests; `DIRECTIONS` says which of them the backend shapes.
"""

from __future__ import annotations

import itertools
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from netqos.errors import Unsupported
from netqos.model.levels import Direction, Level
from netqos.testing.daemon import Daemon, workload
from netqos.testing.exchange import Talk, talk, transfer
from netqos.testing.meter import tcp_framing
from netqos.testing.netns import Rig
from netqos.testing.networks import NETWORKS, ROUTED, Network
from netqos.testing.paths import between, outward
from netqos.testing.traffic import Datagrams, Traffic

pytestmark = pytest.mark.kernel("veth", "htb", "u32", "nft", "nft-fib", "nft-socket")

DIRECTIONS = (Direction.TX,)

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
LOCAL_BYTES = 4 * M
BULK_BYTES = 1 * M

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
            time.sleep(0.15)
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


@pytest.fixture(scope="module")
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    case = CASES[request.param]
    inside, on_host = ((), tuple(PODS)) if case.on_host else (tuple(PODS), ())
    try:
        with Rig(inside, host_pods=on_host, network=case.network) as rig:
            daemon = Daemon(rig, document(rig))
            daemon.start()
            yield Node(case=case, rig=rig, daemon=daemon)
            daemon.stop()
    except Unsupported as problem:
        pytest.skip(str(problem))


def enforced(*, also_on_host: bool = True) -> pytest.MarkDecorator:
    """Every network in every direction in which its pods are held to their levels."""
    pairs = [
        pytest.param(name, direction, marks=needs(case), id=f"{name}-{direction.value}")
        for name, case in CASES.items()
        for direction in DIRECTIONS
        if case.is_enforced(direction) and (also_on_host or not case.on_host)
    ]
    return pytest.mark.parametrize(("node", "direction"), pairs, indirect=["node"], scope="module")


def needs(case: Case) -> tuple[pytest.MarkDecorator, ...]:
    return (pytest.mark.kernel(case.network.feature),) if case.network.feature else ()


def grown(
    before: Mapping[tuple[str, str], int], after: Mapping[tuple[str, str], int]
) -> Counter[tuple[str, str]]:
    return Counter({key: count - before.get(key, 0) for key, count in after.items()})


@enforced()
def test_every_pod_is_counted_in_its_own_class_and_level(node: Node, direction: Direction) -> None:
    talks = {
        pod: [
            Talk(path=path, count=30 + 10 * place, question=900 + 40 * place, answer=500 + 70 * place)
            for path in outward(node.rig, pod)
        ]
        for place, pod in enumerate(PODS)
    }
    before = node.quiet(direction)
    talk([one for own in talks.values() for one in own])
    counted = grown(before, node.sent(direction))
    expected = Counter[tuple[str, str]]()
    for pod, level in PODS.items():
        for device, leaf in node.leaves(pod, direction).items():
            sent = sum(one for one in node.carried(talks[pod], device, direction))
            expected[device, leaf] += sent
            expected[device, f"{MAJORS[direction]}:{LEVEL_MINORS[level]}"] += sent
    assert expected.total() > 0
    assert {key: counted[key] for key in expected} == pytest.approx(dict(expected), rel=0.02)
    for device in node.devices(direction):
        assert counted[device, f"{MAJORS[direction]}:{UNKNOWN}"] < 0.02 * expected.total()


@enforced()
def test_bulk_is_counted_as_the_line_carries_it(node: Node, direction: Direction) -> None:
    """TCP gives the kernel one packet for many frames (GSO); each of them has its headers, the tunnel's too."""
    expected = Counter[tuple[str, str]]()
    leaves = node.leaves("web", direction)
    before = node.quiet(direction)
    for path in outward(node.rig, "web"):
        if not path.source and not node.case.on_host:
            continue  # by a service
        transfer(path if direction is Direction.TX else path.back(), BULK_BYTES)
        framing = tcp_framing(mtu=node.case.network.mtu, family=path.family)
        frames = BULK_BYTES / framing.payload
        device = path.uplink if direction is Direction.TX else next(iter(leaves))
        overhead = path.overhead if direction is Direction.TX else 0
        expected[device, leaves[device]] += round(frames * (framing.frame + overhead))
    counted = grown(before, node.quiet(direction))
    assert {key: counted[key] for key in expected} == pytest.approx(dict(expected), rel=0.02)


@enforced(also_on_host=False)
def test_what_stays_on_the_node_is_neither_counted_nor_held(node: Node, direction: Direction) -> None:
    before = node.quiet(direction)
    for one, other in itertools.pairwise([*PODS, next(iter(PODS))]):
        for path in between(node.rig, one, other):
            assert transfer(path, LOCAL_BYTES) < LOCAL_BYTES * 8 / TOTAL_BPS[direction] / 2, path.name
    counted = grown(before, node.sent(direction))
    for pod in PODS:
        for device, leaf in node.leaves(pod, direction).items():
            assert counted[device, leaf] < 0.02 * LOCAL_BYTES


@enforced()
def test_three_greedy_levels_get_their_guarantees(node: Node, direction: Direction) -> None:
    device, major, total_bps = node.devices(direction)[0], MAJORS[direction], TOTAL_BPS[direction]
    traffic = Traffic(node.rig)
    try:
        for pod in PODS:
            traffic.udp(
                pod,
                Datagrams(rate_bps=total_bps, payload=1300, segments=4),
                towards_pod=direction is Direction.RX,
                family=node.case.network.families[0],
            ).start()
        time.sleep(0.3)
        began_s, before = time.monotonic(), node.sent(direction)
        time.sleep(1)
        took_s, after = time.monotonic() - began_s, node.sent(direction)
    finally:
        traffic.stop()
    counted = grown(before, after)
    rates_bps = {
        level: counted[device, f"{major}:{minor}"] * 8 / took_s for level, minor in LEVEL_MINORS.items()
    }
    assert rates_bps == pytest.approx(GUARANTEES_BPS[direction], rel=0.05)


@pytest.mark.parametrize(
    "node",
    [pytest.param(name, marks=needs(case)) for name, case in CASES.items() if not case.network.bypasses],
    indirect=True,
    scope="module",
)
def test_the_daemon_says_whether_a_pod_is_enforced(node: Node) -> None:
    for pod in PODS:
        for direction in DIRECTIONS:
            verdict = node.verdict(pod, direction)
            assert verdict["enforced"] is node.case.is_enforced(direction), verdict
