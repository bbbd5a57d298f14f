"""The small texts inside rules and workloads: addresses, networks, ports, DSCP. Each raises `Rejected` when wrong."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping

from netqos.errors import Rejected
from netqos.model.levels import Level
from netqos.model.rules import PortRange, Protocol
from netqos.model.texts import shown

LARGEST_PORT = 65_535
PORT_FORMS = "=80, !=80, >=1024, <1024, 80,443 or 8000-8100"
_LONGEST = 4_096

_COMPARISON = re.compile(r"(!=|>=|<=|>|<)\s*([0-9]{1,5})")
_PORTS = re.compile(r"([0-9]{1,5})(?:\s*-\s*([0-9]{1,5}))?")
_NETWORK = re.compile(r"[0-9a-fA-F:.]{2,45}(?:/[0-9]{1,3})?")

DSCP_NAMES: Mapping[str, int] = {
    # RFC 2474, 2597, 3246, 5865, 8622
    **{f"cs{number}": number * 8 for number in range(8)},
    **{f"af{group}{drop}": group * 8 + drop * 2 for group in range(1, 5) for drop in range(1, 4)},
    "be": 0,
    "df": 0,
    "ef": 46,
    "le": 1,
    "va": 44,
}

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def parse_level(value: object) -> Level:
    """`l0`, `L1`, ... in any case."""
    level = Level.parse(value) if isinstance(value, str) else None
    if level is None:
        raise Rejected(f"{shown(value)} is no level; allowed: l0, l1, l2", hint="write l0, l1 or l2")
    return level


def parse_dscp(value: object) -> int:
    """A code point as a number 0 to 63 (also as text) or by its name, in any case."""
    if isinstance(value, str):
        number = int(value) if re.fullmatch(r"[0-9]{1,2}", value) else DSCP_NAMES.get(value.lower(), -1)
    else:
        number = value if isinstance(value, int) and not isinstance(value, bool) else -1
    if not 0 <= number <= 63:
        raise Rejected(
            f"{shown(value)} is no DSCP; allowed: 0 to 63, or a name such as ef, af41, cs1",
            hint="write a number or a name",
        )
    return number


def parse_protocol(value: object) -> Protocol:
    """`tcp` or `udp`, in any case."""
    found = {"tcp": Protocol.TCP, "udp": Protocol.UDP}.get(value.lower()) if isinstance(value, str) else None
    if found is None:
        raise Rejected(
            f"{shown(value)} is no protocol here; allowed: tcp, udp", hint="leave proto out for both"
        )
    return found


def parse_networks(value: object) -> tuple[str, ...]:
    """Addresses and networks, v4 and v6, separated by commas, in CIDR form; bits behind the prefix are cleared."""
    texts = _parts(value)
    return tuple(dict.fromkeys(str(_network(text)) for text in texts))


def parse_address(value: object) -> str:
    """One address of one workload, in its shortest form; never one that cannot be a single host's own."""
    if isinstance(value, str) and "/" in value:
        raise Rejected(
            f"{shown(value)} is a network; allowed: single addresses", hint="leave the /prefix out"
        )
    address = _address(value)
    refusals = {
        "unspecified": address.is_unspecified,
        "a loopback address": address.is_loopback,
        "a multicast address": address.is_multicast,
        "a link-local address, which no router passes on": address.is_link_local,
        "the broadcast address": address == ipaddress.IPv4Address("255.255.255.255"),
        "an IPv4 address in IPv6 form": isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped,
    }
    for words, holds in refusals.items():
        if holds:
            raise Rejected(
                f"{shown(value)} is {words}; allowed: addresses of one host",
                hint="write the workload's own address",
            )
    return str(address)


def parse_ports(value: object) -> tuple[PortRange, ...]:
    """A port expression as sorted ranges that do not touch; `!=` becomes what is left."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise _no_ports(value)
    compared = _COMPARISON.fullmatch(value.strip())
    if compared is not None:
        ranges = _compared(compared[1], int(compared[2]))
    else:
        ranges = tuple(_range(part, value) for part in _parts(value.strip().removeprefix("=")))
    if not ranges or any(not 0 <= one.low <= one.high <= LARGEST_PORT for one in ranges):
        raise _no_ports(value)
    return _merged(ranges)


def count_parts(value: object) -> int:
    """How many addresses or ports a list in text names, without looking at them."""
    return len(value.split(",")) if isinstance(value, str) else 1


def _parts(value: object) -> list[str]:
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise Rejected(
            f"{shown(value)} is no list in text; allowed: up to {_LONGEST} characters, separated by commas"
        )
    return [part.strip() for part in value.split(",")]


def _network(text: str) -> Network:
    try:
        if _NETWORK.fullmatch(text):
            return ipaddress.ip_network(text, strict=False)
    except ValueError:
        pass
    raise Rejected(
        f"{shown(text)} is no address and no network; allowed: such as 10.0.0.7, 10.0.0.0/8, fd00::/8",
        hint="separate several by commas",
    )


def _address(value: object) -> Address:
    try:
        if isinstance(value, str) and _NETWORK.fullmatch(value):
            return ipaddress.ip_address(value)
    except ValueError:
        pass
    raise Rejected(
        f"{shown(value)} is no IP address; allowed: such as 10.0.0.7, fd00::7", hint="write v4 or v6"
    )


def _compared(operator: str, port: int) -> tuple[PortRange, ...]:
    """Ranges that may be empty at the ends of the port space; the caller refuses what is no range."""
    low, high = PortRange(low=0, high=port - 1), PortRange(low=port + 1, high=LARGEST_PORT)
    match operator:
        case ">":
            return (high,)
        case ">=":
            return (PortRange(low=port, high=LARGEST_PORT),)
        case "<":
            return (low,)
        case "<=":
            return (PortRange(low=0, high=port),)
        case _:
            return tuple(one for one in (low, high) if one.low <= one.high)


def _range(text: str, expression: str) -> PortRange:
    found = _PORTS.fullmatch(text)
    if found is None:
        raise _no_ports(expression)
    return PortRange(low=int(found[1]), high=int(found[2] or found[1]))


def _merged(ranges: tuple[PortRange, ...]) -> tuple[PortRange, ...]:
    merged: list[PortRange] = []
    for one in sorted(ranges, key=lambda one: (one.low, one.high)):
        if merged and one.low <= merged[-1].high + 1:
            merged[-1] = PortRange(low=merged[-1].low, high=max(merged[-1].high, one.high))
        else:
            merged.append(one)
    return tuple(merged)


def _no_ports(value: object) -> Rejected:
    return Rejected(
        f"{shown(value)} is no port expression; allowed: {PORT_FORMS}, ports 0 to {LARGEST_PORT}",
        hint="several comparisons are several items",
    )
