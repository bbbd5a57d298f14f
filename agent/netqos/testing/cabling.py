"""Veth pairs, addresses and neighbours between namespaces, as lines for `ip -batch`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from netqos.testing.namespaces import Namespace
from netqos.testing.processes import run_tool

WIRE_MAC, NODE_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"


class End(NamedTuple):
    """One end of a veth pair."""

    namespace: Namespace
    device: str
    mac: str


def cable(one: End, other: End) -> None:
    """A veth pair between two namespaces, both ends still down."""
    words = ["ip", "link", "add", one.device, "address", one.mac, "netns", one.namespace.name, "type", "veth"]
    words += ["peer", "name", other.device, "address", other.mac, "netns", other.namespace.name]
    run_tool(words)


def batch(namespace: Namespace, lines: Sequence[str]) -> None:
    """Run lines of `ip` in one process; the first that fails stops it, with its number in the message."""
    run_tool(["ip", "-n", namespace.name, "-batch", "-"], text="\n".join(lines) + "\n")


def bridge_batch(namespace: Namespace, lines: Sequence[str]) -> None:
    """Run lines of `bridge` in one process."""
    run_tool(["bridge", "-n", namespace.name, "-batch", "-"], text="\n".join(lines) + "\n")


def up_with(device: str, addresses: Iterable[str]) -> list[str]:
    """A device that is up and has addresses, given with their prefix lengths; without duplicate detection."""
    lines = [f"link set {device} up"]
    return lines + [f"addr add {one} dev {device}{' nodad' if ':' in one else ''}" for one in addresses]


def permanent(device: str, mac: str, addresses: Iterable[str]) -> list[str]:
    """Neighbours that nobody has to ask for."""
    return [f"neigh replace {one} lladdr {mac} dev {device} nud permanent" for one in addresses]


def default_via(gateway: str, device: str = "") -> str:
    """A default route of the gateway's family."""
    where = f" dev {device}" if device else ""
    return f"route add {'::/0' if ':' in gateway else 'default'} via {gateway}{where}"


def mac(kind: int, number: int) -> str:
    """A MAC of our own; `kind` tells the ends of a pod's cables apart."""
    return f"02:00:00:{kind:02x}:{number >> 8:02x}:{number & 255:02x}"
