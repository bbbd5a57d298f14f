"""Layout and plan on a model of the kernel: they converge, keep handles, keep order, and touch only what is ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netqos.model.desired import NOTHING, DesiredPod, DesiredState
from netqos.model.health import Severity
from netqos.model.ids import CgroupPath, IfName
from netqos.model.levels import Direction, Level, PerDirection
from netqos.model.plan import Plan, Verb
from netqos.model.rules import PortMatch, PortRange, Protocol, Rule
from netqos.testing import states
from netqos.testing.states import G, M
from netqos.testing.strategies import NAMES, desired_states
from netqos_tc import changes, numbers, params
from netqos_tc.classify import CRITICAL_OWNER, owner_of
from netqos_tc.edits import Edit, device_of
from netqos_tc.keys import (
    ClassKey,
    ElementKey,
    ElementMap,
    FilterKey,
    Key,
    LinkKey,
    QueueKey,
    RootKey,
    RulesKey,
    SetKey,
    TableKey,
)
from netqos_tc.layout import Facilities, lay_out
from netqos_tc.observed import TcObserved
from netqos_tc.options import Options
from netqos_tc.register import names_of
from netqos_tc.root import Root
from netqos_tc.spec import ClassSpec, ElementSpec, FilterSpec, LeafQueueSpec, Spec, TableSpec
from tests.unit.netqos_tc.tckernel import PORT, ModelKernel

UP = states.uplink(index=2)
WEB = states.pod("prod/web", Level.L0, addresses=("10.88.0.10", "fd00:88::10"))
DB = states.pod("prod/db", Level.L1, addresses=("10.88.0.11",))
BATCH = states.pod("batch/batch", Level.L2, addresses=("10.88.0.12",))


def kernel() -> ModelKernel:
    return ModelKernel({2: Root(kind="noqueue", handle=0), 3: Root(kind="mq", handle=0)})


def plan(desired: DesiredState, observed: TcObserved) -> Plan:
    layout = lay_out(desired, observed, Options(), Facilities())
    names = layout.names({2: "up0", 3: "up1"})
    operations = changes.operations(layout.specs, observed, names, complete=layout.is_whole)
    return Plan(backend="tc", operations=operations, findings=layout.findings)


def bring(model: ModelKernel, desired: DesiredState) -> Plan:
    made = plan(desired, model.observe())
    model.apply(made.operations)
    return made


def no_ceiling(key: Key, spec: Spec) -> Spec:
    """A workload's class without its ceiling, with which its other values may shrink; anything else as it is."""
    if isinstance(key, ClassKey) and isinstance(spec, ClassSpec) and key.minor not in numbers.FIXED:
        return replace(spec, rate=0, ceil=0, buffer=0, cbuffer=0, quantum=0)
    return spec


def renewed(pods: tuple[DesiredPod, ...], reborn: set[str]) -> tuple[DesiredPod, ...]:
    """The pods with those of these names made anew: each under another UID."""
    return tuple(
        replace(pod, uid=states.pod_uid(f"{pod.name}/again")) if pod.name in reborn else pod for pod in pods
    )


def turned(pods: tuple[DesiredPod, ...], turn: int) -> tuple[DesiredPod, ...]:
    """The pods, each with the addresses of the one that is `turn` places further; the host's pods have none."""
    own = [pod for pod in pods if not pod.host_network]
    given_to = {pod.uid: own[(number + turn) % len(own)].addresses for number, pod in enumerate(own)}
    return tuple(replace(pod, addresses=given_to.get(pod.uid, pod.addresses)) for pod in pods)


def leaf_of(model: ModelKernel, pod: str) -> int:
    owner = owner_of(states.pod_uid(pod))
    (minor,) = {
        one.minor for one in model.specs.values() if isinstance(one, ElementSpec) and one.owner == owner
    }
    return minor


# ---------------------------------------------------------------- for any states


@settings(max_examples=40)
@given(st.lists(desired_states(UP), min_size=1, max_size=4))
def test_one_pass_is_enough_from_anywhere_to_anywhere(sequence: list[DesiredState]) -> None:
    model = kernel()
    for desired in (*sequence, NOTHING):
        bring(model, desired)
        assert not plan(desired, model.observe())
    assert model.specs == {}
    assert model.saved == {}


@settings(max_examples=40)
@given(desired_states(UP), st.randoms())
def test_the_order_of_what_is_asked_for_does_not_matter(desired: DesiredState, random: Random) -> None:
    pods = list(desired.pods)
    random.shuffle(pods)
    one, other = kernel(), kernel()
    bring(one, desired)
    bring(other, replace(desired, pods=tuple(pods)))
    assert one.specs == other.specs


@settings(max_examples=60)
@given(desired_states(UP), desired_states(UP), st.sets(st.sampled_from(NAMES)), st.integers(0, 2))
def test_an_incomplete_state_takes_nothing_away(
    first: DesiredState, second: DesiredState, reborn: set[str], turn: int
) -> None:
    """An address that is another workload's now is that one's: the pods in `reborn` are others with the same ones."""
    model = kernel()
    bring(model, first)
    before = dict(model.specs)
    early = states.incomplete(replace(second, pods=turned(renewed(second.pods, reborn), turn)))
    made = bring(model, early)
    assert {operation.verb for operation in made.operations} <= {Verb.CREATE, Verb.CHANGE}
    for key, spec in before.items():
        after = model.specs[key]
        if isinstance(after, TableSpec) and isinstance(spec, TableSpec):
            assert (after.chains, after.maps) == (
                spec.chains,
                spec.maps,
            )  # rules may be looked for from now on
        elif not (
            isinstance(after, ElementSpec) and isinstance(spec, ElementSpec) and after.owner != spec.owner
        ):
            assert no_ceiling(key, after) == no_ceiling(key, spec)
    assert not plan(early, model.observe())


@settings(max_examples=40)
@given(desired_states(UP))
def test_what_somebody_removed_comes_back_and_leaves_keep_their_numbers(desired: DesiredState) -> None:
    model = kernel()
    bring(model, desired)
    before = dict(model.specs)
    remembered = names_of(before)
    lost = TableKey | ElementKey | RulesKey | FilterKey
    model.specs = {key: spec for key, spec in before.items() if not isinstance(key, lost)}
    model.apply(plan(desired, model.observe(remembered=remembered)).operations)
    assert model.specs == before


@settings(max_examples=40)
@given(desired_states(UP))
def test_operations_say_what_they_are_for(desired: DesiredState) -> None:
    model = kernel()
    for state in (desired, NOTHING):
        for operation in bring(model, state).operations:
            assert operation.subject
            assert operation.detail
            assert "None" not in operation.detail


# ---------------------------------------------------------------- incidents


def incidents(desired: DesiredState, lost: Callable[[Key], bool]) -> dict[Key, str]:
    """The incident of every operation that mends a tree which has lost some of its objects."""
    model = kernel()
    bring(model, desired)
    remembered = {one.owner: one.minor for one in model.specs.values() if isinstance(one, ElementSpec)}
    model.specs = {key: spec for key, spec in model.specs.items() if not lost(key)}
    made = plan(desired, model.observe(remembered=remembered)).operations
    return {one.payload.key: one.incident for one in made if isinstance(one.payload, Edit)}


def test_all_that_goes_with_a_root_is_one_incident_of_it() -> None:
    other = states.uplink("up1", index=3, tx_bps=200 * M)
    found = incidents(states.node((WEB,), uplinks=(UP, other)), lambda key: device_of(key) == 3)
    assert RootKey(3) in found
    assert {device_of(key) for key in found} == {3}
    assert {type(key) for key in found} == {RootKey, ClassKey, QueueKey, FilterKey}
    assert set(found.values()) == {"root qdisc of up1"}


def test_all_that_goes_with_the_table_is_one_incident_of_it() -> None:
    found = incidents(states.node((WEB,), uplinks=(UP,)), lambda key: device_of(key) is None)
    assert found == dict.fromkeys(
        [
            TableKey(),
            *(ElementKey(which, "10.88.0.10") for which in (ElementMap.TX4, ElementMap.RX4)),
            *(ElementKey(which, "fd00:88::10") for which in (ElementMap.TX6, ElementMap.RX6)),
        ],
        "table inet netqos",
    )


def test_what_stands_on_a_lost_class_goes_with_it_and_whatever_else_is_an_incident_of_its_own() -> None:
    batch = states.pod("ns/batch", Level.L2, addresses=("10.88.0.12",))
    model = kernel()
    desired = states.node((WEB, batch), uplinks=(UP,))
    bring(model, desired)
    leaf = leaf_of(model, "ns/batch")
    lost = {
        ClassKey(2, 0x12),
        ClassKey(2, leaf),
        QueueKey(2, leaf),
        QueueKey(2, numbers.HOST),
        FilterKey(2, 3),
    }
    assert incidents(desired, lost.__contains__) == {
        ClassKey(2, 0x12): "class 4e51:12 on up0",
        ClassKey(2, leaf): "class 4e51:12 on up0",
        QueueKey(2, leaf): "class 4e51:12 on up0",
        QueueKey(2, numbers.HOST): "queue of class 4e51:10f on up0",
        FilterKey(2, 3): "filter 3 on up0",
    }


def test_the_move_of_a_workload_is_one_incident_of_its_new_leaf() -> None:
    model = kernel()
    bring(model, states.node((WEB,), uplinks=(UP,)))
    old = leaf_of(model, "prod/web")
    made = bring(model, states.node((replace(WEB, level=Level.L2),), uplinks=(UP,)))
    new = leaf_of(model, "prod/web")
    leaves = {2: f"class 4e51:{new:x} on up0", numbers.IFB_INDEX: f"class 4e52:{new:x} on netqos-ifb"}
    moved: dict[Key, str] = {
        key: incident
        for ifindex, incident in leaves.items()
        for key in (ClassKey(ifindex, new), QueueKey(ifindex, new), ClassKey(ifindex, old))
    }
    for key in model.observe().elements:
        moved[key] = leaves[2 if key.map.direction is Direction.TX else numbers.IFB_INDEX]
    found = {
        one.payload.key: one.incident
        for one in made.operations
        if isinstance(one.payload, Edit) and one.payload.key in moved
    }
    assert found == moved


def test_a_class_that_goes_is_of_the_incident_of_what_it_waits_for() -> None:
    """What is held back for the one holds back the other, which would be refused again and again."""
    model = kernel()
    rules = PerDirection(tx=(Rule(matches=(), dscp=8, maximum_bps=5 * M),), rx=())
    bring(model, states.node((replace(WEB, rules=rules),), uplinks=(UP,)))
    names = names_of(model.observe().specs)
    owner = owner_of(WEB.uid)
    leaf, twig = names[owner], names[f"{owner} tx 0"]
    spec = model.observe().specs[ClassKey(2, twig)]
    assert isinstance(spec, ClassSpec)
    group = numbers.minor_of(spec.parent)
    made = bring(model, states.node((), uplinks=(UP,)))
    found = needed(made)
    chain = {f"chain r{leaf:x}tx"}
    elements = {"element 10.88.0.10 of map tx4", "element fd00:88::10 of map tx6"}
    assert found[ClassKey(2, twig)] == chain
    assert found[ClassKey(2, leaf)] == elements
    assert found[ClassKey(2, group)] == chain | elements


def test_a_set_that_goes_is_of_the_incidents_of_all_chains_that_look_it_up() -> None:
    """The kernel refuses to remove it before; one that is held back holds back its own sets and no other ones."""
    model = kernel()
    desired = states.node((ruled(WEB, 80, 8), ruled(DB, 80, 8), ruled(BATCH, 81, 8)), uplinks=(UP,))
    bring(model, desired)
    chains = {name: {f"chain r{leaf_of(model, name):x}tx"} for name in ("prod/web", "prod/db", "batch/batch")}
    sets = {key: spec for key, spec in model.specs.items() if isinstance(key, SetKey)}
    assert len(sets) == 2
    made = bring(model, states.node((ruled(WEB, 81, 9), DB, ruled(BATCH, 81, 8)), uplinks=(UP,)))
    (gone,) = sets.keys() - model.specs.keys()
    assert needed(made)[gone] == chains["prod/web"] | chains["prod/db"]


def test_the_ifb_goes_with_the_last_device_that_leads_to_it() -> None:
    """What leads to a device that is gone is dropped."""
    model = kernel()
    bring(model, states.node((WEB,), uplinks=(UP,)))
    made = bring(model, NOTHING)
    assert needed(made)[LinkKey(numbers.IFB_INDEX)] == {f"redirect at the egress of device {PORT}"}


def ruled(pod: DesiredPod, first_port: int, dscp: int) -> DesiredPod:
    """With a rule for more ports than nft rules of single values are made of."""
    ports = tuple(PortRange(low=first_port + 2 * one, high=first_port + 2 * one) for one in range(9))
    rule = Rule(matches=(PortMatch(ranges=ports, protocol=Protocol.TCP),), dscp=dscp)
    return replace(pod, rules=PerDirection(tx=(rule,), rx=()))


def needed(made: Plan) -> dict[Key, set[str]]:
    """Without which incidents nothing is done to an object."""
    return {
        one.payload.key: {one.incident, *one.awaits}
        for one in made.operations
        if isinstance(one.payload, Edit)
    }


@settings(max_examples=60)
@given(data=st.data(), first=desired_states(UP), second=desired_states(UP))
def test_whatever_is_held_back_the_kernel_refuses_nothing_of_the_rest(
    data: st.DataObject, first: DesiredState, second: DesiredState
) -> None:
    """Two trees of egress, of which, or of the table, others removed something; each object of the plan may fail."""
    model = kernel()
    other = replace(UP, name=IfName("up1"), index=3)
    first, second = (replace(one, uplinks=(*one.uplinks, other)) for one in (first, second))
    bring(model, first)
    lost = data.draw(st.sets(st.sampled_from([2, 3, None])))
    model.specs = {key: spec for key, spec in model.specs.items() if device_of(key) not in lost}
    made = plan(second, model.observe())
    incidents = sorted({one.incident for one in made.operations})
    held = data.draw(st.sets(st.sampled_from(incidents), max_size=3)) if incidents else set()
    model.apply(made.operations, held=held)


# ---------------------------------------------------------------- what others put into our tree


def stranger(parent: int) -> ClassSpec:
    return ClassSpec(parent=parent, rate=M, ceil=M, buffer=1, cbuffer=1, prio=0, quantum=1500)


def test_what_others_put_into_our_tree_goes_filters_first_and_children_before_their_parents() -> None:
    model = kernel()
    desired = states.node((WEB,), uplinks=(UP,))
    bring(model, desired)
    before = dict(model.specs)
    leads = FilterSpec(protocol=0x0800, matches=(), minor=0x9)
    model.specs |= {
        ClassKey(2, 0x99): stranger(numbers.ROOT),
        ClassKey(2, 0x9): stranger(numbers.class_id(0x99)),
        ClassKey(2, 0x98): stranger(numbers.class_id(numbers.L0)),
        FilterKey(2, 50): leads,
        FilterKey(2, 1, minor=numbers.L0): leads,
        FilterKey(2, 1, chain=7): leads,
    }
    made = bring(model, desired)
    assert model.specs == before
    assert [one.subject for one in made.operations] == [
        "filter 50 on up0",
        "filter 1 of class 4e51:10 on up0",
        "filter 1 of chain 7 on up0",
        "class 4e51:9 on up0",
        "class 4e51:99 on up0",
        "class 4e51:98 on up0",
    ]
    found = {one.subject: one.incident for one in made.operations}
    assert found.pop("class 4e51:99 on up0") == "class 4e51:9 on up0", (
        "it cannot go before the one that stands on it"
    )
    assert all(subject == incident for subject, incident in found.items())
    (finding,) = [one for one in made.findings if one.code == "foreign-in-our-tree"]
    assert (finding.severity, finding.subject) == (Severity.ERROR, "up2")
    assert " and 1 more: not ours" in finding.message
    assert "foreign-in-our-tree" not in {one.code for one in plan(desired, model.observe()).findings}


@pytest.mark.parametrize("met", [{"kind": "bpf"}, {"more": 1}, {"minor": 0}])
def test_what_stands_in_the_place_of_a_filter_of_ours_is_replaced(met: dict[str, Any]) -> None:
    model = kernel()
    desired = states.node((WEB,), uplinks=(UP,))
    bring(model, desired)
    before = dict(model.specs)
    ours = before[FilterKey(2, 4)]
    assert isinstance(ours, FilterSpec)
    model.specs[FilterKey(2, 4)] = replace(ours, **met)
    made = bring(model, desired)
    assert [(one.verb, one.subject) for one in made.operations] == [(Verb.CHANGE, "filter 4 on up0")]
    assert all(one.detail for one in made.operations)
    assert model.specs == before


# ---------------------------------------------------------------- moving and numbering


def test_a_pod_that_changes_its_level_gets_a_new_leaf_before_the_old_one_goes() -> None:
    model = kernel()
    bring(model, states.node((WEB,), uplinks=(UP,)))
    old = leaf_of(model, "prod/web")
    made = bring(model, states.node((replace(WEB, level=Level.L2),), uplinks=(UP,)))
    new = leaf_of(model, "prod/web")
    assert new != old
    order = [(one.verb, one.payload.key) for one in made.operations if isinstance(one.payload, Edit)]
    created = order.index((Verb.CREATE, ClassKey(2, new)))
    moved = [order.index((Verb.CHANGE, key)) for _verb, key in order if isinstance(key, ElementKey)]
    deleted = order.index((Verb.DELETE, ClassKey(2, old)))
    assert len(moved) == 4
    assert created < min(moved) <= max(moved) < deleted


def test_an_address_is_its_new_pods_while_a_source_has_not_delivered() -> None:
    """Also where the earlier one has another by now; what that had stays, and no class is made twice."""
    old = states.pod("ns/old", addresses=("10.88.0.50", "fd00:88::50"), tx_bps=12 * M, rx_bps=11 * M)
    young = states.pod("ns/young", addresses=("10.88.0.50", "fd00:88::50"), tx_bps=95 * M, rx_bps=94 * M)
    moved = replace(old, addresses=("10.88.0.51",))
    for pods in ((young,), (moved, young)):
        model = kernel()
        bring(model, states.node((WEB, old), uplinks=(UP,)))
        kept = {key: spec for key, spec in model.specs.items() if not isinstance(key, ElementKey)}
        minor, early = leaf_of(model, "ns/old"), states.incomplete(states.node((WEB, *pods), uplinks=(UP,)))
        bring(model, early)
        assert not plan(early, model.observe())
        assert kept.items() <= model.specs.items()
        given_to = {key.value: one.owner for key, one in model.observe().elements.items()}
        assert {given_to[one] for one in young.addresses} == {young.uid}
        leaf = model.specs[ClassKey(2, leaf_of(model, "ns/young"))]
        assert isinstance(leaf, ClassSpec)
        assert leaf.ceil * 8 == 95 * M
        assert moved not in pods or leaf_of(model, "ns/old") == minor


def test_a_new_limit_changes_the_leaf_in_its_place() -> None:
    model = kernel()
    bring(model, states.node((WEB,), uplinks=(UP,)))
    made = bring(
        model, states.node((replace(WEB, limits_bps=replace(WEB.limits_bps, tx=20 * M)),), uplinks=(UP,))
    )
    leaf = ClassKey(2, leaf_of(model, "prod/web"))
    edits = [one.payload for one in made.operations if isinstance(one.payload, Edit)]
    assert {edit.key for edit in edits} == {leaf, QueueKey(2, leaf.minor)}
    assert [one.verb for one in made.operations] == [Verb.CHANGE, Verb.CHANGE]
    spec = model.specs[leaf]
    assert isinstance(spec, ClassSpec)
    assert spec.ceil == 2_500_000


def test_a_restart_finds_the_same_numbers_even_where_hashes_collide() -> None:
    model = kernel()
    addresses = [f"10.1.{number // 250}.{number % 250}" for number in range(600)]
    many = tuple(states.pod(f"ns/{address}", addresses=(address,)) for address in addresses)
    bring(model, states.node(many, uplinks=(UP,)))
    used = [spec.minor for spec in model.specs.values() if isinstance(spec, ElementSpec)]
    assert len(set(used)) == 600
    assert not plan(states.node(many[::-1], uplinks=(UP,)), model.observe())
    fewer = states.node(many[50:], uplinks=(UP,))
    bring(model, fewer)
    bring(model, states.node(many, uplinks=(UP,)))
    assert not plan(states.node(many, uplinks=(UP,)), model.observe())


def test_two_uplinks_have_the_same_leaves() -> None:
    model = kernel()
    other = states.uplink("up1", index=3, tx_bps=200 * M)
    desired = states.node((WEB,), uplinks=(UP, other))
    bring(model, desired)
    assert not plan(desired, model.observe())
    minor = leaf_of(model, "prod/web")
    total = model.specs[ClassKey(3, numbers.TOTAL)]
    assert ClassKey(3, minor) in model.specs
    assert isinstance(total, ClassSpec)
    assert total.rate == 25_000_000
    bring(model, replace(desired, uplinks=(UP,)))
    assert not [key for key in model.specs if device_of(key) == 3]


def test_a_pod_known_twice_counts_for_the_first_and_an_odd_address_stops_nobody() -> None:
    twice = states.pod("ns/twice", Level.L2, addresses=("10.88.0.10",))
    odd = states.pod(
        "ns/odd", Level.L2, addresses=("", "not-an-address", "fe80::1%eth0", "0.0.0.0", "10.88.0.9")
    )
    mapped = states.pod("ns/mapped", addresses=("::ffff:10.88.0.8",))
    model = kernel()
    made = bring(model, states.node((WEB, twice, odd, mapped), uplinks=(UP,)))
    owners = {key.value: one.owner for key, one in model.observe().elements.items()}
    assert owners["10.88.0.10"] == WEB.uid
    assert owners["10.88.0.9"] == odd.uid
    assert owners["10.88.0.8"] == mapped.uid
    codes = sorted((one.code, one.subject) for one in made.findings if one.subject.startswith("pod"))
    assert codes == [*[("bad-address", "pod ns/odd")] * 4, ("claimed-twice", "pod ns/twice")]


def test_host_network_pods_are_known_by_their_cgroup_and_never_by_the_nodes_address() -> None:
    hosted = replace(
        states.pod("ns/agent", Level.L2, addresses=("198.18.0.2",), host_network=True, cgroup="/a/b/c"),
        cgroup_id=77,
    )
    waiting = states.pod("ns/waiting", Level.L2, host_network=True)
    deep = replace(states.pod("ns/deep", host_network=True, cgroup="/1/2/3/4/5/6/7"), cgroup_id=78)
    desired = replace(
        states.node((hosted, waiting, deep), uplinks=(UP,)),
        critical_cgroups=((CgroupPath("/system.slice/sshd.service"), 5),),
    )
    model = kernel()
    made = bring(model, desired)
    assert model.observe().elements == {
        ElementKey(ElementMap.CG3, 77): ElementSpec(minor=leaf_of(model, "ns/agent"), owner=hosted.uid),
        ElementKey(ElementMap.CG2, 5): ElementSpec(minor=numbers.CRITICAL, owner=CRITICAL_OWNER),
    }
    codes = {(one.code, one.subject) for one in made.findings if one.subject.startswith("pod")}
    assert codes == {
        ("pending", "pod ns/waiting"),
        ("not-enforced-cgroup", "pod ns/deep"),
        ("not-enforced-ingress", "pod ns/agent"),
    }


def test_rules_leave_nothing_to_say() -> None:
    """Of a level that would leave a limit the engine tells."""
    another = (Rule(matches=(), level=Level.L2, dscp=10),)
    pod = replace(WEB, rules=PerDirection(tx=another, rx=another), limits_bps=replace(WEB.limits_bps, rx=M))
    assert plan(states.node((pod,), uplinks=(UP,)), kernel().observe()).findings == ()


# ---------------------------------------------------------------- what the loop owns, what is off


@pytest.mark.parametrize(
    ("ceil", "is_kept"),
    [(62_500_000, True), (100_000_000, True), (125_000_000, True), (62_499_999, False), (125_000_001, False)],
)
def test_l0s_ceiling_is_the_loops_within_its_range(ceil: int, is_kept: bool) -> None:
    model = kernel()
    desired = states.node((WEB,), uplinks=(UP,))
    bring(model, desired)
    key = ClassKey(2, numbers.L0)
    spec = model.specs[key]
    assert isinstance(spec, ClassSpec)
    assert (spec.rate, spec.ceil) == (62_500_000, 125_000_000)
    shape = params.inner_at(spec.rate, ceil, mtu=1500)
    model.specs[key] = replace(spec, ceil=ceil, cbuffer=shape.cbuffer)
    made = plan(desired, model.observe())
    assert bool([one for one in made.operations if one.subject == "class 4e51:10 on up0"]) is not is_kept


def test_off_there_are_no_priorities_and_the_loops_ceiling_is_forgotten() -> None:
    model = kernel()
    desired = states.node(
        (WEB, states.pod("ns/slow", Level.L2, addresses=("10.88.0.12",), tx_bps=M)), uplinks=(UP,)
    )
    bring(model, desired)
    key = ClassKey(2, numbers.L0)
    spec = model.specs[key]
    assert isinstance(spec, ClassSpec)
    model.specs[key] = replace(spec, ceil=70_000_000)
    bring(model, states.switched_off(desired))
    levels = [model.specs[ClassKey(2, minor)] for minor in numbers.LEVELS.values()]
    assert {(one.rate, one.ceil) for one in levels if isinstance(one, ClassSpec)} == {(1000, 125_000_000)}
    leaves = {model.specs[ClassKey(2, leaf_of(model, name))] for name in ("prod/web", "ns/slow")}
    assert {one.prio for one in leaves if isinstance(one, ClassSpec)} == {1}
    assert {one.ceil for one in leaves if isinstance(one, ClassSpec)} == {125_000_000, 125_000}


def test_with_an_unknown_total_only_limits_bite() -> None:
    slow = states.pod("ns/slow", Level.L2, addresses=("10.88.0.12",), tx_bps=M)
    unknown = states.node(
        (WEB, slow),
        uplinks=(states.uplink(index=2, tx_bps=None),),
        tx=states.direction(None),
        rx=states.direction(None),
    )
    model = kernel()
    bring(model, unknown)
    spec = model.specs[ClassKey(2, leaf_of(model, "prod/web"))]
    assert isinstance(spec, ClassSpec)
    assert spec.ceil == 125 * G
    bring(model, states.without(unknown, "ns/slow"))
    assert model.specs == {}


def test_while_no_uplink_is_known_nothing_is_taken_away_unless_it_is_off() -> None:
    model = kernel()
    desired = states.node((WEB,), uplinks=(UP,))
    bring(model, desired)
    assert not plan(replace(desired, uplinks=()), model.observe())
    bring(model, replace(states.switched_off(desired), uplinks=()))
    assert model.specs == {}


@pytest.mark.parametrize("complete", [True, False])
def test_uplinks_that_are_named_and_not_there_leave_nothing_of_ours_on_others(*, complete: bool) -> None:
    """And nothing behind the workloads, since nothing comes in by an uplink; with the device all of it is back."""
    model = kernel()
    desired = states.node((WEB,), uplinks=(UP,))
    bring(model, desired)
    shaped = dict(model.specs)
    elsewhere = replace(desired, uplinks=(), missing_uplinks=(IfName("up9"),), complete=complete)
    bring(model, elsewhere)
    assert model.specs == ({} if complete else shaped)
    bring(model, desired)
    assert model.specs == shaped


def test_an_uplink_without_a_total_is_not_shaped_beside_one_that_is() -> None:
    model = kernel()
    other = states.uplink("up1", index=3, tx_bps=None)
    bring(model, states.node((WEB,), uplinks=(UP, other)))
    assert {device_of(key) for key in model.specs} == {2, numbers.IFB_INDEX, PORT, None}


def test_a_limit_for_ingress_alone_keeps_the_pod_in_its_level() -> None:
    model = kernel()
    pod = states.pod("ns/batch", Level.L2, addresses=("10.88.0.12",), rx_bps=10 * M)
    bring(model, states.node((pod,), uplinks=(UP,)))
    spec = model.specs[ClassKey(2, leaf_of(model, "ns/batch"))]
    assert isinstance(spec, ClassSpec)
    assert spec.parent == numbers.class_id(numbers.LEVELS[Level.L2])
    assert spec.ceil == 125_000_000


def test_the_leaves_that_are_always_there() -> None:
    """Contract 8, on 10 Gbit/s with 50/30/20 percent: class, rate, ceil (bits per second), prio, quantum, queue."""
    total_bps = 10 * G
    up = states.uplink(index=2, tx_bps=total_bps)
    model = kernel()
    bring(model, states.node((WEB,), uplinks=(up,), tx=states.direction(total_bps)))
    found = {}
    for key, spec in model.specs.items():
        queue = model.specs.get(QueueKey(2, key.minor)) if isinstance(key, ClassKey) else None
        if isinstance(key, ClassKey) and isinstance(spec, ClassSpec) and isinstance(queue, LeafQueueSpec):
            parent = numbers.minor_of(spec.parent)
            found[key.minor] = (parent, spec.rate * 8, spec.ceil * 8, spec.prio, spec.quantum, queue.limit)
    assert found == {
        0xC: (0x1, 1 * M, 625 * M, 0, 15_000, 16_384),
        0x10E: (0x10, 100 * M, 10 * G, 0, 60_000, 12_500_000),
        0x10F: (0x10, 100 * M, 10 * G, 0, 60_000, 12_500_000),
        0x11F: (0x11, 366_208, 10 * G, 1, 15_000, 7_500_000),
        leaf_of(model, "prod/web"): (0x10, 4_882_808, 10 * G, 0, 15_000, 12_500_000),
    }


# ---------------------------------------------------------------- roots


@pytest.mark.parametrize(
    ("root", "is_taken"),
    [
        (Root(kind="noqueue", handle=0), True),
        (Root(kind="pfifo_fast", handle=0), True),
        (Root(kind="fq_codel", handle=0x80010000), True),
        (Root(kind="fq", handle=0x80010000), True),
        (Root(kind="fq", handle=0x80010000, has_filters=True), False),
        (Root(kind="mq", handle=0), True),
        (Root(kind="htb", handle=0x10000), False),
        (Root(kind="tbf", handle=0x10000), False),
        (Root(kind="cake", handle=0x10000), False),
        (Root(kind="mqprio", handle=0x10000), False),
        (Root(kind="pfifo", handle=0x10000), False),
    ],
)
def test_which_roots_are_taken_over(root: Root, is_taken: bool) -> None:
    model = ModelKernel({2: root})
    made = bring(model, states.node((WEB,), uplinks=(UP,)))
    assert (RootKey(2) in model.specs) is is_taken
    assert ("foreign-root-qdisc" in {one.code for one in made.findings}) is not is_taken
    assert any(device_of(key) == 2 for key in model.specs) is is_taken


def test_a_fast_link_is_told_that_htb_has_one_lock() -> None:
    fast = states.uplink(index=2, tx_bps=100 * G)
    made = plan(states.node((WEB,), uplinks=(fast,), tx=states.direction(100 * G)), kernel().observe())
    assert "one-lock" in {one.code for one in made.findings}
