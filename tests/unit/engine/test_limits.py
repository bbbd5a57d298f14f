"""A pod's limits, line by line (contract 1.2; cases A8, A9, A13, A15, G4)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netqos.engine.podmemo import PodMemo
from netqos.engine.pods import PodContext
from netqos.model.composed import EMPTY_LAST_GOOD, AppliedLimit, Choice, LastGood
from netqos.model.inputs import NO_LIMITS, HeldLimits, PodFacts
from netqos.model.levels import Level, PerDirection
from netqos.settings.values import KubernetesSettings, Settings
from tests.unit.engine.given import (
    FILE_OFF,
    NODE,
    SETTINGS,
    M,
    codes,
    composed,
    only,
    override,
    pod,
    workload,
)

NETWORK_QOS, QOS_CONFIG = "koordinator.sh/networkQOS", "koordinator.sh/qos-config"
OWN_TX, OWN_RX = "koordinator.sh/egress-bandwidth", "koordinator.sh/ingress-bandwidth"
K8S_TX, K8S_RX = "kubernetes.io/egress-bandwidth", "kubernetes.io/ingress-bandwidth"
WHOLE_POD = {
    "egress": [{"matchs": [{"type": "ip"}], "actions": [{"action": "bandwidth_max", "value": "30M"}]}]
}

Pair = tuple[int | None, int | None]


def limits_of(
    annotations: dict[str, object], *, last: LastGood = EMPTY_LAST_GOOD, settings: Settings = SETTINGS
) -> Pair:
    desired, view = only(composed([pod("prod/web", annotations)], last_good=last, settings=settings))
    assert (desired.limits_bps.tx, desired.limits_bps.rx) == (view.limits.tx.bps, view.limits.rx.bps)
    return desired.limits_bps.tx, desired.limits_bps.rx


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param({}, (None, None), id="nothing"),
        pytest.param({OWN_TX: "10M", OWN_RX: "20M"}, (10 * M, 20 * M), id="asymmetric"),
        pytest.param({OWN_TX: "10M"}, (10 * M, None), id="one direction only"),
        pytest.param(
            {NETWORK_QOS: {"ingressLimit": "10M"}}, (None, 10 * M), id="one direction of networkQOS"
        ),
        pytest.param(
            {NETWORK_QOS: {"EgressLimit": "7M", "INGRESSLIMIT": 50}}, (7 * M, 300 * M), id="any case, percent"
        ),
        pytest.param(
            {NETWORK_QOS: {"egressLimit": "20M"}, OWN_TX: "10M", K8S_TX: "100M"},
            (20 * M, None),
            id="networkQOS first",
        ),
        pytest.param(
            {QOS_CONFIG: WHOLE_POD, OWN_TX: "10M", K8S_TX: "100M"}, (30 * M, None), id="then qos-config"
        ),
        pytest.param({OWN_TX: "10M", K8S_TX: "100M"}, (10 * M, None), id="then koordinator.sh"),
        pytest.param({K8S_TX: "100M", K8S_RX: "50M"}, (100 * M, 50 * M), id="then kubernetes.io"),
        pytest.param(
            {NETWORK_QOS: {"ingressLimit": "5M"}, OWN_TX: "10M", K8S_RX: "9M"},
            (10 * M, 5 * M),
            id="one key a direction",
        ),
        pytest.param({OWN_TX: "0", K8S_TX: "100M"}, (None, None), id="0 is no limit and wins"),
        pytest.param({OWN_TX: "", K8S_TX: "100M"}, (100 * M, None), id="empty is absent"),
        pytest.param(
            {NETWORK_QOS: {"egressLimit": None, "ingressLimit": 0}, OWN_TX: "1M"},
            (1 * M, None),
            id="null is absent",
        ),
    ],
)
def test_first_match_wins_in_each_direction(annotations: dict[str, object], expected: Pair) -> None:
    assert limits_of(annotations) == expected


@pytest.mark.parametrize("bad", ["10Mbps", "-5", "10m", "abc", "1E999", "  "])
def test_a_rejected_value_touches_its_own_direction_only(bad: str) -> None:
    facts = pod("prod/web", {OWN_TX: bad, OWN_RX: "20M"}, labels={"koordinator.sh/qosClass": "BE"})
    desired, view = only(composed([facts]))
    assert (desired.level, desired.limits_bps) == (Level.L2, PerDirection(tx=None, rx=20 * M))
    [finding] = view.findings
    assert finding.code == "invalid-limit"
    [rejected] = [choice for choice in view.limits.tx.choices if choice.verdict == "rejected"]
    assert (rejected.source, rejected.reason) == (f"annotation {OWN_TX}", finding.message)


def test_a_rejected_value_without_a_last_good_one_hands_over_to_the_next_line() -> None:
    assert limits_of({OWN_TX: "abc", K8S_TX: "100M"}) == (100 * M, None)


def good_then(
    first: dict[str, object], second: dict[str, object], settings: Settings = SETTINGS
) -> tuple[AppliedLimit, LastGood]:
    """The egress limit after the annotations changed from the first to the second."""
    before = composed([pod("prod/web", first)], settings=settings)
    after = composed([pod("prod/web", second)], settings=settings, last_good=before.last_good)
    return after.pods[0].limits.tx, after.last_good


def test_a_rejected_value_keeps_the_last_good_one() -> None:
    limit, kept = good_then({OWN_TX: "10M", K8S_TX: "100M"}, {OWN_TX: "abc", K8S_TX: "100M"})
    assert (limit.bps, limit.source) == (10 * M, f"annotation {OWN_TX} (last good)")
    assert [choice.verdict for choice in limit.choices] == [
        "absent",
        "absent",
        "absent",
        "rejected",
        "shadowed",
    ]
    assert "the last good value 10M stays" in limit.choices[3].reason
    assert limits_of({OWN_TX: "worse"}, last=kept) == (10 * M, None)
    assert limits_of({OWN_TX: "11M"}, last=kept) == (11 * M, None)


def test_the_last_good_value_of_another_input_does_not_count() -> None:
    limit, _ = good_then({K8S_TX: "100M"}, {OWN_TX: "abc", K8S_TX: "50M"})
    assert (limit.bps, limit.source) == (50 * M, f"annotation {K8S_TX}")


def test_no_limit_can_be_the_last_good_value() -> None:
    limit, _ = good_then({OWN_TX: "0"}, {OWN_TX: "abc", K8S_TX: "50M"})
    assert limit.bps is None


def test_json_that_breaks_keeps_both_directions() -> None:
    before = composed([pod("prod/web", {NETWORK_QOS: {"egressLimit": "10M", "ingressLimit": "20M"}})])
    after = composed([pod("prod/web", {NETWORK_QOS: "{broken"})], last_good=before.last_good)
    assert after.desired.pods[0].limits_bps == PerDirection(tx=10 * M, rx=20 * M)
    assert codes(after.pods[0].findings) == ["invalid-limit"]


@pytest.mark.parametrize("second", [{}, {OWN_TX: ""}, {OWN_RX: "1M"}])
def test_a_removed_annotation_removes_the_limit_at_once(second: dict[str, object]) -> None:
    limit, kept = good_then({OWN_TX: "10M"}, second)
    assert (limit.bps, limit.source) == (None, "none")
    assert limits_of({OWN_TX: "abc"}, last=kept) == (None, None)


def test_a_percentage_of_an_unknown_total_is_not_applied() -> None:
    unknown = replace(SETTINGS, bandwidth=NO_LIMITS)
    no_speed = replace(NODE, uplinks=(replace(NODE.uplinks[0], speed_bps=None),))
    facts = pod("prod/web", {NETWORK_QOS: {"egressLimit": 10, "ingressLimit": "5M"}, OWN_TX: "7M"})
    desired, view = only(composed([facts], settings=unknown, node=no_speed))
    assert desired.limits_bps == PerDirection(tx=7 * M, rx=5 * M)
    assert codes(view.findings) == ["limit-of-unknown-total"]


def test_a_percentage_whose_total_gets_lost_keeps_its_last_good_value() -> None:
    facts = pod("prod/web", {NETWORK_QOS: {"egressLimit": 10}})
    no_speed = replace(NODE, uplinks=(replace(NODE.uplinks[0], speed_bps=None),))
    before = composed([facts])
    after = composed(
        [facts], settings=replace(SETTINGS, bandwidth=NO_LIMITS), node=no_speed, last_good=before.last_good
    )
    assert after.desired.pods[0].limits_bps.tx == before.desired.pods[0].limits_bps.tx == 100 * M


def test_kubernetes_annotations_can_be_switched_off() -> None:
    settings = replace(SETTINGS, kubernetes=KubernetesSettings(annotations=False))
    assert limits_of({K8S_TX: "100M"}, settings=settings) == (None, None)
    assert limits_of({OWN_TX: "100M"}, settings=settings) == (100 * M, None)


def test_limits_hold_with_network_qos_off() -> None:
    assert limits_of({OWN_TX: "10M"}, settings=replace(SETTINGS, policy=FILE_OFF)) == (10 * M, None)


def test_an_override_is_first_and_zero_lifts_the_limit() -> None:
    facts = pod("prod/web", {OWN_TX: "10M", OWN_RX: "20M"})
    desired, view = only(composed([facts], overrides=[override(facts, tx=0, rx=5 * M)]))
    assert desired.limits_bps == PerDirection(tx=None, rx=5 * M)
    assert view.limits.rx == AppliedLimit(
        bps=5 * M,
        source="override",
        choices=(
            Choice(source="override", value="5M", verdict="used", reason="a test"),
            Choice(source=f"annotation {NETWORK_QOS}", value="", verdict="absent"),
            Choice(source=f"annotation {QOS_CONFIG}", value="", verdict="absent"),
            Choice(source=f"annotation {OWN_RX}", value="20M", verdict="shadowed"),
            Choice(source=f"annotation {K8S_RX}", value="", verdict="absent"),
        ),
    )


def test_an_override_of_one_direction_leaves_the_other() -> None:
    facts = pod("prod/web", {OWN_TX: "10M", OWN_RX: "20M"})
    desired, _ = only(composed([facts], overrides=[override(facts, tx=5 * M)]))
    assert desired.limits_bps == PerDirection(tx=5 * M, rx=20 * M)


def test_the_last_good_value_is_kept_behind_an_override() -> None:
    good, bad = pod("prod/web", {OWN_TX: "10M"}), pod("prod/web", {OWN_TX: "abc"})
    before = composed([good], overrides=[override(good, tx=1 * M)])
    during = composed([bad], overrides=[override(bad, tx=1 * M)], last_good=before.last_good)
    after = composed([bad], last_good=during.last_good)
    assert [one.desired.pods[0].limits_bps.tx for one in (before, during, after)] == [1 * M, 1 * M, 10 * M]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (workload(), NO_LIMITS),
        (workload(direct_limits=PerDirection(tx=10 * M, rx=20 * M)), PerDirection(tx=10 * M, rx=20 * M)),
        (workload(direct_limits=PerDirection(tx=None, rx=0)), NO_LIMITS),
    ],
)
def test_a_workload_says_its_own_limits(facts: PodFacts, expected: PerDirection[int | None]) -> None:
    desired, view = only(composed([facts]))
    assert desired.limits_bps == expected
    assert [choice.source for choice in view.limits.tx.choices] == ["override", "workload"]


def test_an_override_of_a_workload() -> None:
    facts = workload(direct_limits=PerDirection(tx=10 * M, rx=20 * M))
    desired, _ = only(composed([facts], overrides=[override(facts, tx=1 * M)]))
    assert desired.limits_bps == PerDirection(tx=1 * M, rx=20 * M)


def test_what_the_configuration_leaves_to_others_is_shown_as_it_is_and_said_so() -> None:
    settings = replace(SETTINGS, kubernetes=KubernetesSettings(annotations=False))
    facts = pod("prod/web", {K8S_TX: "10M", OWN_RX: "7M", K8S_RX: "hello"})
    _, view = only(composed([facts], settings=settings))
    left = [limit.choices[-1] for limit in (view.limits.tx, view.limits.rx)]
    why = "left to others: kubernetes.annotations is false"
    assert left == [
        Choice(source=f"annotation {K8S_TX}", value="10M", verdict="shadowed", reason=why),
        Choice(source=f"annotation {K8S_RX}", value="hello", verdict="shadowed", reason=why),
    ]
    assert (view.limits.tx.bps, view.limits.rx.bps, view.findings) == (None, 7 * M, ())
    _, other = only(composed([pod("prod/web", {})], settings=settings))
    assert other.limits.tx.choices[-1] == Choice(source=f"annotation {K8S_TX}", value="", verdict="absent")


# ------------------------------------------------------------------ limits that a CNI holds

ADDRESS = "10.88.0.10"
BUCKET = "tbf 10M on bwp0123456789a, fed by veth7"
HELD_TX = HeldLimits(by_address={ADDRESS: PerDirection(tx=BUCKET, rx="")})


def held_limits(
    annotations: dict[str, object], held: HeldLimits = HELD_TX, settings: Settings = SETTINGS
) -> PerDirection[AppliedLimit]:
    facts = pod("prod/web", annotations, addresses=("fd00:88::10", ADDRESS))
    node = replace(NODE, held=held)
    desired, view = only(composed([facts], node=node, settings=settings))
    assert (desired.limits_bps.tx, desired.limits_bps.rx) == (view.limits.tx.bps, view.limits.rx.bps)
    return view.limits


def test_what_the_cni_enforces_is_left_to_it_and_said_so() -> None:
    limits = held_limits({K8S_TX: "10M", K8S_RX: "20M"})
    assert (limits.tx.bps, limits.tx.source, limits.rx.bps) == (None, "none", 20 * M)
    assert limits.tx.choices[-1] == Choice(
        source=f"annotation {K8S_TX}",
        value="10M",
        verdict="shadowed",
        reason=f"left to the CNI, which enforces it by {BUCKET}",
    )


def test_each_pod_that_is_left_to_the_cni_says_so() -> None:
    facts = pod("prod/web", {K8S_TX: "10M"}, addresses=(ADDRESS,))
    _, view = only(composed([facts], node=replace(NODE, held=HELD_TX)))
    assert [(one.code, one.subject) for one in view.findings] == [("limited-by-cni", "pod prod/web")]
    assert BUCKET in view.findings[0].message


def test_our_own_annotations_apply_beside_the_cnis_limiter() -> None:
    assert held_limits({K8S_TX: "10M", OWN_TX: "7M"}).tx.bps == 7 * M


def test_a_pod_without_a_limiter_keeps_the_annotation_and_so_does_one_that_loses_it() -> None:
    elsewhere = HeldLimits(by_address={"10.88.0.99": PerDirection(tx=BUCKET, rx=BUCKET)})
    assert held_limits({K8S_TX: "10M"}, elsewhere).tx.bps == 10 * M
    memo = PodMemo()
    facts = pod("prod/web", {K8S_TX: "10M"}, addresses=(ADDRESS,))
    context = PodContext(
        settings=SETTINGS, total_bps=NO_LIMITS, last_good=EMPTY_LAST_GOOD, overrides={}, held=HELD_TX
    )
    (before,) = memo.resolve([facts], context)
    (after,) = memo.resolve([facts], replace(context, held=HeldLimits()))
    assert (before.limits.tx.applied.bps, after.limits.tx.applied.bps) == (None, 10 * M)


def test_a_manager_of_all_pods_holds_one_direction() -> None:
    limits = held_limits({K8S_TX: "10M", K8S_RX: "20M"}, HeldLimits(of_all=PerDirection(tx="EDT", rx="")))
    assert (limits.tx.bps, limits.rx.bps) == (None, 20 * M)


def test_doubling_is_a_setting() -> None:
    settings = replace(SETTINGS, kubernetes=KubernetesSettings(double_limits=True))
    assert held_limits({K8S_TX: "10M"}, settings=settings).tx.bps == 10 * M
