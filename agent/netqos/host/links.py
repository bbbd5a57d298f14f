"""The uplinks and addresses of this network namespace, asked for again and again at next to no cost.

The kernel tells what changes; what it tells is a hint to look again, never a fact. Lost hints, a changed
configuration and `RECHECK_S` without a look mean that everything is read anew. All of it comes from the netlink of
the process's own namespace; /sys is only compared with it (`netqos.host.uplinks` decides and says what is odd).
"""

from __future__ import annotations

import array
import errno
import fcntl
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from netqos.host import rtwire
from netqos.host.places import BUNDLES, carriers, places, stands_on
from netqos.host.rtnetlink import Events, Requests
from netqos.host.rtwire import Link
from netqos.host.uplinks import Candidate, Selection, default_devices, is_nic, select, unshaped_nics
from netqos.model.health import Finding, error
from netqos.model.inputs import UplinkFacts
from netqos.settings.values import ConfiguredUplink

RECHECK_S = 30.0
"""A driver may change its speed without a word."""

_SIOCETHTOOL = 0x8946
_ETHTOOL_GSET = 1
_DEEPEST = 4
_LINKS = frozenset({rtwire.RTM_NEWLINK, rtwire.RTM_DELLINK})
_ADDRESSES = frozenset({rtwire.RTM_NEWADDR, rtwire.RTM_DELADDR})
_ROUTES = frozenset({rtwire.RTM_NEWROUTE, rtwire.RTM_DELROUTE})

Configured = tuple[ConfiguredUplink, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkReport:
    """What was found: uplinks in the order of their use, every address of this node, and what is noteworthy."""

    uplinks: tuple[UplinkFacts, ...] = ()
    addresses: frozenset[str] = frozenset()
    findings: tuple[Finding, ...] = ()


@dataclass(slots=True)
class _Stale:
    """What must be read anew."""

    uplinks: bool = True
    addresses: bool = True


@dataclass(slots=True)
class _Seen:
    """What the present report rests on, to tell events that matter from the others."""

    devices: frozenset[int] = field(default_factory=frozenset)
    is_lacking: bool = True


class Links:
    """Keeps the report. Not for several threads; made in the thread whose namespace it is about."""

    def __init__(self, *, sys_root: Path = Path("/sys")) -> None:
        """Open two netlink sockets; OSError where that is refused."""
        self._sys_root = sys_root
        self._requests = Requests()
        try:
            self._events = Events()
        except OSError:
            self._requests.close()
            raise
        self._stale = _Stale()
        self._seen = _Seen()
        self._configured: Configured = None
        self._read_s = float("-inf")
        self._report = LinkReport()

    def fileno(self) -> int:
        """Readable after a change; who waits for that calls `has_news`, which empties it."""
        return self._events.fileno()

    def has_news(self) -> bool:
        """Take in what the kernel told, and say whether the next `read` will look again."""
        for kind, payload in self._events.take():
            is_address = kind in _ADDRESSES and not rtwire.is_link_local(payload)
            self._stale.addresses |= is_address or kind == rtwire.NLMSG_OVERRUN
            self._stale.uplinks |= self._matters(kind, payload)
        return self._stale.uplinks or self._stale.addresses

    def read(self, configured: Configured, *, now_s: float) -> LinkReport:
        """The report as of now. `configured` None: the devices of the default routes. `now_s` is monotonic.

        When the kernel cannot be asked, the report before stays and a finding says so.
        """
        try:
            self.has_news()
            if configured != self._configured or now_s - self._read_s >= RECHECK_S:
                self._stale = _Stale()
            self._refresh(configured)
        except OSError as problem:
            self._stale = _Stale()
            return LinkReport(
                uplinks=self._report.uplinks,
                addresses=self._report.addresses,
                findings=(*self._report.findings, _unreadable(problem)),
            )
        self._configured = configured
        self._read_s = now_s if self._stale.uplinks and self._stale.addresses else self._read_s
        self._stale = _Stale(uplinks=False, addresses=False)
        return self._report

    def local_addresses(self) -> frozenset[str]:
        """The node's own addresses as of the last `read`: nobody may be known by one of them (case E6)."""
        return self._report.addresses

    def close(self) -> None:
        """Release the sockets."""
        self._events.close()
        self._requests.close()

    def _refresh(self, configured: Configured) -> None:
        uplinks, findings, addresses = self._report.uplinks, self._report.findings, self._report.addresses
        if self._stale.uplinks:
            selection = self._select(configured)
            uplinks = selection.uplinks
            findings = (*selection.findings, *unshaped_nics(self._requests.nics(), self._seen.devices))
        if self._stale.addresses:
            addresses = self._requests.addresses()
        self._report = LinkReport(uplinks=uplinks, addresses=addresses, findings=findings)

    def _matters(self, kind: int, payload: memoryview) -> bool:
        """Whether an event may change the uplinks. While one is missing, any new link may be it."""
        if kind in _LINKS:
            link = rtwire.decode_link(payload)
            ours = self._seen.devices
            is_ours = link.index in ours or link.master in ours
            return self._seen.is_lacking or is_ours or (is_nic(link) and not link.master)
        if kind in _ROUTES:
            return self._configured is None and rtwire.is_default_route(payload)
        return kind not in _ADDRESSES

    def _select(self, configured: Configured) -> Selection:
        if configured is None:
            return self._select_routed()
        asked = [(one, self._requests.link(name=one.name)) for one in configured]
        present = [(one, link) for one, link in asked if link is not None]
        missing = [(one.name, one.bandwidth) for one, link in asked if link is None]
        known = self._with_neighbours(link for _, link in present)
        self._seen = _Seen(devices=frozenset(known), is_lacking=bool(missing) or not present)
        candidates = [
            replace(self._candidate(link, known), configured=one.bandwidth) for one, link in present
        ]
        return select(candidates, missing)

    def _select_routed(self) -> Selection:
        """Where the packets of the default routes leave."""
        routed, beyond = (
            [link for link in map(self._link, devices) if link is not None]
            for devices in self._default_devices()
        )
        known = self._with_neighbours((*routed, *beyond))
        found = places(routed, beyond, known)
        self._seen = _Seen(devices=frozenset(known), is_lacking=not found)
        return select([replace(self._candidate(one.link, known), serves=one.serves) for one in found], [])

    def _link(self, index: int) -> Link | None:
        return self._requests.link(index=index)

    def _default_devices(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        routes = [
            route
            if route.devices
            else rtwire.DefaultRoute(
                family=route.family,
                metric=route.metric,
                devices=self._requests.nexthop_devices(route.nexthop),
            )
            for route in self._requests.default_routes()
        ]
        return default_devices(route for route in routes if route.devices)

    def _with_neighbours(self, links: Iterable[Link]) -> dict[int, Link]:
        """The links, what they stand on, the bonds that they belong to, and the members of bonds and bridges."""
        known = {link.index: link for link in links}
        front = list(known.values())
        for _ in range(_DEEPEST):
            needed = {stands_on(link) for link in front}
            needed |= {link.master for link in front if link.slave_kind in BUNDLES}
            found = [self._link(index) for index in needed - known.keys() - {0}]
            masters = [link.index for link in front if link.kind in BUNDLES or link.kind == "bridge"]
            members = [member for index in masters for member in self._requests.members(index)]
            front = [link for link in (*found, *members) if link is not None and link.index not in known]
            known |= {link.index: link for link in front}
        return known

    def _candidate(self, link: Link, known: Mapping[int, Link]) -> Candidate:
        return Candidate(
            link=link,
            speed_mbit=ethtool_speed(self._requests.fileno(), link.name),
            carriers=carriers(link, known),
            members=tuple(other for other in known.values() if other.master == link.index),
            sysfs=_sysfs_identity(self._sys_root, link.name),
        )


def ethtool_speed(descriptor: int, name: str) -> int | None:
    """What the driver says in Mbit/s (it may say -1 or 65535 for "unknown"); None where it does not know the question.

    `descriptor` is any socket of the namespace in question. psutil asks the same of every device of the node.
    """
    command = array.array("B", struct.pack("=I40x", _ETHTOOL_GSET))  # struct ethtool_cmd, linux/ethtool.h
    where, _ = command.buffer_info()
    question = struct.pack("16sP16x", name.encode("utf-8", "surrogateescape")[:15], where)
    try:
        fcntl.ioctl(descriptor, _SIOCETHTOOL, question)
    except OSError:
        return None
    return decode_speed(command.tobytes())


def decode_speed(command: bytes) -> int:
    """The speed in a struct ethtool_cmd, -1 for the driver's own "unknown" (SPEED_UNKNOWN)."""
    low, high = struct.unpack_from("=12xH14xH", command)
    speed = int(high << 16 | low)
    return -1 if speed == 0xFFFFFFFF else speed


def _sysfs_identity(sys_root: Path, name: str) -> tuple[int, str] | None:
    """(index, MAC) of a device by /sys, None where it has no such device."""
    folder = sys_root / "class/net" / name
    try:
        index = int((folder / "ifindex").read_text(encoding="ascii"))
        return index, (folder / "address").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None


def _unreadable(problem: OSError) -> Finding:
    what = "EINTR" if problem.errno == errno.EINTR else problem.strerror
    return error(
        "links-unreadable",
        "netlink",
        f"the kernel could not be asked for links and routes: {what}; the facts are those of before",
        hint="it is asked again all the time",
    )
