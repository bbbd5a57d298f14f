"""Classes for rules inside workloads: where they stand, what they may use, and that nobody gets out of a limit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netqos.model.desired import DesiredPod, DesiredState
from netqos.model.ids import PodUid
from netqos.model.levels import Direction, Level, PerDirection
from netqos.model.rules import IpMatch, PortMatch, PortRange, Rule
from netqos.testing import states
from netqos.testing.states import M
from netqos.testing.strategies import desired_states, rates
from netqos_tc import numbers, podrules
from netqos_tc.edits import Edit
from netqos_tc.keys import ClassKey, Key, QueueKey, RootKey, RulesKey, SetKey
from netqos_tc.layout import Facilities, lay_out
from netqos_tc.observed import TcObserved
from netqos_tc.options import Options
from netqos_tc.register import Register, group_name, names_of, rule_name
from netqos_tc.root import Root
from netqos_tc.spec import ClassSpec, ElementSpec, RulesSpec, Spec
from tests.unit.netqos_tc.tckernel import ModelKernel
from tests.unit.netqos_tc.test_planning import UP, bring, kernel, plan

TX, RX = Direction.TX, Direction.RX
Rules = PerDirection[tuple[Rule, ...]]
HTTP = (PortMatch(ranges=(PortRange(low=80, high=80),)),)


def pod(rules: Rules, level: Level = Level.L1, **limits: int) -> DesiredPod:
    return states.pod("prod/web", level, addresses=("10.88.0.10",), rules=rules, **limits)  # type: ignore[arg-type]


def tree(model: ModelKernel, ifindex: int) -> dict[str, tuple[str, int, int]]:
    """Parent, rate and ceiling (bytes per second) of each class of the only workload, by names."""
    named = names_of(model.specs)
    (owner,) = {name.partition(" ")[0] for name in named}
    names = {minor: name.removeprefix(owner).strip() or "own" for name, minor in named.items()}
    classes = {
        key.minor: spec
        for key, spec in model.specs.items()
        if isinstance(key, ClassKey) and isinstance(spec, ClassSpec) and key.ifindex == ifindex
    }
    parents = {minor: numbers.minor_of(spec.parent) for minor, spec in classes.items()}
    groups = {parents[minor]: "group" for minor in names if minor in parents} | {
        minor: level.name for level, minor in numbers.LEVELS.items()
    }
    shown = names | {minor: name for minor, name in groups.items() if name == "group"}
    return {
        name: (groups[parents[minor]], classes[minor].rate, classes[minor].ceil)
        for minor, name in shown.items()
        if minor in classes
    }


def test_rules_of_the_own_level_stand_with_the_rest_under_the_pods_limit() -> None:
    rules: Rules = PerDirection(
        tx=(
            Rule(matches=HTTP, maximum_bps=8 * M),
            Rule(matches=(), dscp=10),
            Rule(matches=(), minimum_bps=4 * M),
            Rule(matches=(), level=Level.L1),
        ),
        rx=(),
    )
    model = kernel()
    bring(model, states.node((pod(rules, tx_bps=80 * M),), uplinks=(UP,)))
    own = 36_621 // 8  # an L1 leaf: m1/8192
    assert tree(model, 2) == {
        "group": ("L1", (36_621 * 2 + 4 * M) // 8, 10 * M),
        "own": ("group", own, 10 * M),
        "tx 0": ("group", own, M),
        "tx 2": ("group", 4 * M // 8, 10 * M),
    }
    assert tree(model, numbers.IFB_INDEX) == {
        "group": ("L1", 21_972 // 8, 600 * M // 8),
        "own": ("group", 21_972 // 8, 600 * M // 8),
    }


def test_another_level_takes_a_leaf_there_and_leaves_the_pod_as_it_is() -> None:
    rules: Rules = PerDirection(tx=(), rx=(Rule(matches=HTTP, level=Level.L0, maximum_bps=16 * M),))
    model = kernel()
    bring(model, states.node((pod(rules),), uplinks=(UP,)))
    assert tree(model, numbers.IFB_INDEX) == {
        "own": ("L1", 21_972 // 8, 600 * M // 8),
        "rx 0": ("L0", 300 * M // 1024 // 8, 2 * M),
    }
    assert tree(model, 2) == {"own": ("L1", 36_621 // 8, 100 * M)}


def test_a_pod_moves_for_its_first_and_its_last_rule_and_for_no_other() -> None:
    one, two = Rule(matches=HTTP, maximum_bps=8 * M), Rule(matches=(), minimum_bps=M)
    model, seen = kernel(), []
    for rules in ((), (one,), (one, two), (two,), (Rule(matches=(), dscp=10),), ()):
        listed: PerDirection[tuple[Rule, ...]] = PerDirection(tx=rules, rx=())
        bring(model, states.node((pod(listed),), uplinks=(UP,)))
        seen.append(names_of(model.specs)[pod(states.NO_RULES).uid])
    assert seen[0] != seen[1] == seen[2] == seen[3] != seen[4] == seen[5]
    assert not [key for key in model.specs if isinstance(key, RulesKey)]


def test_an_incomplete_state_never_gives_a_pod_its_first_rule() -> None:
    """Its leaf stands under the level until it may move; beside a class for rules it would have its limit twice."""
    model = kernel()
    bring(model, states.node((pod(states.NO_RULES, tx_bps=8 * M),), uplinks=(UP,)))
    before = dict(model.specs)
    rules: Rules = PerDirection(tx=(Rule(matches=HTTP, maximum_bps=M),), rx=())
    bring(model, states.incomplete(states.node((pod(rules, tx_bps=8 * M),), uplinks=(UP,))))
    assert model.specs == before


def test_numbers_are_found_again_and_never_reused_while_a_rule_names_them() -> None:
    model = kernel()
    rules: Rules = PerDirection(
        tx=(Rule(matches=HTTP, maximum_bps=M),), rx=(Rule(matches=HTTP, maximum_bps=2 * M),)
    )
    web = pod(rules)
    bring(model, states.node((web,), uplinks=(UP,)))
    named = names_of(model.specs)
    register = Register(model.observe(), keep=False)
    leaf = named[web.uid]
    (group,) = {
        numbers.minor_of(spec.parent)
        for key, spec in model.specs.items()
        if isinstance(key, ClassKey) and isinstance(spec, ClassSpec) and key.minor == leaf
    }
    assert register.assign({group_name(web.uid): numbers.LEVELS[Level.L1]}) == {group_name(web.uid): group}
    wanted = {rule_name(web.uid, way, 0): group for way in Direction}
    assert register.assign(wanted) == {name: named[name] for name in wanted}
    only_rules = TcObserved(
        ours={key: spec for key, spec in model.specs.items() if isinstance(spec, RulesSpec)}
    )
    taken = {*named.values()} - {leaf}
    fresh = Register(only_rules, keep=False).assign(dict.fromkeys(named, group))
    assert not {*fresh.values()} & taken


def test_what_cannot_be_is_said() -> None:
    rules: Rules = PerDirection(
        tx=(Rule(matches=HTTP, level=Level.L0), Rule(matches=(), maximum_bps=M)),
        rx=(Rule(matches=(), level=Level.L0),),
    )
    off = states.switched_off(states.node((pod(rules, tx_bps=2_000),), uplinks=(UP,)))
    found = plan(off, kernel().observe()).findings
    assert {(one.code, one.message.partition(";")[0]) for one in found} == {
        ("not-enforced-rules-ingress", "not enforced: its ingress rules"),
        ("not-enforced-rules-egress", "not enforced: minima and maxima of its egress rules"),
    }


@pytest.mark.parametrize("rule", [Rule(matches=HTTP, maximum_bps=3 * M), Rule(matches=HTTP, dscp=46)])
@pytest.mark.parametrize("way", list(Direction))
def test_a_maximum_or_a_code_point_makes_a_tree_by_itself(rule: Rule, way: Direction) -> None:
    rules: Rules = PerDirection(tx=(rule,), rx=()) if way is TX else PerDirection(tx=(), rx=(rule,))
    off = states.switched_off(states.node((pod(rules),), uplinks=(UP,)))
    model = kernel()
    bring(model, off)
    device = UP.index if way is Direction.TX else numbers.IFB_INDEX
    assert {key.ifindex for key in model.specs if isinstance(key, RootKey)} == {device}
    assert [key.direction for key in model.specs if isinstance(key, RulesKey)] == [way]
    assert not plan(off, model.observe())
    bring(model, states.switched_off(states.node((pod(PerDirection(tx=(), rx=())),), uplinks=(UP,))))
    assert not any(isinstance(key, RootKey | RulesKey) for key in model.specs)


def test_a_level_and_a_minimum_mean_nothing_without_levels() -> None:
    rules: Rules = PerDirection(tx=(Rule(matches=HTTP, level=Level.L0, minimum_bps=M),), rx=())
    off = states.switched_off(states.node((pod(rules),), uplinks=(UP,)))
    found = plan(off, kernel().observe())
    assert not found
    assert [one.code for one in found.findings] == ["not-enforced-rules-egress"]


def test_what_a_workload_lacks_without_each_object_of_its_rules() -> None:
    rules: Rules = PerDirection(tx=(Rule(matches=HTTP, maximum_bps=8 * M),), rx=())
    model = kernel()
    made = bring(model, states.node((pod(rules, tx_bps=80 * M),), uplinks=(UP,)))
    named = names_of(model.specs)
    web = next(name for name in named if " " not in name)
    denied = {one.payload.key: one.denied for one in made.operations if isinstance(one.payload, Edit)}
    group = numbers.minor_of(model.specs[ClassKey(UP.index, named[web])].parent)  # type: ignore[union-attr]
    for minor, code in (
        (named[rule_name(web, TX, 0)], "not-enforced-rules-egress"),
        (group, "not-enforced-egress"),
        (named[web], "not-enforced-egress"),
    ):
        assert denied[ClassKey(UP.index, minor)] == ((code, "pod prod/web"),)
    assert denied[RulesKey(TX, named[web])] == (("not-enforced-rules-egress", "pod prod/web"),)


def test_workloads_share_the_sets_of_their_rules_and_the_last_takes_them_along() -> None:
    ports = PortMatch(ranges=tuple(PortRange(low=one, high=one) for one in (80, 443, 8000, 9000, 9100)))
    rules: Rules = PerDirection(tx=(Rule(matches=(ports,), dscp=10),), rx=())
    pods = [
        replace(pod(rules), uid=PodUid(name), name=name, addresses=(f"10.88.0.{number}",))
        for number, name in enumerate(("a", "b"), 10)
    ]
    model = kernel()
    for left in (pods, pods[:1], pods[1:], []):
        bring(model, states.node(tuple(left), uplinks=(UP,)))
        assert sum(isinstance(key, SetKey) for key in model.specs) == (2 if left else 0)
        assert not plan(states.node(tuple(left), uplinks=(UP,)), model.observe())


# ---------------------------------------------------------------- for any rules

SOME = st.builds(
    lambda level, dscp, least, most: Rule(
        matches=(IpMatch(),), level=level, dscp=dscp, minimum_bps=least, maximum_bps=most
    ),
    st.none() | st.sampled_from(Level),
    st.none() | st.integers(0, 63),
    st.none() | rates(1_000, 50 * M),
    st.none() | rates(1_000, 500 * M),
)


@settings(max_examples=60)
@given(
    st.lists(SOME, max_size=16),
    st.sampled_from(Level),
    st.none() | rates(20_000, 2_000 * M),
    st.sampled_from(Direction),
)
def test_no_class_of_a_rule_is_outside_of_the_pods_limit(
    rules: list[Rule], level: Level, limit_bps: int | None, way: Direction
) -> None:
    listed = PerDirection(tx=tuple(rules), rx=()) if way is TX else PerDirection(tx=(), rx=tuple(rules))
    limits = PerDirection(tx=limit_bps, rx=None) if way is TX else PerDirection(tx=None, rx=limit_bps)
    model = kernel()
    bring(model, states.node((replace(pod(listed, level), limits_bps=limits),), uplinks=(UP,)))
    found = tree(model, 2 if way is TX else numbers.IFB_INDEX)
    inside = {name: one for name, one in found.items() if one[0] == "group"}
    if limit_bps is not None:
        top = found["group"] if inside else found["own"]
        assert set(found) == ({"group", *inside} if inside else {"own"})
        assert top[2] <= max(limit_bps // 8, 1)
        assert all(ceil <= top[2] for _parent, _rate, ceil in inside.values())
        assert sum(rate for _parent, rate, _ceil in inside.values()) <= max(top[2], 32 * len(inside))
    guarantee_bps = {TX: (500, 300, 200), RX: (300, 180, 120)}[way]
    for one in Level:
        names = [
            name
            for name, (parent, *_) in found.items()
            if parent == one.name or (parent == "group" and one is level)
        ]
        taken = sum(found[name][1] for name in names if name != "group")
        assert taken <= guarantee_bps[one.value] * M // 8 // 2


SOME_OF_THEM = st.lists(SOME, max_size=3).map(tuple)
PODS = st.builds(
    lambda tx, rx, level: pod(PerDirection(tx=tx, rx=rx), level),
    SOME_OF_THEM,
    SOME_OF_THEM,
    st.sampled_from(Level),
)


@settings(max_examples=60)
@given(PODS, PODS, st.data())
def test_a_kill_on_the_way_from_rules_to_rules_leaves_nothing(
    first: DesiredPod, second: DesiredPod, data: st.DataObject
) -> None:
    model, other = kernel(), kernel()
    bring(model, states.node((first,), uplinks=(UP,)))
    wanted = states.node((second,), uplinks=(UP,))
    operations = plan(wanted, model.observe()).operations
    model.apply(operations[: data.draw(st.integers(0, len(operations)))])
    bring(model, wanted)
    assert not plan(wanted, model.observe())
    bring(other, wanted)
    for ifindex in (2, numbers.IFB_INDEX):
        assert tree(model, ifindex) == tree(other, ifindex)


def specs_of(desired: DesiredState) -> dict[Key, Spec]:
    layout = lay_out(desired, TcObserved(roots={2: Root(kind="noqueue", handle=0)}), Options(), Facilities())
    return dict(layout.specs)


@settings(max_examples=60)
@given(desired_states(UP))
def test_every_class_that_a_rule_or_element_leads_to_is_a_leaf_with_a_queue(desired: DesiredState) -> None:
    specs = specs_of(desired)
    trees = {key.ifindex for key in specs if isinstance(key, ClassKey)}
    for key, spec in specs.items():
        if isinstance(key, RulesKey) and isinstance(spec, RulesSpec):
            minors = {key.minor, *(minor for _item, minor in podrules.classes(spec))}
            for ifindex in (one for one in trees if numbers.kind_on(one).direction is key.direction):
                assert all(QueueKey(ifindex, minor) in specs for minor in minors)
            assert any(isinstance(one, ElementSpec) and one.minor == key.minor for one in specs.values())
    parents = {
        ClassKey(key.ifindex, numbers.minor_of(spec.parent))
        for key, spec in specs.items()
        if isinstance(key, ClassKey) and isinstance(spec, ClassSpec)
    }
    for key, spec in specs.items():
        if isinstance(key, ClassKey) and isinstance(spec, ClassSpec):
            assert (spec.prio is None) == (key in parents or key.minor in numbers.INNER)


def test_a_plan_that_may_only_add_makes_no_class_to_which_no_chain_leads() -> None:
    """The chain stays as it is, so the next pass would not know the class, and make another one each time."""
    plain, capped = (Rule(matches=HTTP),), (Rule(matches=HTTP, maximum_bps=8 * M),)
    before = states.node((pod(PerDirection(tx=capped, rx=plain)),), uplinks=(UP,))
    model = kernel()
    bring(model, before)
    after = states.node((pod(PerDirection(tx=(), rx=capped)),), uplinks=(UP,))
    classes = {key for key in model.specs if isinstance(key, ClassKey)}
    for _ in range(2):
        bring(model, states.incomplete(after))
        assert {key for key in model.specs if isinstance(key, ClassKey)} == classes
    bring(model, after)
    assert not plan(after, model.observe())
