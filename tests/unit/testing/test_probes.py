from __future__ import annotations

from netqos.testing.probes import Delays, merged

TAKEN = Delays(seconds=(0.001, 0.003, 0.002), sent_at_s=(10.0, 10.1, 10.3), lost_at_s=(10.2, 11.0))


def test_delays_of_a_time_include_what_was_lost_in_it() -> None:
    assert TAKEN.between(10.1, 10.3) == Delays(seconds=(0.003,), sent_at_s=(10.1,), lost_at_s=(10.2,))


def test_a_lost_request_is_infinitely_late() -> None:
    assert TAKEN.lost == 2
    assert TAKEN.percentile_s(50) == 0.003
    assert TAKEN.percentile_s(99) == float("inf")


def test_several_probes_make_one_result() -> None:
    one = Delays(seconds=(0.004,), sent_at_s=(9.0,))
    assert merged([TAKEN, one]) == Delays(
        seconds=(0.001, 0.003, 0.002, 0.004), sent_at_s=(10.0, 10.1, 10.3, 9.0), lost_at_s=(10.2, 11.0)
    )
