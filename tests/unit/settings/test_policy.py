"""A NodeSLO in either shape becomes one policy; what is wrong in a class stays in that class."""

from __future__ import annotations

import copy

import pytest

from netqos.model.inputs import NO_LIMITS, LevelPolicy, NodePolicy, Percent
from netqos.model.levels import Direction, Level, PerDirection, PerLevel
from netqos.model.texts import shown
from netqos.settings.issues import Code
from netqos.settings.policy import parse_node_slo

SUBJECT = "nodeslo worker-1"
SILENT = LevelPolicy()

Tree = dict[str, object]

UPSTREAM_SPEC: Tree = {
    "resourceUsedThresholdWithBE": {"enable": True},
    "resourceQOSStrategy": {
        "policies": {"cpuPolicy": "groupIdentity", "netQOSPolicy": "terway-qos"},
        "lsrClass": {"networkQOS": {"enable": True, "egressRequest": 99}, "cpuQOS": {"enable": True}},
        "lsClass": {
            "cpuQOS": {"groupIdentity": 2},
            "networkQOS": {
                "enable": True,
                "ingressRequest": 40,
                "ingressLimit": 90,
                "egressRequest": 30,
                "egressLimit": 100,
            },
        },
        "beClass": {"networkQOS": {"enable": True, "egressRequest": 20, "egressLimit": 80}},
        "systemClass": {"networkQOS": {"enable": False, "egressRequest": "nonsense"}},
    },
    "systemStrategy": {"minFreeKbytesFactor": 100, "totalNetworkBandwidth": "1000M"},
}
UPSTREAM: Tree = {
    "apiVersion": "slo.koordinator.sh/v1alpha1",
    "metadata": {"name": "worker-1"},
    "spec": UPSTREAM_SPEC,
}

PROPOSAL_SPEC: Tree = {
    "networkQOSStrategy": {
        "enable": True,
        "nodeBandwidthLimit": {
            "hw": {"tx": 10_000, "rx": "25G"},
            "l0": {"tx": 10_000, "rx": 9_000},
            "l1": {"tx": 8_000, "rx": "7G", "txMin": 3_000, "rxMin": "2.5G"},
            "l2": {"tx": 0},
        },
    }
}
PROPOSAL: Tree = {"spec": PROPOSAL_SPEC}


def read(obj: object) -> tuple[NodePolicy, list[str]]:
    policy, findings = parse_node_slo(obj, subject=SUBJECT)
    assert all(finding.subject == SUBJECT for finding in findings)
    return policy, [finding.code for finding in findings]


def upstream(**classes: object) -> Tree:
    return {"spec": {"resourceQOSStrategy": classes}}


def qos(**fields: object) -> Tree:
    return {"networkQOS": fields}


def changed(tree: Tree, path: tuple[str, ...], value: object) -> Tree:
    """The tree with one value replaced; removed when the new one is `...`."""
    result = copy.deepcopy(tree)
    inner = result
    for step in path[:-1]:
        below = inner[step]
        assert isinstance(below, dict)
        inner = below
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return result


def paths(tree: Tree, above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for key, value in tree.items():
        found.append((*above, key))
        if isinstance(value, dict):
            found += paths(value, (*above, key))
    return found


def test_the_upstream_shape() -> None:
    assert read(UPSTREAM) == (
        NodePolicy(
            source="nodeslo",
            enabled=True,
            total=PerDirection(tx=1_000_000_000, rx=1_000_000_000),
            levels=PerLevel(
                LevelPolicy(enabled=False),
                LevelPolicy(
                    enabled=True,
                    guarantee=PerDirection(tx=Percent(30), rx=Percent(40)),
                    ceiling=PerDirection(tx=Percent(100), rx=Percent(90)),
                ),
                LevelPolicy(
                    enabled=True,
                    guarantee=PerDirection(tx=Percent(20), rx=None),
                    ceiling=PerDirection(tx=Percent(80), rx=None),
                ),
            ),
            backends=("terway",),
        ),
        [],
    )


def test_the_shape_of_the_proposal() -> None:
    assert read(PROPOSAL) == (
        NodePolicy(
            source="nodeslo",
            enabled=True,
            total=PerDirection(tx=10_000_000_000, rx=25_000_000_000),
            levels=PerLevel(
                LevelPolicy(enabled=True, ceiling=PerDirection(tx=10_000_000_000, rx=9_000_000_000)),
                LevelPolicy(
                    enabled=True,
                    guarantee=PerDirection(tx=3_000_000_000, rx=2_500_000_000),
                    ceiling=PerDirection(tx=8_000_000_000, rx=7_000_000_000),
                ),
                LevelPolicy(enabled=True, ceiling=PerDirection(tx=Percent(100), rx=None)),
            ),
        ),
        [],
    )


def test_quantities_are_bits_per_second_in_the_upstream_shape_too() -> None:
    policy, codes = read(upstream(lsClass=qos(enable=True, egressRequest="300M", ingressLimit="1.5G")))
    assert codes == []
    assert policy.levels.l1 == LevelPolicy(
        enabled=True,
        guarantee=PerDirection(tx=300_000_000, rx=None),
        ceiling=PerDirection(tx=None, rx=1_500_000_000),
    )


def test_lsr_stands_in_for_ls() -> None:
    policy, _ = read(upstream(lsrClass=qos(enable=True, egressRequest=35), lsClass={"networkQOS": None}))
    assert policy.levels.l1.guarantee == PerDirection(tx=Percent(35), rx=None)


ANYTHING: list[object] = [..., None, True, 7, -1, 1.5, "x", "", [], [None], {}, {"a": 1}]


def without_the_rest(policy: NodePolicy, level: Level) -> tuple[object, ...]:
    """What a change within one class must not touch."""
    others = tuple(policy.levels[other] for other in Level if other is not level)
    return (others, policy.invalid - {level}, policy.total, policy.backends)


@pytest.mark.parametrize("tree", [UPSTREAM, PROPOSAL], ids=["upstream", "proposal"])
@pytest.mark.parametrize("value", ANYTHING, ids=lambda value: "gone" if value is ... else repr(value))
def test_any_part_may_be_missing_null_or_of_another_type(tree: Tree, value: object) -> None:
    for path in paths(tree):
        policy, codes = read(changed(tree, path, value))
        assert policy.source == "nodeslo"
        assert bool(policy.invalid or policy.invalid_total) <= bool(codes)


@pytest.mark.parametrize("value", ANYTHING, ids=lambda value: "gone" if value is ... else repr(value))
def test_what_happens_to_one_class_touches_no_other(value: object) -> None:
    expected = without_the_rest(read(UPSTREAM)[0], Level.L1)
    for path in paths(UPSTREAM):
        if path[:3] == ("spec", "resourceQOSStrategy", "lsClass"):
            policy, _ = read(changed(UPSTREAM, path, value))
            assert without_the_rest(policy, Level.L1) == expected


@pytest.mark.parametrize(
    "obj",
    [
        None,
        {},
        {"spec": None},
        {"spec": {}},
        {"spec": {"resourceQOSStrategy": None}},
        upstream(lsClass=None),
        upstream(lsClass={"networkQOS": None}),
        upstream(beClass={"cpuQOS": {}}),
    ],
    ids=str,
)
def test_an_object_that_does_not_speak_of_the_network_says_nothing(obj: object) -> None:
    assert read(obj) == (NodePolicy(source="nodeslo"), [])


@pytest.mark.parametrize(
    "obj",
    [
        [],
        "x",
        5,
        {"spec": []},
        {"spec": "x"},
        {"spec": {"networkQOSStrategy": 5}},
    ],
    ids=repr,
)
def test_an_object_that_cannot_be_read_invalidates_everything(obj: object) -> None:
    everything = NodePolicy(source="nodeslo", invalid=frozenset(Level), invalid_total=frozenset(Direction))
    assert read(obj) == (everything, [Code.POLICY.value])


def test_classes_that_cannot_be_read_leave_the_total() -> None:
    assert read({"spec": {"resourceQOSStrategy": []}}) == (
        NodePolicy(source="nodeslo", invalid=frozenset(Level)),
        [Code.POLICY.value],
    )


def test_a_class_without_a_switch_leaves_it_to_others() -> None:
    policy, codes = read(upstream(lsClass=qos(egressRequest=40), beClass=qos(enable=None, egressRequest=20)))
    assert codes == []
    assert policy.enabled is None
    assert policy.levels == PerLevel(
        SILENT,
        LevelPolicy(guarantee=PerDirection(tx=Percent(40), rx=None)),
        LevelPolicy(guarantee=PerDirection(tx=Percent(20), rx=None)),
    )


@pytest.mark.parametrize(
    ("ls", "be", "enabled"),
    [
        (True, False, True),
        (False, False, False),
        (False, None, False),
        (None, None, None),
        ("yes", True, True),
    ],
)
def test_one_class_switches_the_node_on_and_it_is_off_when_only_no_is_said(
    ls: object, be: object, *, enabled: bool | None
) -> None:
    policy, _ = read(upstream(lsClass=qos(enable=ls), beClass=qos(enable=be)))
    assert policy.enabled is enabled


@pytest.mark.parametrize(
    "value",
    [-1, 101, 1.5, True, "-5", "10m", "30%", "10K", "fast", [], {}, "1e999999999", 1 << 20_000],
    ids=shown,
)
def test_a_wrong_value_makes_its_class_say_nothing_and_the_others_apply(value: object) -> None:
    policy, codes = read(
        upstream(lsClass=qos(enable=True, egressRequest=value), beClass=qos(enable=True, egressRequest=20))
    )
    assert codes == [Code.POLICY.value]
    assert policy.invalid == frozenset({Level.L1})
    assert policy.enabled is True
    assert policy.levels == PerLevel(
        SILENT, SILENT, LevelPolicy(enabled=True, guarantee=PerDirection(tx=Percent(20), rx=None))
    )


def test_every_problem_is_told_at_once_and_at_its_place() -> None:
    spec = {
        "resourceQOSStrategy": {
            "lsClass": qos(enable="on", egressRequest=101, ingressLimit="10m"),
            "beClass": [],
            "policies": {"netQOSPolicy": "cilium"},
        },
        "systemStrategy": {"totalNetworkBandwidth": "fast"},
    }
    _, findings = parse_node_slo({"spec": spec}, subject=SUBJECT)
    strategy = "spec.resourceQOSStrategy"
    assert [finding.message.partition(": ")[0] for finding in findings] == [
        f"{strategy}.lsClass.networkQOS.enable",
        f"{strategy}.lsClass.networkQOS.egressRequest",
        f"{strategy}.lsClass.networkQOS.ingressLimit",
        f"{strategy}.beClass",
        "spec.systemStrategy.totalNetworkBandwidth",
        f"{strategy}.policies.netQOSPolicy",
    ]


@pytest.mark.parametrize("value", [0, "0"], ids=repr)
def test_a_ceiling_of_zero_is_no_ceiling_and_a_guarantee_of_zero_is_none(value: object) -> None:
    policy, _ = read(upstream(beClass=qos(enable=True, egressRequest=value, egressLimit=value)))
    zero = Percent(0) if value == 0 else 0
    assert policy.levels.l2 == LevelPolicy(
        enabled=True,
        guarantee=PerDirection(tx=zero, rx=None),
        ceiling=PerDirection(tx=Percent(100), rx=None),
    )


def test_the_first_unit_counts_and_a_class_in_another_one_is_wrong() -> None:
    policy, codes = read(
        upstream(lsClass=qos(enable=True, egressRequest=30), beClass=qos(enable=True, egressRequest="200M"))
    )
    assert codes == [Code.MIXED_UNITS.value]
    assert policy.invalid == frozenset({Level.L2})


def test_two_units_in_one_class_are_wrong() -> None:
    policy, codes = read(
        upstream(
            lsClass=qos(enable=True, egressRequest=30, egressLimit="800M"),
            beClass=qos(enable=True, egressRequest="200M"),
        )
    )
    assert codes == [Code.MIXED_UNITS.value]
    assert policy.invalid == frozenset({Level.L1})


def test_mixed_units_are_told_with_what_is_here_and_what_was_before() -> None:
    obj = upstream(
        systemClass=qos(enable=True, egressRequest="1M", egressLimit=5),
        lsClass=qos(enable=True, egressRequest=30),
        beClass=qos(enable=True, egressRequest="200M"),
    )
    _, findings = parse_node_slo(obj, subject=SUBJECT)
    assert [finding.message for finding in findings] == [
        (
            "spec.resourceQOSStrategy.systemClass.networkQOS: bits per second and percentages here; "
            "allowed: one unit for all levels"
        ),
        (
            "spec.resourceQOSStrategy.beClass.networkQOS: bits per second here, and percentages before; "
            "allowed: one unit for all levels"
        ),
    ]


def test_percentages_that_a_crd_fills_in_as_defaults_are_no_second_unit() -> None:
    defaults = {"ingressRequest": 0, "ingressLimit": 100, "egressLimit": 100}
    policy, codes = read(upstream(lsClass=qos(enable=True, egressRequest="300M", **defaults)))
    assert (codes, policy.invalid) == ([], frozenset())


@pytest.mark.parametrize("value", ["x", [], {"nodeBandwidthLimit": []}], ids=repr)
def test_a_proposal_that_cannot_be_read_keeps_the_last_total_too(value: object) -> None:
    policy, _ = read({"spec": {"networkQOSStrategy": value}})
    assert (policy.invalid, policy.invalid_total) == (frozenset(Level), frozenset(Direction))


def test_a_proposal_whose_switch_cannot_be_read_has_its_total() -> None:
    policy, codes = read(changed(PROPOSAL, ("spec", "networkQOSStrategy", "enable"), "yes"))
    assert (codes, policy.enabled, policy.invalid) == ([Code.POLICY.value], None, frozenset(Level))
    assert policy.total == read(PROPOSAL)[0].total


@pytest.mark.parametrize("enable", ["yes", 1, {}], ids=repr)
def test_an_unreadable_switch_is_not_off(enable: object) -> None:
    policy, _ = read(upstream(lsClass=qos(enable=enable), beClass=qos(enable=False)))
    assert (policy.enabled, policy.invalid) == (None, frozenset({Level.L1}))


@pytest.mark.parametrize("value", ["-1", "fast", "10m", 5, True, []], ids=repr)
def test_a_wrong_total_is_told_and_touches_no_class(value: object) -> None:
    policy, codes = read(changed(UPSTREAM, ("spec", "systemStrategy", "totalNetworkBandwidth"), value))
    assert codes == [Code.TOTAL.value]
    assert policy.total == NO_LIMITS
    assert policy.invalid_total == frozenset(Direction)
    assert policy.levels == read(UPSTREAM)[0].levels


def test_a_wrong_total_of_one_direction_leaves_the_other() -> None:
    path = ("spec", "networkQOSStrategy", "nodeBandwidthLimit", "hw", "tx")
    policy, codes = read(changed(PROPOSAL, path, 0))
    assert codes == [Code.TOTAL.value]
    assert policy.total == PerDirection(tx=None, rx=25_000_000_000)
    assert policy.invalid_total == frozenset({Direction.TX})


@pytest.mark.parametrize("value", [None, "", "0", 0], ids=repr)
def test_no_total_is_no_problem(value: object) -> None:
    policy, codes = read(changed(UPSTREAM, ("spec", "systemStrategy", "totalNetworkBandwidth"), value))
    assert (codes, policy.total, policy.invalid_total) == ([], NO_LIMITS, frozenset())


def test_both_shapes_in_one_object_are_the_upstream_one_and_a_finding() -> None:
    both: Tree = {"spec": {**UPSTREAM_SPEC, **PROPOSAL_SPEC}}
    policy, codes = read(both)
    assert policy == read(UPSTREAM)[0]
    assert codes == [Code.TWO_SHAPES.value]


def test_upstream_strategies_of_other_features_do_not_shadow_the_proposal() -> None:
    spec: Tree = {"resourceQOSStrategy": {"lsClass": {"cpuQOS": {}}}, "systemStrategy": {}, **PROPOSAL_SPEC}
    assert read({"spec": spec}) == read(PROPOSAL)


def test_the_upstream_total_fills_in_for_the_proposal() -> None:
    path = ("spec", "networkQOSStrategy", "nodeBandwidthLimit", "hw")
    tree = changed(PROPOSAL, path, ...)
    policy, _ = read(changed(tree, ("spec", "systemStrategy"), {"totalNetworkBandwidth": "5G"}))
    assert policy.total == PerDirection(tx=5_000_000_000, rx=5_000_000_000)


@pytest.mark.parametrize(
    ("text", "backends"), [("tc", ("tc",)), ("terway-qos", ("terway",)), ("", None), (None, None)]
)
def test_the_policy_selects_a_backend(text: object, backends: tuple[str, ...] | None) -> None:
    policy, codes = read(upstream(policies={"netQOSPolicy": text}))
    assert (policy.backends, codes) == (backends, [])


@pytest.mark.parametrize("text", ["terway", "TC", "ebpf", 5, ["tc"]], ids=repr)
def test_an_unknown_policy_is_told_and_selects_nothing(text: object) -> None:
    policy, codes = read(upstream(policies={"netQOSPolicy": text}))
    assert (policy.backends, codes) == (None, [Code.BACKEND.value])
