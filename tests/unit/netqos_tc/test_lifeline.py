"""Which repairs may not wait for somebody who makes them necessary again and again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netqos_tc import classify, numbers
from netqos_tc.controls import CONTROL_FILTERS
from netqos_tc.keys import ClassKey, FilterKey, LinkKey, QueueKey, RootKey, TableKey
from netqos_tc.lifeline import is_vital
from netqos_tc.spec import (
    ChainSpec,
    ClassSpec,
    FilterSpec,
    LeafQueueSpec,
    LinkSpec,
    RootSpec,
    RuleSpec,
    TableSpec,
)

TABLE = classify.table_spec(cgroups=True)
OUTPUT = next(one for one in TABLE.chains if one.name == "output")
ROOT_SPEC = RootSpec(default_minor=numbers.UNKNOWN)
CLASS = ClassSpec(parent=numbers.ROOT, rate=1000, ceil=2000, buffer=9, cbuffer=9, prio=0, quantum=9)
QUEUE = LeafQueueSpec(limit=70_000)
POD = numbers.FIRST_POD


@pytest.mark.parametrize(
    "met",
    [
        replace(TABLE, rules=(*TABLE.rules, RuleSpec(chain="output", comment=""))),
        replace(TABLE, chains=TABLE.chains | {ChainSpec(name="x", hook=1, priority=0)}),
        replace(TABLE, chains=TABLE.chains - {OUTPUT} | {replace(OUTPUT, policy=0)}),
    ],
)
def test_a_verdict_in_our_table_is(met: TableSpec) -> None:
    assert is_vital(TableKey(), met, TABLE)
    assert not is_vital(TableKey(), met, None), "a table that goes is no repair"


@pytest.mark.parametrize(
    "met",
    [
        replace(TABLE, rules=TABLE.rules[1:]),
        replace(TABLE, rules=TABLE.rules[::-1]),
        replace(TABLE, maps=frozenset()),
        replace(TABLE, chains=TABLE.chains - {OUTPUT}),
        replace(TABLE, dormant=True),
    ],
)
def test_a_table_that_only_lacks_something_is_not(met: TableSpec) -> None:
    assert not is_vital(TableKey(), met, TABLE)


@pytest.mark.parametrize("minor", [numbers.TOTAL, numbers.L0, 0x11, *numbers.FIXED - numbers.INNER])
def test_a_class_that_the_nodes_packets_need_is_unless_it_is_missing(minor: int) -> None:
    key = ClassKey(7, minor)
    assert is_vital(key, replace(CLASS, ceil=1), CLASS)
    assert not is_vital(key, None, CLASS)
    assert not is_vital(key, CLASS, None)
    assert is_vital(QueueKey(7, minor), replace(QUEUE, limit=1), QUEUE) is (minor not in numbers.INNER)


def test_the_class_of_a_pod_is_not() -> None:
    assert not is_vital(ClassKey(7, POD), replace(CLASS, ceil=1), CLASS)
    assert not is_vital(QueueKey(7, POD), replace(QUEUE, kind="netem"), QUEUE)


def test_an_ifb_that_is_missing_is_since_what_leads_to_it_drops_everything() -> None:
    key = LinkKey(numbers.IFB_INDEX)
    assert is_vital(key, None, LinkSpec())
    assert is_vital(key, LinkSpec(is_up=False), LinkSpec())
    assert not is_vital(key, LinkSpec(), None)


def test_a_filter_that_leads_packets_astray_is() -> None:
    ours = CONTROL_FILTERS[1]
    assert is_vital(FilterKey(7, 50), FilterSpec(protocol=3, matches=(), minor=0, kind="bpf"), None)
    assert is_vital(FilterKey(7, 1), replace(ours, minor=POD), ours)
    assert not is_vital(FilterKey(7, 1), None, ours)
    assert not is_vital(FilterKey(7, 1), ours, None)


def test_a_tree_that_is_made_anew_as_it_was_is() -> None:
    assert is_vital(RootKey(7), ROOT_SPEC, ROOT_SPEC)
    assert not is_vital(RootKey(7), RootSpec(default_minor=1), ROOT_SPEC)
    assert not is_vital(RootKey(7), None, ROOT_SPEC)
