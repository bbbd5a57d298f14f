"""Rules inside a pod: what its namespace may use, what is remembered, how many there may be (contract 1.3, 1.7)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netqos.engine import podset
from netqos.model.inputs import NamespaceRule, PodFacts
from netqos.model.levels import Level, PerDirection
from netqos.model.rules import IpMatch, Rule
from netqos.settings.values import Settings
from tests.unit.engine.given import SETTINGS, M, codes, composed, only, override, pod, workload

QOS_CONFIG = "koordinator.sh/qos-config"
LAN = IpMatch(networks=("10.0.0.0/8",))


def item(**actions: object) -> dict[str, object]:
    return {
        "matchs": [{"type": "ip", "expr": "10.0.0.0/8"}],
        "actions": [
            {"action": name.replace("qos_class", "qos-class"), "value": value}
            for name, value in actions.items()
        ],
    }


def ruled(name: str, *items: dict[str, object], **more: object) -> PodFacts:
    return pod(name, {QOS_CONFIG: {"egress": list(items)}, **more})


def rules_of(facts: PodFacts, settings: Settings = SETTINGS) -> tuple[tuple[Rule, ...], list[str]]:
    desired, view = only(composed([facts], settings=settings))
    assert desired.rules.rx == ()
    return desired.rules.tx, codes(view.findings)


@pytest.mark.parametrize(
    ("name", "asked", "kept", "findings"),
    [
        ("prod/a", item(qos_class="l0"), Rule(matches=(LAN,), level=Level.L0), []),
        ("prod/a", item(dscp=0), Rule(matches=(LAN,), dscp=0), []),
        ("kube-system/a", item(dscp=63), Rule(matches=(LAN,), dscp=63), []),
        ("kube-system/a", item(dscp=0), Rule(matches=(LAN,), dscp=0), []),
        ("prod/a", item(dscp=39), Rule(matches=(LAN,), dscp=39), []),
        ("prod/a", item(dscp=40), None, ["not-allowed"]),
        ("prod/a", item(dscp="ef", qos_class="l2"), Rule(matches=(LAN,), level=Level.L2), ["not-allowed"]),
        ("kube-system/a", item(dscp=46), Rule(matches=(LAN,), dscp=46), []),
        ("prod/a", item(bandwidth_min="1M"), None, ["not-allowed"]),
        (
            "prod/a",
            item(bandwidth_min="1M", bandwidth_max="9M"),
            Rule(matches=(LAN,), maximum_bps=9 * M),
            ["not-allowed"],
        ),
        ("kube-system/a", item(bandwidth_min="1M"), Rule(matches=(LAN,), minimum_bps=1 * M), []),
    ],
)
def test_the_default_keeps_minima_and_high_code_points_to_system_namespaces(
    name: str, asked: dict[str, object], kept: Rule | None, findings: list[str]
) -> None:
    assert rules_of(ruled(name, asked)) == (() if kept is None else (kept,), findings)


def test_namespaces_may_use_what_their_rule_says() -> None:
    allowed = NamespaceRule(
        match=("prod",), levels=frozenset({Level.L2}), minimum=True, dscp=((8, 8), (46, 46))
    )
    settings = replace(SETTINGS, namespaces=(allowed,))
    asked = (
        item(qos_class="l0"),
        item(qos_class="l2"),
        item(dscp=46),
        item(dscp=9),
        item(bandwidth_min="1M"),
    )
    assert rules_of(ruled("prod/a", *asked), settings) == (
        (
            Rule(matches=(LAN,), level=Level.L2),
            Rule(matches=(LAN,), dscp=46),
            Rule(matches=(LAN,), minimum_bps=1 * M),
        ),
        ["not-allowed", "not-allowed"],
    )


@pytest.mark.parametrize(("ranges", "allowed"), [((), "none"), (((8, 8), (10, 12)), "8-8 or 10-12")])
def test_what_would_be_allowed_is_said(ranges: tuple[tuple[int, int], ...], allowed: str) -> None:
    settings = replace(SETTINGS, namespaces=(NamespaceRule(match=("*",), dscp=ranges),))
    _, view = only(composed([ruled("prod/a", item(dscp=9))], settings=settings))
    [finding] = view.findings
    told = "annotation koordinator.sh/qos-config: egress[0]: dscp 9 is not allowed in namespace prod"
    assert finding.message == f"{told}; allowed: {allowed}"


def test_a_workloads_rules_are_matched_by_its_name() -> None:
    rules = PerDirection(tx=(Rule(matches=(LAN,), minimum_bps=1 * M),), rx=())
    facts = workload("web", direct_rules=rules)
    assert rules_of(facts) == ((), ["not-allowed"])
    settings = replace(SETTINGS, namespaces=(NamespaceRule(match=("web",), minimum=True),))
    assert rules_of(facts, settings) == (rules.tx, [])


def test_rejected_rules_keep_the_last_good_ones_of_that_direction() -> None:
    before = composed([ruled("prod/a", item(dscp=8))])
    broken = pod("prod/a", {QOS_CONFIG: {"egress": [{"matchs": []}], "ingress": [item(dscp=10)]}})
    after = composed([broken], last_good=before.last_good)
    assert after.desired.pods[0].rules == PerDirection(
        tx=(Rule(matches=(LAN,), dscp=8),), rx=(Rule(matches=(LAN,), dscp=10),)
    )
    assert "invalid-rules" in codes(after.pods[0].findings)
    alone = composed([broken])
    assert alone.desired.pods[0].rules.tx == ()


def test_rules_are_not_forgotten_until_all_sources_delivered() -> None:
    before = composed([ruled("prod/a", item(dscp=8)), ruled("prod/b", item(dscp=10))])
    first = composed([pod("prod/c")], last_good=before.last_good, complete=False)
    assert first.last_good.rules == before.last_good.rules
    assert composed([pod("prod/c")], last_good=before.last_good).last_good.rules == {}


def test_a_rule_of_another_level_is_not_enforced_on_a_pod_with_a_limit() -> None:
    facts = ruled("prod/a", item(qos_class="l2"), **{"koordinator.sh/egress-bandwidth": "80M"})
    rules, findings = rules_of(facts)
    assert (rules[0].level, findings) == (Level.L2, ["not-enforced"])
    assert (
        rules_of(ruled("prod/a", item(qos_class="l2"), **{"koordinator.sh/ingress-bandwidth": "80M"}))[1]
        == []
    )
    free = ruled("prod/a", item(qos_class="l2"))
    limited = composed([free], overrides=[override(free, tx=1 * M)])
    assert codes(limited.pods[0].findings) == ["not-enforced"]


def test_a_node_takes_so_many_rules_in_the_order_of_uids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(podset, "MOST_RULES", 3)
    both = {"egress": [item(dscp=8)], "ingress": [item(dscp=10)]}
    pods = [pod(f"prod/{name}", {QOS_CONFIG: both}) for name in "cab"]
    pods.append(ruled("prod/d", item(dscp=8)))
    result = composed(pods)
    assert [(one.name, len(one.rules.tx), len(one.rules.rx)) for one in result.desired.pods] == [
        ("prod/a", 1, 1),
        ("prod/b", 0, 0),
        ("prod/c", 0, 0),
        ("prod/d", 1, 0),
    ]
    assert [(one.code, one.subject) for one in result.findings] == [
        ("too-many-rules", "pod prod/b"),
        ("too-many-rules", "pod prod/c"),
    ]
