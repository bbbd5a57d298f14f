"""The numbers of the tree, for every rate from 1 Mbit/s to 400 Gbit/s."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.model.levels import Level
from netqos.testing.states import G, M
from netqos_tc import params
from netqos_tc.params import LeafRates, Shape

K = 1000
RATES = (
    1 * K,
    7,
    8,
    15,
    1 * M,
    10 * M,
    16 * M,
    100 * M,
    1 * G,
    5 * G,
    10 * G,
    25 * G,
    40 * G,
    100 * G,
    400 * G,
)
MTUS = (576, 1500, 9000, 65535)

rates = st.integers(1, 400 * G)
mtus = st.sampled_from(MTUS)
levels = st.sampled_from(Level)


def check(shape: Shape, *, mtu: int) -> None:
    """No rate 0, no burst under a frame, everything within the kernel's fields."""
    assert 1 <= shape.rate <= shape.ceil < 2**63
    assert params.burst_bytes(shape.buffer, shape.rate) >= mtu + 14
    assert params.burst_bytes(shape.cbuffer, shape.ceil) >= mtu + 14
    assert 0 < shape.buffer <= params.MOST_TICKS
    assert 0 < shape.cbuffer <= params.MOST_TICKS


@pytest.mark.parametrize("rate_bps", RATES)
@pytest.mark.parametrize("mtu", MTUS)
def test_no_class_is_too_small_to_send_a_frame(rate_bps: int, mtu: int) -> None:
    check(params.inner_shape(rate_bps, max(rate_bps, 8 * K), mtu=mtu), mtu=mtu)
    check(params.control_shape(max(rate_bps, 8 * K), mtu=mtu), mtu=mtu)
    for level in Level:
        check(params.leaf_shape(level, rate_bps, 400 * G, mtu=mtu), mtu=mtu)


@given(rates, rates, mtus)
def test_any_inner_class_is_sound(one: int, other: int, mtu: int) -> None:
    check(params.inner_shape(min(one, other), max(one, other), mtu=mtu), mtu=mtu)


@given(levels, st.integers(0, 400 * G), st.integers(1 * K, 400 * G), mtus)
def test_any_leaf_is_sound(level: Level, rate: int, ceil: int, mtu: int) -> None:
    shape = params.leaf_shape(level, rate, ceil, mtu=mtu)
    check(
        Shape(rate=shape.rate, ceil=shape.ceil, buffer=shape.buffer, cbuffer=shape.cbuffer),
        mtu=min(mtu, 1500),
    )
    assert shape.ceil == ceil // 8


@pytest.mark.parametrize(
    ("level", "guarantee_bps", "leaves", "wanted"),
    [
        (Level.L0, 4 * G, 10, LeafRates(pod_bps=3_906_250, host_bps=80 * M)),
        (Level.L0, 400 * G, 10, LeafRates(pod_bps=5 * M, host_bps=8 * G)),
        (Level.L0, 40 * M, 10, LeafRates(pod_bps=64 * K, host_bps=2 * M)),
        (Level.L0, 4 * M, 20, LeafRates(pod_bps=31_250, host_bps=500 * K)),
        (Level.L0, 4 * M, 0, LeafRates(pod_bps=64 * K, host_bps=500 * K)),
        (Level.L1, 3 * G, 100, LeafRates(pod_bps=366_210)),
        (Level.L2, 30 * M, 100, LeafRates(pod_bps=8 * K)),
        (Level.L2, 1 * M, 100, LeafRates(pod_bps=500 * K // 128)),
    ],
)
def test_leaf_rates(level: Level, guarantee_bps: int, leaves: int, wanted: LeafRates) -> None:
    assert params.leaf_rates(level, guarantee_bps, leaves) == wanted


@given(levels, st.integers(8 * K, 400 * G), st.integers(0, 5000))
def test_all_leaves_of_a_level_have_at_most_half_of_its_guarantee(
    level: Level, guarantee: int, leaves: int
) -> None:
    rates = params.leaf_rates(level, guarantee, leaves)
    assert rates.pod_bps * leaves + 2 * rates.host_bps <= guarantee // 2


def test_one_more_pod_seldom_changes_the_others() -> None:
    found = {params.leaf_rates(Level.L0, 4 * M, leaves).pod_bps for leaves in range(17, 33)}
    assert len(found) == 1


@pytest.mark.parametrize(
    ("limit_bps", "cburst"),
    [
        (1 * M, 2 * 1518),
        (10 * M, 6_250),
        (100 * M, 62_500),
        (101 * M, 65_536),
        (1 * G, 125_000),
        (40 * G, 5_000_000),
        (400 * G, 8_388_608),
    ],
)
def test_cburst(limit_bps: int, cburst: int) -> None:
    assert params.leaf_cburst(limit_bps, mtu=1500) == cburst


@pytest.mark.parametrize(
    ("rate_bps", "limit"),
    [
        (1 * M, 69_676),
        (28 * M, 70_000),
        (40 * M, 100_000),
        (50 * M, 139_352),
        (60 * M, 150_000),
        (3 * G, 7_500_000),
        (400 * G, 33_554_432),
    ],
)
def test_queue(rate_bps: int, limit: int) -> None:
    assert params.queue_bytes(rate_bps, target_ms=20, mtu=1500) == limit


@given(rates, mtus, st.integers(1, 1000))
def test_a_queue_holds_a_whole_gso_packet(rate_bps: int, mtu: int, target_ms: int) -> None:
    payload = 65_536
    per_segment = mtu - 20 - 32  # IPv4, TCP with time stamps
    counted = payload + -(-payload // per_segment) * (14 + 20 + 32)
    assert params.queue_bytes(rate_bps, target_ms=target_ms, mtu=mtu) >= counted


@pytest.mark.parametrize("mtu", MTUS)
def test_quantum_is_at_least_a_frame_and_the_hosts_four_times_that(mtu: int) -> None:
    assert params.quantum(mtu) >= mtu + 14
    assert params.quantum(mtu, weight=params.HOST_WEIGHT) == 4 * params.quantum(mtu)
    assert 1500 <= params.quantum(1500) <= params.quantum(1500, weight=params.HOST_WEIGHT) == 60_000


@given(st.integers(1, 2**30), st.integers(1, 50 * G))
def test_a_burst_is_never_rounded_down_and_reads_back(size: int, rate: int) -> None:
    ticks = params.burst_ticks(size, rate)
    if ticks < params.MOST_TICKS:
        assert params.burst_bytes(ticks, rate) >= size
        assert params.burst_bytes(ticks - 1, rate) < size


def test_a_moved_ceiling_keeps_all_but_ceiling_and_its_burst() -> None:
    shape = params.inner_shape(500 * M, 1000 * M, mtu=1500)
    assert params.inner_at(shape.rate, shape.ceil, mtu=1500) == shape
    low = params.inner_at(shape.rate, 1_000_000, mtu=1500)
    assert (low.rate, low.buffer, low.ceil) == (shape.rate, shape.buffer, 1_000_000)
    assert params.burst_bytes(low.cbuffer, low.ceil) == 16 * 1024
