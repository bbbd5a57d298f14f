"""The uplinks of real network namespaces, each with its own devices and routes (cases D1, D3 to D8, L4)."""

from __future__ import annotations

import asyncio
import gc
import resource
import socket
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import pytest
from pyroute2 import IPRoute

from netqos.host.clock import SystemClock
from netqos.host.links import RECHECK_S, Configured, LinkReport, Links, ethtool_speed
from netqos.host.rtnetlink import Requests
from netqos.model.ids import IfName
from netqos.model.levels import PerDirection
from netqos.runtime.inputs import GAP_S, HostFacts
from netqos.runtime.reconciler import World
from netqos.settings.values import ConfiguredUplink, Settings
from netqos.testing.namespaces import Namespace
from netqos.testing.processes import run_tool

pytestmark = pytest.mark.kernel("veth")

# Two devices with a carrier; addresses so that routes have somewhere to lead to.
PAIR = """
link add up0 address 02:00:00:00:00:01 mtu 1400 type veth peer name far0
link add up1 address 02:00:00:00:00:02 type veth peer name far1
link set up0 up
link set far0 up
link set up1 up
link set far1 up
addr add 198.18.0.2/24 dev up0
addr add 198.18.1.2/24 dev up1
addr add fd00:77::2/64 dev up0 nodad
addr add fd00:78::2/64 dev up1 nodad
"""


class Node:
    """A namespace with its Links, and a clock of its own."""

    def __init__(self, namespace: Namespace, links: Links) -> None:
        self.namespace = namespace
        self.links = links
        self.now_s = 0.0

    def ip(self, lines: str) -> None:
        run_tool(["ip", "-n", self.namespace.name, "-batch", "-"], text=lines.strip() + "\n")

    def read(self, configured: Configured = None) -> LinkReport:
        self.now_s += 1.0
        return self.links.read(configured, now_s=self.now_s)


@pytest.fixture
def make_node() -> Iterator[Callable[[str], Node]]:
    with ExitStack() as stack:

        def make(lines: str) -> Node:
            namespace = Namespace("links")
            stack.callback(namespace.remove)
            with namespace.entered():
                node = Node(namespace, Links())
            stack.callback(node.links.close)
            node.ip(lines)
            return node

        yield make


def named(*names: str) -> tuple[ConfiguredUplink, ...]:
    return tuple(ConfiguredUplink(name=IfName(name)) for name in names)


def names(report: LinkReport) -> list[str]:
    return [one.name for one in report.uplinks]


def codes(report: LinkReport) -> set[tuple[str, str]]:
    """Findings but for /sys, which belongs to the namespace of the test itself."""
    return {(one.code, one.subject) for one in report.findings if one.code != "sysfs-of-another-namespace"}


@pytest.mark.parametrize(
    ("routes", "expected"),
    [
        ("route add default via 198.18.0.1", ["up0"]),
        ("route add default dev up1", ["up1"]),
        ("route add ::/0 via fd00:78::1", ["up1"]),
        ("route add default via 198.18.0.1 metric 600\nroute add default via 198.18.1.1 metric 100", ["up1"]),
        ("route add default via 198.18.0.1\nroute add ::/0 via fd00:78::1", ["up0", "up1"]),
        ("route add default nexthop via 198.18.1.1 nexthop via 198.18.0.1 weight 3", ["up1", "up0"]),
        ("route add ::/0 nexthop via fd00:78::1 nexthop via fd00:77::1", ["up1", "up0"]),
        ("route add default via 198.18.0.1 table 100\nroute add 10.0.0.0/8 via 198.18.0.1", []),
        ("route add unreachable default\nroute add unreachable ::/0 metric 9", []),
        ("route add default via 198.18.0.1 tos 0x10", []),
        ("route add 0.0.0.0/1 via 198.18.0.1\nroute add default via 198.18.1.1", ["up1"]),
    ],
)
def test_the_uplinks_are_the_devices_of_the_default_routes(
    make_node: Callable[[str], Node], routes: str, expected: list[str]
) -> None:
    assert names(make_node(PAIR + routes).read()) == expected


@pytest.mark.parametrize("compat", [1, 0])
def test_a_default_route_through_nexthop_objects(make_node: Callable[[str], Node], compat: int) -> None:
    node = make_node(
        PAIR
        + "nexthop add id 7 via 198.18.1.1 dev up1\nnexthop add id 8 via 198.18.0.1 dev up0\n"
        + "nexthop add id 9 group 7/8\nroute add default nhid 9"
    )
    node.namespace.set_sysctls({"net/ipv4/nexthop_compat_mode": compat})
    assert names(node.read()) == ["up1", "up0"]
    node.ip("nexthop replace id 9 group 8")
    assert names(node.read()) == ["up0"]


def test_what_is_told_of_an_uplink(make_node: Callable[[str], Node]) -> None:
    node = make_node(PAIR)
    (up0,) = node.read(named("up0")).uplinks
    assert (up0.present, up0.mtu, up0.is_up, up0.speed_bps) == (True, 1400, True, None)
    assert up0.index > 0
    node.ip("link set far0 down")
    (up0,) = node.read(named("up0")).uplinks
    assert not up0.is_up


def test_the_drivers_speed(make_node: Callable[[str], Node]) -> None:
    node = make_node(PAIR)
    descriptor = node.links._requests.fileno()
    assert [ethtool_speed(descriptor, name) for name in ("up0", "lo", "missing")] == [10_000, None, None]


def test_changes_are_seen_at_the_next_look(make_node: Callable[[str], Node]) -> None:
    node = make_node(PAIR)
    assert node.read().uplinks == ()
    node.ip("route add default via 198.18.0.1")
    assert names(node.read()) == ["up0"]
    node.ip("route replace default via 198.18.1.1")
    assert names(node.read()) == ["up1"]
    node.ip("link set up1 mtu 1300")
    assert node.read().uplinks[0].mtu == 1300
    node.ip("link set up1 down\nlink set up1 name wan1\nlink set wan1 up\nroute add default via 198.18.1.1")
    assert names(node.read()) == ["wan1"]
    node.ip("link del wan1")
    assert node.read().uplinks == ()


def test_a_configured_device_may_come_later_and_come_back_as_another(
    make_node: Callable[[str], Node],
) -> None:
    node = make_node(PAIR)
    own: PerDirection[int | None] = PerDirection(tx=3_000_000_000, rx=None)
    wanted = (ConfiguredUplink(name=IfName("wan0"), bandwidth=own), *named("up1"))
    report = node.read(wanted)
    assert [(one.name, one.present) for one in report.uplinks] == [("up1", True), ("wan0", False)]
    node.ip("link add wan0 type veth peer name farw\nlink set wan0 up\nlink set farw up")
    report = node.read(wanted)
    first = next(one for one in report.uplinks if one.name == "wan0")
    assert (first.present, first.configured) == (True, own)
    node.ip("link del wan0\nlink add wan0 type veth peer name farw")
    second = next(one for one in node.read(wanted).uplinks if one.name == "wan0")
    assert second.index != first.index
    assert not second.is_up


def test_a_device_is_found_by_its_other_names(make_node: Callable[[str], Node]) -> None:
    node = make_node(PAIR)
    node.ip("link property add dev up0 altname enterprise-uplink-number-zero")
    assert names(node.read(named("enterprise-uplink-number-zero"))) == ["up0"]
    assert names(node.read(named("up0", "enterprise-uplink-number-zero"))) == ["up0"]


@pytest.mark.kernel("bridge")
def test_a_bridge_and_its_port_are_not_both_shaped(make_node: Callable[[str], Node]) -> None:
    node = make_node(PAIR + "link add br0 type bridge\nlink set up0 master br0\nlink set br0 up")
    assert ("uplink-is-bridge", "br0") in codes(node.read(named("br0")))
    report = node.read(named("up0", "br0"))
    assert names(report) == ["up0"]
    assert ("uplinks-stacked", "br0") in codes(report)


@pytest.mark.kernel("bridge", "macvlan")
def test_the_port_of_a_bridge_that_leads_out_is_shaped_and_found_again(
    make_node: Callable[[str], Node],
) -> None:
    """Ports of workloads (veth) beside it change nothing; with a second way out the bridge itself is shaped."""
    node = make_node(
        PAIR
        + "link add link up0 out0 type macvlan mode passthru\nlink add br0 type bridge\nlink set br0 up\n"
        "link add pod0 type veth peer name eth9\nlink set pod0 master br0\n"
        "link set out0 up\naddr add 198.18.2.2/24 dev br0\nroute add default via 198.18.2.1"
    )
    assert names(node.read()) == ["br0"]
    node.ip("link set out0 master br0")
    assert names(node.read()) == ["out0"]
    assert ("uplink-serves-another", "out0") in codes(node.read())
    node.ip("link add link up1 out1 type macvlan mode passthru\nlink set out1 master br0")
    assert names(node.read()) == ["br0"]
    node.ip("link del out0")
    assert names(node.read()) == ["out1"]


@pytest.mark.kernel("macvlan")
def test_two_parts_of_one_nic_are_one_place(make_node: Callable[[str], Node]) -> None:
    node = make_node(
        PAIR
        + "link add link up0 a0 type macvlan mode bridge\nlink add link up0 b0 type macvlan mode bridge\n"
        "link set a0 up\nlink set b0 up\naddr add 198.18.2.2/24 dev a0\naddr add fd00:79::2/64 dev b0 nodad\n"
        "route add default via 198.18.2.1"
    )
    assert names(node.read()) == ["a0"]
    node.ip("route add ::/0 via fd00:79::1")
    assert names(node.read()) == ["up0"]
    assert names(node.read(named("a0", "b0"))) == ["a0", "b0"]


@pytest.mark.kernel("vxlan")
def test_what_a_tunnel_leaves_by_is_shaped(make_node: Callable[[str], Node]) -> None:
    node = make_node(
        PAIR + "link add vx0 type vxlan id 7 remote 198.18.1.1 dstport 4789 dev up1\nlink set vx0 up\n"
        "addr add 198.18.2.2/24 dev vx0\nroute add default via 198.18.2.1"
    )
    assert names(node.read()) == ["up1"]
    assert ("uplink-serves-another", "up1") in codes(node.read())
    node.ip(
        "link del vx0\nlink add vx0 type vxlan id 7 remote 198.18.1.1 dstport 4789\nlink set vx0 up\n"
        "addr add 198.18.2.2/24 dev vx0\nroute add default via 198.18.2.1"
    )
    assert names(node.read()) == ["vx0"]
    node.ip("route add default via 198.18.0.1 metric 900")
    assert names(node.read()) == ["up0"]


def test_the_other_end_of_a_veth_is_another_uplink(make_node: Callable[[str], Node]) -> None:
    report = make_node(PAIR).read(named("up0", "far0"))
    assert names(report) == ["up0", "far0"]
    assert codes(report) == set()


@pytest.mark.kernel("macvlan")
def test_a_part_of_a_nic_and_the_nic_are_not_both_shaped(make_node: Callable[[str], Node]) -> None:
    node = make_node(PAIR + "link add link up0 part0 type macvlan mode bridge\nlink set part0 up")
    assert ("uplink-shares-nic", "part0") in codes(node.read(named("part0")))
    assert ("uplinks-stacked", "up0") in codes(node.read(named("part0", "up0")))


@pytest.mark.kernel("bond")
def test_a_bond_is_one_uplink_and_its_members_are_told(make_node: Callable[[str], Node]) -> None:
    node = make_node(
        PAIR + "link add bond0 type bond\nlink set up0 down\nlink set up0 master bond0\n"
        "link set bond0 up\naddr add 198.18.2.2/24 dev bond0\nroute add default via 198.18.2.1"
    )
    report = node.read()
    assert names(report) == ["bond0"]
    assert "(up0)" in next(one.message for one in report.findings if one.code == "uplink-is-bond")
    node.ip("link set up1 down\nlink set up1 master bond0")
    assert "(up0, up1)" in next(one.message for one in node.read().findings if one.code == "uplink-is-bond")
    assert names(node.read(named("bond0", "up1"))) == ["bond0"]


@pytest.mark.kernel("tun")
def test_a_tunnel_is_told_and_its_nominal_speed_is_not_believed(make_node: Callable[[str], Node]) -> None:
    node = make_node("tuntap add tun0 mode tun\nlink set tun0 up\nroute add default dev tun0")
    report = node.read()
    assert names(report) == ["tun0"]
    assert ("uplink-is-tunnel", "tun0") in codes(report)
    assert report.uplinks[0].speed_bps is None


def test_the_nodes_own_addresses(make_node: Callable[[str], Node]) -> None:
    node = make_node(PAIR)
    node.read()
    assert {"127.0.0.1", "::1", "198.18.0.2", "198.18.1.2", "fd00:77::2"} <= node.links.local_addresses()
    node.ip("addr add 198.18.0.77/32 dev up0\naddr del 198.18.1.2/24 dev up1")
    node.read()
    assert {"198.18.0.77"} <= node.links.local_addresses()
    assert "198.18.1.2" not in node.links.local_addresses()


def test_a_sys_of_another_namespace_is_noticed(make_node: Callable[[str], Node]) -> None:
    report = make_node(PAIR + "route add default via 198.18.0.1").read()
    assert "sysfs-of-another-namespace" in {one.code for one in report.findings}


def _codes_here() -> set[str]:
    links = Links()
    try:
        return {one.code for one in links.read(named("up0"), now_s=0.0).findings}
    finally:
        links.close()


def test_the_sys_of_this_namespace_is_believed(make_node: Callable[[str], Node]) -> None:
    program = "from tests.kernel.test_links import _codes_here; print(_codes_here())"
    inside = make_node(PAIR).namespace.command([sys.executable, "-c", program], own_sysfs=True)
    assert run_tool(inside).stdout == "set()\n"


def _as_pyroute2_sees_it() -> tuple[set[tuple[int, int, int]], set[str]]:
    """(family, metric, device) of the default routes of the main table, and the addresses."""
    with IPRoute() as netlink:
        routes = [one for one in netlink.get_default_routes() if one.get_attr("RTA_TABLE") == 254]
        pairs = {
            (one["family"], one.get_attr("RTA_PRIORITY") or 0, hop)
            for one in routes
            for hop in [one.get_attr("RTA_OIF"), *(hop["oif"] for hop in one.get_attr("RTA_MULTIPATH") or ())]
            if hop is not None
        }
        found = [one.get_attr("IFA_LOCAL") or one.get_attr("IFA_ADDRESS") for one in netlink.get_addr()]
        return pairs, set(found)


def test_another_reader_of_netlink_sees_the_same(make_node: Callable[[str], Node]) -> None:
    node = make_node(
        PAIR + "route add default via 198.18.0.1 metric 7\nroute add default metric 9 nexthop via 198.18.1.1 "
        "nexthop via 198.18.0.1\nroute add ::/0 via fd00:78::1 metric 5\nroute add ::/0 dev up0 metric 77"
    )
    routes, addresses = node.namespace.call(_as_pyroute2_sees_it)
    assert len(routes) == 5
    with node.namespace.entered():
        requests = Requests()
    ours = {
        (route.family, route.metric, device)
        for route in requests.default_routes()
        for device in route.devices
    }
    assert ours == routes
    assert requests.addresses() == addresses
    requests.close()


def test_a_burst_of_events_that_overruns_the_socket_loses_nothing(make_node: Callable[[str], Node]) -> None:
    node = make_node(PAIR + "route add default via 198.18.0.1")
    assert names(node.read()) == ["up0"]
    node.ip("".join(f"link set up1 mtu {1300 + number % 2}\n" for number in range(1000)))
    node.ip("route replace default via 198.18.1.1")
    node.ip("".join(f"link set far1 mtu {1300 + number % 2}\n" for number in range(2000)))
    assert names(node.read()) == ["up1"]


def test_where_the_kernel_says_that_events_were_lost_everything_is_read_anew(
    make_node: Callable[[str], Node],
) -> None:
    """The one event that matters finds no room behind a few that do not."""
    node = make_node(PAIR + "route add default via 198.18.0.1")
    assert names(node.read()) == ["up0"]
    node.links._events._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    node.ip("".join(f"link set far1 mtu {1300 + number % 2}\n" for number in range(50)))
    node.ip("route replace default via 198.18.1.1")
    assert node.links.has_news()
    assert names(node.read()) == ["up1"]


async def test_a_storm_of_events_is_looked_at_twenty_times_a_second(
    make_node: Callable[[str], Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    node, looks = make_node(PAIR + "route add default via 198.18.0.1"), 0

    def look(_self: HostFacts, _world: object) -> None:
        nonlocal looks
        looks += 1

    monkeypatch.setattr(HostFacts, "look", look)
    with node.namespace.entered():
        facts = HostFacts("node", Settings(), SystemClock())
    look_again = asyncio.Event()
    task = asyncio.create_task(facts.follow(cast("World", None), look_again))
    end_s = time.monotonic() + 0.5
    while time.monotonic() < end_s:
        look_again.set()
        await asyncio.sleep(0.001)
    task.cancel()
    assert 2 <= looks <= 0.5 / GAP_S + 2


def test_what_nobody_told_is_found_by_the_slow_look(make_node: Callable[[str], Node]) -> None:
    node = make_node(PAIR + "route add default via 198.18.0.1")
    first = node.read()
    list(node.links._events.take())
    node.ip("route replace default via 198.18.1.1")
    list(node.links._events.take())
    assert node.read() == first
    node.now_s += RECHECK_S
    assert names(node.read()) == ["up1"]


def test_ten_thousand_looks_leave_nothing_behind(make_node: Callable[[str], Node]) -> None:
    node = make_node(PAIR + "route add default via 198.18.0.1")
    for _ in range(100):
        node.read()
    gc.collect()  # what earlier tests left to be closed
    open_files = len(list(Path("/proc/self/fd").iterdir()))
    tracemalloc.start()
    before_s = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    for number in range(10_000):
        node.now_s += RECHECK_S * (number % 50 == 0)  # one in 50 reads everything anew
        node.read()
    took_s = resource.getrusage(resource.RUSAGE_SELF).ru_utime - before_s
    gc.collect()
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(list(Path("/proc/self/fd").iterdir())) == open_files
    assert grown < 50_000
    assert took_s < 10.0
