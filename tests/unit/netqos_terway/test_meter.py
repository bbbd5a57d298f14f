"""The counting table as a script, and as nft lists it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import cast

from netqos.model.levels import Level, PerDirection, PerLevel
from netqos.testing import states
from netqos_terway import meter
from netqos_terway.meter import MeterSpec, merge, parse_counters, parse_table, script, wanted_meter

PODS = (
    states.pod("prod/web", Level.L0, addresses=("10.88.0.10", "fd00:88::10")),
    states.pod("batch/crunch", Level.L2, addresses=("10.88.0.12",)),
)
SPEC = MeterSpec(
    levels=frozenset({("10.88.0.10", Level.L0), ("fd00:88::10", Level.L0), ("10.88.0.12", Level.L2)})
)


def listed(spec: MeterSpec) -> dict[str, object]:
    """What `nft -j list table` says of the table that the script makes (checked against nft in tests/kernel)."""
    entries: list[dict[str, object]] = [
        {"metainfo": {"json_schema_version": 1}},
        {"table": {"name": "netqos_meter"}},
    ]
    for number, name in enumerate(f"{way}_{level.name.lower()}" for way in ("tx", "rx") for level in Level):
        entries.append({"counter": {"name": name, "bytes": 100 * number, "packets": number}})
    for family in "46":
        own = [pair for pair in meter.sorted_levels(spec) if (":" in pair[0]) == (family == "6")]
        here: dict[str, object] = {"name": f"here{family}", "type": "x"}
        entries.append({"set": {**here, "elem": [address for address, _ in own]} if own else here})
        for way in ("tx", "rx"):
            body: dict[str, object] = {"name": f"{way}{family}", "map": "counter"}
            if own:
                body["elem"] = [[address, f"{way}_{level.name.lower()}"] for address, level in own]
            entries.append({"map": body})
    entries.append({"chain": {"name": "through"}})
    entries.extend({"rule": {"handle": number}} for number in range(4))
    return cast("dict[str, object]", json.loads(json.dumps({"nftables": entries})))


def without(listing: dict[str, object], kind: str) -> dict[str, object]:
    """The same with the first object of a kind gone."""
    entries = list(cast("list[dict[str, object]]", listing["nftables"]))
    entries.remove(next(entry for entry in entries if kind in entry))
    return {"nftables": entries}


def test_wanted() -> None:
    assert wanted_meter(states.node(PODS)) == SPEC
    assert wanted_meter(states.switched_off(states.node(PODS))) is None


def test_addresses_never_become_commands() -> None:
    hostile = replace(PODS[0], addresses=("10.0.0.1 } ; flush ruleset", "fe80::1%eth0", "", "FD00:88::0A"))
    assert wanted_meter(states.node((hostile,))) == MeterSpec(levels=frozenset({("fd00:88::a", Level.L0)}))


def test_what_is_listed_is_what_was_wanted() -> None:
    assert parse_table(listed(SPEC)) == SPEC
    assert parse_table(listed(MeterSpec(levels=frozenset()))) == MeterSpec(levels=frozenset())


def test_a_damaged_table_is_not_whole() -> None:
    for kind in ("counter", "set", "map", "rule"):
        assert not parse_table(without(listed(SPEC), kind)).is_whole
    assert parse_table({}) == MeterSpec(levels=frozenset(), is_whole=False)
    assert parse_table(
        {"nftables": [None, {"map": 3}, {"map": {"name": "tx4", "elem": [1, ["a"], [1, 2]]}}]}
    ) == (MeterSpec(levels=frozenset(), is_whole=False))


def test_merging_keeps_addresses_that_nobody_has_told_of() -> None:
    wanted = MeterSpec(levels=frozenset({("10.88.0.10", Level.L1)}))
    assert merge(SPEC, wanted).levels == {
        ("10.88.0.10", Level.L1),
        ("fd00:88::10", Level.L0),
        ("10.88.0.12", Level.L2),
    }


def test_script_is_one_transaction_that_never_forgets_a_count() -> None:
    lines = script(SPEC).splitlines()
    assert not any("delete" in line or "destroy" in line for line in lines)
    assert 'add element inet netqos_meter tx4 { 10.88.0.10 : "tx_l0", 10.88.0.12 : "tx_l2" }' in lines
    assert 'add element inet netqos_meter rx6 { fd00:88::10 : "rx_l0" }' in lines
    assert lines.index("flush map inet netqos_meter tx4") < next(
        number for number, line in enumerate(lines) if line.startswith("add element inet netqos_meter tx4")
    )
    empty = script(MeterSpec(levels=frozenset()))
    assert "add element" not in empty
    assert "flush map inet netqos_meter rx4" in empty


def test_counters() -> None:
    counts = parse_counters(listed(SPEC))
    assert counts == PerDirection(tx=PerLevel(0, 100, 200), rx=PerLevel(300, 400, 500))
    assert parse_counters({"nftables": [{"counter": {"name": "tx_l1", "bytes": "x"}}]}) == PerDirection(
        tx=PerLevel(0, 0, 0), rx=PerLevel(0, 0, 0)
    )
