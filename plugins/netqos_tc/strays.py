"""Whose packets leave by an uplink without a class of the uplinks: asked of the kernel at the device itself.

The table of `classify` sees what passes the node's stack. What another program hands to an uplink past it meets the
uplink's tree all the same, in the unknown leaf; and so does a packet whose class somebody took away. The egress hook
of nftables (Linux 5.16) is before the queue. There a packet with a class of the uplinks costs one comparison; any
other is counted, and its source noted, by the kernel, for a minute.

What tc or an eBPF program at a device's hook redirects to an uplink passes that hook by (`nf_skip_egress`): it is what
the unknown leaf counts beyond this counter.

The table belongs to this process's own socket (`flags owner`, Linux 5.12): nobody else can change it, `flush ruleset`
passes it by, and it ends with the process, so that it needs neither repair nor cleanup. It enforces nothing.
Behind masquerade a source is the node's, and says nothing.
"""

from __future__ import annotations

import ipaddress
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from netqos.backend import NftRunner
from netqos.errors import NetqosError
from netqos_tc import netmsg, numbers
from netqos_tc.netlink import Channel, RequestRefused
from netqos_tc.netmsg import Message, Request, attribute, attributes, each_attribute, string

PAST: Final = "past"
"""Sources of packets that have no class of ours at all: none of our rules met them, or somebody took it away."""

OUTSIDE: Final = "outside"
"""Sources of packets that our rules took for somebody else's: forged, or on another way than the node would answer."""

SETS: Final = {(kind, version): f"{kind}{version}" for kind in (PAST, OUTSIDE) for version in (4, 6)}

_TYPES: Final = {4: "ipv4_addr", 6: "ipv6_addr"}
_SOURCES: Final = {4: "ip saddr", 6: "ip6 saddr"}
_CONDITIONS: Final = {
    PAST: f"meta priority & 0x{numbers.OURS_MASK:08x} != 0x{numbers.OURS:08x}",
    OUTSIDE: f"meta priority & 0xffff0000 == 0x{numbers.KINDS.rx.root:08x}",
}
_CLASSED: Final = f"meta priority & 0xffff0000 == 0x{numbers.KINDS.tx.root:08x}"
_PLAIN_DEVICE: Final = re.compile(r"[A-Za-z0-9_.:@-]{1,15}")
_MOST_SOURCES: Final = 4096
_KEPT: Final = "60s"

# include/uapi/linux/netfilter/nf_tables.h: NFPROTO_NETDEV, NFT_MSG_GETSETELEM, NFT_MSG_GETOBJ, and their attributes.
_NETDEV: Final = 5
_GETSETELEM: Final = 10 << 8 | 13
_GENMSG: Final = struct.Struct("=BBH")
_TABLE: Final = 1
_SET: Final = 2
_ELEMENTS: Final = 3
_KEY: Final = 1
_VALUE: Final = 1
_EXPRESSION: Final = 7
_EXPRESSION_DATA: Final = 2
_BYTES: Final = 1
_PACKETS: Final = 2
_GETOBJ: Final = 10 << 8 | 19
_OBJECT_TYPE: Final = 3
_OBJECT_DATA: Final = 4
_COUNTER: Final = 1


@dataclass(frozen=True, slots=True)
class Stray:
    """Packets of one source (or destination): why they have no class, and how many more there are than before."""

    kind: str
    address: str
    packets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where packets are watched: the family of the table, the sets of addresses in it, and the rest of its lines.

    `sets` are names by kind and version of IP; `lines` takes the table and the devices, by index.
    """

    word: str
    family: int
    sets: Mapping[tuple[str, int], str]
    lines: Callable[[str, Mapping[int, str]], list[str]]

    def setup_text(self, table: str, devices: Mapping[int, str]) -> str:
        """The commands, one transaction, that watch these devices and no others."""
        begin, word = f"add table {self.word} {table} {{ flags owner; }}", self.word
        lines = [begin, f"delete table {word} {table}", begin]
        for (_kind, version), name in self.sets.items():
            kept = f"size {_MOST_SOURCES}; flags dynamic,timeout; timeout {_KEPT}; counter;"
            lines.append(f"add set {word} {table} {name} {{ type {_TYPES[version]}; {kept} }}")
        return "\n".join([*lines, *self.lines(table, devices), ""])

    def removal_text(self, table: str) -> str:
        """The commands that end the watch, whether or not it is there."""
        return f"add table {self.word} {table} {{ flags owner; }}\ndelete table {self.word} {table}\n"


def _egress(table: str, devices: Mapping[int, str]) -> list[str]:
    """A chain for each device; one whose name is no plain word is not watched."""
    lines = []
    for ifindex, device in sorted(devices.items()):
        if not _PLAIN_DEVICE.fullmatch(device):
            continue
        chain = f"d{ifindex}"
        base = f'type filter hook egress device "{device}" priority 0; policy accept;'
        lines.append(f"add chain netdev {table} {chain} {{ {base} }}")
        lines.append(f"add counter netdev {table} {chain}")
        lines.append(f"add rule netdev {table} {chain} {_CLASSED} accept")
        lines.append(f"add rule netdev {table} {chain} counter name {chain}")
        lines += [
            f"add rule netdev {table} {chain} {_CONDITIONS[kind]} update @{name} {{ {_SOURCES[version]} }}"
            for (kind, version), name in SETS.items()
        ]
    return lines


EGRESS: Final = Place(word="netdev", family=_NETDEV, sets=SETS, lines=_egress)


class Watch:
    """The watched devices, and what was counted of each source at the last look."""

    def __init__(self, netfilter: Channel, nft: Callable[[], NftRunner], place: Place = EGRESS) -> None:
        """Both stay the caller's; the table is named after the channel, so that two of one namespace do not meet."""
        self._place = place
        self._netfilter = netfilter
        self._nft = nft
        self._table = f"netqos_watch_{netfilter.port}"
        self._devices: Mapping[int, str] = {}
        self._tried: Mapping[int, str] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        self.problem: NetqosError | None = None

    def watch(self, devices: Mapping[int, str]) -> None:
        """Watch these devices from now on; where this kernel cannot, `problem` says why."""
        if devices == self._tried:
            return
        self._tried = dict(devices)
        self._counts.clear()
        try:
            place = self._place
            self._nft().run(
                place.setup_text(self._table, devices) if devices else place.removal_text(self._table)
            )
        except NetqosError as problem:
            self.problem, self._devices = problem, {}
        else:
            self.problem, self._devices = None, self._tried

    def look(self) -> list[Stray]:
        """The sources that have sent since the last look."""
        if not self._devices:
            return []
        now = Counter[tuple[str, str]]()
        for (kind, _version), name in self._place.sets.items():
            now.update({(kind, address): count for address, count in self._sources(name)})
        before, self._counts = self._counts, now
        return [
            Stray(kind, address, count - before[kind, address] if count >= before[kind, address] else count)
            for (kind, address), count in now.items()
            if count != before[kind, address]
        ]

    def unclassed(self, ifindex: int) -> tuple[int, int] | None:
        """Bytes and packets without a class of the uplinks that passed the hook of a device, None where none counts."""
        if ifindex not in self._devices:
            return None
        try:
            return read_counter(self._netfilter.get(get_counter(self._table, f"d{ifindex}")))
        except RequestRefused:
            return None

    def end(self) -> None:
        """Take the table away."""
        self.watch({})

    def _sources(self, name: str) -> Iterable[tuple[str, int]]:
        try:
            messages = self._netfilter.dump(dump_set(self._table, name, self._place.family))
        except RequestRefused:  # the last device has gone with its chain, or the table is being made anew
            return []
        return [one for message in messages for one in read_set(message)]


def dump_set(table: str, name: str, family: int = _NETDEV) -> Request:
    """The elements of one of the sets; ENOENT where it is not there."""
    return Request(
        _GETSETELEM, netmsg.DUMP, _GENMSG.pack(family, 0, 0) + string(_TABLE, table) + string(_SET, name)
    )


def get_counter(table: str, name: str) -> Request:
    """One of the counters; ENOENT where it is not there."""
    body = _GENMSG.pack(_NETDEV, 0, 0) + string(_TABLE, table) + string(_SET, name)
    return Request(_GETOBJ, 0, body + attribute(_OBJECT_TYPE, struct.pack(">I", _COUNTER)))


def read_counter(message: Message) -> tuple[int, int]:
    """Bytes and packets of a counter."""
    data = attributes(attributes(message.body, _GENMSG.size)[_OBJECT_DATA])
    number, packets = (struct.unpack(">Q", data[kind])[0] for kind in (_BYTES, _PACKETS))
    return int(number), int(packets)


def read_set(message: Message) -> list[tuple[str, int]]:
    """Some of a set's sources, and the packets of each."""
    found = []
    for _kind, raw in each_attribute(attributes(message.body, _GENMSG.size).get(_ELEMENTS, b"")):
        element = attributes(raw)
        address = str(ipaddress.ip_address(attributes(element[_KEY])[_VALUE]))
        counter = attributes(attributes(element.get(_EXPRESSION, b"")).get(_EXPRESSION_DATA, b""))
        if _PACKETS in counter:
            found.append((address, int(struct.unpack(">Q", counter[_PACKETS])[0])))
    return found
