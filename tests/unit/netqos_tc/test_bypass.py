"""Which workloads are past the node's stack, by its routes."""

from __future__ import annotations

import ipaddress

import pytest

from netqos.model.desired import DesiredPod
from netqos.model.health import Finding, warning
from netqos.testing import states
from netqos_tc import bypass
from netqos_tc.observed import TcObserved
from netqos_tc.places import Device, Route, Routes

UP0, POD_VETH, SHIM, TUNNEL, BR0, CNI0 = 2, 10, 11, 12, 13, 14
DEVICES = {
    UP0: Device(name="up0", master=BR0),
    BR0: Device(name="br0", kind="bridge", filtered=frozenset({6})),
    CNI0: Device(name="cni0", kind="bridge"),
    POD_VETH: Device(name="pod10", kind="veth"),
    SHIM: Device(name="shim0", kind="macvlan"),
    TUNNEL: Device(name="flannel.1", kind="vxlan"),
}


def route(prefix: str, device: int) -> Route:
    network = ipaddress.ip_network(prefix)
    return Route(network.version, network.prefixlen, int(network.network_address), 0, device)


ROUTES = (
    route("10.88.0.10/32", POD_VETH),
    route("fd00:88::10/128", POD_VETH),
    route("198.18.0.0/24", UP0),
    route("198.18.0.64/26", SHIM),
    route("10.89.0.0/16", TUNNEL),
    route("198.18.1.0/24", BR0),
    route("fd00:18::/64", BR0),
    route("10.90.0.0/16", CNI0),
)


def told(pod: DesiredPod, *more: Route) -> list[tuple[str, str]]:
    observed = TcObserved(routes=Routes.of((*ROUTES, *more)), devices=DEVICES)
    found = bypass.findings(states.node((pod,)), observed)
    assert all(one.subject == f"pod {pod.name}" for one in found)
    return [(one.code, one.message.rpartition("): ")[2]) for one in found]


@pytest.mark.parametrize(
    "addresses",
    [
        (),
        ("10.88.0.10", "fd00:88::10"),
        ("10.89.0.10",),  # by a tunnel: not behind an uplink
        ("192.0.2.1",),  # by no route
        ("10.90.0.10",),  # on a bridge without the uplink
        ("fd00:18::10",),  # on a bridge with it, but past the IP hooks
        ("nonsense",),
    ],
)
def test_nothing_is_said_of_others(addresses: tuple[str, ...]) -> None:
    assert told(states.pod("ns/web", addresses=addresses)) == []


@pytest.mark.parametrize(
    ("address", "device"), [("198.18.0.10", "up0"), ("198.18.0.65", "shim0")], ids=["uplink", "sibling"]
)
def test_what_the_node_reaches_outside_is_past_its_stack(address: str, device: str) -> None:
    assert told(states.pod("ns/web", addresses=(address,))) == [
        ("not-enforced-bypass", f"this node reaches {address} by {device}")
    ]


def test_what_a_bridge_hands_to_its_uplink_without_the_ip_hooks() -> None:
    assert told(states.pod("ns/web", addresses=("198.18.1.10", "fd00:18::10"))) == [
        ("address-bypasses", "br0 bridges 198.18.1.10 with up0 and br_netfilter is off for IPv4")
    ]


def test_an_address_that_only_the_default_route_leads_to() -> None:
    pod = states.pod("ns/web", addresses=("192.0.2.1", "fd00:1::1"))
    default4, default6 = route("0.0.0.0/0", UP0), route("::/0", UP0)
    assert told(pod, default4, default6) == [
        ("not-enforced-bypass", "this node reaches 192.0.2.1 by up0, this node reaches fd00:1::1 by up0")
    ]


def test_one_address_of_several_denies_nothing_of_the_others() -> None:
    pod = states.pod("ns/web", addresses=("10.88.0.10", "198.18.0.10"))
    assert told(pod) == [("address-bypasses", "this node reaches 198.18.0.10 by up0")]


def test_a_pod_on_the_hosts_network_is_not_past_it() -> None:
    pod = states.pod("ns/web", addresses=("198.18.0.10",), host_network=True)
    assert told(pod) == []


def test_of_whom_all_is_denied_nothing_else_is_said() -> None:
    def said(code: str, subject: str) -> Finding:
        return warning(code, subject, "")

    past = (said(bypass.CODE, "pod a"), said(bypass.SOME, "pod b"))
    others = [said("not-enforced-ingress", f"pod {name}") for name in "abc"]
    assert [one.subject for one in bypass.unsaid(others, past)] == ["pod b", "pod c"]
