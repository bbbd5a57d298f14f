"""Inputs to desired state as a whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netqos.engine.pods import NO_RULES
from netqos.model.composed import LastGood
from netqos.model.desired import Band, DesiredDirection, DesiredPod, DesiredState, DesiredUplink
from netqos.model.health import Severity, warning
from netqos.model.ids import CgroupPath, IfName, PodUid, workload_uid
from netqos.model.inputs import NO_LIMITS, LevelPolicy, NodePolicy, Percent, UplinkFacts
from netqos.model.levels import Direction, Level, PerDirection, PerLevel
from netqos.settings.values import Settings
from tests.unit.engine.given import (
    FILE_OFF,
    NODE,
    SETTINGS,
    UPLINK,
    G,
    M,
    codes,
    composed,
    level,
    pod,
    policy,
    slo,
    workload,
)

OWN_TX = "koordinator.sh/egress-bandwidth"


def bands(*values: tuple[int, int]) -> PerLevel[Band]:
    return PerLevel(*(Band(guarantee_bps=low * M, ceiling_bps=high * M) for low, high in values))


def last_bands(*values: tuple[int, int]) -> PerLevel[Band | None]:
    return PerLevel(*bands(*values))


def test_a_whole_node() -> None:
    asked = policy(l2=level(guarantee=(Percent(10), Percent(20)), ceiling=(Percent(80), None)))
    pods = [
        pod(
            "prod/web",
            {OWN_TX: "10M"},
            uid="b",
            addresses=("10.0.0.2",),
            cgroup=CgroupPath("/pods/b"),
            cgroup_id=7,
        ),
        workload(direct_level=Level.L0, addresses=("10.0.0.1",)),
        pod(
            "batch/a",
            uid="a",
            labels={"koordinator.sh/qosClass": "BE"},
            host_network=True,
            addresses=("192.0.2.1",),
        ),
    ]
    node = replace(NODE, critical_cgroups=((CgroupPath("/sshd"), 3), (CgroupPath("/kubelet"), 4)))
    result = composed(pods, settings=replace(SETTINGS, policy=asked), node=node)
    assert result.desired == DesiredState(
        enabled=True,
        complete=True,
        uplinks=(
            DesiredUplink(
                name=IfName("up0"), index=2, mtu=1500, total_bps=PerDirection(tx=1000 * M, rx=600 * M)
            ),
        ),
        directions=PerDirection(
            tx=DesiredDirection(total_bps=1000 * M, levels=bands((600, 1000), (300, 1000), (100, 800))),
            rx=DesiredDirection(total_bps=600 * M, levels=bands((300, 600), (180, 600), (120, 600))),
        ),
        pods=(
            DesiredPod(
                uid=PodUid("a"),
                name="batch/a",
                level=Level.L2,
                limits_bps=NO_LIMITS,
                rules=NO_RULES,
                host_network=True,
            ),
            DesiredPod(
                uid=PodUid("b"),
                name="prod/web",
                level=Level.L1,
                limits_bps=PerDirection(tx=10 * M, rx=None),
                rules=NO_RULES,
                addresses=("10.0.0.2",),
                cgroup=CgroupPath("/pods/b"),
                cgroup_id=7,
            ),
            DesiredPod(
                uid=workload_uid("web"),
                name="web",
                level=Level.L0,
                limits_bps=NO_LIMITS,
                rules=NO_RULES,
                addresses=("10.0.0.1",),
            ),
        ),
        critical_cgroups=((CgroupPath("/kubelet"), 4), (CgroupPath("/sshd"), 3)),
    )
    assert result.total_sources == PerDirection(tx="file", rx="file")
    assert result.findings == ()
    assert [view.full_name for view in result.pods] == ["batch/a", "prod/web", "web"]


def test_named_uplinks_that_are_not_there_are_told_apart_from_none() -> None:
    gone = [UplinkFacts(name=IfName(name), present=False, is_up=False) for name in ("up9", "up3")]
    there = composed([], node=replace(NODE, uplinks=(*NODE.uplinks, *gone))).desired
    assert ([one.name for one in there.uplinks], there.missing_uplinks) == (["up0"], ("up3", "up9"))
    away = composed([], node=replace(NODE, uplinks=tuple(gone))).desired
    assert (away.uplinks, away.missing_uplinks) == ((), ("up3", "up9"))
    unnamed = composed([], node=replace(NODE, uplinks=())).desired
    assert (unnamed.uplinks, unnamed.missing_uplinks) == ((), ())


def test_network_qos_off_keeps_limits_and_total_but_no_levels() -> None:
    result = composed([pod("prod/web", {OWN_TX: "10M"})], settings=replace(SETTINGS, policy=FILE_OFF))
    assert not result.desired.enabled
    assert result.desired.directions == PerDirection(
        tx=DesiredDirection(total_bps=1000 * M, levels=None),
        rx=DesiredDirection(total_bps=600 * M, levels=None),
    )
    assert result.desired.pods[0].is_limited
    assert not result.desired.is_idle
    assert composed([pod()], settings=replace(SETTINGS, policy=FILE_OFF)).desired.is_idle


NO_SPEED = replace(NODE, uplinks=(replace(UPLINK, speed_bps=None),))


def test_an_unknown_total_shapes_nothing_and_says_so() -> None:
    settings = replace(SETTINGS, bandwidth=PerDirection(tx=1000 * M, rx=None))
    result = composed(settings=settings, node=NO_SPEED)
    assert result.desired.enabled
    assert result.desired.directions.tx.levels is not None
    assert result.desired.directions.rx == DesiredDirection(total_bps=None, levels=None)
    assert result.total_sources == PerDirection(tx="file", rx="unknown")
    assert [(one.code, one.severity) for one in result.findings] == [("total-unknown", Severity.ERROR)]


def test_an_unknown_total_is_no_problem_while_network_qos_is_off() -> None:
    result = composed(settings=Settings(policy=FILE_OFF), node=NO_SPEED)
    assert result.findings == ()


@pytest.mark.parametrize(
    ("asked", "enabled"),
    [
        pytest.param(None, False, id="no NodeSLO"),
        pytest.param(slo(), False, id="an empty one"),
        pytest.param(slo(l1=level(guarantee=Percent(40), enabled=None)), False, id="a class without enable"),
        pytest.param(slo(l1=level(guarantee=Percent(40))), True, id="a class that is on"),
    ],
)
def test_a_nodeslo_switches_network_qos(asked: NodePolicy | None, enabled: bool) -> None:
    result = composed(settings=replace(SETTINGS, policy=FILE_OFF), slo=asked)
    assert result.desired.enabled is enabled


def test_a_class_that_is_not_on_has_no_guarantee_and_keeps_its_pods() -> None:
    be = pod("batch/a", labels={"koordinator.sh/qosClass": "BE"})
    result = composed(
        [be], settings=replace(SETTINGS, policy=FILE_OFF), slo=slo(l1=level(guarantee=Percent(40)))
    )
    levels = result.desired.directions.tx.levels
    assert levels == PerLevel(
        Band(guarantee_bps=600 * M, ceiling_bps=1000 * M),
        Band(guarantee_bps=400 * M, ceiling_bps=1000 * M),
        Band(guarantee_bps=0, ceiling_bps=1000 * M, enabled=False),
    )
    assert result.desired.pods[0].level is Level.L2


def test_a_removed_nodeslo_gives_way_to_the_file() -> None:
    asked = slo(l1=level(guarantee=Percent(40)), total=PerDirection(tx=5 * G, rx=4 * G))
    with_slo = composed(slo=asked)
    assert with_slo.desired.directions.tx.total_bps == 5 * G
    assert with_slo.last_good.policy == asked
    without = composed(last_good=with_slo.last_good)
    assert without.desired == composed().desired
    assert without.last_good.policy is None


def test_wrong_classes_keep_their_last_good_values_direction_by_direction() -> None:
    before = composed(settings=replace(SETTINGS, policy=policy(l1=level(guarantee=(200 * M, 100 * M)))))
    wrong = policy(l1=level(guarantee=(250 * M, 599 * M)))
    after = composed(settings=replace(SETTINGS, policy=wrong), last_good=before.last_good)
    tx, rx = after.desired.directions.tx.levels, after.desired.directions.rx.levels
    assert tx is not None
    assert rx is not None
    assert (tx.l1.guarantee_bps, rx.l1.guarantee_bps) == (250 * M, 100 * M)
    assert [one.subject for one in after.findings] == ["policy L1 rx"]
    assert after.last_good.bands[Direction.RX] == before.last_good.bands[Direction.RX]


def test_a_class_text_that_breaks_keeps_the_bands_that_were_in_force() -> None:
    before = composed(slo=slo(l1=level(guarantee=200 * M), enabled=True))
    broken = slo(enabled=True, invalid=frozenset({Level.L1}))
    after = composed(settings=replace(SETTINGS, policy=FILE_OFF), slo=broken, last_good=before.last_good)
    assert after.desired.enabled
    assert after.desired.directions.tx.levels is not None
    assert after.desired.directions.tx.levels.l1.guarantee_bps == 200 * M


def test_bands_are_remembered_while_network_qos_is_off() -> None:
    on = composed()
    off = composed(settings=replace(SETTINGS, policy=FILE_OFF), last_good=on.last_good)
    assert off.last_good.bands == on.last_good.bands


def test_one_bad_pod_does_not_touch_the_others() -> None:
    bad = {OWN_TX: "\x00", "koordinator.sh/qos-config": "[" * 10_000, "koordinator.sh/net-qos-class": "l9"}
    good = [pod(f"prod/{name}", {OWN_TX: "10M"}, addresses=(f"10.0.0.{ord(name)}",)) for name in "bc"]
    alone = composed(good)
    together = composed([pod("prod/a", bad, addresses=("10.0.0.1",)), *good])
    assert together.desired.pods[1:] == alone.desired.pods
    assert together.desired.pods[0].level is Level.L1
    assert set(codes(together.pods[0].findings)) == {"invalid-level", "invalid-limit", "invalid-rules"}


def test_a_successor_under_the_same_name_is_another_pod() -> None:
    old, new = pod("prod/web-0", {OWN_TX: "10M"}, uid="A"), pod("prod/web-0", {OWN_TX: "abc"}, uid="B")
    before = composed([old])
    both = composed([old, new], last_good=before.last_good)
    assert [(one.uid, one.limits_bps.tx) for one in both.desired.pods] == [("A", 10 * M), ("B", None)]
    after = composed([new], last_good=both.last_good)
    assert after.desired.pods[0].limits_bps.tx is None
    assert PodUid("A") not in after.last_good.limits


def test_of_two_pods_with_one_uid_one_stays() -> None:
    result = composed([pod("prod/b", uid="A"), pod("prod/a", uid="A")])
    assert [one.name for one in result.desired.pods] == ["prod/a"]
    assert [(one.code, one.subject) for one in result.findings] == [("duplicate-uid", "pod prod/b")]


def test_until_all_sources_delivered_nothing_is_forgotten() -> None:
    before = composed([pod("prod/a", {OWN_TX: "10M"}), pod("prod/b", {OWN_TX: "20M"})])
    first = composed([pod("prod/a", {OWN_TX: "abc"})], last_good=before.last_good, complete=False)
    assert not first.desired.complete
    assert first.last_good.limits == before.last_good.limits
    complete = composed([pod("prod/a", {OWN_TX: "abc"})], last_good=first.last_good)
    assert set(complete.last_good.limits) == {"uid-of-prod/a"}


def test_findings_of_a_pods_source_are_kept() -> None:
    pending = warning("cgroup-missing", "pod prod/web", "not there yet")
    assert composed([pod(findings=(pending,))]).pods[0].findings == (pending,)


def test_a_second_pass_over_the_same_inputs_changes_nothing() -> None:
    pods = [pod("prod/a", {OWN_TX: "10M"}), pod("prod/b", {OWN_TX: "abc"}), workload()]
    asked = slo(l1=LevelPolicy(enabled=True), invalid=frozenset({Level.L2}))
    first = composed(pods, slo=asked)
    assert composed(pods, slo=asked, last_good=first.last_good) == first


def test_limits_are_said_to_hold_on_each_of_several_uplinks() -> None:
    two = replace(NODE, uplinks=(UPLINK, replace(UPLINK, name=IfName("up1"), index=3)))
    pods = [pod("prod/a", {OWN_TX: "10M"}), pod("prod/b")]
    found = [
        codes(composed(some, node=node).findings)
        for some, node in ((pods, two), (pods[1:], two), (pods, NODE))
    ]
    assert found == [["uplinks-share-total", "limits-by-uplink"], ["uplinks-share-total"], []]


def test_what_is_remembered_is_only_what_was_accepted() -> None:
    result = composed([pod("prod/a", {OWN_TX: "10M"}), pod("prod/b"), workload()])
    assert result.last_good == LastGood(
        limits={PodUid("uid-of-prod/a"): PerDirection(tx=(10 * M, f"annotation {OWN_TX}"), rx=None)},
        bands={
            Direction.TX: last_bands((400, 1000), (300, 1000), (300, 1000)),
            Direction.RX: last_bands((240, 600), (180, 600), (180, 600)),
        },
        totals=PerDirection(tx=(1000 * M, "file"), rx=(600 * M, "file")),
        speeds={UPLINK.name: 10_000 * M},
    )
