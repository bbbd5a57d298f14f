"""The total of the node, source by source (contract 1.5; cases B8, B9, D1)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netqos.engine.totals import Totals, known_speeds, resolve_totals, with_last_speeds
from netqos.engine.uplinks import desired_uplinks
from netqos.model.desired import DesiredUplink
from netqos.model.health import Severity
from netqos.model.ids import IfName
from netqos.model.inputs import NO_LIMITS, NodeFacts, NodePolicy
from netqos.model.levels import Direction, PerDirection
from netqos.settings.values import KubernetesSettings, Settings, Toggle
from tests.unit.engine.given import FILE_ON, NODE, UPLINK, G, M, codes, policy, slo

Last = PerDirection[tuple[int, str] | None]
NO_LAST: Last = PerDirection(tx=None, rx=None)
NOWHERE = Settings(policy=FILE_ON)
CONFIGURED = replace(NOWHERE, bandwidth=PerDirection(tx=8 * G, rx=7 * G))
IN_CLUSTER = KubernetesSettings(enable=Toggle.ON)
OF_SLO = slo(total=PerDirection(tx=6 * G, rx=5 * G))
ANNOTATED = replace(NODE, bandwidth_annotation="4G")
NO_SPEED = replace(NODE, uplinks=(replace(UPLINK, speed_bps=None),))


def totals(
    settings: Settings = NOWHERE,
    node: NodeFacts = NODE,
    asked: NodePolicy | None = None,
    last: Last = NO_LAST,
) -> Totals:
    return resolve_totals(settings=settings, slo=asked, node=node, last_good=last)


def said(bps: PerDirection[int | None]) -> Totals:
    return Totals(bps=bps, sources=PerDirection(tx="file", rx="file"), last_good=NO_LAST, findings=())


def tx(found: Totals) -> tuple[int | None, str]:
    return found.bps.tx, found.sources.tx


def rx(found: Totals) -> tuple[int | None, str]:
    return found.bps.rx, found.sources.rx


def test_the_annotation_is_first() -> None:
    found = totals(CONFIGURED, ANNOTATED, OF_SLO)
    assert (tx(found), rx(found)) == ((4 * G, "annotation"), (4 * G, "annotation"))


def test_then_the_nodeslo_direction_by_direction() -> None:
    found = totals(CONFIGURED, NODE, slo(total=PerDirection(tx=6 * G, rx=None)))
    assert (tx(found), rx(found)) == ((6 * G, "nodeslo"), (7 * G, "file"))


def test_a_written_value_beats_the_nic_on_a_node_of_its_own() -> None:
    assert tx(totals(CONFIGURED)) == (8 * G, "file")


def test_in_a_cluster_the_nic_beats_the_file_that_many_nodes_share() -> None:
    in_cluster = replace(CONFIGURED, kubernetes=IN_CLUSTER)
    assert tx(totals(in_cluster)) == (9_800 * M, "nic")
    assert tx(totals(in_cluster, NO_SPEED)) == (8 * G, "file")


def test_the_nic_counts_ninety_eight_percent() -> None:
    assert (tx(totals()), rx(totals())) == ((9_800 * M, "nic"), (9_800 * M, "nic"))


def test_nothing_known_is_unknown() -> None:
    assert totals(node=NO_SPEED) == Totals(
        bps=NO_LIMITS, sources=PerDirection(tx="unknown", rx="unknown"), last_good=NO_LAST, findings=()
    )


def test_a_total_in_either_shape_of_the_file_is_the_files() -> None:
    shaped = replace(NOWHERE, policy=policy(total=PerDirection(tx=3 * G, rx=None)))
    assert (tx(totals(shaped)), rx(totals(shaped))) == ((3 * G, "file"), (9_800 * M, "nic"))


@pytest.mark.parametrize("text", ["fast", "", "-1", "10Gbps", "1e40", "0"])
def test_an_annotation_that_is_no_bandwidth_is_ignored_with_a_warning(text: str) -> None:
    found = totals(
        node=replace(NODE, bandwidth_annotation=text),
        asked=OF_SLO,
        last=PerDirection(tx=(4 * G, "annotation"), rx=None),
    )
    assert (tx(found), rx(found)) == ((6 * G, "nodeslo"), (5 * G, "nodeslo"))
    [finding] = found.findings
    assert (finding.code, finding.severity, finding.subject) == (
        "invalid-total",
        Severity.WARNING,
        "node worker-1",
    )


def test_a_removed_annotation_gives_way_at_once() -> None:
    found = totals(asked=OF_SLO, last=PerDirection(tx=(4 * G, "annotation"), rx=(4 * G, "annotation")))
    assert tx(found) == (6 * G, "nodeslo")
    assert found.last_good == PerDirection(tx=(6 * G, "nodeslo"), rx=(5 * G, "nodeslo"))


@pytest.mark.parametrize("small", [1000, 10 * M - 1])
def test_a_total_under_ten_megabits_is_rejected(small: int) -> None:
    found = totals(CONFIGURED, asked=slo(total=PerDirection(tx=small, rx=5 * G)))
    assert (tx(found), rx(found)) == ((8 * G, "file"), (5 * G, "nodeslo"))
    assert [(one.code, one.severity) for one in found.findings] == [("total-too-small", Severity.ERROR)]


def test_ten_megabits_are_enough() -> None:
    found = totals(replace(NOWHERE, bandwidth=PerDirection(tx=10 * M, rx=11 * M)))
    assert (tx(found), found.findings) == ((10 * M, "file"), ())


def test_a_rejected_total_keeps_the_last_good_one_of_its_source() -> None:
    small = slo(total=PerDirection(tx=1000, rx=1000))
    last: Last = PerDirection(tx=(2 * G, "nodeslo"), rx=(3 * G, "nic"))
    found = totals(CONFIGURED, asked=small, last=last)
    assert (tx(found), rx(found)) == ((2 * G, "nodeslo"), (7 * G, "file"))


def test_a_total_whose_text_was_rejected_keeps_the_last_good_one() -> None:
    wrong = slo(invalid_total=frozenset({Direction.TX}))
    last: Last = PerDirection(tx=(2 * G, "nodeslo"), rx=(2 * G, "nodeslo"))
    found = totals(CONFIGURED, asked=wrong, last=last)
    assert (tx(found), rx(found)) == ((2 * G, "nodeslo"), (7 * G, "file"))


def test_small_totals_can_be_allowed() -> None:
    small = replace(NOWHERE, bandwidth=PerDirection(tx=2 * M, rx=1 * M), allow_small_total=True)
    assert (tx(totals(small)), rx(totals(small))) == ((2 * M, "file"), (1 * M, "file"))


def test_a_link_that_goes_down_keeps_its_speed() -> None:
    down = replace(NODE, uplinks=(replace(UPLINK, is_up=False, speed_bps=None),))
    last = {UPLINK.name: 10 * G}
    assert known_speeds(NODE) == last
    assert tx(totals(node=with_last_speeds(down, last))) == (9_800 * M, "nic")
    assert known_speeds(with_last_speeds(down, last)) == last
    assert tx(totals(node=with_last_speeds(NO_SPEED, last))) == (None, "unknown")
    assert tx(totals(node=with_last_speeds(down, {}))) == (None, "unknown")


def test_the_only_uplinks_own_total_is_the_nodes() -> None:
    own = replace(UPLINK, configured=PerDirection(tx=2 * G, rx=None))
    found = totals(CONFIGURED, replace(NODE, uplinks=(own,)))
    assert (tx(found), rx(found)) == ((2 * G, "file"), (7 * G, "file"))


TWO = replace(
    NODE,
    uplinks=(
        replace(
            UPLINK,
            name=IfName("eth2"),
            index=4,
            configured=PerDirection(tx=25 * G, rx=20 * G),
            speed_bps=25 * G,
        ),
        replace(UPLINK, name=IfName("eth0"), index=3, configured=PerDirection(tx=10 * G, rx=10 * G)),
    ),
)


def test_several_uplinks_add_up_when_each_has_a_total() -> None:
    assert (tx(totals(node=TWO)), rx(totals(node=TWO))) == ((35 * G, "file"), (30 * G, "file"))


def uplinks_of(node: NodeFacts, settings: Settings = NOWHERE) -> tuple[list[DesiredUplink], list[str]]:
    found, findings = desired_uplinks(node, totals(settings, node))
    return list(found), codes(findings)


def both(tx_bps: int | None, rx_bps: int | None) -> PerDirection[int | None]:
    return PerDirection(tx=tx_bps, rx=rx_bps)


def test_each_of_several_uplinks_has_its_own_total() -> None:
    assert uplinks_of(TWO) == (
        [
            DesiredUplink(name=IfName("eth0"), index=3, mtu=1500, total_bps=both(10 * G, 10 * G)),
            DesiredUplink(name=IfName("eth2"), index=4, mtu=1500, total_bps=both(25 * G, 20 * G)),
        ],
        [],
    )


def test_nics_without_any_written_total_have_what_their_speeds_say() -> None:
    """Two NICs are two capacities; a configured one beside them stands for its speed."""
    first, second = replace(UPLINK, name=IfName("eth0")), replace(UPLINK, index=4, speed_bps=25 * G)
    node = replace(NODE, uplinks=(first, replace(second, configured=both(20 * G, None))))
    found = totals(node=node)
    assert (tx(found), rx(found)) == ((29_800 * M, "nic"), (34_300 * M, "nic"))
    uplinks, problems = uplinks_of(node)
    assert [one.total_bps for one in uplinks] == [both(9_800 * M, 9_800 * M), both(20 * G, 24_500 * M)]
    assert [one.pool_bps for one in uplinks] == [NO_LIMITS, NO_LIMITS]
    assert problems == []


def test_uplinks_without_a_total_of_their_own_share_the_nodes() -> None:
    """At most what each link can pass; a link that has its own total takes that away from the rest."""
    own = replace(TWO.uplinks[0], configured=both(3 * G, None))
    fast, slow = (replace(UPLINK, name=IfName(name), index=index) for name, index in (("a", 5), ("b", 6)))
    slow = replace(slow, speed_bps=1 * G)
    uplinks, problems = uplinks_of(replace(NODE, uplinks=(own, fast, slow)), CONFIGURED)
    assert [(one.name, one.total_bps, one.pool_bps) for one in uplinks] == [
        ("a", both(5 * G, 7 * G), both(5 * G, 7 * G)),
        ("b", both(980 * M, 980 * M), both(5 * G, 7 * G)),
        ("eth2", both(3 * G, 7 * G), both(None, 7 * G)),
    ]
    assert problems == ["uplinks-share-total"]


def test_who_is_left_alone_has_the_whole_total() -> None:
    gone = replace(UPLINK, name=IfName("gone"), present=False, index=0, speed_bps=None)
    uplinks, problems = uplinks_of(replace(NODE, uplinks=(UPLINK, gone)), CONFIGURED)
    assert [(one.total_bps, one.pool_bps) for one in uplinks] == [(both(8 * G, 7 * G), NO_LIMITS)]
    assert problems == ["uplink-missing"]


def test_one_of_several_uplinks_without_a_total_is_not_shaped() -> None:
    """Nothing is left of what the node has, or its total is that of the others' speeds."""
    silent = replace(UPLINK, configured=NO_LIMITS, speed_bps=None)
    node = replace(TWO, uplinks=(TWO.uplinks[0], silent))
    assert tx(totals(node=node)) == (None, "unknown")
    greedy = replace(NOWHERE, bandwidth=both(25 * G, 20 * G))
    uplinks, problems = uplinks_of(node, greedy)
    assert [uplink.total_bps for uplink in uplinks] == [both(25 * G, 20 * G), NO_LIMITS]
    assert problems == ["uplink-without-total"]
    uplinks, problems = uplinks_of(replace(NODE, uplinks=(replace(UPLINK, name=IfName("eth0")), silent)))
    assert [uplink.total_bps.tx for uplink in uplinks] == [9_800 * M, None]
    assert problems == ["uplink-without-total"]


@pytest.mark.parametrize(
    ("total", "expected"),
    [
        (499 * M, ["total-far-below-nic-speed"]),
        (500 * M, []),
        (10 * G, []),
        (10 * G + 1, ["total-above-nic-speed"]),
    ],
)
def test_a_total_far_from_the_nics_speed_is_applied_loudly(total: int, expected: list[str]) -> None:
    uplinks, findings = desired_uplinks(NODE, said(PerDirection(tx=total, rx=9 * G)))
    assert uplinks[0].total_bps.tx == total
    assert codes(findings) == expected


@pytest.mark.parametrize(
    ("total_bps", "says"),
    [
        (PerDirection(tx=10 * G, rx=9 * G), []),
        (
            PerDirection(tx=10 * G, rx=None),
            ["the driver reports -1, and no other source says its total for rx"],
        ),
        (NO_LIMITS, ["the driver reports -1, and no other source says its total for tx or rx"]),
    ],
)
def test_an_unknown_speed_is_only_worth_a_word_where_no_other_source_says_the_total(
    total_bps: PerDirection[int | None], says: list[str]
) -> None:
    silent = replace(UPLINK, speed_bps=None, why_no_speed="the driver reports -1")
    _, findings = desired_uplinks(replace(NODE, uplinks=(silent,)), said(total_bps))
    assert [one.message for one in findings] == says
    assert codes(findings) == ["uplink-speed-unknown"] * len(says)
    assert {one.severity for one in findings} <= {Severity.INFO}


def test_missing_down_and_no_uplinks_are_said() -> None:
    missing = replace(UPLINK, name=IfName("gone"), present=False, index=0, speed_bps=None)
    assert [
        (len(found), codes(findings))
        for found, findings in (
            desired_uplinks(replace(NODE, uplinks=(missing,)), said(NO_LIMITS)),
            desired_uplinks(replace(NODE, uplinks=(replace(UPLINK, is_up=False),)), said(NO_LIMITS)),
            desired_uplinks(replace(NODE, uplinks=()), said(NO_LIMITS)),
        )
    ] == [(0, ["uplink-missing"]), (1, ["uplink-down"]), (0, ["no-uplink"])]
