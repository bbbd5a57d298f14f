"""The room of a unit, whatever the node receives itself."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from netqos.engine.allocate import L0_FLOOR_BPS
from netqos.engine.room import RoomState, measure, room_bps, within
from netqos.engine.steer import step
from netqos.engine.unitstate import LoopPolicy, initial_state
from netqos.model.desired import Band
from netqos.model.ids import IfName
from netqos.model.levels import Direction, Level, PerLevel
from netqos.model.traffic import Unit, UnitSample

M = 1_000_000
RX = Unit(Direction.RX, IfName("netqos-ifb"))
START = UnitSample(unit=RX, taken_at_s=0.0, level_bytes=PerLevel(0, 0, 0), device_bytes=0, offered_bytes=0)
WINDOW_S = 0.1
BYTES_BPS = 500
"""What rounding to whole bytes makes of a window."""


@st.composite
def promises(draw: st.DrawFn) -> tuple[int, PerLevel[Band]]:
    total = draw(st.integers(10 * M, 100_000 * M))
    m1 = draw(st.integers(0, total * 49 // 100))
    m2 = draw(st.integers(0, total * 99 // 100 - m1))
    ceiling0 = draw(st.integers(min(total, L0_FLOOR_BPS), total))
    bands = PerLevel(
        Band(guarantee_bps=min(total - m1 - m2, ceiling0), ceiling_bps=ceiling0),
        Band(guarantee_bps=m1, ceiling_bps=draw(st.integers(max(1, m1), total))),
        Band(guarantee_bps=m2, ceiling_bps=draw(st.integers(max(1, m2), total))),
    )
    return total, bands


def after(sample: UnitSample, *, host_bps: float, pods_bps: float, elapsed_s: float = WINDOW_S) -> UnitSample:
    host, pods = (max(0, round(bps * elapsed_s / 8)) for bps in (host_bps, pods_bps))
    return replace(
        sample,
        taken_at_s=sample.taken_at_s + elapsed_s,
        offered_bytes=(sample.offered_bytes or 0) + pods,
        device_bytes=(sample.device_bytes or 0) + pods + host,
    )


@given(promises(), st.integers(0, 10**13))
def test_the_room_is_between_what_l1_and_l2_are_promised_and_the_total(
    promised: tuple[int, PerLevel[Band]], kept_bps: int
) -> None:
    total, bands = promised
    room = room_bps(kept_bps, bands, total_bps=total)
    least_l0 = min(bands.l0.guarantee_bps, L0_FLOOR_BPS)
    assert bands.l1.guarantee_bps + bands.l2.guarantee_bps + least_l0 <= room <= total
    assert room >= total - kept_bps
    narrowed = within(bands, room)
    assert sum(band.guarantee_bps for band in narrowed) <= room
    assert narrowed.l0.guarantee_bps >= least_l0
    for level in (Level.L1, Level.L2):
        assert narrowed[level].guarantee_bps == bands[level].guarantee_bps
    assert all(band.guarantee_bps <= band.ceiling_bps <= room for band in narrowed)


@given(
    promises(),
    st.lists(
        st.tuples(st.integers(0, 2 * 10**11), st.integers(0, 2 * 10**11), st.floats(0.001, 6.0)), max_size=30
    ),
)
def test_whatever_comes_ceilings_stay_within_the_bands_of_the_room(
    promised: tuple[int, PerLevel[Band]], traffic: list[tuple[int, int, float]]
) -> None:
    total, bands = promised
    policy = LoopPolicy(total_bps=total, bands=bands, lends=True, headroom=0.0)
    sample, (state, _) = START, step(initial_state(), START, policy)
    for host_bps, pods_bps, elapsed_s in traffic:
        sample = after(sample, host_bps=host_bps, pods_bps=pods_bps, elapsed_s=elapsed_s)
        passed = (sample.offered_bytes or 0) // 3
        state, decision = step(state, replace(sample, level_bytes=PerLevel(passed, passed, passed)), policy)
        if decision is not None:
            assert decision.room_bps is not None
            room = within(bands, decision.room_bps)
            assert decision.room_bps <= total
            for level in Level:
                assert room[level].guarantee_bps <= decision.ceilings_bps[level] <= room[level].ceiling_bps


@given(
    total=st.integers(10 * M, 100_000 * M),
    host=st.floats(0, 1.2),
    swing=st.floats(0, 0.24 / 64),
    noise=st.lists(st.floats(0, 1), min_size=1, max_size=12),
    pods=st.lists(st.floats(0, 2), min_size=1, max_size=12),
)
def test_steady_traffic_with_noise_on_it_comes_to_rest(
    *, total: int, host: float, swing: float, noise: list[float], pods: list[float]
) -> None:
    """Whatever the pods do, a steady node moves the room while its highest is not yet met, then never again."""
    sample, state, kept = START, measure(RoomState(), START, total_bps=total), []
    for tick in range(200):
        host_bps = total * (host + swing * noise[tick % len(noise)])
        sample = after(sample, host_bps=host_bps, pods_bps=total * pods[tick % len(pods)])
        state = measure(state, sample, total_bps=total)
        kept.append(state.kept_bps)
    later = kept[4 * len(noise) :]
    assert len(set(later)) == 1
    assert all(old <= new for old, new in pairwise(kept))
    half_step = total / 64 / 2
    wanted = min(float(total), total * (host + swing * max(noise)))
    assert abs(kept[-1] - wanted) <= half_step + BYTES_BPS


@given(st.integers(10 * M, 100_000 * M), st.floats(0.05, 1), st.floats(0, 1))
def test_what_is_no_longer_received_is_given_back_after_a_hold(
    total: int, before: float, share: float
) -> None:
    sample, state = START, measure(RoomState(), START, total_bps=total)
    for host in [before] * 5 + [before * share] * 32:
        sample = after(sample, host_bps=total * host, pods_bps=0)
        state = measure(state, sample, total_bps=total)
        assert state.kept_bps >= total * before * share - 0.5 * (total // 64) - BYTES_BPS
    assert state.kept_bps <= total * before * share + 1.5 * (total // 64) + BYTES_BPS
