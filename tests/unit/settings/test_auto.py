"""A total that follows what the path carries: `auto`, in every place where a total may stand."""

from __future__ import annotations

import pytest

from netqos.model.ids import IfName
from netqos.model.levels import PerDirection
from netqos.settings.file import parse_documents
from netqos.settings.problems import InvalidConfiguration
from netqos.settings.values import ConfiguredUplink, Settings

NO, YES = PerDirection(tx=False, rx=False), PerDirection(tx=True, rx=True)
TX, RX = PerDirection(tx=True, rx=False), PerDirection(tx=False, rx=True)
G = 10**9


def read(*texts: str) -> Settings:
    return parse_documents([(f"{place}.yaml", text) for place, text in enumerate(texts)])


@pytest.mark.parametrize(
    ("text", "follows", "bandwidth"),
    [
        ("auto", YES, PerDirection(tx=None, rx=None)),
        ("AUTO 10G", YES, PerDirection(tx=10 * G, rx=10 * G)),
        ("{tx: auto, rx: 10G}", TX, PerDirection(tx=None, rx=10 * G)),
        ("{tx: 5G, rx: auto 10G}", RX, PerDirection(tx=5 * G, rx=10 * G)),
        ("{rx: auto}", RX, PerDirection(tx=None, rx=None)),
        ("{tx: 5G}", NO, PerDirection(tx=5 * G, rx=None)),
    ],
)
def test_it_stands_for_a_direction_or_for_both_with_or_without_a_start(
    text: str, follows: PerDirection[bool], bandwidth: PerDirection[int | None]
) -> None:
    found = read(f"node: {{bandwidth: {text}}}")
    assert (found.follows, found.bandwidth) == (follows, bandwidth)


def test_each_uplink_has_its_own_word() -> None:
    found = read(
        "node: {uplinks: [eth0, {name: eth1, bandwidth: {tx: auto 2G}}, {name: eth2, bandwidth: auto}]}"
    )
    assert found.uplinks == (
        ConfiguredUplink(name=IfName("eth0")),
        ConfiguredUplink(name=IfName("eth1"), bandwidth=PerDirection(tx=2 * G, rx=None), follows=TX),
        ConfiguredUplink(name=IfName("eth2"), follows=YES),
    )
    assert found.follows == NO


def test_a_later_file_may_take_it_back() -> None:
    found = read("node: {bandwidth: auto}", "node: {bandwidth: {tx: 10G, rx: 20G}}")
    assert (found.follows, found.bandwidth) == (NO, PerDirection(tx=10 * G, rx=20 * G))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("auto 1G 2G", 'node.bandwidth.tx: "auto 1G 2G"; allowed: a quantity, auto, or auto and a quantity'),
        ("{tx: auto 1M}", "node.bandwidth.tx: 1M is too small for a total; allowed: 10M or more"),
        ("{tx: automatic}", 'node.bandwidth.tx: "automatic" is no quantity'),
        ("{rx: auto x}", 'node.bandwidth.rx: "x" is no quantity'),
        ("10G", "node.bandwidth: "),
    ],
)
def test_what_is_neither_is_told_at_its_line(text: str, words: str) -> None:
    with pytest.raises(InvalidConfiguration) as told:
        read(f"node:\n  bandwidth: {text}")
    assert told.value.problems[0].startswith("0.yaml:2:")
    assert words in told.value.problems[0]
