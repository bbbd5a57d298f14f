"""Inputs from outside: any text is a value, a finding or a rejected file, never another exception."""

from __future__ import annotations

import json
from typing import Any

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from netqos.errors import Rejected
from netqos.model.levels import Level, PerDirection
from netqos.model.quantities import LARGEST_BPS, SMALLEST_BPS, bits_per_s
from netqos.model.rules import IpMatch, Match, PortMatch, PortRange, Protocol, Rule
from netqos.settings.annotations import parse_annotations
from netqos.settings.durations import format_duration, parse_duration
from netqos.settings.file import parse_documents
from netqos.settings.issues import Code
from netqos.settings.jsontext import load_json
from netqos.settings.policy import parse_node_slo
from netqos.settings.problems import InvalidConfiguration
from netqos.settings.rules import normal_form, parse_rules
from netqos.settings.schema import Config
from netqos.settings.schemaerrors import keys_at
from netqos.settings.values import Settings

CODES = {code.value for code in Code}

# Words that mean something somewhere, so that random trees get past the first check.
WORDS = st.sampled_from(
    [
        *("spec", "resourceQOSStrategy", "systemStrategy", "networkQOSStrategy", "nodeBandwidthLimit", "hw"),
        *(
            "lsClass",
            "lsrClass",
            "beClass",
            "systemClass",
            "networkQOS",
            "policies",
            "netQOSPolicy",
            "enable",
        ),
        *("egressRequest", "egressLimit", "ingressRequest", "ingressLimit", "totalNetworkBandwidth"),
        *("egress", "ingress", "matchs", "matches", "actions", "action", "type", "value", "expr", "proto"),
        *("node", "policy", "levels", "l0", "l1", "l2", "tx", "rx", "txMin", "workloads", "name", "match"),
        *("addresses", "cgroup", "unit", "limits", "rules", "loop", "interval", "classes", "backendOptions"),
    ]
)
TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        [
            "10M",
            "30%",
            "0",
            "-1",
            "10m",
            "ip",
            "port",
            "=80",
            "bandwidth_max",
            "dscp",
            "ef",
            "l1",
            "tcp",
            "50ms",
            "fd00::1",
            "/a",
            "a.service",
            "LS",
        ]
    ),
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.integers(0, 100), st.floats(), TEXTS)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.one_of(WORDS, st.text(max_size=6)), inner, max_size=5)
    ),
    max_leaves=25,
)
JSON_LIKE = st.one_of(st.text(), st.text(alphabet='{}[]":,0123456789eE+-.truefalsn\\ ', max_size=60))
YAML_LIKE = st.one_of(
    st.text(max_size=200),
    st.text(alphabet="ab: -[]{},\n#'\"&*!|>%@?~<0123456789", max_size=80),
    TREES.map(lambda tree: yaml.safe_dump(tree, allow_unicode=True)),
)


@given(JSON_LIKE)
@example("[" * 100_000)
@example('"' + '\\"' * 30_000)
@example("\ud800")
def test_any_text_is_json_or_rejected(text: str) -> None:
    try:
        load_json(text)
    except Rejected as refused:
        assert len(refused.message) < 400  # noqa: PT017 # whether it raises is the example's choice


def _with_commas(tree: Any) -> str:
    """JSON with a comma behind every value of a list or object, the last one too."""
    if isinstance(tree, dict):
        return (
            "{" + "".join(f"{json.dumps(key)}: {_with_commas(value)}, " for key, value in tree.items()) + "}"
        )
    if isinstance(tree, list):
        return "[" + "".join(f"{_with_commas(value)}\n,\t" for value in tree) + "]"
    return json.dumps(tree)


@given(TREES)
def test_json_is_read_as_it_was_written_with_trailing_commas_or_without(tree: Any) -> None:
    text = json.dumps(tree)
    if "NaN" in text or "Infinity" in text:
        return
    assert load_json(text) == load_json(_with_commas(tree)) == tree


@given(
    st.dictionaries(
        st.sampled_from(
            [
                *("koordinator.sh/networkQOS", "koordinator.sh/qos-config", "koordinator.sh/net-qos-class"),
                *("koordinator.sh/egress-bandwidth", "kubernetes.io/ingress-bandwidth"),
            ]
        ),
        st.one_of(JSON_LIKE, TEXTS, TREES.map(json.dumps)),
    ),
    st.dictionaries(st.just("koordinator.sh/qosClass"), TEXTS),
)
def test_any_annotations_are_candidates_and_findings(
    annotations: dict[str, str], labels: dict[str, str]
) -> None:
    inputs = parse_annotations(annotations, labels, subject="pod a/b")
    limits = (*inputs.limits.tx, *inputs.limits.rx)
    assert all((one.amount is None) == (one.finding is not None) for one in limits)
    assert all((one.level is None) == (one.finding is not None) for one in inputs.levels)
    assert {finding.code for finding in inputs.findings} <= CODES
    is_rejected = inputs.rules.tx is None or inputs.rules.rx is None
    assert inputs.findings or not is_rejected


@given(TREES)
def test_any_tree_is_rules_and_issues(tree: Any) -> None:
    parsed = parse_rules(tree)
    assert parsed.issues or (parsed.rules.tx is not None and parsed.rules.rx is not None)


@given(TREES)
def test_any_tree_is_a_policy_and_findings(tree: Any) -> None:
    policy, findings = parse_node_slo(tree, subject="nodeslo a")
    assert findings or not (policy.invalid or policy.invalid_total)
    assert {finding.code for finding in findings} <= CODES


@given(st.lists(YAML_LIKE, max_size=3))
@settings(max_examples=300)
@example(["a: &a [*a]"])
@example(["? [a]"])
@example(["\ud800"])
@example(["node: {uplinks: [{1: 2}]}\nclasses: {~: l0}"])
def test_any_files_are_settings_or_problems_with_a_line(texts: list[str]) -> None:
    documents = [(f"{number}.yaml", text) for number, text in enumerate(texts)]
    try:
        assert isinstance(parse_documents(documents), Settings)
    except InvalidConfiguration as refused:
        _check_problems(refused, documents)


def _check_problems(refused: InvalidConfiguration, documents: list[tuple[str, str]]) -> None:
    lines = {name: len(text.splitlines()) + 1 for name, text in documents}
    assert refused.located
    for problem in refused.located:
        assert 1 <= problem.line <= lines[problem.file]
        assert problem.message


@given(st.dictionaries(st.sampled_from(keys_at(Config, ())), TREES, max_size=4))
def test_any_values_under_known_keys_are_settings_or_problems(tree: dict[str, Any]) -> None:
    text = yaml.safe_dump(tree, allow_unicode=True)
    try:
        assert isinstance(parse_documents([("a", text)]), Settings)
    except InvalidConfiguration as refused:
        _check_problems(refused, [("a", text)])


@given(st.integers(0, 10**9).map(lambda microseconds: microseconds / 1_000_000))
def test_a_duration_reads_back(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@st.composite
def port_ranges(draw: st.DrawFn) -> tuple[PortRange, ...]:
    """Sorted ranges that do not touch."""
    bounds = sorted(draw(st.sets(st.integers(0, 32_767), min_size=2, max_size=8)))
    pairs = zip(bounds[::2], bounds[1::2], strict=False)
    return tuple(PortRange(low=low * 2, high=high * 2 - 1) for low, high in pairs)


PORT_MATCHES = st.builds(
    PortMatch, ranges=port_ranges(), protocol=st.sampled_from([None, Protocol.TCP, Protocol.UDP])
)
IP_MATCHES = st.builds(
    IpMatch,
    networks=st.lists(
        st.one_of(
            st.ip_addresses(v=4).map(lambda ip: f"{ip}/32"), st.ip_addresses(v=6).map(lambda ip: f"{ip}/128")
        ),
        unique=True,
        max_size=4,
    ).map(tuple),
)
WHOLE_BYTES = st.integers(SMALLEST_BPS // 8, LARGEST_BPS // 64).map(bits_per_s)
MATCHES: st.SearchStrategy[Match] = st.one_of(PORT_MATCHES, IP_MATCHES)


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    """A rule that asks for something, in whole bytes that are a bandwidth by themselves."""
    minimum, maximum = sorted((draw(WHOLE_BYTES), draw(WHOLE_BYTES)))
    return Rule(
        matches=tuple(draw(st.lists(MATCHES, min_size=1, max_size=3, unique=True))),
        level=draw(st.sampled_from([None, *Level])),
        dscp=draw(st.integers(0, 63)),
        minimum_bps=draw(st.sampled_from([None, minimum * 8])),
        maximum_bps=draw(st.sampled_from([None, maximum * 8])),
    )


def _in_bytes(rule: Rule) -> Rule:
    """As the normal form says it: bytes where the rule has bits, and every expression written out."""
    bandwidths = [None if bps is None else bps // 8 for bps in (rule.minimum_bps, rule.maximum_bps)]
    return Rule(
        matches=rule.matches,
        level=rule.level,
        dscp=rule.dscp,
        minimum_bps=bandwidths[0],
        maximum_bps=bandwidths[1],
    )


def _without_expressions(rule: Rule) -> Rule:
    matches = [
        PortMatch(ranges=one.ranges, protocol=one.protocol) if isinstance(one, PortMatch) else one
        for one in rule.matches
    ]
    return Rule(
        matches=tuple(matches),
        level=rule.level,
        dscp=rule.dscp,
        minimum_bps=rule.minimum_bps,
        maximum_bps=rule.maximum_bps,
    )


@given(st.lists(rules(), max_size=5), st.one_of(st.none(), WHOLE_BYTES.map(lambda bps: bps * 8)))
def test_the_normal_form_holds_all_of_the_rules_and_the_limit(
    found: list[Rule], limit_bps: int | None
) -> None:
    nothing: PerDirection[tuple[Rule, ...]] = PerDirection(tx=tuple(found), rx=())
    form = json.loads(json.dumps(normal_form(nothing, PerDirection(tx=limit_bps, rx=None))))
    parsed = parse_rules(form)
    whole_pod = [one for one in found if one.matches == (IpMatch(),) and one.maximum_bps is not None]
    if whole_pod:
        return
    assert parsed.issues == ()
    assert parsed.rules.tx is not None
    assert [_without_expressions(one) for one in parsed.rules.tx] == [_in_bytes(one) for one in found]
    assert (parsed.limits.tx.bps if parsed.limits.tx else None) == (limit_bps // 8 if limit_bps else None)
