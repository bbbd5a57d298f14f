"""When a class that was changed by others cannot be set right in place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netqos_tc import numbers
from netqos_tc.debt import is_in_debt
from netqos_tc.keys import ClassKey, RootKey
from netqos_tc.spec import ClassSpec, RootSpec

SPEC = ClassSpec(
    parent=numbers.ROOT, rate=1_000_000, ceil=20_000_000, buffer=9, cbuffer=9, prio=None, quantum=None
)
SHARED = [*numbers.INNER, numbers.HOST, numbers.CRITICAL, numbers.CONTROL, numbers.UNKNOWN]


@pytest.mark.parametrize("minor", SHARED)
def test_one_that_sends_less_than_a_packet_a_second(minor: int) -> None:
    key = ClassKey(2, minor)
    assert is_in_debt(key, SPEC, replace(SPEC, ceil=69_675))
    assert not is_in_debt(key, SPEC, replace(SPEC, ceil=69_676))
    assert not is_in_debt(key, SPEC, SPEC)


def test_a_rate_alone_counts_where_nobody_lends() -> None:
    slow = replace(SPEC, rate=1000)
    assert is_in_debt(ClassKey(2, numbers.TOTAL), SPEC, slow)
    assert not is_in_debt(ClassKey(2, numbers.L0), SPEC, slow)


def test_what_is_wanted_so_slow_is_no_debt() -> None:
    slow = replace(SPEC, rate=1000, ceil=1000)
    assert not is_in_debt(ClassKey(2, numbers.TOTAL), slow, slow)


def test_other_objects_and_the_leaf_of_a_workload_owe_nobody() -> None:
    assert not is_in_debt(ClassKey(2, numbers.FIRST_POD), SPEC, replace(SPEC, ceil=1000))
    assert not is_in_debt(RootKey(2), RootSpec(default_minor=1), RootSpec(default_minor=2))
