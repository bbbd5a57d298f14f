"""The ways that packets of a rig's pod take: who asks whom, at which address, and by which uplink that goes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from netqos.testing import networks
from netqos.testing.hostpod import HostPod
from netqos.testing.namespaces import Foothold
from netqos.testing.nat import node_port
from netqos.testing.netns import Rig
from netqos.testing.networks import NODE, OUTSIDE, REMOTE_POD, first_addresses, second_addresses

Place = Foothold | HostPod

_PORT = 7_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """One way between a pod and a peer.

    The asker sends to `target`, and the packet arrives at the answerer's `listens_at`: another address where a service
    stands in between. `source` is the asker's address, empty for the kernel's choice. `overhead` is what each frame
    is longer on the uplink than at the pod; `uplink` is empty for a way that stays on the node.
    """

    name: str
    asker: Place
    answerer: Place
    target: str
    source: str = ""
    listens_at: str = ""
    port: int = _PORT
    uplink: str = ""
    overhead: int = 0
    asked_by_pod: bool = True

    @property
    def family(self) -> int:
        """4 or 6."""
        return 6 if ":" in self.target else 4

    def back(self) -> Path:
        """The same way from the peer to the pod's own address."""
        return replace(
            self, asker=self.answerer, answerer=self.asker, target=self.source, source="", asked_by_pod=False
        )


def entered(place: Place) -> contextlib.AbstractContextManager[None]:
    """A place's namespace, for making a socket there; it would not be in the cgroup of a pod on the host's network."""
    if isinstance(place, HostPod):
        raise TypeError("a pod on the host's network makes its own sockets")
    return place.entered()


def outward(rig: Rig, name: str) -> tuple[Path, ...]:
    """Every way of a pod out of the node; each of its addresses takes part."""
    return tuple(_outward(rig, name))


def between(rig: Rig, one: str, other: str) -> tuple[Path, ...]:
    """The ways from one pod to another that stay on the node."""
    asker, answerer = rig.pod(one), rig.pod(other)
    found = [
        Path(name=f"to pod {address}", asker=asker, answerer=answerer, target=address)
        for address in rig.addresses(other)
    ]
    if rig.network.services:
        found += [
            Path(
                name=f"to service {networks.SERVICES.host(rig.number(other), family)}",
                asker=asker,
                answerer=answerer,
                target=networks.SERVICES.host(rig.number(other), family),
                listens_at=networks.PODS.host(rig.number(other), family),
            )
            for family in rig.network.families
        ]
    return tuple(found)


def _outward(rig: Rig, name: str) -> Iterator[Path]:
    place = rig.place(name)
    if isinstance(place, HostPod):
        for family in rig.network.families:
            yield _to_wire(rig, place, "", family)
        return
    number = rig.number(name)
    for source in first_addresses(rig.network, number):
        yield _to_wire(rig, place, source, 6 if ":" in source else 4)
    for source in second_addresses(rig.network, number):
        target = networks.SECOND_WIRE.host(OUTSIDE, 6 if ":" in source else 4)
        yield Path(
            name=f"from {source} by the second interface",
            asker=place,
            answerer=rig.wire,
            source=source,
            target=target,
            uplink=rig.uplinks[-1],
        )
    if rig.remote is not None:
        yield from _over_tunnel(rig, place, rig.remote, number)
    if rig.network.services:
        yield from _by_services(rig, place, number)


def _to_wire(rig: Rig, place: Place, source: str, family: int) -> Path:
    target = networks.WIRE.host(OUTSIDE, family)
    return Path(
        name=f"from {source or 'the node'} to the wire",
        asker=place,
        answerer=rig.wire,
        source=source,
        target=target,
        uplink=rig.uplink,
    )


def _over_tunnel(rig: Rig, place: Place, remote: Foothold, number: int) -> Iterator[Path]:
    for family in rig.network.families:
        target = networks.REMOTE_PODS.host(REMOTE_POD, family)
        yield Path(
            name=f"to {target} on the second node",
            asker=place,
            answerer=remote,
            source=networks.PODS.host(number, family),
            target=target,
            uplink=rig.uplink,
            overhead=networks.overlay_bytes(rig.network.families[0]),
        )


def _by_services(rig: Rig, place: Place, number: int) -> Iterator[Path]:
    for family in rig.network.families:
        yield Path(
            name=f"to service {networks.SERVICES.host(OUTSIDE, family)}",
            asker=place,
            answerer=rig.wire,
            target=networks.SERVICES.host(OUTSIDE, family),
            listens_at=networks.WIRE.host(OUTSIDE, family),
            uplink=rig.uplink,
        )
        yield Path(
            name=f"from the wire to port {node_port(number)} of the node (IPv{family})",
            asker=rig.wire,
            answerer=place,
            target=networks.WIRE.host(NODE, family),
            listens_at=networks.PODS.host(number, family),
            port=node_port(number),
            uplink=rig.uplink,
            asked_by_pod=False,
        )
