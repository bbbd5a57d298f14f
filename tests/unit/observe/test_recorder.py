from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from netqos.model.health import error, warning
from netqos.observe.recorder import LATENCY_S, OTHER, REASONS, Distribution, Histogram, Recorder

BAD = warning("invalid-limit", "pod a/b", "10Mbps is no quantity")


@given(st.lists(st.floats(min_value=0, max_value=20)))
def test_a_histogram_is_the_cumulative_count_of_its_values(values: list[float]) -> None:
    histogram = Histogram(LATENCY_S)
    for value in values:
        histogram.add(value)
    bounds = (*LATENCY_S, math.inf)
    read = histogram.read()
    assert read.counts == tuple(sum(value <= bound for value in values) for bound in bounds)
    assert math.isclose(read.sum, sum(values), abs_tol=1e-9)


def test_nothing_is_lost_between_threads() -> None:
    recorder = Recorder()

    def work(_: int) -> None:
        for _ in range(2_000):
            recorder.tick(late_s=0.001, took_s=0.5)
            recorder.rejected("invalid-level")

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    read = recorder.read()
    assert (read.tick_lateness.counts[-1], read.tick_duration.counts[-1]) == (12_000, 12_000)
    assert read.tick_duration.sum == 6_000.0
    assert read.rejected["invalid-level"] == 12_000


def test_everything_starts_at_zero() -> None:
    read = Recorder().read()
    assert read.rejected == dict.fromkeys(REASONS, 0)
    zero = Distribution(bounds=LATENCY_S, counts=(0,) * (len(LATENCY_S) + 1), sum=0)
    assert (read.event_to_applied, read.reconcile_duration) == (zero, zero)


def test_a_pass_without_an_event_has_no_latency() -> None:
    recorder = Recorder()
    recorder.reconciled(took_s=0.2)
    recorder.reconciled(took_s=0.3, event_to_applied_s=0.04)
    read = recorder.read()
    assert (read.reconcile_duration.counts[-1], read.event_to_applied.counts[-1]) == (2, 1)
    assert read.event_to_applied.sum == 0.04


def test_a_rejection_counts_when_it_appears_and_again_when_it_comes_back() -> None:
    recorder = Recorder()
    for seen in ([BAD], [BAD], [BAD, error("direct-packets", "up0", "12 packets")], [], [BAD]):
        recorder.saw(seen)
    assert recorder.read().rejected == {**dict.fromkeys(REASONS, 0), "invalid-limit": 2}


def test_an_unknown_reason_is_other() -> None:
    recorder = Recorder()
    recorder.rejected("whatever")
    assert recorder.read().rejected[OTHER] == 1
