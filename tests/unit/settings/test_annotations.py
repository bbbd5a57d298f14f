"""What a pod's annotations and labels ask for, and that nothing hostile gets further than a finding."""

from __future__ import annotations

import json

import pytest

from netqos.model.health import Severity
from netqos.model.inputs import Amount, Percent
from netqos.model.levels import Level, PerDirection
from netqos.model.rules import PortMatch, PortRange, Rule
from netqos.settings.annotations import AnnotationInputs, parse_annotations
from netqos.settings.issues import Code

SUBJECT = "pod shop/web-0"
NETWORK_QOS = "koordinator.sh/networkQOS"
CONFIG = "koordinator.sh/qos-config"
NOTHING = AnnotationInputs(
    limits=PerDirection(tx=(), rx=()), rules=PerDirection(tx=(), rx=()), levels=(), findings=()
)


def read(annotations: dict[str, str], labels: dict[str, str] | None = None) -> AnnotationInputs:
    return parse_annotations(annotations, labels or {}, subject=SUBJECT)


def amounts(annotations: dict[str, str]) -> PerDirection[tuple[Amount | None, ...]]:
    return read(annotations).limits.map(lambda candidates: tuple(one.amount for one in candidates))


def network_qos(text: str) -> PerDirection[tuple[Amount | None, ...]]:
    return amounts({NETWORK_QOS: text})


def codes(inputs: AnnotationInputs) -> list[str]:
    return [finding.code for finding in inputs.findings]


def whole_pod(value: object) -> dict[str, object]:
    return {"matchs": [{"type": "ip"}], "actions": [{"action": "bandwidth_max", "value": value}]}


def test_no_annotation_is_nothing() -> None:
    assert read({}) == NOTHING
    assert read({"example.com/else": "{"}, {"app": "web"}) == NOTHING


def test_limits_stand_in_the_order_in_which_they_are_tried() -> None:
    inputs = read(
        {
            "kubernetes.io/egress-bandwidth": "100M",
            "kubernetes.io/ingress-bandwidth": "200M",
            "koordinator.sh/egress-bandwidth": "10M",
            CONFIG: json.dumps({"egress": [whole_pod("30M")]}),
            NETWORK_QOS: '{"egressLimit": "20M", "ingressLimit": 40}',
        }
    )
    assert [(one.source, one.value, one.amount) for one in inputs.limits.tx] == [
        ("annotation koordinator.sh/networkQOS egressLimit", "20M", 20_000_000),
        ("annotation koordinator.sh/qos-config", "30M", 30_000_000),
        ("annotation koordinator.sh/egress-bandwidth", "10M", 10_000_000),
        ("annotation kubernetes.io/egress-bandwidth", "100M", 100_000_000),
    ]
    assert [(one.source, one.value, one.amount) for one in inputs.limits.rx] == [
        ("annotation koordinator.sh/networkQOS ingressLimit", "40", Percent(40)),
        ("annotation kubernetes.io/ingress-bandwidth", "200M", 200_000_000),
    ]
    assert inputs.findings == ()


def test_the_limits_of_kubernetes_can_be_left_out() -> None:
    annotations = {"kubernetes.io/egress-bandwidth": "100M", "koordinator.sh/egress-bandwidth": "10M"}
    inputs = parse_annotations(annotations, {}, subject=SUBJECT, kubernetes_limits=False)
    assert [one.amount for one in inputs.limits.tx] == [10_000_000]


@pytest.mark.parametrize("text", ["0", "-0", "0M"])
def test_zero_is_no_limit_and_stands_in_its_place(text: str) -> None:
    assert amounts({"koordinator.sh/egress-bandwidth": text}) == PerDirection(tx=(0,), rx=())


@pytest.mark.parametrize(
    "key", ["koordinator.sh/egress-bandwidth", "kubernetes.io/egress-bandwidth", NETWORK_QOS, CONFIG]
)
def test_an_empty_text_is_as_good_as_absent(key: str) -> None:
    assert read({key: ""}) == NOTHING


@pytest.mark.parametrize("key", ["koordinator.sh/egress-bandwidth", "kubernetes.io/egress-bandwidth"])
@pytest.mark.parametrize(
    "text", ["-5", "10m", "10K", "10M\n", "50%", "10Mbit", "NaN", "1e999999999", "1" * 300_000]
)
def test_a_wrong_quantity_is_a_rejected_candidate_of_its_direction_alone(key: str, text: str) -> None:
    inputs = read(
        {key: text, "koordinator.sh/ingress-bandwidth": "20M", "koordinator.sh/net-qos-class": "l2"}
    )
    (candidate,) = inputs.limits.tx
    assert candidate.amount is None
    assert candidate.finding is not None
    assert candidate.finding.code == Code.LIMIT.value
    assert candidate.finding.severity is Severity.WARNING
    assert candidate.finding.subject == SUBJECT
    assert candidate.finding.message.startswith(f"annotation {key}: ")
    assert inputs.findings == (candidate.finding,)
    assert len(candidate.value) < 100
    assert [one.amount for one in inputs.limits.rx] == [20_000_000]
    assert [one.level for one in inputs.levels] == [Level.L2]


@pytest.mark.parametrize(
    ("text", "tx", "rx"),
    [
        ('{"ingressLimit": "10M"}', (), (10_000_000,)),
        ('{"egressLimit": "10M"}', (10_000_000,), ()),
        ('{"IngressLimit": "1000", "EgressLimit": "2000"}', (2_000,), (1_000,)),
        ('{"INGRESSLIMIT": "1M"}', (), (1_000_000,)),
        ('{"egressLimit": null, "ingressLimit": ""}', (), ()),
        ('{"egressLimit": 1, "ingressLimit": 100}', (Percent(1),), (Percent(100),)),
        ('{"egressLimit": 0, "ingressLimit": "0"}', (0,), (0,)),
        ('{"egressLimit": "20M", "ingressLimit": "30M",}', (20_000_000,), (30_000_000,)),
        ("{}", (), ()),
        ("null", (), ()),
    ],
)
def test_network_qos_gives_each_direction_what_it_says(
    text: str, tx: tuple[Amount], rx: tuple[Amount]
) -> None:
    inputs = read({NETWORK_QOS: text})
    assert network_qos(text) == PerDirection(tx=tx, rx=rx)
    assert inputs.findings == ()


@pytest.mark.parametrize(
    "value",
    ["101", "-1", "true", "10.5", "1e999", "[1]", '{"a": 1}', '"30%"', '"50"', '"invalid"', "9" * 200],
)
def test_one_wrong_direction_of_network_qos_leaves_the_other(value: str) -> None:
    inputs = read({NETWORK_QOS: f'{{"ingressLimit": {value}, "egressLimit": "2000"}}'})
    assert [one.amount for one in inputs.limits.tx] == [2_000]
    assert [one.amount for one in inputs.limits.rx] == [None]
    assert codes(inputs) == [Code.LIMIT.value]


@pytest.mark.parametrize(
    "text", ['{"egressLimit": "1M", "egressLimit": "2M"}', '{"egressLimit": "1M", "EgressLimit": "2M"}']
)
def test_a_direction_that_is_given_twice_is_rejected(text: str) -> None:
    (finding,) = read({NETWORK_QOS: text}).findings
    assert network_qos(text) == PerDirection(tx=(None,), rx=())
    assert "given more than once" in finding.message


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '"10M"',
        "5",
        "10M",
        "NaN",
        '{"egressLimit": NaN}',
        "[" * 50_000,
        '{"a":' * 50_000,
        '{"egressLimit": ' + "1" * 5_000 + "}",
        '{"egressLimit": "' + "9" * 1_000_000 + '"}',
        '{"egressLimit": "\\ud800"',
        "\ud800",
        "\x00",
        "  ",
    ],
    ids=lambda text: ascii(text[:20]) + str(len(text)),
)
def test_hostile_text_rejects_both_directions_with_one_finding(text: str) -> None:
    inputs = read({NETWORK_QOS: text, "koordinator.sh/net-qos-class": "l0"})
    assert network_qos(text) == PerDirection(tx=(None,), rx=(None,))
    assert codes(inputs) == [Code.LIMIT.value]
    assert len(inputs.findings[0].message) < 600
    assert [one.level for one in inputs.levels] == [Level.L0]


def test_an_unknown_key_is_told_and_the_known_ones_hold() -> None:
    inputs = read({NETWORK_QOS: '{"egresLimit": "10M", "ingressLimit": "20M"}'})
    assert codes(inputs) == [Code.UNKNOWN_KEY.value]
    assert "did you mean egressLimit?" in inputs.findings[0].message
    assert [one.amount for one in inputs.limits.rx] == [20_000_000]


@pytest.mark.parametrize(
    ("text", "expected"),
    [('{"egressRequest": "1M"}', [Code.NOT_ENFORCED.value]), ('{"egressRequest": 0}', [])],
)
def test_what_upstream_has_and_a_pod_cannot_use_is_told(text: str, expected: list[str]) -> None:
    assert codes(read({NETWORK_QOS: text})) == expected


@pytest.mark.parametrize(
    ("text", "level"),
    [("l0", Level.L0), ("L1", Level.L1), ("l2", Level.L2), ("l3", None), ("", None), ("LS", None)],
)
def test_the_level_of_the_annotation(text: str, level: Level | None) -> None:
    inputs = read({"koordinator.sh/net-qos-class": text})
    (candidate,) = inputs.levels
    assert candidate.level is level
    assert candidate.source == "annotation koordinator.sh/net-qos-class"
    assert codes(inputs) == ([] if level is not None else [Code.LEVEL.value])


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("SYSTEM", Level.L0),
        ("LSE", Level.L1),
        ("LSR", Level.L1),
        ("LS", Level.L1),
        ("BE", Level.L2),
        ("be", None),
        ("Be", None),
        ("", None),
        ("LSX", None),
    ],
)
def test_the_level_of_the_label(text: str, level: Level | None) -> None:
    inputs = read({}, {"koordinator.sh/qosClass": text})
    (candidate,) = inputs.levels
    assert candidate.level is level
    assert candidate.source == "label koordinator.sh/qosClass"
    assert codes(inputs) == ([] if level is not None else [Code.LEVEL.value])


def test_a_class_in_the_wrong_case_gets_the_right_one_as_a_hint() -> None:
    (finding,) = read({}, {"koordinator.sh/qosClass": "be"}).findings
    assert finding.hint == "write BE"


def test_the_table_of_classes_can_be_another() -> None:
    labels = {"koordinator.sh/qosClass": "LS"}
    inputs = parse_annotations({}, labels, subject=SUBJECT, classes={"LS": Level.L0})
    assert [one.level for one in inputs.levels] == [Level.L0]


def test_annotation_and_label_stand_in_their_order() -> None:
    inputs = read({"koordinator.sh/net-qos-class": "nope"}, {"koordinator.sh/qosClass": "BE"})
    assert [one.level for one in inputs.levels] == [None, Level.L2]


def test_a_wrong_rule_rejects_its_direction_and_no_limit() -> None:
    rule = {"matchs": [{"type": "port", "expr": "=80"}], "actions": [{"action": "dscp", "value": 99}]}
    good = {"matchs": [{"type": "port", "expr": "=443"}], "actions": [{"action": "dscp", "value": "ef"}]}
    inputs = read({CONFIG: json.dumps({"egress": [rule, whole_pod("30M")], "ingress": [good]})})
    assert inputs.rules == PerDirection(
        tx=None,
        rx=(Rule(matches=(PortMatch(ranges=(PortRange(low=443, high=443),), expression="=443"),), dscp=46),),
    )
    assert [one.amount for one in inputs.limits.tx] == [30_000_000]
    assert codes(inputs) == [Code.RULES.value]
    assert inputs.findings[0].message.startswith(
        "annotation koordinator.sh/qos-config: egress[0].actions[0].value: 99 is no DSCP"
    )


def test_a_wrong_whole_pod_limit_rejects_itself_and_no_rule() -> None:
    inputs = read({CONFIG: json.dumps({"egress": [whole_pod("10m")]})})
    assert inputs.rules == PerDirection(tx=(), rx=())
    assert [one.amount for one in inputs.limits.tx] == [None]
    assert codes(inputs) == [Code.LIMIT.value]
    assert inputs.limits.tx[0].finding == inputs.findings[0]


@pytest.mark.parametrize(
    "text", ["{", "[]", "5", '"x"', "[" * 50_000, "NaN", "1" * 70_000, "{" + '"a":1,' * 20_000]
)
def test_hostile_rules_reject_both_directions_with_one_finding(text: str) -> None:
    inputs = read({CONFIG: text, "koordinator.sh/egress-bandwidth": "10M"})
    assert inputs.rules == PerDirection(tx=None, rx=None)
    assert codes(inputs) == [Code.RULES.value]
    assert [one.amount for one in inputs.limits.tx] == [10_000_000]
