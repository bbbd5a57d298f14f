"""How each part of a network is built: the wire, the node, a second node, and each way to attach a pod.

Every function does one thing for any `Network`; which of them are called follows from its fields alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from netqos.testing import networks
from netqos.testing.cabling import (
    NODE_MAC,
    WIRE_MAC,
    End,
    batch,
    cable,
    default_via,
    mac,
    permanent,
    up_with,
)
from netqos.testing.namespaces import Namespace
from netqos.testing.nat import ruleset, service_elements
from netqos.testing.networks import (
    GATEWAY,
    NODE,
    OUTSIDE,
    SECOND_UPLINK,
    UPLINK,
    Attachment,
    Network,
    Subnet,
    first_addresses,
    pod_subnet,
)
from netqos.testing.nexthop import build_hop
from netqos.testing.overlay import build_overlay

BRIDGE, SECOND_BRIDGE, UPLINK_BRIDGE = "cni0", "br1", "br0"
_HOST_GATEWAY = ("169.254.1.1", "fe80::1")  # Calico's way: the same for every pod, on no device


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The namespaces that are there before any pod.

    `remote` is the second node of an overlay, `hop` what is between the uplink and the wire.
    """

    network: Network
    wire: Namespace
    node: Namespace
    remote: Namespace | None = None
    hop: Namespace | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSite:
    """A pod to connect, and its number in every subnet."""

    site: Site
    pod: Namespace
    number: int

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses of its first device."""
        return first_addresses(self.network, self.number)

    @property
    def network(self) -> Network:
        """The network of its node."""
        return self.site.network

    @property
    def near_mac(self) -> str:
        """The node's end."""
        return mac(0x10, self.number)

    @property
    def far_mac(self) -> str:
        """The pod's end."""
        return mac(0x20, self.number)


def build(site: Site) -> None:
    """Everything but the pods."""
    _build_uplink(site)
    if site.network.attachment is Attachment.BRIDGE:
        _build_bridge(site, BRIDGE, networks.PODS)
    if site.network.second:
        _build_second(site)
    if site.remote is not None:
        build_overlay(site.network, wire=site.wire, node=site.node, remote=site.remote)
    rules = ruleset(site.network)
    if rules:
        site.node.run(["nft", "-f", "-"], text=rules)


def attach(pod: PodSite) -> None:
    """Connect a pod."""
    _ATTACH[pod.network.attachment](pod)
    if pod.network.second:
        _attach_second(pod)
    if pod.network.services:
        pod.site.node.run(["nft", "-f", "-"], text=service_elements(pod.network, pod.number))


def _build_uplink(site: Site) -> None:
    network, wire, node = site.network, site.wire, site.node
    near, far = End(node, UPLINK, NODE_MAC), End(wire, "wire0", WIRE_MAC)
    if site.hop is None:
        cable(near, far)
    else:
        build_hop(site.hop, near, far)
    inside = [networks.PODS, *([networks.SECOND_PODS] if network.second else [])]
    batch(
        wire,
        [
            *_wired(site, "wire0", networks.WIRE, own=OUTSIDE),
            *(
                f"route add {subnet.prefix(family)} via {networks.WIRE.host(NODE, family)}"
                for subnet in inside
                for family in network.families
            ),
        ],
    )
    device = UPLINK
    if network.attachment is Attachment.UPLINK_BRIDGE:
        device = UPLINK_BRIDGE
        _make_bridge(site, device, NODE_MAC)
        batch(node, [f"link set {UPLINK} up", f"link set {UPLINK} master {device}"])
    gateways = [default_via(networks.WIRE.host(OUTSIDE, family)) for family in network.families]
    batch(node, [*_wired(site, device, networks.WIRE, own=NODE), *gateways])


def _wired(site: Site, device: str, subnet: Subnet, *, own: int) -> list[str]:
    """One end of a wire. Neighbours are permanent, so that its frames are the packets of a test alone."""
    families = site.network.families
    other, other_mac = (NODE, NODE_MAC) if own == OUTSIDE else (OUTSIDE, WIRE_MAC)
    return [
        *up_with(device, [subnet.with_length(own, family) for family in families]),
        *permanent(device, other_mac, [subnet.host(other, family) for family in families]),
    ]


def _build_bridge(site: Site, name: str, subnet: Subnet) -> None:
    _make_bridge(site, name, mac(0x30, len(name)))
    batch(site.node, up_with(name, [subnet.with_length(GATEWAY, family) for family in site.network.families]))


def _make_bridge(site: Site, name: str, address: str) -> None:
    kind = "type bridge stp_state 0 forward_delay 0 mcast_snooping 0"
    batch(site.node, [f"link add {name} address {address} mtu {site.network.mtu} {kind}"])
    site.node.call(_set_bridge_filter, is_on=site.network.filtered_bridge)


def _set_bridge_filter(*, is_on: bool) -> None:
    for family in ("ip", "ip6"):
        with contextlib.suppress(FileNotFoundError):  # br_netfilter is a module
            Path(f"/proc/sys/net/bridge/bridge-nf-call-{family}tables").write_text(
                f"{is_on:d}", encoding="ascii"
            )


def _build_second(site: Site) -> None:
    """The bridge of the second interfaces, and a part of the outside that they lead to."""
    subnet, families = networks.SECOND_WIRE, site.network.families
    _build_bridge(site, SECOND_BRIDGE, networks.SECOND_PODS)
    if site.network.uplinks == 1:
        batch(site.wire, [f"addr add {subnet.host(OUTSIDE, family)} dev lo" for family in families])
        return
    cable(End(site.node, SECOND_UPLINK, NODE_MAC), End(site.wire, "wire1", WIRE_MAC))
    batch(site.node, _wired(site, SECOND_UPLINK, subnet, own=NODE))
    routes = [
        f"route replace {networks.SECOND_PODS.prefix(family)} via {subnet.host(NODE, family)}"
        for family in families
    ]
    batch(site.wire, [*_wired(site, "wire1", subnet, own=OUTSIDE), *routes])


def _attach_routed(pod: PodSite) -> None:
    cable(End(pod.site.node, pod.pod.link, pod.near_mac), End(pod.pod, "eth0", pod.far_mac))
    gateways = [_HOST_GATEWAY[family == 6] for family in pod.network.families]
    asked = pod.network.resolves
    answers = [one + "/64" for one in gateways if asked and ":" in one]
    batch(
        pod.site.node,
        [
            *up_with(pod.pod.link, answers),
            *([] if asked else permanent(pod.pod.link, pod.far_mac, pod.addresses)),
            *(
                f"route add {one} dev {pod.pod.link}{'' if ':' in one else ' scope link'}"
                for one in pod.addresses
            ),
        ],
    )
    if asked and 4 in pod.network.families:
        link = pod.pod.link
        pod.site.node.set_sysctls(
            {f"net/ipv4/conf/{link}/proxy_arp": 1, f"net/ipv4/neigh/{link}/proxy_delay": 0}
        )
    batch(
        pod.pod,
        [
            *up_with("eth0", pod.addresses),
            *([] if asked else permanent("eth0", pod.near_mac, gateways)),
            *(f"route add {one} dev eth0 scope link" for one in gateways if ":" not in one),
            *(default_via(one, "eth0") for one in gateways),
        ],
    )


def _attach_bridged(pod: PodSite) -> None:
    is_on_wire = pod.network.attachment is Attachment.UPLINK_BRIDGE
    bridge, gateway = (UPLINK_BRIDGE, OUTSIDE) if is_on_wire else (BRIDGE, GATEWAY)
    link, mtu, subnet = pod.pod.link, pod.network.mtu, pod_subnet(pod.network)
    cable(End(pod.site.node, link, pod.near_mac), End(pod.pod, "eth0", pod.far_mac))
    batch(pod.site.node, [f"link set {link} mtu {mtu} master {bridge}", f"link set {link} up"])
    addresses = [f"{one}/{subnet.length(6 if ':' in one else 4)}" for one in pod.addresses]
    gateways = [default_via(subnet.host(gateway, family)) for family in pod.network.families]
    batch(pod.pod, [f"link set eth0 mtu {mtu}", *up_with("eth0", addresses), *gateways])


def _attach_past(pod: PodSite) -> None:
    """A macvlan or ipvlan device on the uplink: the pod is a host of the wire."""
    kind = {Attachment.MACVLAN: "macvlan mode bridge", Attachment.IPVLAN: "ipvlan mode l2"}
    made = f"link add link {UPLINK} name eth0 netns {pod.pod.name} type {kind[pod.network.attachment]}"
    batch(pod.site.node, [made])
    subnet, families = networks.WIRE, pod.network.families
    gateways = [default_via(subnet.host(OUTSIDE, family)) for family in families]
    batch(pod.pod, [*up_with("eth0", [subnet.with_length(pod.number, one) for one in families]), *gateways])


def _attach_second(pod: PodSite) -> None:
    link, number, families = f"{pod.pod.link}b", pod.number, pod.network.families
    cable(End(pod.site.node, link, mac(0x11, number)), End(pod.pod, "net1", mac(0x21, number)))
    batch(pod.site.node, [f"link set {link} master {SECOND_BRIDGE}", f"link set {link} up"])
    subnet, beyond = networks.SECOND_PODS, networks.SECOND_WIRE
    routes = [f"route add {beyond.prefix(one)} via {subnet.host(GATEWAY, one)}" for one in families]
    batch(pod.pod, [*up_with("net1", [subnet.with_length(number, one) for one in families]), *routes])


_ATTACH: Mapping[Attachment, Callable[[PodSite], None]] = {
    Attachment.ROUTED: _attach_routed,
    Attachment.BRIDGE: _attach_bridged,
    Attachment.UPLINK_BRIDGE: _attach_bridged,
    Attachment.MACVLAN: _attach_past,
    Attachment.IPVLAN: _attach_past,
}
