"""The two files, byte for byte, and as their reader sees them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings

from netqos.model.desired import NOTHING, DesiredState
from netqos.model.levels import Level, PerDirection
from netqos.testing import states
from netqos.testing.states import M
from netqos.testing.strategies import desired_states
from netqos_terway import encode
from netqos_terway.layout import NO_LIMITS, UNLIMITED, asked, nearest_rows
from netqos_terway.memo import Memo, from_document, to_document, wanted_memo
from tests.unit.netqos_terway import reader

DATA = Path(__file__).parents[2] / "data" / "terway"

WORKLOADS = (
    states.pod("nginx", Level.L0, addresses=("10.88.0.20",), tx_bps=9 * M),
    states.pod("dev/new", cgroup=None),
)


def whole_node() -> DesiredState:
    return states.with_pods(states.node(), *WORKLOADS)


def test_golden_global_config() -> None:
    rows = asked(states.node())
    assert rows is not None
    lowered = nearest_rows(rows)
    assert lowered is not None
    assert encode.global_text(lowered) == (DATA / "global_bps_config").read_bytes()


def test_golden_pods() -> None:
    assert encode.pods_text(whole_node()) == (DATA / "pod.json").read_bytes()


def test_golden_keys_are_those_that_the_reader_knows() -> None:
    """H2: exactly these, and no more."""
    keys = [line.split()[0] for line in (DATA / "global_bps_config").read_text().splitlines()]
    assert keys == [
        "hw_tx_bps_max",
        "hw_rx_bps_max",
        *(
            f"{prefix}_{direction}_bps_{bound}"
            for prefix in ("online", "offline_l1", "offline_l2")
            for direction in ("tx", "rx")
            for bound in ("min", "max")
        ),
    ]


def test_the_reader_sees_what_was_meant() -> None:
    seen = reader.read_global((DATA / "global_bps_config").read_bytes())
    assert seen == {
        "tx": reader.GlobalConfig(
            hw=125 * M,
            l0_min=62_500_000,
            l0_max=125 * M,
            l1_min=37_500_000,
            l1_max=100 * M,
            l2_min=25 * M,
            l2_max=25 * M,
        ),
        "rx": reader.GlobalConfig(
            hw=75 * M,
            l0_min=37_500_000,
            l0_max=75 * M,
            l1_min=22_500_000,
            l1_max=60 * M,
            l2_min=15 * M,
            l2_max=15 * M,
        ),
    }
    assert all(map(reader.takes, seen.values()))


def test_a_pod_with_one_direction_limited_keeps_its_level() -> None:
    """A8, A9: the limit of one direction, or none that was valid, never costs the pod its entry."""
    pods = (states.pod("prod/a", Level.L2, rx_bps=10 * M), states.pod("prod/b", Level.L2))
    text = encode.pods_text(states.node(pods))
    assert text is not None
    entries = reader.read_pods(text)
    assert [(entries[pod.uid]["prio"], entries[pod.uid]["qosConfig"]) for pod in pods] == [
        (2, {"ingressBandwidth": 1_250_000, "egressBandwidth": 0}),
        (2, {"ingressBandwidth": 0, "egressBandwidth": 0}),
    ]


def test_with_network_qos_off_limited_pods_stay_without_a_level() -> None:
    text = encode.pods_text(states.switched_off(states.node()))
    assert text is not None
    entries = reader.read_pods(text).values()
    assert {entry["podName"]: entry["prio"] for entry in entries} == {"web": 0, "crunch": 0}
    assert encode.pods_text(NOTHING) is None
    assert encode.pods_text(states.switched_off(states.node((states.pod("a/b"),)))) is None
    assert encode.pods_text(states.node(())) == b"{}\n"


@settings(max_examples=50)
@given(desired_states())
def test_any_state_is_valid_for_the_reader(state: DesiredState) -> None:
    rows = asked(state)
    lowered = nearest_rows(rows) if rows is not None else NO_LIMITS
    assert lowered is not None
    content = encode.global_text(lowered)
    assert reader.takes_file(content)
    assert encode.parse_global(content) == lowered
    text = encode.pods_text(state)
    if text is not None:
        listed = {pod.uid for pod in state.pods if state.enabled or pod.is_limited}
        assert set(reader.read_pods(text)) == listed


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        encode.NO_LIMITS_TEXT + b"\n",
        encode.NO_LIMITS_TEXT.replace(b" 0", b" -0"),
        encode.NO_LIMITS_TEXT.replace(b" 0", b" 00"),
        encode.NO_LIMITS_TEXT.replace(b"online_tx_bps_max 0\n", b""),
        encode.NO_LIMITS_TEXT + b"more 1\n",
        b"hw_tx_bps_max",
    ],
)
def test_what_was_not_written_here_is_not_parsed(content: bytes) -> None:
    assert encode.parse_global(content) is None


@settings(max_examples=30)
@given(desired_states(with_rules=False))
def test_the_memo_survives_a_restart(state: DesiredState) -> None:
    memo = wanted_memo(state)
    if memo is not None:
        assert from_document(json.loads(json.dumps(to_document(memo)))) == memo


@pytest.mark.parametrize(
    "document",
    [None, [], {}, {"uplinks": ["a"]}, {"uplinks": [1], "asked": ""}, {"uplinks": "a", "asked": "x"}],
)
def test_a_strange_memo_is_none(document: object) -> None:
    assert from_document(document) is None


def test_a_memo_without_uplinks() -> None:
    memo = Memo(uplinks=(), asked=PerDirection(tx=UNLIMITED, rx=UNLIMITED))
    assert from_document(to_document(memo)) == memo
