"""A second node behind the wire, and the VXLAN tunnel between the two (flannel's way)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from netqos.testing import networks
from netqos.testing.cabling import End, batch, bridge_batch, cable, default_via, permanent, up_with
from netqos.testing.namespaces import Namespace
from netqos.testing.networks import NODE, OUTSIDE, REMOTE_POD, UPLINK, Network, Subnet

TUNNEL = "flannel.1"
_REMOTE_MAC, _REMOTE_GATEWAY_MAC = "02:00:00:00:00:03", "02:00:00:00:00:04"


@dataclass(frozen=True, slots=True, kw_only=True)
class _TunnelEnd:
    """One node of the overlay; `gateways` is what the other node's routes name, by family."""

    namespace: Namespace
    underlay: str
    mac: str
    pods: Subnet
    gateways: Mapping[int, str]


def build_overlay(network: Network, *, wire: Namespace, node: Namespace, remote: Namespace) -> None:
    """Connect the second node and the tunnel; its pods' addresses are on the second node itself."""
    families, subnet = network.families, networks.REMOTE_WIRE
    cable(End(remote, UPLINK, _REMOTE_MAC), End(wire, "wire2", _REMOTE_GATEWAY_MAC))
    batch(wire, up_with("wire2", [subnet.with_length(OUTSIDE, family) for family in families]))
    gateways = [default_via(subnet.host(OUTSIDE, family)) for family in families]
    batch(remote, [*up_with(UPLINK, [subnet.with_length(NODE, family) for family in families]), *gateways])
    near = _TunnelEnd(
        namespace=node,
        underlay=networks.WIRE.host(NODE, families[0]),
        mac="02:00:00:00:01:02",
        pods=networks.PODS,
        gateways={4: "10.88.0.0", 6: "fe80::88"},
    )
    far = _TunnelEnd(
        namespace=remote,
        underlay=subnet.host(NODE, families[0]),
        mac="02:00:00:00:01:03",
        pods=networks.REMOTE_PODS,
        gateways={4: "10.89.0.0", 6: "fe80::89"},
    )
    _build_end(network, near, far)
    _build_end(network, far, near)
    batch(remote, [f"addr add {networks.REMOTE_PODS.host(REMOTE_POD, family)} dev lo" for family in families])


def _build_end(network: Network, own: _TunnelEnd, other: _TunnelEnd) -> None:
    kind = f"type vxlan id 1 dev {UPLINK} local {own.underlay} dstport 8472 nolearning"
    beyond = [(other.pods.prefix(family), other.gateways[family]) for family in network.families]
    batch(
        own.namespace,
        [
            f"link add {TUNNEL} address {own.mac} mtu {network.mtu} {kind}",
            *up_with(TUNNEL, [own.gateways[family] for family in network.families]),
            *permanent(TUNNEL, other.mac, [gateway for _prefix, gateway in beyond]),
            *(f"route add {prefix} via {gateway} dev {TUNNEL} onlink" for prefix, gateway in beyond),
        ],
    )
    bridge_batch(own.namespace, [f"fdb append {other.mac} dev {TUNNEL} dst {other.underlay}"])
