from __future__ import annotations

import pytest

from tests.node.load import RX, TX, is_close


@pytest.mark.parametrize(
    ("met", "expected"),
    [
        ((30.0, 10.0), True),
        ((28.0, 9.2), True),  # all together less, each its part
        ((26.0, 9.0), False),  # under 90 percent of the whole
        ((31.5, 10.5), False),  # over 103 percent
        ((27.0, 13.0), False),  # one has a part of the other's
    ],
)
def test_a_direction_is_close_by_its_whole_and_its_parts(met: tuple[float, float], expected: bool) -> None:
    wanted = {("a", TX): 30.0, ("b", TX): 10.0, ("a", RX): 7.0}
    rates = {("a", TX): met[0], ("b", TX): met[1]}
    assert is_close(rates, wanted, TX) is expected
    assert not is_close(rates, wanted, RX)
    assert is_close({**rates, ("a", RX): 7.0}, wanted, RX)
