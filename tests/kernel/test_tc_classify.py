"""Which class a packet lands in, by every way that it can leave the node."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from netqos.model.desired import DesiredPod
from netqos.model.ids import CgroupPath
from netqos.model.levels import Level
from netqos.testing import states
from netqos.testing.processes import run_tool
from netqos_tc import numbers
from tests.kernel.tcnode import ShapedNode, connect, send, shaped_node

pytestmark = pytest.mark.kernel("veth", "htb", "u32", "nft", "nft-fib", "nft-socket")

COUNT = 20
STRAYS = 8


def expect(node: ShapedNode, before: dict[int, int], wanted: dict[int, int]) -> None:
    """The leaves have sent exactly that since; what the node itself says by the way (IPv6 discovery) is no matter."""
    after = node.packets()
    grown = {minor: after[minor] - before.get(minor, 0) for minor in after if minor not in numbers.INNER}
    for minor in (numbers.HOST, numbers.UNKNOWN):
        strays = grown.get(minor, 0) - wanted.get(minor, 0)
        assert 0 <= strays <= STRAYS, numbers.text(minor)
        grown[minor] = wanted.get(minor, 0)
    assert {minor: count for minor, count in grown.items() if count} == wanted


@pytest.mark.parametrize("masquerade", [False, True])
async def test_a_pod_is_known_by_its_source_in_both_families(masquerade: bool) -> None:
    with shaped_node("web", "db", masquerade=masquerade) as node:
        await node.bring(node.node(node.pod("web", Level.L0), node.pod("db", Level.L2)))
        before = node.packets()
        node.rig.pod("web").call(send, node.rig.wire.address, COUNT)
        node.rig.pod("db").call(send, node.rig.wire.address6, COUNT + 5)
        expect(
            node,
            before,
            {
                await node.minor("web"): COUNT,
                await node.minor("db"): COUNT + 5,
            },
        )


async def test_an_unknown_source_is_unknown_and_the_node_itself_is_the_host() -> None:
    with shaped_node("web", "stranger") as node:
        await node.bring(node.node(node.pod("web")))
        before = node.packets()
        node.rig.pod("stranger").call(send, node.rig.wire.address, COUNT)
        node.rig.pod("stranger").call(send, node.rig.wire.address6, COUNT)
        node.rig.node.call(send, node.rig.wire.address, COUNT + 1)
        node.rig.node.call(send, node.rig.wire.address6, COUNT + 2)
        expect(node, before, {numbers.UNKNOWN: 2 * COUNT, numbers.HOST: 2 * COUNT + 3})


async def test_after_a_flushed_ruleset_everything_is_unknown_and_the_repair_keeps_the_leaves() -> None:
    with shaped_node("web") as node:
        await node.bring(node.node(node.pod("web", Level.L0)))
        minor, before = await node.minor("web"), node.packets()
        assert await node.backend.is_untouched()
        node.nft("flush ruleset")
        node.rig.pod("web").call(send, node.rig.wire.address, COUNT)
        expect(node, before, {numbers.UNKNOWN: COUNT})
        assert not await node.backend.is_untouched()
        result = await node.repair()
        assert result.ok
        assert await node.minor("web") == minor
        before = node.packets()
        node.rig.pod("web").call(send, node.rig.wire.address, COUNT)
        expect(node, before, {minor: COUNT})


def raw_frames(protocol: int, payload: bytes, count: int) -> None:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
        raw.bind(("up0", protocol))
        for _ in range(count):
            raw.send(b"\xff" * 6 + b"\2\0\0\0\0\2" + protocol.to_bytes(2, "big") + payload)


def ip4(source: str) -> bytes:
    return bytes.fromhex("4500002e000040004011") + bytes(2) + socket.inet_aton(source) + bytes(26)


def ip6(source: str) -> bytes:
    return bytes.fromhex("60000000000811ff") + socket.inet_pton(socket.AF_INET6, source) + bytes(24)


FRAMES = (
    (0x0806, bytes(46), numbers.CONTROL),
    (0x88CC, bytes(46), numbers.CONTROL),
    (0x8809, bytes(46), numbers.CONTROL),
    (0x0800, ip4("0.0.0.0"), numbers.CONTROL),
    (0x86DD, ip6("::"), numbers.CONTROL),
    (0x0800, ip4("10.0.0.1"), numbers.UNKNOWN),
    (0x86DD, ip6("fd00::1"), numbers.UNKNOWN),
    (0x88B5, bytes(46), numbers.UNKNOWN),
)


async def test_frames_that_pass_no_nft() -> None:
    with shaped_node("web") as node:
        await node.bring(node.node(node.pod("web")))
        for protocol, payload, leaf in FRAMES:
            before = node.packets()
            node.rig.node.call(raw_frames, protocol, payload, COUNT)
            expect(node, before, {leaf: COUNT})


async def test_a_priority_that_a_process_gives_itself_is_not_ours() -> None:
    with shaped_node("web") as node:
        await node.bring(node.node(node.pod("web", Level.L0)))
        for stolen in (await node.minor("web"), numbers.CRITICAL, numbers.CONTROL, 0):
            before = node.packets()
            node.rig.node.call(send, node.rig.wire.address, COUNT, priority=numbers.class_id(stolen))
            node.rig.node.call(send, node.rig.wire.address6, COUNT, priority=numbers.class_id(stolen))
            expect(node, before, {numbers.HOST: 2 * COUNT})
        assert "direct_packets_stat 0" in node.tc("qdisc", "show", "dev", "up0", "root")


def close_with_data_left(address: str, port: int, priority: int) -> None:
    """The kernel goes on sending after the process has closed the socket."""
    with connect(address, port) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        connection.sendall(bytes(400_000))


def swallow(address: str, port: int) -> int:
    with socket.create_server((address, port)) as server:
        server.settimeout(10)
        connection, _peer = server.accept()
        taken = 0
        with connection:
            connection.settimeout(10)
            while part := connection.recv(1 << 16):
                taken += len(part)
        return taken


async def test_what_a_closed_socket_still_sends_is_not_ours_either() -> None:
    with shaped_node("web") as node:
        await node.bring(node.node(node.pod("web", Level.L0), total_bps=20 * states.M))
        minor = await node.minor("web")
        taken = node.rig.wire.fork(swallow, node.rig.wire.address, 7009)
        node.rig.node.call(close_with_data_left, node.rig.wire.address, 7009, numbers.class_id(minor))
        assert taken.result() == 400_000
        assert minor not in node.packets()


@pytest.mark.kernel("vxlan")
@pytest.mark.parametrize("masquerade", [False, True])
async def test_a_tunnel_carries_the_class_of_the_packet_inside(masquerade: bool) -> None:
    with shaped_node("web", masquerade=masquerade) as node:
        wire, inside = node.rig.wire.address, node.rig.node
        inside.run(
            [
                "ip",
                "link",
                "add",
                "vx0",
                "type",
                "vxlan",
                "id",
                "7",
                "dstport",
                "4789",
                "remote",
                wire,
                "dev",
                "up0",
            ]
        )
        inside.set_sysctls({"net/ipv6/conf/vx0/disable_ipv6": 1})  # its discovery would be counted too
        inside.run(["ip", "link", "set", "vx0", "up"])
        inside.run(["ip", "route", "add", "10.99.0.0/24", "dev", "vx0"])
        inside.run(["ip", "neigh", "add", "10.99.0.5", "lladdr", "02:00:00:00:99:05", "dev", "vx0"])
        await node.bring(node.node(node.pod("web", Level.L2)))
        before = node.packets()
        node.rig.pod("web").call(send, "10.99.0.5", COUNT)
        inside.call(send, "10.99.0.5", COUNT + 1)
        expect(node, before, {await node.minor("web"): COUNT, numbers.HOST: COUNT + 1})


@pytest.fixture
def cgroup2(tmp_path: Path) -> Iterator[Path]:
    """A folder of our own in the hierarchy of version 2, which is mounted for the test where it is not."""
    lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    mounts = [Path(line.split()[1]) for line in lines if line.split()[2] == "cgroup2"]
    is_ours = not mounts
    if is_ours:
        mounts = [tmp_path / "cgroup"]
        mounts[0].mkdir()
        run_tool(["mount", "-t", "cgroup2", "none", str(mounts[0])], check=False)
    if not mounts[0].is_mount() or not os.access(mounts[0], os.W_OK):
        pytest.skip("there is no cgroup v2 to write to")
    folder = mounts[0] / f"netqos-test-{os.getpid()}"
    folder.mkdir()
    yield folder
    for inner in (*sorted(folder.glob("**/"), reverse=True), folder):
        with contextlib.suppress(FileNotFoundError):
            inner.rmdir()
    if is_ours:
        run_tool(["umount", str(mounts[0])])


def path_of(folder: Path) -> CgroupPath:
    """A cgroup below its mount point."""
    mount = next(parent for parent in folder.parents if parent.is_mount())
    return CgroupPath(f"/{folder.relative_to(mount)}")


def in_cgroup(name: str, folder: Path, level: Level) -> DesiredPod:
    pod = states.pod(f"ns/{name}", level, cgroup=path_of(folder), host_network=True)
    return replace(pod, cgroup_id=folder.stat().st_ino)


async def test_workloads_by_cgroup_and_the_deepest_wins(cgroup2: Path) -> None:
    with shaped_node("web") as node:
        outer, inner = cgroup2 / "outer", cgroup2 / "outer" / "inner"
        critical = cgroup2 / "critical"
        for folder in (outer, inner, critical):
            folder.mkdir()
        desired = node.node(
            in_cgroup("outer", outer, Level.L2), in_cgroup("inner", inner, Level.L0), node.pod("web")
        )
        await node.bring(replace(desired, critical_cgroups=((path_of(critical), critical.stat().st_ino),)))
        before = node.packets()
        for folder, count in ((outer, COUNT), (inner, COUNT + 1), (critical, COUNT + 2)):
            node.rig.node.call(send_inside, str(folder), node.rig.wire.address, count)
            node.rig.node.call(send_inside, str(folder), node.rig.wire.address6, count)
        expect(
            node,
            before,
            {
                await node.minor("outer"): 2 * COUNT,
                await node.minor("inner"): 2 * COUNT + 2,
                numbers.CRITICAL: 2 * COUNT + 4,
            },
        )


def send_inside(folder: str, address: str, count: int) -> None:
    Path(folder, "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
    send(address, count)
