"""Rules inside a workload as nft rules: one chain for each workload and direction that has any. Pure.

The last rule of `postrouting` leads a packet by its class, so by its priority, to the chain of the leaf: that is the
same for every kind of workload and address, and nothing but the workload's own packets have that class. In the chain
the first item that matches gives the packet its code point and its class, and ends it. A packet that meets no item, or
finds no chain, stays in the workload's leaf, which has the workload's limit too.

A rule's comment tells its item, the class that it gives (0: none) and a digest of its text.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from typing import Final

from netqos.model.levels import Direction
from netqos.model.rules import IpMatch, PortMatch, PortRange, Protocol, Rule
from netqos_tc import numbers
from netqos_tc.nfwire import RULES_MAP, TABLE
from netqos_tc.spec import ChainSpec, RulesKey, RuleSpec, RulesSpec

_CHAIN: Final = re.compile(r"r([0-9a-f]{1,4})(tx|rx)")
_PLAIN: Final = re.compile(r"[A-Za-z0-9:._/-]+")
_COMMENT: Final = re.compile(r"netqos 1 (\d{1,2}) ([0-9a-f]{1,4}) [0-9a-f]{16}")
_MOST_RULES: Final = 8
"""As many nft rules of single values are made of one item; above that, of sets. The kernel looks through all sets of a
table for each that is made (net/netfilter/nf_tables_api.c, nf_tables_set_alloc_name), so 6,000 of them took 9 s.
"""

_ASTRAY: Final = "to"
_PORTS: Final = PortRange(low=0, high=65535)


@dataclass(frozen=True, slots=True)
class _Choice:
    """A field of the packet and the values of which it must have one."""

    field: str
    values: tuple[str, ...]


def chain_name(key: RulesKey) -> str:
    """The chain of a workload's rules."""
    return f"r{key.minor:x}{key.direction.value}"


def key_of(chain: str) -> RulesKey | None:
    """Whose rules a chain has by its name, None for a chain that has no such name."""
    found = _CHAIN.fullmatch(chain)
    key = RulesKey(Direction(found[2]), int(found[1], 16)) if found else None
    return key if key is not None and chain_name(key) == chain and numbers.is_pod_minor(key.minor) else None


def chains_of(chains: Iterable[ChainSpec]) -> frozenset[ChainSpec]:
    """Those that are workloads'. One under a hook is none, whatever its name."""
    return frozenset(one for one in chains if one.hook < 0 and key_of(one.name) is not None)


def read(
    chains: Iterable[ChainSpec], rules: Iterable[RuleSpec], leads: Iterable[tuple[int, str, str]]
) -> dict[RulesKey, RulesSpec]:
    """Workloads' chains with all rules of the table, and what leads to chains: class, chain and comment.

    A class that has no chain of its name but leads somewhere is a workload's too, with no rules.
    """
    comments: dict[str, list[str]] = {one.name: [] for one in chains}
    for rule in rules:
        if rule.chain in comments:
            comments[rule.chain].append(rule.comment)
    owners: dict[RulesKey, str] = {}
    for source, chain, comment in leads:
        way = next((one for one in Direction if numbers.KINDS[one].major == numbers.major_of(source)), None)
        if way is not None:
            led = RulesKey(way, numbers.minor_of(source))
            owners[led] = comment if chain == chain_name(led) else f"{_ASTRAY} {chain}"
    keys = [key for name in comments if (key := key_of(name)) is not None]
    return {
        key: RulesSpec(owner=owners.get(key, ""), comments=tuple(comments.get(chain_name(key), ())))
        for key in dict.fromkeys([*keys, *owners])
    }


def classes(spec: RulesSpec) -> Iterator[tuple[int, int]]:
    """Item and minor of each class that rules lead to."""
    for comment in spec.comments:
        found = _COMMENT.fullmatch(comment)
        if found and int(found[2], 16):
            yield int(found[1]), int(found[2], 16)


def can_match(rule: Rule, direction: Direction) -> bool:
    """Whether any packet meets all matches of an item: one with addresses of both versions of IP never does."""
    return bool(_texts(rule, direction, 0))


def is_foreign(comment: str) -> bool:
    """Whether a rule in a chain of ours is somebody else's."""
    return not comment.startswith("netqos ")


def rules_spec(
    direction: Direction, owner: str, items: Sequence[tuple[Rule, int]], *, is_addressed: bool
) -> RulesSpec:
    """The chain of a workload whose items, in their order, lead to the classes with these minors (0: to none).

    One that is known `is_addressed` never sends with an address of the node: such a packet with its class is the outer
    one of a tunnel, to which the inner one's rules were applied already.
    """
    comments, texts = [], []
    if direction is Direction.TX and is_addressed:
        comments.append("netqos 1 outer")
        texts.append("fib saddr type local return")
    for number, (rule, minor) in enumerate(items):
        for text in _texts(rule, direction, minor):
            comments.append(f"netqos 1 {number} {minor:x} {_digest(text)}")
            texts.append(text)
    return RulesSpec(owner=_plain(owner), comments=tuple(comments), texts=tuple(texts))


def change_text(key: RulesKey, before: RulesSpec | None, after: RulesSpec | None) -> str:
    """The commands that bring a chain, and what leads to it, from one state to another."""
    chain, target = chain_name(key), numbers.text(numbers.KINDS[key.direction].class_id(key.minor))
    lines = [f"add chain inet {TABLE} {chain}", f"flush chain inet {TABLE} {chain}"]
    is_led = before is not None and before.owner != ""
    if after is None or (is_led and before is not None and before.owner != after.owner):
        lines += [f"delete element inet {TABLE} {RULES_MAP} {{ {target} }}"] if is_led else []
        is_led = False
    if after is None:
        return "\n".join([*lines, f"delete chain inet {TABLE} {chain}", ""])
    lines += [
        f'add rule inet {TABLE} {chain} {text} comment "{comment}"'
        for comment, text in zip(after.comments, after.texts, strict=True)
    ]
    if not is_led:
        lead = f'{target} comment "{after.owner}" : jump {chain}'
        lines.append(f"add element inet {TABLE} {RULES_MAP} {{ {lead} }}")
    return "\n".join([*lines, ""])


def _plain(owner: str) -> str:
    """An owner as a word that commands may hold: names of others are not to be read as commands."""
    return owner if _PLAIN.fullmatch(owner) else "sha256:" + hashlib.sha256(owner.encode()).hexdigest()


@lru_cache(maxsize=8192)
def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@lru_cache(maxsize=8192)
def _texts(rule: Rule, direction: Direction, minor: int) -> tuple[str, ...]:
    """The nft rules of one item: where addresses or code points are asked for, one for each version of IP at least."""
    verdict = "return"
    if minor:
        verdict = f"meta priority set {numbers.text(numbers.KINDS[direction].class_id(minor))} return"
    found: list[str] = []
    for version in _versions(rule):
        mark = f"{_ip(version)} dscp set {rule.dscp} " if version and rule.dscp is not None else ""
        choices = _choices(rule, direction, version)
        if all(one.values for one in choices):
            found += [" ".join([*parts, mark + verdict]) for parts in _joined(choices)]
    return tuple(found)


def _versions(rule: Rule) -> tuple[int, ...]:
    """The versions of IP that are told apart, 0 for none."""
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
    has_field = any(one.field.startswith(_ip(version)) for one in whole)
    return whole[1:] if version and has_field else whole


def _network_choice(networks: Iterable[str], direction: Direction, version: int) -> _Choice:
    """Addresses of the other side; without any of this version none matches."""
    known = [ip_network(text, strict=False) for text in networks]
    v4 = collapse_addresses(one for one in known if isinstance(one, IPv4Network))
    v6 = collapse_addresses(one for one in known if isinstance(one, IPv6Network))
    side = "daddr" if direction is Direction.TX else "saddr"
    return _Choice(f"{_ip(version)} {side}", tuple(map(_network_text, v4 if version == 4 else v6)))


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


def _joined(choices: Sequence[_Choice]) -> Iterator[tuple[str, ...]]:
    """The choices as tests of nft rules: each way to meet all of them, or sets where those would be many."""
    ways = [[f"{one.field} {value}" for value in one.values] for one in choices]
    count = 1
    for way in ways:
        count *= len(way)
    if count > _MOST_RULES:
        ways = [
            way if len(way) == 1 else [f"{one.field} {{ {', '.join(one.values)} }}"]
            for one, way in zip(choices, ways, strict=True)
        ]
    return itertools.product(*ways)


def _ip(version: int) -> str:
    return "ip6" if version == 6 else "ip"
