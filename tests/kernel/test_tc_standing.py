"""A plan may lack what others hold back: the kernel is left with a whole tree, or as it was."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest

from netqos.model.levels import Direction, Level, PerDirection
from netqos.model.plan import ApplyResult, Operation
from netqos.model.rules import PortMatch, PortRange, Protocol, Rule
from netqos.testing import states
from netqos.testing.harness import converge
from netqos.testing.states import M
from netqos_tc.backend import TcBackend
from netqos_tc.edits import Edit
from netqos_tc.jobs import INCOMPLETE, SKIPPED
from netqos_tc.keys import ClassKey, Key, RootKey, RulesKey, SetKey
from netqos_tc.numbers import is_pod_minor
from netqos_tc.spec import ElementSpec, Spec
from tests.kernel.tchost import UPLINK, UPLINK_INDEX, UplinkHost, only

pytestmark = pytest.mark.kernel("veth", "htb", "u32", "nft", "nft-fib", "nft-socket")

BATCH = states.pod("ns/batch", Level.L2, addresses=("10.88.0.12",))
DESIRED = only(states.node((BATCH,), uplinks=(UPLINK,)), Direction.TX)
L2 = ClassKey(UPLINK_INDEX, 0x12)


@pytest.fixture
def host() -> Iterator[UplinkHost]:
    made = UplinkHost()
    yield made
    made.close()


def tc(host: UplinkHost, command: str) -> str:
    return host.namespace.run(["tc", *command.split()]).stdout


def parents(host: UplinkHost) -> dict[str, str]:
    """The classes of the uplink with their parents."""
    listed = tc(host, "class show dev up0")
    return {
        one: parent or "root" for one, parent in re.findall(r"class htb (\S+) (?:parent (\S+)|root)", listed)
    }


async def apply_part(backend: TcBackend, keeps: Callable[[Key], bool]) -> ApplyResult:
    """What somebody does who holds some of a plan back."""
    plan = backend.plan(DESIRED, await backend.observe())
    part = tuple(one for one in plan.operations if keeps(key_of(one)))
    assert 0 < len(part) < len(plan.operations)
    return await backend.apply(replace(plan, operations=part))


def key_of(operation: Operation) -> Key:
    assert isinstance(operation.payload, Edit)
    return operation.payload.key


def failed(result: ApplyResult) -> dict[Key, str]:
    return {key_of(one.operation): one.code for one in result.failures}


def test_htb_makes_a_class_whose_parent_is_not_there_a_root_class(host: UplinkHost) -> None:
    """Why the writer asks first: the kernel says nothing, and such a class is shaped by its own rate alone."""
    tc(host, "qdisc add dev up0 root handle 7: htb")
    tc(host, "class add dev up0 parent 7:55 classid 7:1 htb rate 8kbit")
    assert parents(host) == {"7:1": "root"}


async def test_no_leaf_is_made_while_its_level_is_held_back(host: UplinkHost) -> None:
    backend = host.backend()
    await converge(backend, DESIRED)
    before = parents(host)
    (leaf,) = [one for one, parent in before.items() if parent == "4e51:12"]
    tc(host, f"class del dev up0 classid {leaf}")
    tc(host, "class del dev up0 classid 4e51:12")
    result = await apply_part(backend, lambda key: key != L2)
    assert set(failed(result).values()) == {SKIPPED}
    assert "class 4e51:12 on up0, which is not there" in result.failures[0].message
    assert parents(host) == {one: parent for one, parent in before.items() if one not in ("4e51:12", leaf)}
    await converge(backend, DESIRED)
    assert parents(host) == before


async def test_a_lost_tree_comes_back_whole_or_not_at_all(host: UplinkHost) -> None:
    backend = host.backend()
    await converge(backend, DESIRED)
    before = parents(host)
    tc(host, "qdisc del dev up0 root")
    lost = tc(host, "qdisc show dev up0")
    result = await apply_part(backend, lambda key: key != L2)
    codes = failed(result)
    assert codes.pop(RootKey(UPLINK_INDEX)) == INCOMPLETE
    assert set(codes.values()) == {SKIPPED}
    assert result.applied == 0
    assert tc(host, "qdisc show dev up0") == lost
    await converge(backend, DESIRED)
    assert parents(host) == before


async def test_without_its_root_nothing_of_a_tree_is_written(host: UplinkHost) -> None:
    backend = host.backend()
    await converge(backend, DESIRED)
    tc(host, "qdisc del dev up0 root")
    lost = tc(host, "qdisc show dev up0")
    result = await apply_part(backend, lambda key: not isinstance(key, RootKey))
    assert result.applied == 0
    assert set(failed(result).values()) == {SKIPPED}
    assert tc(host, "qdisc show dev up0") == lost


async def test_a_workload_keeps_its_leaf_while_its_new_one_is_held_back(host: UplinkHost) -> None:
    """Its elements are not led to a class that is not there, and the old leaf stays for them."""
    backend = host.backend()
    await converge(backend, DESIRED)
    before = parents(host)
    elements = (await backend.observe()).elements
    moved = replace(DESIRED, pods=(replace(BATCH, level=Level.L0),))
    plan = backend.plan(moved, await backend.observe())
    new = next(key_of(one) for one in plan.operations if one.detail.startswith("ns/batch: rate"))
    part = tuple(one for one in plan.operations if key_of(one) != new)
    result = await backend.apply(replace(plan, operations=part))
    assert set(failed(result).values()) == {SKIPPED}
    assert parents(host) == before
    assert (await backend.observe()).elements == elements
    await converge(backend, moved)
    assert "4e51:12" not in parents(host).values()


async def test_a_set_and_a_group_stay_while_what_holds_them_is_held_back(host: UplinkHost) -> None:
    """The kernel would refuse to remove a set that a chain looks up, or a class with another under it."""
    backend = host.backend()
    rule = Rule(matches=(PortMatch(ranges=PORTS, protocol=Protocol.TCP),), maximum_bps=5 * M)
    ruled = replace(DESIRED, pods=(replace(BATCH, rules=PerDirection(tx=(rule,), rx=())),))
    await converge(backend, ruled)
    before = (await backend.observe()).specs
    (chain,) = (key for key in before if isinstance(key, RulesKey))
    (looked_up,) = (key for key in before if isinstance(key, SetKey))
    plan = backend.plan(DESIRED, await backend.observe())
    held = next(one.incident for one in plan.operations if key_of(one) == chain)
    part = tuple(one for one in plan.operations if held not in {one.incident, *one.awaits})
    assert (await backend.apply(replace(plan, operations=part))).ok
    left = (await backend.observe()).specs
    assert {chain, looked_up} <= left.keys()
    assert {key for key in before if isinstance(key, ClassKey)} - left.keys() <= {leaf_of(before)}
    await converge(backend, DESIRED)
    assert not [key for key in (await backend.observe()).specs if isinstance(key, RulesKey | SetKey)]


PORTS = tuple(PortRange(low=port, high=port) for port in range(80, 98, 2))


def leaf_of(specs: Mapping[Key, Spec]) -> ClassKey:
    """The leaf of the only workload on the uplink."""
    (minor,) = {
        one.minor for one in specs.values() if isinstance(one, ElementSpec) and is_pod_minor(one.minor)
    }
    return ClassKey(UPLINK_INDEX, minor)
