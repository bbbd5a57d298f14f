from __future__ import annotations

import pytest

from netqos.model.composed import PodView
from netqos.observe import kubeturns
from netqos.observe.kubeturns import BURST, EVERY_S, FIRST_S, MOST_S, BackOff, Bucket, Turns
from tests.unit.observe.podviews import rejected, view


def turns() -> Turns:
    return Turns(lambda: 1.0)


def names(found: Turns, pods: tuple[PodView, ...], count: int) -> list[str]:
    """Tell as many as there are, at most `count`; whose they were."""
    told = []
    for _ in range(count):
        rejection, _ = found.next(pods, 0.0)
        if rejection is None:
            break
        found.told(rejection)
        told.append(rejection[0].name)
    return told


def test_each_is_told_once() -> None:
    found, pods = turns(), (view(rejected("a"), rejected("b")), view(rejected("a"), uid="u-2", name="db"))
    assert sorted(names(found, pods, 9)) == ["db", "web", "web"]
    assert found.next(pods, 0.0) == (None, None)


def test_namespaces_and_pods_take_turns_however_much_one_has_to_tell() -> None:
    noisy = view(*(rejected(str(number)) for number in range(50)), uid="u-1", namespace="noisy", name="noisy")
    beside = view(rejected(), uid="u-2", namespace="noisy", name="beside")
    victim = view(rejected(), uid="u-3", namespace="calm", name="victim")
    assert set(names(turns(), (noisy, beside, victim), 4)) == {"noisy", "beside", "victim"}


def test_who_changes_again_and_again_comes_after_who_waited() -> None:
    found = turns()
    victim = view(rejected(), uid="u-2", namespace="calm", name="victim")
    for number in range(100):
        assert names(found, (view(rejected(str(number)), name="noisy"),), 1) == ["noisy"]
    assert names(found, (view(rejected("new"), name="noisy"), victim), 1) == ["victim"]


def test_a_refused_namespace_waits_alone_and_longer_each_time() -> None:
    found = turns()
    bad = view(rejected(), uid="u-1", namespace="going", name="bad")
    good = view(rejected(), uid="u-2", namespace="shop", name="good")
    found.failed((bad, bad.findings[0]), 10.0)
    assert names(found, (bad, good), 2) == ["good"]
    assert found.next((bad, good), 10.0) == (None, FIRST_S)
    assert found.next((bad, good), 10.0 + FIRST_S)[0] == (bad, bad.findings[0])
    found.failed((bad, bad.findings[0]), 11.0)
    assert found.next((bad, good), 11.0) == (None, 2 * FIRST_S)


def test_what_stands_no_more_is_forgotten_above_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubeturns, "MOST_REMEMBERED", 10)
    found, kept = turns(), view(rejected("kept"), uid="kept")
    names(found, (kept,), 1)
    for number in range(100):
        names(found, (kept, view(rejected(), uid=f"u-{number}")), 1)
    assert len(found._told) <= 12
    assert len(found._turns) <= 12
    assert found.next((kept,), 0.0) == (None, None)


def test_the_rate_is_bounded() -> None:
    bucket = Bucket()
    assert [bucket.wait_s(0.0) for _ in range(BURST)] == [0.0] * BURST
    assert bucket.wait_s(0.0) == EVERY_S
    assert bucket.wait_s(EVERY_S) == 0.0
    assert bucket.wait_s(EVERY_S) > 0
    bucket.give_back()
    assert bucket.wait_s(EVERY_S) == 0.0
    assert bucket.wait_s(10_000.0) == 0.0


def test_back_off_doubles_to_a_ceiling_hears_the_server_and_ends_with_a_success() -> None:
    found = BackOff(lambda: 1.0)
    waits = []
    for _ in range(12):
        found.failed(0.0)
        waits.append(found.until_s)
    assert waits[:3] == [1.0, 2.0, 4.0]
    assert waits[-1] == MOST_S
    found.works()
    assert found.until_s == 0.0
    found.failed(5.0, asked_s=30.0)
    assert found.until_s == 35.0
