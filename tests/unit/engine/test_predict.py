"""Predictions of scenarios whose outcome is known from the law."""

from __future__ import annotations

import pytest

from netqos.engine.predict import Phase, Prediction, predict
from netqos.engine.scenario import read_scenario
from netqos.model.levels import Direction, Level, PerLevel

M = 1_000_000
HEAD = """
node: {bandwidth: {tx: 1G, rx: 600M}}
policy:
  enable: true
  levels: {l1: {txMin: 30%, txMax: 80%, rxMin: 25%}, l2: {txMin: 20%, rxMin: 15%}}
workloads:
"""


def one(text: str, *, head: str = HEAD) -> Prediction:
    (found,) = predict(read_scenario(head + text, "s.yaml"))
    return found


def mbit(values: PerLevel[int]) -> list[float]:
    return [value / M for value in values]


def last(found: Prediction) -> Phase:
    return found.phases[-1]


def test_the_levels_share_as_promised_in_each_direction() -> None:
    text = "".join(
        f"  - {{name: {name}, level: {name}, egress: [greedy], ingress: [tcp]}}\n"
        for name in ("l0", "l1", "l2")
    )
    tx, rx = predict(read_scenario(HEAD + text, "s.yaml"))
    assert (tx.direction, rx.direction) == (Direction.TX, Direction.RX)
    assert mbit(last(tx).levels_bps) == pytest.approx([500, 300, 200], rel=0.01)
    assert mbit(last(rx).levels_bps) == pytest.approx([360, 150, 90], rel=0.02)
    assert last(tx).ceilings_bps == PerLevel(500 * M, 800 * M, 1000 * M)
    assert last(tx).contention
    assert last(tx).reasons[1] == (
        "L0 may use 500M, its guarantee: L1 keeps its guarantee of 300M and L2 keeps its guarantee of 200M"
    )


def test_phases_follow_the_demand() -> None:
    found = one(
        "  - {name: web, level: l0, egress: [udp 300M from=2s until=4s]}\n"
        "  - {name: api, level: l1, limits: {egress: 100M}, egress: [greedy]}\n"
        "  - {name: batch, level: l2, count: 3, egress: [greedy]}\n"
    )
    assert [(phase.start_s, phase.end_s) for phase in found.phases] == [(0, 2), (2, 4), (4, 7)]
    assert [mbit(phase.levels_bps) for phase in found.phases] == [
        pytest.approx([0, 100, 900], abs=10),
        pytest.approx([300, 100, 600], abs=10),
        pytest.approx([0, 100, 900], abs=10),
    ]
    assert found.phases[1].workloads_bps["batch-2"] == pytest.approx(200 * M, rel=0.01)
    assert found.moments[-1].at_s == 7.0


def test_what_is_too_much_is_dropped() -> None:
    found = one(
        "  - {name: flood, level: l2, egress: [udp 1500M]}\n  - {name: web, level: l0, egress: [tcp 200M]}\n"
    )
    assert mbit(last(found).levels_bps) == pytest.approx([200, 0, 800], rel=0.01)
    assert last(found).lost_bps["flood"] == pytest.approx(700 * M, rel=0.02)


def test_a_ceiling_leaves_the_rest_unused() -> None:
    found = one("  - {name: api, level: l1, egress: [greedy]}\n")
    assert mbit(last(found).levels_bps) == pytest.approx([0, 800, 0], rel=0.01)
    assert not last(found).contention


def test_what_the_node_receives_beside_takes_its_part() -> None:
    text = "  - {name: web, level: l0, ingress: [greedy]}\n  - {name: batch, level: l2, ingress: [greedy]}\n"
    found = one(text + "beside: {rx: 100M}\n")
    assert sum(last(found).levels_bps) / M == pytest.approx(500, abs=600 / 64)
    assert last(found).levels_bps.l2 / M == pytest.approx(90, rel=0.05)
    assert any(reason.startswith("room ") for reason in last(found).reasons)


def test_a_class_that_is_off_has_no_guarantee() -> None:
    head = """
node: {bandwidth: {tx: 1G}}
policy:
  networkQOSStrategy: {enable: true}
workloads:
"""
    found = one("  - {name: web, level: l0, egress: [greedy]}\n", head=head)
    assert found.bands[Level.L1].guarantee_bps == 300 * M


def test_equal_scenarios_give_equal_predictions() -> None:
    text = "  - {name: web, level: l0, egress: [tcp flows=9 rtt=30ms]}\n  - {name: b, level: l2, egress: [tcp]}\n"
    assert one(text) == one(text)


def test_how_far_it_has_come_is_told_of_each_direction_in_turn() -> None:
    text = "  - {name: web, level: l0, egress: [greedy], ingress: [greedy]}\nlength: 1s\n"
    told: list[tuple[Direction, float]] = []
    predict(read_scenario(HEAD + text, "s.yaml"), lambda *now: told.append(now))
    for direction in Direction:
        times = [at_s for one, at_s in told if one is direction]
        assert times == sorted(times)
        assert times[0] <= 0.1
        assert times[-1] == pytest.approx(1.0)
    assert [one for one, _ in told] == sorted((one for one, _ in told), key=[*Direction].index)


def test_a_length_that_is_no_whole_number_of_steps_ends() -> None:
    text = """
node: {bandwidth: {tx: 1G}}
policy: {enable: true}
length: 1.001s
workloads: [{name: a, egress: [greedy]}]
"""
    (found,) = predict(read_scenario(text, "odd.yaml"))
    assert found.phases[-1].end_s == 1.001
