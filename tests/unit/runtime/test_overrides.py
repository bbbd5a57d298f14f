from __future__ import annotations

from dataclasses import replace

import pytest

from netqos.errors import Rejected
from netqos.model.ids import PodUid
from netqos.model.levels import Level, PerDirection
from netqos.observe.view import OverrideRequest
from netqos.runtime.overrides import OverrideBook, accept
from netqos.testing.clock import FakeClock

WEB = PodUid("workload:web")


def test_an_accepted_override_holds_until_its_end() -> None:
    clock = FakeClock()
    override = accept(WEB, OverrideRequest(egress="10M", ttl_s=600.0, reason="noisy", author_uid=0), clock)
    book = OverrideBook([override], clock)
    assert override.limits == PerDirection(tx=10_000_000, rx=None)
    assert book.active() == {WEB: override}
    assert book.next_end_s() == pytest.approx(600.0)
    clock.advance(599.0)
    assert book.active() == {WEB: override}
    clock.advance(1.0)
    assert book.active() == {}
    assert book.next_end_s() is None


def test_setting_the_wall_clock_back_does_not_lengthen_it() -> None:
    clock = FakeClock()
    override = accept(WEB, OverrideRequest(level="l2", ttl_s=60.0), clock)
    clock.set_wall(clock.wall() - 3600.0)
    clock.advance(60.0)
    assert OverrideBook([override], clock).active() == {}


def test_setting_the_wall_clock_forward_may_shorten_it() -> None:
    clock = FakeClock()
    override = accept(WEB, OverrideRequest(level="l2", ttl_s=60.0), clock)
    clock.set_wall(clock.wall() + 3600.0)
    assert OverrideBook([override], clock).active() == {}


def test_no_override_holds_for_more_than_a_day_whoever_wrote_it() -> None:
    clock = FakeClock()
    override = accept(WEB, OverrideRequest(level="l2", ttl_s=60.0), clock)
    endless = replace(override, expires_wall_s=clock.wall() + 1e6, expires_boot_s=clock.boot() + 1e6)
    assert OverrideBook([endless], clock).active() == {}


def test_one_of_an_earlier_boot_has_ended() -> None:
    clock = FakeClock()
    override = accept(WEB, OverrideRequest(level="l2", ttl_s=60.0), clock)
    clock.reboot()
    assert OverrideBook([override], clock).active() == {}


def test_zero_means_no_limit_and_level_is_taken_in_any_case() -> None:
    override = accept(WEB, OverrideRequest(ingress="0", level="L0", ttl_s=1.0), FakeClock())
    assert (override.limits.rx, override.level) == (0, Level.L0)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (OverrideRequest(ttl_s=60.0), ["nothing to override"]),
        (
            OverrideRequest(egress="10Mbps", ingress="-1", level="l9", ttl_s=-1.0),
            ["egress", "ingress", "l9", "ttl"],
        ),
        (OverrideRequest(egress="10M", ttl_s=24 * 3600.0 + 1), ["24 h"]),
        (OverrideRequest(egress="10M", ttl_s=float("nan")), ["ttl"]),
        (OverrideRequest(egress="10M", ttl_s=float("inf")), ["ttl"]),
    ],
)
def test_a_wrong_request_is_rejected_with_every_problem(request_: OverrideRequest, words: list[str]) -> None:
    with pytest.raises(Rejected) as caught:
        accept(WEB, request_, FakeClock())
    assert len(caught.value.problems) == len(words)
    assert all(any(word in problem for problem in caught.value.problems) for word in words)
