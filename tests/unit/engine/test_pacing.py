"""When next, with times that the tests make up."""

from __future__ import annotations

import math

import pytest

from netqos.engine.pacing import Pacing, PacingPolicy, RepairBackoff

POLICY = PacingPolicy(min_gap_s=0.1, retry_s=0.5, retry_max_s=4.0, resync_s=30.0)


def test_the_first_run_is_due_at_once() -> None:
    pacing = Pacing(POLICY)
    assert pacing.due_s() == -math.inf
    assert pacing.may_run(0.0)


def test_an_event_is_answered_after_the_minimum_gap() -> None:
    pacing = Pacing(POLICY)
    pacing.ran(100.0, ok=True)
    pacing.notice()
    assert pacing.due_s() == pytest.approx(100.1)
    assert not pacing.may_run(100.05)
    assert pacing.may_run(100.1)


def test_an_event_during_a_run_is_not_lost() -> None:
    pacing = Pacing(POLICY)
    pacing.started()
    pacing.notice()
    pacing.ran(100.0, ok=True)
    assert pacing.due_s() == pytest.approx(100.1)


def test_an_event_before_a_run_is_answered_by_it() -> None:
    pacing = Pacing(POLICY)
    pacing.notice()
    pacing.started()
    pacing.ran(100.0, ok=True)
    assert pacing.due_s() == 130.0


def test_retries_become_rarer_up_to_a_bound() -> None:
    pacing = Pacing(POLICY)
    waits = []
    for _ in range(6):
        pacing.ran(50.0, ok=False)
        waits.append(pacing.due_s() - 50.0)
    assert waits == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]
    assert pacing.failures == 6
    assert not pacing.may_run(53.9)
    pacing.ran(54.0, ok=True)
    assert (pacing.failures, pacing.due_s()) == (0, 84.0)


def test_an_event_cuts_the_wait_of_a_retry_short_but_not_the_gap() -> None:
    pacing = Pacing(POLICY)
    for _ in range(5):
        pacing.ran(50.0, ok=False)
    pacing.notice()
    assert pacing.due_s() == pytest.approx(50.1)


def test_ten_thousand_failures_do_not_overflow() -> None:
    pacing = Pacing(POLICY)
    for _ in range(10_000):
        pacing.ran(0.0, ok=False)
    assert pacing.due_s() == 4.0


def test_without_a_resync_period_nothing_is_due() -> None:
    pacing = Pacing()
    pacing.ran(1.0, ok=True)
    assert pacing.due_s() == math.inf
    assert pacing.may_run(1.0)


def repair(backoff: RepairBackoff, now_s: float, subject: str = "class 4e51:10 on up0") -> bool:
    """What the reconciler does when it finds drift: True when the repair was made."""
    if backoff.is_held(subject, now_s):
        return False
    backoff.repaired(subject, now_s)
    return True


def repairs(backoff: RepairBackoff, until_s: float, *, drift_every_s: float = 1.0) -> list[float]:
    """The times of the repairs of an object that somebody removes as soon as it is there."""
    times = [step * drift_every_s for step in range(int(until_s / drift_every_s))]
    return [now_s for now_s in times if repair(backoff, now_s)]


def test_a_fight_over_one_object_backs_off_from_ten_seconds_to_five_minutes() -> None:
    assert repairs(RepairBackoff(), 1500) == [0, 1, 12, 33, 74, 155, 316, 617, 918, 1219]


def test_the_third_within_a_minute_waits_from_the_moment_it_is_wanted() -> None:
    backoff = RepairBackoff()
    assert repair(backoff, 0.0)
    assert repair(backoff, 1.0)
    assert backoff.held(1.0) == {}
    assert not repair(backoff, 40.0)
    assert backoff.held(40.0) == {"class 4e51:10 on up0": 50.0}
    assert backoff.held(50.0) == {}
    assert repair(backoff, 50.0)
    assert backoff.held(50.0) == {}


def test_one_repair_a_minute_is_always_made_at_once() -> None:
    backoff = RepairBackoff()
    assert all(repair(backoff, 61.0 * count) for count in range(50))


def test_an_object_left_in_peace_starts_anew() -> None:
    backoff = RepairBackoff()
    repairs(backoff, 1500)
    held_until_s = backoff.held(1500.0)["class 4e51:10 on up0"]
    peace_s = held_until_s + 60.0 + 300.0
    assert [repair(backoff, peace_s + wait_s) for wait_s in (0.0, 1.0, 2.0)] == [True, True, False]


def test_an_object_not_left_in_peace_long_enough_goes_on_where_it_was() -> None:
    backoff = RepairBackoff()
    repairs(backoff, 1500)
    held_until_s = backoff.held(1500.0)["class 4e51:10 on up0"]
    almost_s = held_until_s + 60.0 + 299.0
    assert [repair(backoff, almost_s + wait_s) for wait_s in (0.0, 1.0)] == [True, False]


def test_an_hour_of_peace_but_one_removal_an_hour_never_backs_off() -> None:
    backoff = RepairBackoff()
    repairs(backoff, 1500)
    assert all(repair(backoff, 10_000.0 + 3600.0 * hour) for hour in range(10))


def test_objects_do_not_share_their_history() -> None:
    backoff = RepairBackoff()
    assert repair(backoff, 0.0, "a")
    assert repair(backoff, 0.1, "a")
    assert repair(backoff, 0.2, "b")
    assert not repair(backoff, 0.3, "a")
    assert repair(backoff, 0.3, "b")
