"""The backend's own nft table: bytes by level and direction of what pods exchange with the outside. Pure.

It only counts. In the forward hook packets have the pods' own addresses, before masquerade and after NAT of services,
whatever device they leave by. Traffic between pods of this node does not use the uplink and is left out; traffic of
host-network pods does not pass here and is not seen. Sets and counters are kept when elements change, so that counting
goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address

from netqos.model.desired import DesiredState
from netqos.model.levels import Direction, Level, PerDirection, PerLevel

TABLE = "inet netqos_meter"
LIST_TABLE = f"list table {TABLE}"
LIST_COUNTERS = f"list counters table {TABLE}"
DELETE = f"delete table {TABLE}\n"

RULES = (
    "ip daddr != @here4 counter name ip saddr map @tx4",
    "ip saddr != @here4 counter name ip daddr map @rx4",
    "ip6 daddr != @here6 counter name ip6 saddr map @tx6",
    "ip6 saddr != @here6 counter name ip6 daddr map @rx6",
)
_TYPES = {"4": "ipv4_addr", "6": "ipv6_addr"}

Counts = PerDirection[PerLevel[int]]
"""Bytes by direction and level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterSpec:
    """Addresses and the level that their bytes count for. `is_whole` False: parts of the table are missing."""

    levels: frozenset[tuple[str, Level]]
    is_whole: bool = True


def wanted_meter(desired: DesiredState) -> MeterSpec | None:
    """The table for a state, None where nothing is shaped by level."""
    shaped = any(one.levels is not None for one in (desired.directions.tx, desired.directions.rx))
    if not desired.enabled or not shaped:
        return None
    return MeterSpec(
        levels=frozenset(
            (address, pod.level) for pod in desired.pods for text in pod.addresses for address in _plain(text)
        )
    )


def _plain(text: str) -> Iterator[str]:
    """The address as nft prints it; what is none never gets into a script."""
    try:
        address = ip_address(text)
    except ValueError:
        return
    if getattr(address, "scope_id", None) is None:
        yield str(address)


def merge(found: MeterSpec, wanted: MeterSpec) -> MeterSpec:
    """The wanted addresses, and those found that the wanted ones say nothing of."""
    known = {address for address, _ in wanted.levels}
    kept = {pair for pair in found.levels if pair[0] not in known}
    return MeterSpec(levels=frozenset(kept | wanted.levels))


def script(spec: MeterSpec) -> str:
    """One transaction that makes the table, or brings it to `spec`; what counts already goes on counting."""
    return "".join(f"{line}\n" for line in _lines(spec))


def _lines(spec: MeterSpec) -> Iterator[str]:
    yield f"add table {TABLE}"
    for direction in Direction:
        for level in Level:
            yield f"add counter {TABLE} {counter_name(direction, level)}"
    for family, kind in _TYPES.items():
        yield f"add set {TABLE} here{family} {{ type {kind}; }}"
        for direction in Direction:
            yield f"add map {TABLE} {direction.value}{family} {{ type {kind} : counter; }}"
    yield f"add chain {TABLE} through {{ type filter hook forward priority mangle; policy accept; }}"
    yield f"flush chain {TABLE} through"
    for rule in RULES:
        yield f"add rule {TABLE} through {rule}"
    for family in _TYPES:
        yield from _elements(
            family, [pair for pair in sorted_levels(spec) if (":" in pair[0]) == (family == "6")]
        )


def _elements(family: str, levels: list[tuple[str, Level]]) -> Iterator[str]:
    yield f"flush set {TABLE} here{family}"
    for direction in Direction:
        yield f"flush map {TABLE} {direction.value}{family}"
    if not levels:
        return
    yield f"add element {TABLE} here{family} {{ {', '.join(address for address, _ in levels)} }}"
    for direction in Direction:
        pairs = ", ".join(f'{address} : "{counter_name(direction, level)}"' for address, level in levels)
        yield f"add element {TABLE} {direction.value}{family} {{ {pairs} }}"


def sorted_levels(spec: MeterSpec) -> list[tuple[str, Level]]:
    """The pairs in a fixed order."""
    return sorted(spec.levels, key=lambda pair: pair[0])


def counter_name(direction: Direction, level: Level) -> str:
    """`tx_l0` and so on."""
    return f"{direction.value}_{level.name.lower()}"


def parse_table(listed: Mapping[str, object]) -> MeterSpec:
    """What `list table` tells of the table."""
    objects = _objects(listed)
    counters = {str(body.get("name")) for kind, body in objects if kind == "counter"}
    rules = sum(1 for kind, _ in objects if kind == "rule")
    maps = {str(body.get("name")): set(_pairs(body.get("elem"))) for kind, body in objects if kind == "map"}
    sets = {str(body.get("name")): body.get("elem") or [] for kind, body in objects if kind == "set"}
    sent = maps.get("tx4", set()) | maps.get("tx6", set())
    received = maps.get("rx4", set()) | maps.get("rx6", set())
    here = {*_addresses(sets.get("here4")), *_addresses(sets.get("here6"))}
    is_whole = (
        counters == {counter_name(direction, level) for direction in Direction for level in Level}
        and rules == len(RULES)
        and sent == received
        and here == {address for address, _ in sent}
        and len(maps) == 2 * len(_TYPES)
    )
    return MeterSpec(levels=frozenset(sent | received), is_whole=is_whole)


def parse_counters(listed: Mapping[str, object]) -> Counts:
    """Bytes by direction and level from `list counters`; a missing counter reads 0."""
    found = {str(body.get("name")): body.get("bytes") for kind, body in _objects(listed) if kind == "counter"}

    def count(direction: Direction) -> PerLevel[int]:
        l0, l1, l2 = (found.get(counter_name(direction, level)) for level in Level)
        return PerLevel(_number(l0), _number(l1), _number(l2))

    return PerDirection(tx=count(Direction.TX), rx=count(Direction.RX))


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _objects(listed: Mapping[str, object]) -> list[tuple[str, Mapping[str, object]]]:
    entries = listed.get("nftables")
    return [
        (kind, body)
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, dict)
        for kind, body in entry.items()
        if isinstance(body, dict)
    ]


def _pairs(elements: object) -> Iterator[tuple[str, Level]]:
    """`[address, counter]` of a map, the counter's name read as a level."""
    for element in elements if isinstance(elements, list) else []:
        if isinstance(element, list) and len(element) == 2 and isinstance(element[1], str):
            level = Level.parse(element[1].rpartition("_")[2])
            if level is not None:
                yield str(element[0]), level


def _addresses(elements: object) -> Iterable[str]:
    return [str(element) for element in elements] if isinstance(elements, list) else []
