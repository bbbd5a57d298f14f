"""One suite over every kind of pod network: the real daemon, real packets, and what the kernel's classes counted.

Everything is asked for in both directions by one set of tests; `DIRECTIONS` says which of them the backend shapes.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Collection, Iterator

import pytest

from netqos.errors import Unsupported
from netqos.model.levels import Direction
from netqos.testing.exchange import Talk, talk, transfer
from netqos.testing.meter import tcp_framing
from netqos.testing.paths import between, outward
from netqos.testing.traffic import Datagrams, Flow, Traffic
from tests.system.networknode import (
    BULK_BYTES,
    CASES,
    LEVEL_MINORS,
    LOCAL_BYTES,
    MAJORS,
    PODS,
    TOTAL_BPS,
    UNKNOWN,
    Document,
    Node,
    grown,
    promised,
    running,
    windows,
)

pytestmark = pytest.mark.kernel(
    "veth", "htb", "u32", "nft", "nft-fib", "nft-socket", "ifb", "tbf", "tool:iperf3"
)

DIRECTIONS = tuple(Direction)

WAYS = ("routed", "bridge", "vxlan", "second-uplink", "uplink-bridge", "host-network")
"""One network for each way to a device of ours; others differ in how packets are known, which counting them shows."""


@pytest.fixture(scope="module")
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    try:
        with running(CASES[request.param]) as node:
            yield node
    except Unsupported as problem:
        pytest.skip(str(problem))


def enforced(names: Collection[str] = tuple(CASES), *, also_on_host: bool = True) -> pytest.MarkDecorator:
    """These networks in every direction in which their pods are held to their levels."""
    pairs = [
        pytest.param(name, direction, marks=needs(name), id=f"{name}-{direction.value}")
        for name, case in CASES.items()
        if name in names
        for direction in DIRECTIONS
        if case.is_enforced(direction) and (also_on_host or not case.on_host)
    ]
    return pytest.mark.parametrize(("node", "direction"), pairs, indirect=["node"], scope="module")


def networks(*, bypassing: bool = False) -> pytest.MarkDecorator:
    """Every network, or those whose pods are past the node's stack."""
    names = [
        pytest.param(name, marks=needs(name))
        for name, case in CASES.items()
        if case.network.bypasses or not bypassing
    ]
    return pytest.mark.parametrize("node", names, indirect=True, scope="module")


def needs(name: str) -> tuple[pytest.MarkDecorator, ...]:
    """What its kernel must have; one worker runs all of a network, so that one node is enough."""
    feature = CASES[name].network.feature
    return (pytest.mark.xdist_group(name), *([pytest.mark.kernel(feature)] if feature else []))


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
    counted, expected = bulk(node, direction)
    for _ in range(3):
        if counted == pytest.approx(expected, rel=0.02):
            break
        # TCP sends again what a busy machine is late to acknowledge.
        counted, expected = bulk(node, direction)
    assert counted == pytest.approx(expected, rel=0.02)


def bulk(node: Node, direction: Direction) -> tuple[dict[tuple[str, str], int], dict[tuple[str, str], int]]:
    """One transfer on each path: what was counted, and what the line carries of it."""
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
    return {key: counted[key] for key in expected}, dict(expected)


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


@pytest.mark.serial
@enforced(WAYS)
def test_three_greedy_levels_get_their_guarantees(node: Node, direction: Direction) -> None:
    """The machine may stall a sender, which asks for less meanwhile: so one window of several counts."""
    wanted, met = promised(node, direction), []
    traffic = Traffic(node.rig)
    try:
        for pod in PODS:
            greedy(node, traffic, pod, direction).start()
        time.sleep(0.4)
        for window in itertools.islice(windows(node, direction), 5):
            met.append(window)
            if window.parts == pytest.approx(wanted.parts, rel=0.05) and window.total_bps == pytest.approx(
                wanted.total_bps, rel=0.1
            ):
                assert disagreements(node) == []
                return
    finally:
        traffic.stop()
    pytest.fail(f"wanted {wanted}, met {met}")


def disagreements(node: Node) -> list[Document]:
    """What the kernel's counters say against the daemon."""
    told: list[Document] = node.daemon.client.get("/v1/status")["backends"]["tc"]["findings"]
    return [
        one
        for one in told
        if one["code"]
        in {"claimed-unclassed", "claimed-unclassed-ingress", "unclassed-past-the-stack", "counters-disagree"}
    ]


def greedy(node: Node, traffic: Traffic, pod: str, direction: Direction) -> Flow:
    """Out of a pod a flood; towards it senders that react, since others fill the line in front of the node."""
    family = node.case.network.families[0]
    if direction is Direction.RX:
        return traffic.tcp(pod, towards_pod=True, family=family, streams=2)
    return traffic.udp(pod, Datagrams(rate_bps=TOTAL_BPS[direction], payload=1300, segments=4), family=family)


@networks()
def test_the_daemon_says_whether_a_pod_is_enforced(node: Node) -> None:
    for pod in PODS:
        for direction in DIRECTIONS:
            verdict = node.verdict(pod, direction)
            assert verdict["enforced"] is node.case.is_enforced(direction), verdict


@networks(bypassing=True)
def test_packets_past_the_nodes_stack_are_told_and_never_in_l0(node: Node) -> None:
    before = node.quiet(Direction.TX)
    talks = [
        Talk(path=path, count=30, question=900, answer=500) for pod in PODS for path in outward(node.rig, pod)
    ]
    talk(talks)
    counted = grown(before, node.quiet(Direction.TX))
    sent = sum(one.pod_bytes(Direction.TX) for one in talks)
    assert counted["up0", f"4e51:{UNKNOWN}"] == pytest.approx(sent, rel=0.02)
    assert counted["up0", "4e51:10"] < 0.02 * sent
    for pod in PODS:
        told = node.explain(pod)["findings"]
        assert [(one["code"], one["subject"]) for one in told] == [("not-enforced-bypass", f"pod {pod}")]
        assert "198.18.0.1" in told[0]["message"]


@pytest.mark.parametrize("node", [pytest.param("uplink-bridge", marks=needs("uplink-bridge"))], indirect=True)
def test_a_bridge_that_is_no_longer_filtered_is_told_and_taken_back(node: Node) -> None:
    """The kernel says nothing of it."""
    for value, codes in (("0", ["not-enforced-bypass"]), ("1", [])):
        for family in ("ip", "ip6"):
            node.rig.node.set_sysctls({f"net/bridge/bridge-nf-call-{family}tables": value})
        node.daemon.client.wait_until(
            "/v1/explain/workload:web",
            lambda told, codes=codes: [one["code"] for one in told["findings"]] == codes,
            timeout_s=5,
        )
