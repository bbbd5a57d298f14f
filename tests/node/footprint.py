"""What can be left behind on a node: queues, rules, links, files, cgroups; read as one value to compare."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, fields
from pathlib import Path

from netqos.errors import NetqosError
from tests.node.machine import SHELL_UNIT
from tests.node.realnode import RealNode, wait_until

FOLDERS = (
    "/run/netqos",
    "/run/koordinator",
    "/var/lib/netqos",
    "/etc/netqos",
    "/etc/cni",
    "/var/lib/cni",
    "/run/netns",
)
SETTLED_S = 20.0
_CNI = "/var/lib/cni/"
_ACCOUNTS = frozenset({"lock", "last_reserved_ip.0"})
"""What host-local keeps of its own, and where, says nothing of pods."""

_LINK_KEYS = ("ifname", "mtu", "qdisc", "ifalias", "txqlen", "address", "master")


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Each a sorted list of what there is, so that a difference can be told line by line."""

    qdiscs: tuple[str, ...]
    rules: tuple[str, ...]
    links: tuple[str, ...]
    files: tuple[str, ...]
    cgroups: tuple[str, ...]

    def differences(self, later: Footprint) -> list[str]:
        """What came (+) and what went (-) until later."""
        found = []
        for field in fields(self):
            before, after = set(getattr(self, field.name)), set(getattr(later, field.name))
            found += [f"- {field.name}: {one}" for one in sorted(before - after)]
            found += [f"+ {field.name}: {one}" for one in sorted(after - before)]
        return found


def footprint(node: RealNode) -> Footprint:
    """As it is now."""
    return Footprint(
        qdiscs=_lines(node, "tc", "qdisc", "show"),
        rules=_rules(node.node.run(["nft", "--stateless", "list", "ruleset"]).stdout),
        links=tuple(sorted(_link(one) for one in json.loads(node.node.run(["ip", "-j", "link"]).stdout))),
        files=tuple(sorted(one for folder in FOLDERS for one in _files(node.machine.path(folder), folder))),
        cgroups=tuple(
            one for one in node.machine.cgroups() if not one.partition(":")[2].startswith(f"/{_SHELL}")
        ),
    )


def wait_as_before(node: RealNode, before: Footprint) -> None:
    """AssertionError, with what differs, where a node is not as it was once kubelet and runtime are done."""
    found: list[str] = []

    def is_as_before() -> bool:
        found[:] = before.differences(footprint(node))
        return not found

    try:
        wait_until(is_as_before, "the node is as it was", SETTLED_S, pause_s=0.2)
    except NetqosError:
        raise AssertionError("left behind (+) or missing (-):\n" + "\n".join(found)) from None


_SHELL = SHELL_UNIT.partition("/")[0]


def _lines(node: RealNode, *command: str) -> tuple[str, ...]:
    return tuple(sorted(node.node.run(list(command)).stdout.splitlines()))


def _rules(text: str) -> tuple[str, ...]:
    """Each line with its table and chain, since lines alone repeat."""
    found, place = [], ["", ""]
    for line in text.splitlines():
        words = line.strip()
        opened = re.match(r"(?:table|chain|map|set) (.*) \{", words)
        if opened is not None:
            place = [words, ""] if words.startswith("table") else [place[0], words]
        found.append(" ".join([*place, words]))
    return tuple(sorted(found))


def _link(link: dict[str, object]) -> str:
    return " ".join(f"{key}={link.get(key)}" for key in _LINK_KEYS)


def _files(place: Path, name: str) -> list[str]:
    return [
        f"{name}/{(Path(folder) / one).relative_to(place)}"
        for folder, folders, files in os.walk(place)
        for one in (*folders, *files)
        if f"{folder}/{one}".partition(_CNI)[1] == "" or (one in files and one not in _ACCOUNTS)
    ]
