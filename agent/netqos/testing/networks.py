"""How a node's pods are connected, as data: what a `netns.Rig` is told to build.

A `Network` is one answer to each question that differs between clusters (how a pod is attached, which families there
are, who rewrites addresses); `NETWORKS` has the combinations that clusters use, by name. Pure.
"""

from __future__ import annotations

import enum
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

FAMILIES: Final = (4, 6)


class Attachment(enum.Enum):
    """How a pod's device is connected with the node.

    ROUTED: a veth pair and a route for each pod (Calico). BRIDGE: veth pairs on a bridge that is the pods' gateway
    (CNI bridge, flannel). UPLINK_BRIDGE: veth pairs on a bridge that has the uplink as a port; pods are hosts of the
    wire. MACVLAN and IPVLAN: a device of the pod's own on the uplink, past the node's stack.
    """

    ROUTED = "routed"
    BRIDGE = "bridge"
    UPLINK_BRIDGE = "uplink-bridge"
    MACVLAN = "macvlan"
    IPVLAN = "ipvlan"


ON_WIRE: Final = frozenset({Attachment.UPLINK_BRIDGE, Attachment.MACVLAN, Attachment.IPVLAN})
"""Attachments with which pods are hosts of the wire: its addresses, its gateway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subnet:
    """One network's prefixes; hosts have the same number in both families."""

    v4: str
    v6: str

    def prefix(self, family: int) -> str:
        """`10.88.0.0/16`."""
        return self.v4 if family == 4 else self.v6

    def length(self, family: int) -> int:
        """The bits of the prefix."""
        return ipaddress.ip_network(self.prefix(family)).prefixlen

    def host(self, number: int, family: int) -> str:
        """A host's address. An IPv6 address shows the number in decimal, for people: `::10`, `::1:10` for 10010."""
        if family == 4:
            return str(ipaddress.ip_network(self.v4)[number])
        more, last = divmod(number, 10_000)
        return self.v6.split("/", maxsplit=1)[0] + (f"{more}:{last}" if more else str(last))

    def with_length(self, number: int, family: int) -> str:
        """`10.88.0.10/16`."""
        return f"{self.host(number, family)}/{self.length(family)}"


UPLINK: Final = "up0"
SECOND_UPLINK: Final = "up1"

# 198.18.0.0/15 is for benchmarks (RFC 2544).
WIRE: Final = Subnet(v4="198.18.0.0/24", v6="fd00:77::/64")
SECOND_WIRE: Final = Subnet(v4="198.19.0.0/24", v6="fd00:79::/64")
REMOTE_WIRE: Final = Subnet(v4="198.18.1.0/24", v6="fd00:78::/64")
PODS: Final = Subnet(v4="10.88.0.0/16", v6="fd00:88::/64")
REMOTE_PODS: Final = Subnet(v4="10.89.0.0/16", v6="fd00:89::/64")
SECOND_PODS: Final = Subnet(v4="10.90.0.0/16", v6="fd00:90::/64")
SERVICES: Final = Subnet(v4="10.96.0.0/16", v6="fd00:96::/64")

OUTSIDE: Final = 1
"""The number of the outside on a wire, and of the service that stands for it."""

NODE: Final = 2
"""The number of a node on its wire."""

NEXT_HOP: Final = 3
"""The number of what is between a node and the outside; it answers to no address."""

GATEWAY: Final = 1
"""The number of the node on a bridge."""

REMOTE_POD: Final = 10
"""The number of the pod on the second node of an overlay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """One node's pod network.

    `masquerade`: what pods send to the wire carries the node's address. `overlay`: a second node beyond the wire,
    whose pods are reached by VXLAN (flannel). `services`: addresses that stand for others, rewritten as kube-proxy does
    it. `addresses`: how many of each family a pod has. `second`: pods have a second interface, on a bridge of its own;
    with two `uplinks` what it sends leaves by the second one. `filtered_bridge`: frames that stay on a bridge pass the
    IP hooks too (br_netfilter, which Kubernetes asks for), where the kernel can do that. `resolves`: neighbours are
    asked for as on a real node; else they are permanent, so that no frame is sent but the packets of a test. `hop`: a
    switch between the uplink and the wire, whose queues can be made the true bottleneck (`netqos.testing.nexthop`).
    """

    attachment: Attachment = Attachment.ROUTED
    families: tuple[int, ...] = FAMILIES
    masquerade: bool = False
    overlay: bool = False
    services: bool = False
    addresses: int = 1
    second: bool = False
    uplinks: int = 1
    filtered_bridge: bool = True
    resolves: bool = False
    hop: bool = False

    def __post_init__(self) -> None:
        """Refuse what nobody builds."""
        if self.is_on_wire and (self.overlay or self.services or self.second or self.addresses > 1):
            raise ValueError(f"no overlay, service or further address with {self.attachment.value}")
        if self.uplinks > 1 and not self.second:
            raise ValueError("a second uplink is for the pods' second interface")

    @property
    def bypasses(self) -> bool:
        """Whether the pods' packets pass the node's IP stack by."""
        return self.is_on_wire and not (self.attachment is Attachment.UPLINK_BRIDGE and self.filtered_bridge)

    @property
    def is_on_wire(self) -> bool:
        """Whether pods are hosts of the wire."""
        return self.attachment in ON_WIRE

    @property
    def mtu(self) -> int:
        """The pods' MTU: an overlay takes 50 bytes of it, 70 over IPv6."""
        return 1500 - (overlay_bytes(self.families[0]) if self.overlay else 0)

    @property
    def feature(self) -> str:
        """What the kernel needs for it beside veth pairs, in the names of the tests' features; empty for nothing."""
        if self.overlay:
            return "vxlan"
        if self.attachment is Attachment.UPLINK_BRIDGE and self.filtered_bridge:
            return "br-netfilter"
        if self.attachment in {Attachment.MACVLAN, Attachment.IPVLAN}:
            value: str = self.attachment.value
            return value
        return "" if self.attachment is Attachment.ROUTED and not self.second else "bridge"


def pod_subnet(network: Network) -> Subnet:
    """Where pods have their first addresses."""
    return WIRE if network.is_on_wire else PODS


def first_addresses(network: Network, number: int) -> tuple[str, ...]:
    """The addresses of a pod's first device, one of each family in front."""
    subnet = pod_subnet(network)
    places = range(number, number + 10_000 * network.addresses, 10_000)
    return tuple(subnet.host(place, family) for place in places for family in network.families)


def second_addresses(network: Network, number: int) -> tuple[str, ...]:
    """The addresses of a pod's second device, none where it has none."""
    families = network.families if network.second else ()
    return tuple(SECOND_PODS.host(number, family) for family in families)


def overlay_bytes(family: int) -> int:
    """What VXLAN adds to a frame: an IP, a UDP and a VXLAN header, and the inner Ethernet header."""
    return (20 if family == 4 else 40) + 8 + 8 + 14


ROUTED: Final = Network()
MASQUERADED: Final = Network(masquerade=True)

NETWORKS: Final[Mapping[str, Network]] = {
    "routed": Network(resolves=True),
    "routed-masquerade": Network(resolves=True, masquerade=True),
    "bridge": Network(attachment=Attachment.BRIDGE, resolves=True, filtered_bridge=False),
    "bridge-masquerade": Network(attachment=Attachment.BRIDGE, resolves=True, masquerade=True),
    "vxlan": Network(attachment=Attachment.BRIDGE, resolves=True, overlay=True),
    "vxlan-masquerade": Network(attachment=Attachment.BRIDGE, resolves=True, overlay=True, masquerade=True),
    "vxlan-ipv6": Network(attachment=Attachment.BRIDGE, resolves=True, overlay=True, families=(6,)),
    "services": Network(attachment=Attachment.BRIDGE, resolves=True, services=True, masquerade=True),
    "ipv6": Network(resolves=True, families=(6,)),
    "addresses": Network(resolves=True, addresses=3),
    "second-interface": Network(resolves=True, second=True),
    "second-uplink": Network(resolves=True, second=True, uplinks=2),
    "uplink-bridge": Network(attachment=Attachment.UPLINK_BRIDGE, resolves=True),
    "uplink-bridge-unfiltered": Network(
        attachment=Attachment.UPLINK_BRIDGE, resolves=True, filtered_bridge=False
    ),
    "macvlan": Network(attachment=Attachment.MACVLAN, resolves=True),
    "ipvlan": Network(attachment=Attachment.IPVLAN, resolves=True),
}
"""The networks over which the suite of the datapath runs."""
