"""The stable name of the term that set L0's ceiling."""

from __future__ import annotations

import pytest

from netqos.observe.decisionparts import reason_code
from tests.unit.engine.test_steer import LENDING, Rates
from tests.unit.engine.test_why import Unit


@pytest.mark.parametrize(
    ("rates", "waits", "code"),
    [
        ((100, 50, 20), False, "no-contention"),
        ((500, 300, 200), True, "own-guarantee"),
        ((850, 100, 50), True, "needs-of-others"),
        ((990, 0, 0), True, "own-ceiling"),
    ],
)
def test_the_reason_names_the_term_that_bound_l0(rates: Rates, waits: bool, code: str) -> None:
    assert reason_code(Unit(LENDING).settle(rates, waits=waits)) == code
