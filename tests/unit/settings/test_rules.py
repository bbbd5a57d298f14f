"""Rules inside a pod: what an item may say, what rejects a direction, and the normal form for other programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from netqos.model.levels import Level, PerDirection
from netqos.model.rules import IpMatch, PortMatch, PortRange, Protocol, Rule
from netqos.settings.issues import Code
from netqos.settings.jsontext import load_json
from netqos.settings.rules import ParsedRules, WholePodLimit, normal_form, parse_rules

GOLDEN = Path(__file__).parents[2] / "data" / "qos-config.json"

PROPOSAL = """
{
    "ingress": [{"matchs": [{"type": "ip"}], "actions": [{"action": "qos-class", "value": "l1",}],}],
    "egress": [
        {
            "matchs": [{"type": "port", "expr": "=80"}],
            "actions": [
                {"action": "qos-class", "value": "l1",},
                {"action": "dscp", "value": "",},
                {"action": "bandwidth_min", "value": "1000",},
                {"action": "bandwidth_max", "value": "2000",}
            ],
        }
    ]
}
"""
"""The example of Koordinator's proposal of 2023-12-08, shortened and with two different values."""


def item(matches: list[object], actions: list[object]) -> dict[str, object]:
    return {"matchs": matches, "actions": actions}


def egress(*items: object) -> ParsedRules:
    return parse_rules({"egress": list(items)})


def one(
    *, match: Mapping[str, object] | None = None, action: Mapping[str, object] | None = None
) -> ParsedRules:
    return egress(
        item([match or {"type": "port", "expr": "=80"}], [action or {"action": "dscp", "value": 8}])
    )


def ports(*bounds: tuple[int, int]) -> tuple[PortRange, ...]:
    return tuple(PortRange(low=low, high=high) for low, high in bounds)


def words(parsed: ParsedRules) -> list[str]:
    return [issue.message for issue in parsed.issues]


def test_the_example_of_the_proposal() -> None:
    assert parse_rules(load_json(PROPOSAL)) == ParsedRules(
        rules=PerDirection(
            tx=(
                Rule(
                    matches=(PortMatch(ranges=ports((80, 80)), expression="=80"),),
                    level=Level.L1,
                    minimum_bps=1_000,
                    maximum_bps=2_000,
                ),
            ),
            rx=(Rule(matches=(IpMatch(),), level=Level.L1),),
        ),
        limits=PerDirection(tx=None, rx=None),
    )


@pytest.mark.parametrize("tree", [{}, {"egress": None}, {"egress": [], "ingress": []}], ids=repr)
def test_no_items_are_no_rules(tree: object) -> None:
    assert parse_rules(tree) == ParsedRules(
        rules=PerDirection(tx=(), rx=()), limits=PerDirection(tx=None, rx=None)
    )


@pytest.mark.parametrize(
    ("expression", "ranges"),
    [
        ("=80", ports((80, 80))),
        ("80", ports((80, 80))),
        (80, ports((80, 80))),
        (" = 80 ", ports((80, 80))),
        ("!=80", ports((0, 79), (81, 65535))),
        ("!=0", ports((1, 65535))),
        ("!=65535", ports((0, 65534))),
        (">=1024", ports((1024, 65535))),
        (">1024", ports((1025, 65535))),
        ("<=1024", ports((0, 1024))),
        ("< 1024", ports((0, 1023))),
        ("443,80", ports((80, 80), (443, 443))),
        ("=80, 443", ports((80, 80), (443, 443))),
        ("8000-8100", ports((8000, 8100))),
        ("80,81,82-90,85", ports((80, 90))),
        ("0-65535", ports((0, 65535))),
    ],
)
def test_a_port_expression_is_ranges(expression: object, ranges: tuple[PortRange, ...]) -> None:
    parsed = one(match={"type": "port", "expr": expression})
    assert parsed.issues == ()
    assert parsed.rules.tx is not None
    (match,) = parsed.rules.tx[0].matches
    assert match == PortMatch(ranges=ranges, expression=str(expression).strip())


@pytest.mark.parametrize(
    "expression",
    [
        "",
        None,
        "http",
        "65536",
        "-1",
        "80-",
        "90-80",
        ">65535",
        "<0",
        "!=80,443",
        ">=80,<90",
        "80;443",
        True,
        80.0,
        ["80"],
        "\uff18\uff10",
        "80," * 3000,
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_anything_else_is_no_port_expression(expression: object) -> None:
    parsed = one(match={"type": "port", "expr": expression})
    assert parsed.rules.tx is None
    assert parsed.issues[0].code is Code.RULES


@pytest.mark.parametrize(
    ("expression", "networks"),
    [
        (None, ()),
        ("", ()),
        ("10.0.0.7", ("10.0.0.7/32",)),
        ("192.168.0.1/24", ("192.168.0.0/24",)),
        ("fd00::7, 10.0.0.0/8,10.1.0.0/8", ("fd00::7/128", "10.0.0.0/8")),
        ("0.0.0.0/0", ("0.0.0.0/0",)),
        ("FD00::/8", ("fd00::/8",)),
    ],
)
def test_an_ip_expression_is_networks(expression: object, networks: tuple[str, ...]) -> None:
    match = {"type": "ip"} if expression is None else {"type": "ip", "expr": expression}
    parsed = one(match=match)
    assert parsed.issues == ()
    assert parsed.rules.tx is not None
    assert parsed.rules.tx[0].matches == (IpMatch(networks=networks),)


@pytest.mark.parametrize(
    "expression",
    [
        "10.0.0",
        "10.0.0.256",
        "010.0.0.1",
        "10.0.0.0/33",
        "10.0.0.0/255.0.0.0",
        "fe80::1%eth0",
        "example.com",
        "10.0.0.1,",
        ["10.0.0.1"],
        7,
    ],
    ids=repr,
)
def test_anything_else_is_no_address(expression: object) -> None:
    parsed = one(match={"type": "ip", "expr": expression})
    assert parsed.rules.tx is None


@pytest.mark.parametrize(
    ("value", "protocol"), [("tcp", Protocol.TCP), ("UDP", Protocol.UDP), (None, None), ("", None)]
)
def test_a_port_match_may_name_a_protocol(value: object, protocol: Protocol | None) -> None:
    parsed = one(match={"type": "port", "expr": "=53", "proto": value})
    assert parsed.rules.tx is not None
    assert parsed.rules.tx[0].matches == (
        PortMatch(ranges=ports((53, 53)), protocol=protocol, expression="=53"),
    )


@pytest.mark.parametrize(
    ("value", "dscp"),
    [
        (0, 0),
        (63, 63),
        ("46", 46),
        ("ef", 46),
        ("EF", 46),
        ("af41", 34),
        ("af13", 14),
        ("cs1", 8),
        ("cs7", 56),
        ("be", 0),
        ("le", 1),
        ("va", 44),
    ],
)
def test_a_dscp_is_a_number_or_a_name(value: object, dscp: int) -> None:
    parsed = one(action={"action": "dscp", "value": value})
    assert parsed.rules.tx is not None
    assert parsed.rules.tx[0].dscp == dscp


@pytest.mark.parametrize("value", [64, -1, "64", "af44", "af01", "cs8", "0x10", True, 1.0, [1]], ids=repr)
def test_anything_else_is_no_dscp(value: object) -> None:
    assert one(action={"action": "dscp", "value": value}).rules.tx is None


def test_type_and_matches_are_other_words_for_action_and_matchs() -> None:
    same = egress({"matches": [{"type": "port", "expr": "=80"}], "actions": [{"type": "dscp", "value": 8}]})
    assert same == one()


@pytest.mark.parametrize("value", [None, "", "0", 0], ids=repr)
def test_a_bandwidth_of_nothing_is_not_asked_for_and_the_item_still_shadows(value: object) -> None:
    parsed = one(action={"action": "bandwidth_max", "value": value})
    assert parsed.issues == ()
    assert parsed.rules.tx is not None
    assert parsed.rules.tx[0].maximum_bps is None


def test_an_item_of_ip_alone_with_a_maximum_is_the_whole_pod_limit_and_no_rule() -> None:
    limit = item([{"type": "ip"}], [{"action": "bandwidth_max", "value": "10M"}])
    rule = item([{"type": "ip"}], [{"action": "dscp", "value": 8}])
    assert egress(limit, rule) == ParsedRules(
        rules=PerDirection(tx=(Rule(matches=(IpMatch(),), dscp=8),), rx=()),
        limits=PerDirection(tx=WholePodLimit(bps=10_000_000, text="10M"), rx=None),
    )


@pytest.mark.parametrize(
    "matches",
    [
        [{"type": "ip", "expr": "10.0.0.0/8"}],
        [{"type": "ip"}, {"type": "port", "expr": "=80"}],
        [{"type": "port", "expr": "=80"}],
    ],
    ids=["network", "port too", "port"],
)
def test_any_narrower_item_is_a_rule(matches: list[object]) -> None:
    parsed = egress(item(matches, [{"action": "bandwidth_max", "value": "10M"}]))
    assert parsed.limits.tx is None
    assert parsed.rules.tx is not None
    assert parsed.rules.tx[0].maximum_bps == 10_000_000


def test_other_actions_beside_a_whole_pod_limit_are_told_and_not_used() -> None:
    limit = item(
        [{"type": "ip"}], [{"action": "bandwidth_max", "value": "10M"}, {"action": "dscp", "value": 8}]
    )
    parsed = egress(limit)
    assert parsed.rules.tx == ()
    assert parsed.limits.tx == WholePodLimit(bps=10_000_000, text="10M")
    assert [issue.code for issue in parsed.issues] == [Code.NOT_ENFORCED]


def test_the_first_whole_pod_limit_counts() -> None:
    first = item([{"type": "ip"}], [{"action": "bandwidth_max", "value": "10M"}])
    second = item([{"type": "ip"}], [{"action": "bandwidth_max", "value": "20M"}])
    parsed = egress(first, second)
    assert parsed.limits.tx == WholePodLimit(bps=10_000_000, text="10M")
    assert parsed.issues[0].path == ("egress", 1)


@pytest.mark.parametrize(
    "tree",
    [
        5,
        {},
        {"matchs": [{"type": "ip"}]},
        {"actions": [{"action": "dscp", "value": 8}]},
        item([], [{"action": "dscp", "value": 8}]),
        item([{"type": "ip"}], []),
        item([{"type": "host"}], [{"action": "dscp", "value": 8}]),
        item([{"type": ["ip"]}], [{"action": "dscp", "value": 8}]),
        item([{"type": "ip", "proto": "tcp"}], [{"action": "dscp", "value": 8}]),
        item([{"type": "port", "expr": "=80", "protocol": "tcp"}], [{"action": "dscp", "value": 8}]),
        item([{"type": "port", "expr": "=80", "proto": "sctp"}], [{"action": "dscp", "value": 8}]),
        item([5], [{"action": "dscp", "value": 8}]),
        item([{"type": "ip"}], [5]),
        item([{"type": "ip"}], [{"action": "drop", "value": 8}]),
        item([{"type": "ip"}], [{"value": 8}]),
        item([{"type": "ip"}], [{"action": "qos-class", "value": "l3"}]),
        item([{"type": "ip"}], [{"action": "bandwidth_min", "value": "10m"}]),
        item([{"type": "ip"}], [{"action": "dscp", "value": 8}, {"action": "dscp", "value": 9}]),
        item(
            [{"type": "port", "expr": "=80"}],
            [{"action": "bandwidth_min", "value": "2M"}, {"action": "bandwidth_max", "value": "1M"}],
        ),
        {**item([{"type": "ip"}], [{"action": "dscp", "value": 8}]), "matches": [{"type": "ip"}]},
        {**item([{"type": "ip"}], [{"action": "dscp", "value": 8}]), "match": []},
    ],
    ids=str,
)
def test_a_wrong_item_rejects_its_direction_alone(tree: object) -> None:
    good = item([{"type": "port", "expr": "=80"}], [{"action": "dscp", "value": 8}])
    parsed = parse_rules({"egress": [good, tree], "ingress": [good]})
    assert parsed.rules.tx is None
    assert parsed.rules.rx is not None
    assert len(parsed.rules.rx) == 1
    assert {issue.path[:2] for issue in parsed.issues} == {("egress", 1)}


def test_every_problem_of_all_items_is_told_at_once() -> None:
    parsed = parse_rules(
        {
            "ingres": [],
            "egress": [
                item(
                    [{"type": "port", "expr": "=x"}, {"type": "ip", "expr": "y"}],
                    [{"action": "dscp", "value": 99}],
                ),
                item([{"type": "ip"}], [{"action": "bandwidth_min", "value": "fast"}]),
            ],
            "ingress": 7,
        }
    )
    assert [issue.path for issue in parsed.issues] == [
        ("ingres",),
        ("ingress",),
        ("egress", 0, "matchs", 0, "expr"),
        ("egress", 0, "matchs", 1, "expr"),
        ("egress", 0, "actions", 0, "value"),
        ("egress", 1, "actions", 0, "value"),
    ]


def test_items_addresses_and_ports_are_bounded() -> None:
    good = item([{"type": "port", "expr": "=80"}], [{"action": "dscp", "value": 8}])
    assert words(egress(*[good] * 16)) == []
    assert words(egress(*[good] * 17)) == ["17 items; allowed: 16"]
    wide = ",".join(f"10.0.0.{number}" for number in range(63))
    full = item(
        [{"type": "ip", "expr": wide}, {"type": "port", "expr": "=80"}], [{"action": "dscp", "value": 8}]
    )
    assert words(egress(full)) == []
    over = item(
        [{"type": "ip", "expr": wide}, {"type": "port", "expr": "80,81"}], [{"action": "dscp", "value": 8}]
    )
    assert words(egress(over)) == ["65 addresses and ports; allowed: 64"]


def test_the_normal_form_is_the_golden_one() -> None:
    rules = PerDirection(
        tx=(
            Rule(
                matches=(
                    IpMatch(networks=("10.0.0.0/8", "fd00::/8")),
                    PortMatch(ranges=ports((443, 443)), protocol=Protocol.TCP, expression="=443"),
                ),
                level=Level.L1,
                dscp=46,
                minimum_bps=8_000_000,
                maximum_bps=80_000_000,
            ),
            Rule(matches=(PortMatch(ranges=ports((1, 2), (4, 4))),), maximum_bps=15_000),
        ),
        rx=(Rule(matches=(IpMatch(),), dscp=0),),
    )
    form = normal_form(rules, PerDirection(tx=10_000_000, rx=20_000_000))
    assert json.dumps(form, indent=2) + "\n" == GOLDEN.read_text()


def test_without_rules_and_limits_the_normal_form_is_empty() -> None:
    no_rules: PerDirection[tuple[Rule, ...]] = PerDirection(tx=(), rx=())
    assert normal_form(no_rules, PerDirection(tx=None, rx=0)) == {"ingress": [], "egress": []}
