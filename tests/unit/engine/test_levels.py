"""A pod's level, line by line (contract 1.1, 1.7; cases C1 to C3)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netqos.model.composed import Choice
from netqos.model.inputs import KubernetesQos, NamespaceRule, PodFacts
from netqos.model.levels import Level
from netqos.settings.values import Settings
from tests.unit.engine.given import SETTINGS, codes, composed, only, override, pod, workload

GUARANTEED, BURSTABLE, BEST_EFFORT = KubernetesQos
CLASS = {"koordinator.sh/net-qos-class": "l0"}


def label(value: str) -> dict[str, str]:
    return {"koordinator.sh/qosClass": value}


def level_of(facts: PodFacts, settings: Settings = SETTINGS) -> tuple[Level, str, list[str]]:
    desired, view = only(composed([facts], settings=settings))
    assert desired.level is view.level
    return view.level, view.level_source, codes(view.findings)


@pytest.mark.parametrize(
    ("facts", "level", "source"),
    [
        pytest.param(pod(qos=None), Level.L1, "default", id="nobody claims it"),
        pytest.param(pod(qos=GUARANTEED), Level.L1, "kubernetes class", id="Guaranteed"),
        pytest.param(pod(qos=BURSTABLE), Level.L1, "kubernetes class", id="Burstable"),
        pytest.param(pod(qos=BEST_EFFORT), Level.L2, "kubernetes class", id="BestEffort"),
        pytest.param(
            pod(qos=BEST_EFFORT, labels=label("LS")),
            Level.L1,
            "label koordinator.sh/qosClass",
            id="BestEffort labelled LS",
        ),
        pytest.param(
            pod(qos=GUARANTEED, labels=label("BE")),
            Level.L2,
            "label koordinator.sh/qosClass",
            id="Guaranteed labelled BE",
        ),
        pytest.param(pod(labels=label("SYSTEM")), Level.L0, "label koordinator.sh/qosClass", id="SYSTEM"),
        pytest.param(pod(labels=label("LSE")), Level.L1, "label koordinator.sh/qosClass", id="LSE"),
        pytest.param(pod(labels=label("LSR")), Level.L1, "label koordinator.sh/qosClass", id="LSR"),
        pytest.param(
            pod("prod/a", CLASS, labels=label("BE")),
            Level.L0,
            "annotation koordinator.sh/net-qos-class",
            id="annotation over label",
        ),
        pytest.param(
            pod("prod/a", {"koordinator.sh/net-qos-class": "L2"}),
            Level.L2,
            "annotation koordinator.sh/net-qos-class",
            id="any case",
        ),
        pytest.param(
            pod("kube-system/etcd", system_critical=True),
            Level.L0,
            "system pod",
            id="system-critical in kube-system",
        ),
        pytest.param(
            pod("prod/fake", system_critical=True),
            Level.L1,
            "kubernetes class",
            id="system-critical elsewhere",
        ),
        pytest.param(
            pod("kube-system/etcd", labels=label("BE"), system_critical=True),
            Level.L2,
            "label koordinator.sh/qosClass",
            id="label over system-critical",
        ),
        pytest.param(workload(), Level.L1, "default", id="workload without a level"),
        pytest.param(workload(direct_level=Level.L0), Level.L0, "workload", id="workload"),
    ],
)
def test_first_match_wins(facts: PodFacts, level: Level, source: str) -> None:
    assert level_of(facts) == (level, source, [])


@pytest.mark.parametrize("text", ["be", "Be", "", "LSX", "l0", " BE"])
def test_an_unknown_label_warns_and_the_next_line_counts(text: str) -> None:
    assert level_of(pod(labels=label(text), qos=BEST_EFFORT)) == (
        Level.L2,
        "kubernetes class",
        ["invalid-level"],
    )


@pytest.mark.parametrize("text", ["", "0", "l3", "high", "l0 "])
def test_an_unknown_annotation_warns_and_the_label_counts(text: str) -> None:
    facts = pod("prod/a", {"koordinator.sh/net-qos-class": text}, labels=label("BE"))
    assert level_of(facts) == (Level.L2, "label koordinator.sh/qosClass", ["invalid-level"])


def test_a_rejected_text_is_explained_in_the_words_of_its_finding() -> None:
    _, view = only(composed([pod(labels=label("LSX"))]))
    [finding] = view.findings
    assert view.level_choices[2] == Choice(
        source="label koordinator.sh/qosClass", value="LSX", verdict="rejected", reason=finding.message
    )


def test_the_table_of_classes_can_be_changed() -> None:
    settings = replace(SETTINGS, classes={"LS": Level.L0, "BE": Level.L2})
    assert level_of(pod(labels=label("LS")), settings)[0] is Level.L0
    assert level_of(pod(labels=label("LSR")), settings) == (Level.L1, "kubernetes class", ["invalid-level"])


def test_system_pods_can_be_switched_off_and_namespaces_changed() -> None:
    facts = pod("infra/dns", system_critical=True)
    assert level_of(facts)[0] is Level.L1
    assert level_of(facts, replace(SETTINGS, system_namespaces=("infra",)))[0] is Level.L0
    off = replace(SETTINGS, system_namespaces=("infra",), system_pods=False)
    assert level_of(facts, off)[0] is Level.L1


RULES = (
    NamespaceRule(match=("prod-*",)),
    NamespaceRule(match=("batch", "web"), levels=frozenset({Level.L2})),
    NamespaceRule(match=("*",), levels=frozenset({Level.L1, Level.L2})),
)
RESTRICTED = replace(SETTINGS, namespaces=RULES)


@pytest.mark.parametrize(
    ("facts", "level", "findings"),
    [
        pytest.param(pod("prod-1/a", CLASS), Level.L0, [], id="allowed by a glob"),
        pytest.param(pod("other/a", CLASS), Level.L1, ["not-allowed"], id="annotation not allowed"),
        pytest.param(
            pod("other/a", labels=label("SYSTEM")), Level.L1, ["not-allowed"], id="label not allowed"
        ),
        pytest.param(
            pod("other/a", CLASS, labels=label("BE")), Level.L2, ["not-allowed"], id="next line allowed"
        ),
        pytest.param(
            pod("batch/a", CLASS, labels=label("LS"), qos=BEST_EFFORT),
            Level.L2,
            ["not-allowed"] * 2,
            id="both refused",
        ),
        pytest.param(
            pod("batch/a", qos=BURSTABLE), Level.L1, [], id="the kubernetes class is nobody's claim"
        ),
        pytest.param(
            workload("web", direct_level=Level.L0), Level.L1, ["not-allowed"], id="workload by its name"
        ),
        pytest.param(workload("prod-x", direct_level=Level.L0), Level.L0, [], id="workload by a glob"),
    ],
)
def test_namespaces_may_use_what_they_may(facts: PodFacts, level: Level, findings: list[str]) -> None:
    found = level_of(facts, RESTRICTED)
    assert (found[0], found[2]) == (level, findings)


def test_namespaces_without_a_rule_have_the_default() -> None:
    settings = replace(SETTINGS, namespaces=RULES[:2])
    assert level_of(pod("other/a", CLASS), settings)[0] is Level.L0


def test_an_override_is_first_and_not_bound_by_namespaces() -> None:
    facts = pod("batch/a", {"koordinator.sh/net-qos-class": "l2"})
    _, view = only(composed([facts], settings=RESTRICTED, overrides=[override(facts, level=Level.L0)]))
    assert (view.level, view.level_source) == (Level.L0, "override")
    assert view.level_choices[:2] == (
        Choice(source="override", value="L0", verdict="used", reason="a test"),
        Choice(source="annotation koordinator.sh/net-qos-class", value="l2", verdict="shadowed"),
    )


def test_every_line_is_explained() -> None:
    facts = pod("other/a", CLASS, labels=label("BE"), qos=BURSTABLE)
    _, view = only(composed([facts], settings=RESTRICTED))
    why = "l0 is not allowed in namespace other; allowed: l1 or l2"
    assert view.level_choices == (
        Choice(source="override", value="", verdict="absent"),
        Choice(source="annotation koordinator.sh/net-qos-class", value="l0", verdict="rejected", reason=why),
        Choice(source="label koordinator.sh/qosClass", value="BE", verdict="used"),
        Choice(source="system pod", value="", verdict="absent"),
        Choice(source="kubernetes class", value="Burstable", verdict="shadowed"),
    )
