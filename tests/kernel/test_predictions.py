"""What `netqosctl simulate` predicts comes to pass under the real daemon; all thirty: `./dev bench predictions`."""

from __future__ import annotations

import pytest

from netqos.engine.predict import predict
from netqos.engine.scenario import read_scenario
from tests.bench.predicted import API, BATCH, CASES, RX, TX, WEB, Case, case, pod
from tests.bench.predictions import compared, text_of

pytestmark = [
    pytest.mark.kernel("veth", "htb", "ifb", "nft", "nft-fib", "nft-socket", "tool:iperf3"),
    pytest.mark.serial,
]

TOLERANCE = 0.15
SMALL = (
    case("all greedy", TX, "50M", WEB, API, BATCH, l0=(None, 40), l1=(35, None), l2=(15, None)),
    case("all flood", TX, "50M", *(pod(f"flood{n}", f"l{n}", "udp 70M") for n in range(3))),
    case("a limit", TX, "60M", pod("web", "l0", limit="14M"), pod("api", "l1", "udp 9M"), BATCH),
    case("received: L0 idle", RX, "50M", API, pod("flood", "l2", "udp 70M"), l1=(25, 60), l2=(15, None)),
    case("received: L1 is five", RX, "60M", WEB, pod("api", "l1", count=5), l0=(None, 50), l1=(25, None)),
)
"""Little enough for machines whose cores are busy with other things."""


@pytest.mark.parametrize("small", SMALL, ids=lambda one: one.name)
def test_the_kernel_does_what_was_predicted(small: Case) -> None:
    found = compared(small, warm_s=0.7, measure_s=0.8)
    assert found.off <= TOLERANCE, str(found)


def test_every_scenario_of_the_table_is_one() -> None:
    assert len(CASES) == len({one.name for one in CASES}) == 30
    for one in CASES:
        (found,) = predict(read_scenario(text_of(one), one.name))
        assert found.direction is one.way
        assert sum(found.phases[-1].levels_bps) <= found.total_bps * 1.001
