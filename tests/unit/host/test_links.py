"""What `Links` asks for and when, with a kernel that says what the test wants; real ones are in tests/kernel."""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from netqos.host.links import RECHECK_S, Links, decode_speed
from netqos.host.rtwire import DefaultRoute, Link
from netqos.model.ids import IfName
from netqos.settings.values import ConfiguredUplink

UP = 0x10001


def link(name: str, index: int, *, kind: str = "", slave: str = "", master: int = 0, lower: int = 0) -> Link:
    return Link(
        index=index, name=name, mtu=1500, flags=UP, kind=kind, slave_kind=slave, master=master, lower=lower
    )


class Kernel:
    """Answers as `netqos.host.rtnetlink.Requests` does."""

    def __init__(self, *links: Link) -> None:
        self.links = {one.index: one for one in links}
        self.routes: tuple[DefaultRoute, ...] = ()
        self.asked: list[str] = []
        self.fault: OSError | None = None

    def link(self, *, index: int = 0, name: str = "") -> Link | None:
        self._note("link")
        return next((one for one in self.links.values() if index == one.index or name == one.name), None)

    def members(self, master: int) -> tuple[Link, ...]:
        self._note("members")
        return tuple(one for one in self.links.values() if one.master == master)

    def nics(self) -> tuple[Link, ...]:
        return tuple(one for one in self.links.values() if not one.kind)

    def default_routes(self) -> tuple[DefaultRoute, ...]:
        self._note("routes")
        return self.routes

    def addresses(self) -> frozenset[str]:
        self._note("addresses")
        return frozenset({"198.18.0.2"})

    def fileno(self) -> int:
        return 0  # no socket, so no driver answers

    def close(self) -> None:
        pass

    def _note(self, question: str) -> None:
        self.asked.append(question)
        if self.fault is not None:
            raise self.fault

    def take_asked(self) -> set[str]:
        asked, self.asked = set(self.asked), []
        return asked


class Events:
    """Hints that the test gives."""

    def __init__(self) -> None:
        self.waiting: list[tuple[int, bytes]] = []

    def take(self) -> Iterator[tuple[int, memoryview]]:
        waiting, self.waiting = self.waiting, []
        for kind, payload in waiting:
            yield kind, memoryview(payload)

    def close(self) -> None:
        pass


class Node:
    def __init__(self, kernel: Kernel, sys_root: Path) -> None:
        self.links = Links(sys_root=sys_root)
        self.links._requests.close()
        self.links._events.close()
        self.kernel, self.events = kernel, Events()
        self.links._requests = kernel  # type: ignore[assignment]
        self.links._events = self.events  # type: ignore[assignment]
        self.now_s = 0.0

    def names(self, *configured: str) -> list[str]:
        self.now_s += 1.0
        wanted = tuple(ConfiguredUplink(name=IfName(name)) for name in configured) or None
        return [one.name for one in self.links.read(wanted, now_s=self.now_s).uplinks]

    def asks_after(self, kind: int, payload: bytes) -> set[str]:
        """What a look asks for after one event."""
        self.kernel.take_asked()
        self.events.waiting.append((kind, payload))
        self.names()
        return self.kernel.take_asked()


BOND = link("bond0", 10, kind="bond")
MEMBERS = (link("eth0", 2, slave="bond", master=10), link("eth1", 3, slave="bond", master=10))
VLAN = link("bond0.20", 20, kind="vlan", lower=10)
OTHER = link("eth9", 9)


def node(tmp_path: Path, *links: Link) -> Node:
    return Node(Kernel(*links), tmp_path)


def test_what_lies_below_an_uplink_is_known(tmp_path: Path) -> None:
    made = node(tmp_path, BOND, *MEMBERS, VLAN, OTHER)
    assert made.names("bond0.20", "eth1", "eth9") == ["bond0.20", "eth9"]
    assert made.names("eth1", "bond0") == ["eth1"]
    assert made.names("bond0", "eth9", "bond0") == ["bond0", "eth9"]


def message(kind: str, index: int = 0, *, master: int = 0, dst_len: int = 0, info: str = "veth") -> bytes:
    if kind == "route":
        return struct.pack("=BBBBBBBBI", 2, dst_len, 0, 0, 254, 0, 0, 1, 0)
    more = struct.pack("=HHI", 8, 10, master) if master else b""
    if info:
        more += struct.pack("=HHHH4s", 12, 18, 8, 1, info.encode())
    return struct.pack("=BxHiII", 0, 1, index, 0, 0) + more


NEWLINK, DELLINK, NEWADDR, NEWROUTE, DELROUTE, NEWNEXTHOP, OVERRUN = 16, 17, 20, 24, 25, 104, 4
EVERYTHING = {"link", "members", "routes", "addresses"}


@pytest.mark.parametrize(
    ("kind", "payload", "asked"),
    [
        (NEWLINK, message("link", 10), {"link", "members", "routes"}),
        (DELLINK, message("link", 3), {"link", "members", "routes"}),
        (NEWLINK, message("link", 77, master=10), {"link", "members", "routes"}),
        (NEWLINK, message("link", 77), set()),
        (NEWLINK, message("link", 77, info=""), {"link", "members", "routes"}),
        (NEWLINK, message("link", 77, master=78, info=""), set()),
        (DELLINK, message("link", 77, master=78), set()),
        (NEWROUTE, message("route"), {"link", "members", "routes"}),
        (DELROUTE, message("route"), {"link", "members", "routes"}),
        (NEWROUTE, message("route", dst_len=24), set()),
        (NEWNEXTHOP, b"", {"link", "members", "routes"}),
        (NEWADDR, b"", {"addresses"}),
        (NEWADDR, struct.pack("=BBBBI", 2, 24, 0, 253, 3), {"addresses"}),
        (NEWADDR, struct.pack("=BBBBI", 10, 64, 0, 0, 3), {"addresses"}),
        (NEWADDR, struct.pack("=BBBBI", 10, 64, 0, 253, 3), set()),
        (OVERRUN, b"", EVERYTHING),
    ],
)
def test_only_what_matters_leads_to_a_look(
    tmp_path: Path, kind: int, payload: bytes, asked: set[str]
) -> None:
    made = node(tmp_path, BOND, *MEMBERS, OTHER)
    made.kernel.routes = (DefaultRoute(family=2, metric=0, devices=(10,)),)
    assert made.names() == ["bond0"]
    assert made.asks_after(kind, payload) == asked
    made.events.waiting.append((kind, payload))
    assert made.links.has_news() == bool(asked)


def test_while_an_uplink_is_missing_any_link_may_be_it(tmp_path: Path) -> None:
    made = node(tmp_path, OTHER)
    assert made.names("eth5", "eth9") == ["eth9", "eth5"]
    made.kernel.links[5] = link("eth5", 5)
    assert made.names("eth5", "eth9") == ["eth9", "eth5"]  # nobody told
    made.events.waiting.append((NEWLINK, message("link", 5)))
    assert made.names("eth5", "eth9") == ["eth5", "eth9"]


def test_default_routes_do_not_matter_to_configured_uplinks(tmp_path: Path) -> None:
    made = node(tmp_path, OTHER)
    made.names("eth9")
    made.kernel.take_asked()
    made.events.waiting.append((NEWROUTE, message("route")))
    assert not made.links.has_news()
    assert made.names("eth9") == ["eth9"]
    assert made.kernel.take_asked() == set()


def test_everything_is_read_anew_now_and_then_and_for_new_settings(tmp_path: Path) -> None:
    made = node(tmp_path, OTHER)
    made.names("eth9")
    made.kernel.take_asked()
    made.now_s += RECHECK_S - 2
    made.names("eth9")
    assert made.kernel.take_asked() == set()
    made.now_s += 2
    made.names("eth9")
    assert made.kernel.take_asked() == {"link", "addresses"}
    made.names("eth9", "eth8")
    assert made.kernel.take_asked() == {"link", "addresses"}


def test_events_do_not_put_off_the_look_at_everything(tmp_path: Path) -> None:
    made = node(tmp_path, OTHER)
    made.names("eth9")
    for _ in range(4):
        made.now_s += RECHECK_S / 4
        made.events.waiting.append((NEWADDR, b""))
        made.kernel.take_asked()
        made.names("eth9")
    assert made.kernel.take_asked() == {"link", "addresses"}


def test_a_kernel_that_cannot_be_asked_leaves_the_report_before(tmp_path: Path) -> None:
    made = node(tmp_path, OTHER)
    made.names("eth9")
    good = made.links.read((ConfiguredUplink(name=IfName("eth9")),), now_s=made.now_s)
    made.kernel.fault = OSError(errno.EMFILE, "Too many open files")
    made.now_s += RECHECK_S
    found = made.links.read((ConfiguredUplink(name=IfName("eth9")),), now_s=made.now_s)
    assert (found.uplinks, found.addresses) == (good.uplinks, good.addresses)
    assert found.findings[:-1] == good.findings
    assert found.findings[-1].code == "links-unreadable"
    assert "Too many open files" in found.findings[-1].message
    made.kernel.fault = None
    assert made.links.read((ConfiguredUplink(name=IfName("eth9")),), now_s=made.now_s) == good


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (10_000, 0, 10_000),
        (100_000 & 0xFFFF, 100_000 >> 16, 100_000),
        (400_000 & 0xFFFF, 400_000 >> 16, 400_000),
        (0, 0, 0),
        (0xFFFF, 0, 65535),
        (0xFFFF, 0xFFFF, -1),
    ],
)
def test_speeds_of_the_drivers_answer(low: int, high: int, expected: int) -> None:
    command = struct.pack(
        "=IIIHBBBBBBIIHBBIII", 1, 7, 9, low, 1, 2, 3, 4, 5, 6, 11, 12, high, 7, 8, 13, 14, 15
    )
    assert decode_speed(command) == expected
