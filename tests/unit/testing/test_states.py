"""The builders and strategies make only states that compose could make."""

from __future__ import annotations

from hypothesis import given, settings

from netqos.model.desired import DesiredState
from netqos.model.levels import Direction, Level
from netqos.testing import states
from netqos.testing.strategies import desired_states


def check(state: DesiredState) -> None:
    for direction in Direction:
        total_bps, levels = state.directions[direction].total_bps, state.directions[direction].levels
        if levels is None:
            continue
        assert state.enabled
        assert total_bps is not None
        for band in levels:
            assert 0 <= band.guarantee_bps <= band.ceiling_bps <= total_bps
        others_bps = levels.l1.guarantee_bps + levels.l2.guarantee_bps
        assert others_bps <= total_bps * 99 // 100
        assert levels.l0.guarantee_bps == min(total_bps - others_bps, levels.l0.ceiling_bps)
    assert len({pod.uid for pod in state.pods}) == len(state.pods)
    addresses = [address for pod in state.pods for address in pod.addresses]
    assert len(set(addresses)) == len(addresses)
    assert not any(pod.addresses for pod in state.pods if pod.host_network)
    assert list(state.pods) == sorted(state.pods, key=lambda pod: pod.uid)


@settings(max_examples=60)
@given(desired_states())
def test_every_drawn_state_is_possible(state: DesiredState) -> None:
    check(state)


def test_default_node() -> None:
    state = states.node()
    check(state)
    assert state.directions.tx != state.directions.rx
    assert {pod.level for pod in state.pods} == set(Level)


def test_switching_off_keeps_pods_and_totals() -> None:
    off = states.switched_off(states.node())
    check(off)
    assert not off.enabled
    assert not off.is_idle
    assert set(off.pods) == set(states.PODS)
    assert (off.directions.tx.total_bps, off.directions.rx.total_bps) == (1000 * states.M, 600 * states.M)


def test_pods_are_replaced_by_uid() -> None:
    changed = states.with_pods(states.node(), states.pod("prod/db", Level.L2), states.pod("dev/new"))
    assert [pod.uid for pod in changed.pods] == sorted(pod.uid for pod in changed.pods)
    assert {pod.name: pod.level for pod in changed.pods} == {
        "batch/crunch": Level.L2,
        "dev/new": Level.L1,
        "prod/db": Level.L2,
        "prod/web": Level.L0,
    }
    assert {pod.name for pod in states.without(changed, "dev/new", "prod/web").pods} == {
        "batch/crunch",
        "prod/db",
    }
