"""The files `node` and `pods`, byte for byte (contract 2; cases H1, H2).

The golden files are in tests/data/netfiles; after an intended change write what the failing test shows.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netqos.engine.netfiles import PodLines, node_file, pods_file
from netqos.model.desired import NOTHING, DesiredState
from netqos.model.levels import Level, PerDirection
from netqos.model.rules import IpMatch, PortMatch, PortRange, Protocol, Rule
from netqos.testing import states
from netqos.testing.states import M
from netqos.testing.strategies import desired_states

GOLDEN = Path(__file__).parents[2] / "data" / "netfiles"

RULES = PerDirection(
    tx=(
        Rule(
            matches=(
                IpMatch(networks=("10.0.0.0/8", "fd00::/8")),
                PortMatch(ranges=(PortRange(low=443, high=443),), protocol=Protocol.TCP, expression="=443"),
            ),
            level=Level.L1,
            dscp=46,
            minimum_bps=8 * M,
            maximum_bps=16 * M,
        ),
    ),
    rx=(),
)
NODE = states.node(
    (
        *states.PODS,
        states.pod("prod/ruled", Level.L1, rules=RULES, tx_bps=40 * M, cgroup=None),
        states.pod("nginx", Level.L2, rx_bps=7),
    )
)
OFF = states.switched_off(NODE)
ONE_WAY = replace(NODE, directions=PerDirection(tx=states.TX, rx=states.direction(None)))


def golden(name: str) -> bytes:
    return (GOLDEN / name).read_bytes()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("node.json", node_file(NODE)),
        ("node-tx-only.json", node_file(ONE_WAY)),
        ("pods.json", pods_file(NODE)),
        ("pods-off.json", pods_file(OFF)),
        ("pods-empty.json", pods_file(replace(NODE, pods=()))),
    ],
)
def test_golden(name: str, content: bytes | None) -> None:
    assert content == golden(name)


def test_the_node_file_has_exactly_the_contracts_keys_in_its_order() -> None:
    assert list(json.loads(node_file(NODE) or b"")) == [
        "hw_tx_bps_max",
        "hw_rx_bps_max",
        "l1_tx_bps_min",
        "l1_tx_bps_max",
        "l2_tx_bps_min",
        "l2_tx_bps_max",
        "l1_rx_bps_min",
        "l1_rx_bps_max",
        "l2_rx_bps_min",
        "l2_rx_bps_max",
    ]


@pytest.mark.parametrize(
    "desired",
    [
        pytest.param(NOTHING, id="nothing"),
        pytest.param(states.switched_off(states.node((states.pod("prod/db"),))), id="off, nobody limited"),
    ],
)
def test_both_files_go_when_nothing_is_enforced(desired: DesiredState) -> None:
    assert (node_file(desired), pods_file(desired)) == (None, None)


def test_the_node_file_goes_when_network_qos_is_off_or_no_total_is_known() -> None:
    assert node_file(OFF) is None
    unknown = states.direction(None)
    assert node_file(replace(NODE, directions=PerDirection(tx=unknown, rx=unknown))) is None


@settings(max_examples=40)
@given(desired_states())
def test_any_state_gives_whole_json(desired: DesiredState) -> None:
    node, pods = node_file(desired), pods_file(desired)
    if node is not None:
        values = json.loads(node)
        assert len(values) == 10
        assert all(type(value) is int and value >= 0 for value in values.values())
        for level in ("l1", "l2"):
            for direction in ("tx", "rx"):
                least, most = values[f"{level}_{direction}_bps_min"], values[f"{level}_{direction}_bps_max"]
                assert least <= most <= values[f"hw_{direction}_bps_max"]
    if pods is not None:
        entries = json.loads(pods)
        assert all(
            list(entry) == ["cgroup", "priority", "pod", "podUID", "qos-config"] for entry in entries.values()
        )
        assert all(uid == entry["podUID"] for uid, entry in entries.items())
        listed = sorted(pod.uid for pod in desired.pods if desired.enabled or pod.is_limited)
        assert list(entries) == listed


@settings(max_examples=40)
@given(st.lists(desired_states(), min_size=1, max_size=4))
def test_lines_that_were_written_before_never_change_a_file(steps: list[DesiredState]) -> None:
    lines = PodLines()
    for desired in (*steps, replace(steps[0], enabled=not steps[0].enabled)):
        assert pods_file(desired, lines) == pods_file(desired)


def test_hostile_names_stay_names() -> None:
    evil = replace(states.pod("prod/web"), name='x"},"y":{"\n\u2028')
    content = pods_file(states.node((evil,)))
    assert content is not None
    assert json.loads(content)[evil.uid]["pod"] == evil.name
    assert content.count(b"\n") == 3
