"""Scenarios as texts: what they say, and what is wrong with them."""

from __future__ import annotations

import pytest

from netqos.engine.demandtext import parse_demand
from netqos.engine.fluidflows import Demand, Kind
from netqos.engine.fluidtree import Member
from netqos.engine.scenario import read_scenario
from netqos.errors import Rejected
from netqos.model.levels import Level
from netqos.settings.problems import InvalidConfiguration

M = 1_000_000
WHOLE = """
node: {bandwidth: {tx: 1G, rx: 600M}}
policy: {enable: true, levels: {l1: {txMin: 30%, txMax: 80%}}}
loop: {hold: 2s}
beside: {rx: 100M}
workloads:
  - {name: web, level: l0, egress: [udp 300M from=2s until=4s], ingress: [tcp 50M]}
  - {name: api, limits: {egress: 100M}, egress: [greedy]}
  - {name: batch, level: l2, count: 2, egress: [tcp flows=8 rtt=2ms every=1s on=200ms, greedy]}
"""


def test_a_whole_scenario() -> None:
    found = read_scenario(WHOLE, "s.yaml")
    assert found.length_s == 7.0
    assert found.settings.loop.hold_s == 2.0
    tx, rx = found.traffic.tx, found.traffic.rx
    assert tx is not None
    assert rx is not None
    assert tx.members == (
        Member(name="web", level=Level.L0),
        Member(name="api", level=Level.L1, limit_bps=100 * M),
        Member(name="batch-1", level=Level.L2),
        Member(name="batch-2", level=Level.L2),
    )
    burst = Demand(kind=Kind.TCP, flows=8, rtt_s=0.002, every_s=1.0, on_s=0.2)
    assert tx.demands == {
        "web": (Demand(kind=Kind.UDP, rate_bps=300 * M, start_s=2.0, end_s=4.0),),
        "api": (Demand(),),
        "batch-1": (burst, Demand()),
        "batch-2": (burst, Demand()),
    }
    assert rx.demands["web"] == (Demand(kind=Kind.TCP, rate_bps=50 * M),)
    assert (tx.beside_bps, rx.beside_bps) == (None, 100 * M)


def test_json_is_yaml() -> None:
    text = '{"node": {"bandwidth": {"rx": "20M"}}, "policy": {"enable": true}, "length": "2s",'
    text += ' "workloads": [{"name": "a", "ingress": ["greedy"]}]}'
    found = read_scenario(text, "s.json")
    assert (found.length_s, found.traffic.tx) == (2.0, None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no demand; allowed: greedy, tcp or udp"),
        ("cubic", "is no demand"),
        ("udp", "udp has no rate"),
        ("udp 0", "is no bandwidth"),
        ("udp 10m", "did you mean 10M?"),
        ("udp 10M 20M", "is too much"),
        ("greedy 10M", "greedy has no rate"),
        ("tcp flws=3", "did you mean flows?"),
        ("tcp flows=0", "allowed: 1 to 10000"),
        ("tcp flows=two", "allowed: 1 to 10000"),
        ("tcp flows=2 flows=3", "given twice"),
        ("tcp rtt=3", "has no unit"),
        ("tcp rtt=0s", "allowed: 1ms to 10m"),
        ("greedy from=3s until=2s", "until is not after from"),
        ("greedy every=1s", "every and on belong together"),
        ("greedy on=1s", "every and on belong together"),
        ("greedy every=1s on=2s", "on is longer than every"),
        ("udp 3M flows=2", "flows and rtt are of tcp alone"),
    ],
)
def test_demands_that_are_none(text: str, words: str) -> None:
    with pytest.raises(Rejected) as caught:
        parse_demand(text)
    assert words in caught.value.message
    assert caught.value.hint


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidConfiguration) as caught:
        read_scenario(text, "s.yaml")
    return list(caught.value.problems)


def test_every_problem_is_told_at_its_line() -> None:
    told = problems(
        "node: {bandwidth: {tx: 5M}}\n"
        "policy: {enable: true, levels: {l1: {txMin: 80%}, l2: {txMin: 40%}}}\n"
        "lenght: 3\n"
        "workloads:\n"
        "  - {name: a, egress: [udp]}\n"
        "  - {name: a, level: l7, cout: 3}\n"
    )
    assert [one.split(": ")[0:2] for one in told] == [
        ["s.yaml:1:24", "node.bandwidth.tx"],
        ["s.yaml:2:63", "policy.levels.l2.txMin"],
        ["s.yaml:3:1", "lenght"],
        ["s.yaml:5:24", "workloads[0].egress[0]"],
        ["s.yaml:6:22", "workloads[1].level"],
        ["s.yaml:6:26", "workloads[1].cout"],
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("enable: true", "enable: false"), "policy.enable: network QoS is off"),
        (("tx: 1G, ", ""), "node.bandwidth.tx: missing"),
        (("name: api", "name: web"), "workloads[1].name: web is there twice"),
        (("count: 2", "count: 200"), "more than 200 workloads"),
        (("count: 2", "count: 0"), "workloads[2].count"),
        (("policy:", "length: 10m\npolicy:"), "are too much; allowed: 2000 together"),
        (("policy:", "length: 3\npolicy:"), "length: 3 has no unit"),
        (("beside: {rx: 100M}", "beside: {tx: 100M}"), "unknown key"),
    ],
)
def test_what_contradicts(change: tuple[str, str], words: str) -> None:
    assert any(words in one for one in problems(WHOLE.replace(*change)))


@pytest.mark.parametrize("text", ["", "[]", "workloads: []", "policy: {enable: true}", "a: [", "\x00"])
def test_no_scenario_at_all(text: str) -> None:
    assert problems(text)


def test_nobody_wants_anything() -> None:
    text = "policy: {enable: true}\nworkloads: [{name: a}]\n"
    assert any("nobody wants anything" in one for one in problems(text))
