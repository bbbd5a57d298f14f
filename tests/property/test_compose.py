"""What compose promises for any inputs: no order matters, sums hold, and a second pass changes nothing."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from netqos.engine.compose import compose
from netqos.engine.podmemo import PodMemo
from netqos.model.composed import EMPTY_LAST_GOOD, Composition, LastGood
from netqos.model.ids import CgroupPath, IfName, PodUid
from netqos.model.inputs import (
    Amount,
    KubernetesQos,
    LevelPolicy,
    NamespaceRule,
    NodeFacts,
    NodePolicy,
    Override,
    Percent,
    PodFacts,
    UplinkFacts,
)
from netqos.model.levels import Direction, Level, PerDirection, PerLevel
from netqos.settings.values import Settings

M = 1_000_000
TEXTS = ("10M", "1G", "0", "abc", "", "5k", "10m", "-1")


def amounts() -> st.SearchStrategy[Amount | None]:
    percent = st.integers(0, 100).map(Percent)
    return st.none() | percent | st.integers(0, 2_000).map(lambda mbit: mbit * M)


def per_direction(one: st.SearchStrategy[Amount | None]) -> st.SearchStrategy[PerDirection[Amount | None]]:
    return st.builds(lambda tx, rx: PerDirection(tx=tx, rx=rx), one, one)


@st.composite
def level_policies(draw: st.DrawFn) -> LevelPolicy:
    return LevelPolicy(
        enabled=draw(st.sampled_from((True, True, False, None))),
        guarantee=draw(per_direction(amounts())),
        ceiling=draw(per_direction(amounts())),
    )


@st.composite
def policies(draw: st.DrawFn, source: str) -> NodePolicy:
    total = st.sampled_from((None, 1_000, 50 * M, 1_000 * M))
    return NodePolicy(
        source=source,
        enabled=draw(st.sampled_from((True, True, False, None))),
        total=PerDirection(tx=draw(total), rx=draw(total)),
        levels=PerLevel(draw(level_policies()), draw(level_policies()), draw(level_policies())),
        invalid=draw(st.sampled_from((frozenset(), frozenset({Level.L1}), frozenset({Level.L1, Level.L2})))),
    )


@st.composite
def pods(draw: st.DrawFn) -> PodFacts:
    number = draw(st.integers(0, 12))
    is_workload = draw(st.integers(0, 3)) == 0
    rule = '{"%s": [{"matchs": [{"type": "port", "expr": "=80"}], "actions": [%s]}]}'
    actions = ('{"action": "bandwidth_min", "value": "400M"}', '{"action": "qos-class", "value": "l0"}', "{}")
    choices = {
        "koordinator.sh/egress-bandwidth": st.sampled_from(TEXTS),
        "koordinator.sh/ingress-bandwidth": st.sampled_from(TEXTS),
        "koordinator.sh/networkQOS": st.sampled_from(('{"egressLimit": 20}', "{", '{"INGRESSLIMIT": "3M"}')),
        "koordinator.sh/net-qos-class": st.sampled_from(("l0", "L2", "high")),
        "koordinator.sh/qos-config": st.builds(
            lambda word, action: rule % (word, action),
            st.sampled_from(("egress", "ingress")),
            st.sampled_from(actions),
        ),
    }
    annotations = {key: draw(values) for key, values in choices.items() if draw(st.booleans())}
    return PodFacts(
        uid=PodUid(f"workload:w{number}" if is_workload else f"uid-{number}"),
        namespace="" if is_workload else draw(st.sampled_from(("prod", "kube-system", "batch"))),
        name=f"w{number}",
        addresses=tuple(
            draw(st.lists(st.sampled_from(("10.0.0.1", "10.0.0.2", "fd00::1", "x")), max_size=2))
        ),
        host_network=draw(st.booleans()),
        cgroup=draw(st.sampled_from((None, CgroupPath("/a")))),
        labels=draw(
            st.sampled_from(({}, {"koordinator.sh/qosClass": "BE"}, {"koordinator.sh/qosClass": "SYSTEM"}))
        ),
        annotations={} if is_workload else annotations,
        kubernetes_qos=draw(st.sampled_from((None, *KubernetesQos))),
        system_critical=draw(st.booleans()),
        direct_level=draw(st.sampled_from((None, *Level))) if is_workload else None,
    )


@st.composite
def inputs(draw: st.DrawFn) -> dict[str, object]:
    speed = st.sampled_from((None, 10 * M, 1_000 * M, 10_000 * M))
    names = draw(st.lists(st.sampled_from(("up0", "up1")), unique=True, max_size=2))
    all_pods = draw(st.lists(pods(), max_size=8, unique_by=lambda facts: facts.uid))
    namespaces = (
        NamespaceRule(match=("prod", "w*"), minimum=True),
        NamespaceRule(match=("*",), levels=frozenset()),
    )
    overridden = [facts.uid for facts in all_pods if draw(st.integers(0, 4)) == 0]
    return {
        "settings": Settings(
            policy=draw(policies("file")),
            bandwidth=PerDirection(tx=draw(speed), rx=draw(speed)),
            namespaces=draw(st.sampled_from((None, namespaces))),
        ),
        "slo": draw(st.none() | policies("nodeslo")),
        "pods": all_pods,
        "overrides": {uid: _override(uid) for uid in overridden},
        "node": NodeFacts(
            name="n",
            uplinks=tuple(UplinkFacts(name=IfName(name), index=2, speed_bps=draw(speed)) for name in names),
            bandwidth_annotation=draw(st.sampled_from((None, "1G", "fast"))),
        ),
        "complete": draw(st.booleans()),
    }


def _override(uid: PodUid) -> Override:
    return Override(
        uid=uid, limits=PerDirection(tx=9 * M, rx=None), expires_wall_s=1.0, expires_boot_s=1.0, boot_id="b"
    )


def run(given_inputs: dict[str, object], last_good: LastGood = EMPTY_LAST_GOOD) -> Composition:
    return compose(**given_inputs, last_good=last_good)  # type: ignore[arg-type]


@given(inputs(), st.data())
def test_the_order_of_pods_does_not_matter(some: dict[str, object], data: st.DataObject) -> None:
    listed = some["pods"]
    assert isinstance(listed, list)
    shuffled = data.draw(st.permutations(listed))
    assert run({**some, "pods": shuffled}) == run(some)


@given(inputs())
def test_a_second_pass_changes_nothing(some: dict[str, object]) -> None:
    first = run(some)
    second = run(some, first.last_good)
    assert second.last_good == first.last_good
    assert second.desired == first.desired


@settings(max_examples=50)
@given(st.lists(inputs(), min_size=1, max_size=3), st.data())
def test_what_was_resolved_before_never_changes_a_result(
    steps: list[dict[str, object]], data: st.DataObject
) -> None:
    memo, last_good = PodMemo(), EMPTY_LAST_GOOD
    for some in [*steps, {**steps[-1], "settings": data.draw(inputs())["settings"]}, steps[0]]:
        composed = compose(**some, last_good=last_good, memo=memo)  # type: ignore[arg-type]
        assert composed == run(some, last_good)
        last_good = composed.last_good


@given(inputs())
def test_a_pod_that_did_not_change_is_the_same_object(some: dict[str, object]) -> None:
    memo = PodMemo()
    first = compose(**some, last_good=run(some).last_good, memo=memo)  # type: ignore[arg-type]
    second = compose(**some, last_good=first.last_good, memo=memo)  # type: ignore[arg-type]
    assert list(map(id, second.desired.pods)) == list(map(id, first.desired.pods))
    assert list(map(id, second.pods)) == list(map(id, first.pods))


@settings(max_examples=50)
@given(inputs(), inputs())
def test_bands_hold_for_any_policy_after_any_other(
    before: dict[str, object], some: dict[str, object]
) -> None:
    composed = run(some, run(before).last_good)
    for direction in Direction:
        shaped = composed.desired.directions[direction]
        if shaped.levels is None:
            continue
        assert shaped.total_bps is not None
        assert all(0 <= band.guarantee_bps <= band.ceiling_bps <= shaped.total_bps for band in shaped.levels)
        others = shaped.levels.l1.guarantee_bps + shaped.levels.l2.guarantee_bps
        assert others * 100 <= shaped.total_bps * 99
        assert shaped.levels.l0.guarantee_bps == min(shaped.total_bps - others, shaped.levels.l0.ceiling_bps)
        assert shaped.levels.l0.ceiling_bps >= min(5 * M, shaped.total_bps)


@given(inputs())
def test_minima_stay_within_half_of_the_guarantee(some: dict[str, object]) -> None:
    composed = run(some)
    for direction in Direction:
        levels = composed.desired.directions[direction].levels
        for level in Level:
            asked = [
                rule.minimum_bps or 0
                for pod in composed.desired.pods
                for rule in pod.rules[direction]
                if (pod.level if rule.level is None or pod.limits_bps[direction] is not None else rule.level)
                is level
            ]
            half = 0 if levels is None else levels[level].guarantee_bps // 2
            assert sum(asked) <= half


@given(inputs())
def test_no_address_belongs_to_two_pods_and_none_to_a_host_network_pod(some: dict[str, object]) -> None:
    desired = run(some).desired
    claimed = [address for pod in desired.pods for address in pod.addresses]
    assert len(claimed) == len(set(claimed))
    assert not any(pod.addresses for pod in desired.pods if pod.host_network)


@given(inputs())
def test_every_pod_is_there_with_a_level_that_its_record_explains(some: dict[str, object]) -> None:
    composed = run(some)
    listed = some["pods"]
    assert isinstance(listed, list)
    assert [pod.uid for pod in composed.desired.pods] == sorted(facts.uid for facts in listed)
    for view in composed.pods:
        used = [choice.source for choice in view.level_choices if choice.verdict == "used"]
        assert used == [view.level_source]


@given(inputs())
def test_levels_never_depend_on_limits(some: dict[str, object]) -> None:
    """A bad limit never costs a pod its level."""
    listed = some["pods"]
    assert isinstance(listed, list)
    bare = [replace(facts, annotations=_without_limits(facts)) for facts in listed]
    assert [pod.level for pod in run({**some, "pods": bare}).desired.pods] == [
        pod.level for pod in run(some).desired.pods
    ]


def _without_limits(facts: PodFacts) -> dict[str, str]:
    return {key: text for key, text in facts.annotations.items() if key.endswith("net-qos-class")}
