"""Which packets an item of a workload's rules matches, as nft rules. Pure.

What would be many nft rules of single values looks them up in sets. A set has a name of its own, which says its values,
so that all rules with one list share one set. For each set without a name the kernel looks through the names of all of
a table for a free one (net/netfilter/nf_tables_api.c, nf_tables_set_alloc_name): 6,000 of them took 4 to 9 s.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from typing import Final

from netqos.model.levels import Direction
from netqos.model.rules import IpMatch, PortMatch, PortRange, Protocol, Rule
from netqos_tc.keys import SetKey
from netqos_tc.nfwire import SET_NAME, TABLE
from netqos_tc.spec import SetSpec

_MOST_RULES: Final = 8
"""As many nft rules of single values are made of one item; above that, of sets."""

_SET: Final = re.compile(SET_NAME)
_TYPES: Final = {
    "ip saddr": "ipv4_addr",
    "ip daddr": "ipv4_addr",
    "ip6 saddr": "ipv6_addr",
    "ip6 daddr": "ipv6_addr",
    "meta l4proto": "inet_proto",
    "th sport": "inet_service",
    "th dport": "inet_service",
}
_PORTS: Final = PortRange(low=0, high=65535)


@dataclass(frozen=True, slots=True)
class Line:
    """One nft rule, and the sets that it looks up."""

    text: str
    sets: tuple[tuple[SetKey, SetSpec], ...] = ()

    def ending(self, end: str) -> Line:
        """The same with what it does behind what it matches."""
        return replace(self, text=f"{self.text} {end}".lstrip())


@dataclass(frozen=True, slots=True)
class _Choice:
    """A field of the packet and the values of which it must have one."""

    field: str
    values: tuple[str, ...]


def is_set(name: str) -> bool:
    """Whether a set's name is one of those that are given here."""
    return _SET.fullmatch(name) is not None


def set_text(key: SetKey, spec: SetSpec) -> str:
    """The command that makes a set."""
    flags = "constant, interval" if any(re.search("[/-]", one) for one in spec.values) else "constant"
    values = ", ".join(spec.values)
    return (
        f"add set inet {TABLE} {key.name} {{ type {spec.type}; flags {flags}; elements = {{ {values} }}; }}\n"
    )


def unset_text(key: SetKey) -> str:
    """The command that removes a set; refused while a rule looks it up."""
    return f"delete set inet {TABLE} {key.name}\n"


def lines(rule: Rule, direction: Direction, version: int) -> Iterator[Line]:
    """What a packet of one version of IP (0: of any) must meet; nothing where none can."""
    choices = _choices(rule, direction, version)
    if all(one.values for one in choices):
        for parts in _joined(choices):
            yield Line(" ".join(one.text for one in parts), tuple(each for one in parts for each in one.sets))


def versions(rule: Rule) -> tuple[int, ...]:
    """The versions of IP that an item tells apart, 0 for none."""
    has_networks = any(isinstance(one, IpMatch) and one.networks for one in rule.matches)
    return (4, 6) if has_networks or rule.dscp is not None else (0,)


def _choices(rule: Rule, direction: Direction, version: int) -> list[_Choice]:
    found = [_Choice("meta nfproto", (f"ipv{version}",))] if version else []
    for match in rule.matches:
        if isinstance(match, PortMatch):
            found += _port_choices(match, direction)
        elif match.networks:
            found.append(_network_choice(match.networks, direction, version))
    whole = [one for one in found if not any(value.endswith("/0") for value in one.values)]
    has_field = any(one.field.startswith(ip(version)) for one in whole)
    return whole[1:] if version and has_field else whole


def _network_choice(networks: Iterable[str], direction: Direction, version: int) -> _Choice:
    """Addresses of the other side; without any of this version none matches."""
    known = [ip_network(text, strict=False) for text in networks]
    v4 = collapse_addresses(one for one in known if isinstance(one, IPv4Network))
    v6 = collapse_addresses(one for one in known if isinstance(one, IPv6Network))
    side = "daddr" if direction is Direction.TX else "saddr"
    return _Choice(f"{ip(version)} {side}", tuple(map(_network_text, v4 if version == 4 else v6)))


def _network_text(network: IPv4Network | IPv6Network) -> str:
    is_one = network.prefixlen == network.max_prefixlen
    return str(network.network_address) if is_one else str(network)


def _port_choices(match: PortMatch, direction: Direction) -> list[_Choice]:
    """Ports of the other side; only packets of the protocols that have ports match."""
    side = "dport" if direction is Direction.TX else "sport"
    ranges = _merged(match.ranges)
    protocols = (Protocol.TCP, Protocol.UDP) if match.protocol is None else (match.protocol,)
    known = _Choice("meta l4proto", tuple(one.value for one in protocols))
    if ranges == [_PORTS]:
        return [known]
    values = (str(one.low) if one.low == one.high else f"{one.low}-{one.high}" for one in ranges)
    return [known, _Choice(f"th {side}", tuple(values))]


def _merged(ranges: Iterable[PortRange]) -> list[PortRange]:
    """The same ports by ranges that neither overlap nor touch, in order."""
    found: list[PortRange] = []
    for one in sorted(ranges, key=lambda one: one.low):
        if found and one.low <= found[-1].high + 1:
            found[-1] = PortRange(low=found[-1].low, high=max(found[-1].high, one.high))
        else:
            found.append(one)
    return found


def _joined(choices: Sequence[_Choice]) -> Iterator[tuple[Line, ...]]:
    """The choices as tests of nft rules: each way to meet all of them, or sets where those would be many."""
    ways = [[Line(f"{one.field} {value}") for value in one.values] for one in choices]
    count = 1
    for way in ways:
        count *= len(way)
    if count > _MOST_RULES:
        ways = [way if len(way) == 1 else [_looked_up(one)] for one, way in zip(choices, ways, strict=True)]
    return itertools.product(*ways)


@lru_cache(maxsize=8192)
def _looked_up(choice: _Choice) -> Line:
    spec = SetSpec(type=_TYPES[choice.field], values=choice.values)
    digest = hashlib.sha256(f"{spec.type} {' '.join(spec.values)}".encode()).hexdigest()
    key = SetKey(f"s{digest[:16]}")
    return Line(f"{choice.field} @{key.name}", ((key, spec),))


def ip(version: int) -> str:
    """The word for a version of IP."""
    return "ip6" if version == 6 else "ip"
