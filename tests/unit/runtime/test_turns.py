"""Who is looked at with whom."""

from __future__ import annotations

import pytest

from netqos.engine.unitstate import LoopPolicy
from netqos.model.ids import IfName
from netqos.model.levels import Direction
from netqos.model.traffic import Unit
from netqos.runtime.turns import TOGETHER_S, Turns
from netqos.testing import states
from netqos.testing.states import M

TX, RX = Unit(Direction.TX, IfName("up0")), Unit(Direction.RX, IfName("netqos-ifb"))


def turns() -> Turns:
    assert states.TX.levels is not None
    one = LoopPolicy(total_bps=1000 * M, bands=states.TX.levels, lends=True, headroom=0.0)
    made = Turns()
    made.begin({TX: one, RX: one}, 0.0)
    return made


@pytest.mark.parametrize(("behind_s", "is_together"), [(0.8 * TOGETHER_S, True), (1.2 * TOGETHER_S, False)])
def test_a_unit_a_little_behind_another_is_always_looked_at_with_it(
    behind_s: float, is_together: bool
) -> None:
    """Not once only: both keep their own times, so that neither is looked at more often than asked."""
    made, every_s = turns(), 0.025
    made.put_off(TX, 0.0, 0.0, every_s)
    made.put_off(RX, 0.0, 0.0, every_s + behind_s)
    looks: list[tuple[Unit, ...]] = []
    while made.next_s < 40.5 * every_s:
        now_s = made.next_s
        looks.append(tuple(made.due(now_s)))
        for unit in looks[-1]:
            made.put_off(unit, now_s, now_s, every_s)
    assert [(TX, RX) in looks, (RX,) in looks] == [is_together, not is_together]
    assert [sum(unit in look for look in looks) for unit in (TX, RX)] == [40, 40]
