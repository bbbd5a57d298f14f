"""Hundreds of workloads on one rig: each an address of its own, all behind one pod's device.

What netqosd does for them is what it does for as many pods (a class in each direction, elements, a limit); what a real
node has beside, a namespace and a device for each, is not netqosd's and would take half a minute to build.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from netqos.model.levels import Level
from netqos.testing.daemon import Document
from netqos.testing.netns import Rig

NAME = "crowd"
_SUBNET = "10.77.0.0/16"


def addresses(count: int) -> list[str]:
    """The workloads' addresses."""
    return [f"10.77.{1 + number // 250}.{1 + number % 250}" for number in range(count)]


def settle(rig: Rig, count: int) -> None:
    """Give the rig's pod `crowd` so many addresses, with a route to them from everywhere."""
    pod = rig.pod(NAME)
    lines = [f"addr add {address}/32 dev eth0" for address in addresses(count)]
    pod.run(["ip", "-batch", "-"], text="\n".join(lines) + "\n")
    rig.node.run(["ip", "route", "add", _SUBNET, "dev", pod.link, "scope", "link"])
    rig.wire.run(["ip", "route", "add", _SUBNET, "via", rig.node.address])


def workloads(
    count: int,
    *,
    level: Callable[[int], Level] = lambda number: Level(number % 3),
    limit: Callable[[int], str | None] = lambda _number: None,
) -> list[Document]:
    """Their entries of the configuration; a limit holds for egress, and twice as much for ingress."""
    return [
        _workload(number, address, level(number), limit(number))
        for number, address in enumerate(addresses(count))
    ]


def _workload(number: int, address: str, level: Level, limit: str | None) -> Document:
    entry: Document = {
        "name": f"w{number}",
        "match": {"addresses": [address]},
        "level": level.name.lower(),
    }
    if limit is not None:
        entry["limits"] = {"egress": f"{limit}", "ingress": _twice(limit)}
    return entry


def _twice(limit: str) -> str:
    return f"{2 * int(limit[:-1])}{limit[-1]}"


def config(workloads: Sequence[Document], *, total: str = "10G", rx: str = "8G") -> Document:
    """A node with the usual levels."""
    return {
        "node": {"bandwidth": {"tx": total, "rx": rx}},
        "policy": {"enable": True},
        "workloads": list(workloads),
    }
