from __future__ import annotations

import pytest

from netqos.cli.demo.policy import own_policy, read_policy
from netqos.cli.demo.scenario import Side
from netqos.errors import Rejected
from netqos.model.desired import Band
from netqos.model.levels import PerDirection, PerLevel
from tests.unit.cli.demo.demodata import M

UPSTREAM = """
policy:
  resourceQOSStrategy:
    lsClass: {networkQOS: {enable: true, egressRequest: 25, egressLimit: 50, ingressRequest: 5, ingressLimit: 40}}
    beClass: {networkQOS: {enable: true, egressRequest: 10, egressLimit: 75}}
  systemStrategy: {totalNetworkBandwidth: 400M}
"""


def test_the_demos_own_policy_differs_in_both_directions() -> None:
    shown = own_policy(200 * M)
    assert shown.sides == PerDirection(
        tx=Side(
            total_bps=200 * M,
            bands=PerLevel(
                Band(guarantee_bps=100 * M, ceiling_bps=200 * M),
                Band(guarantee_bps=60 * M, ceiling_bps=200 * M),
                Band(guarantee_bps=40 * M, ceiling_bps=200 * M),
            ),
        ),
        rx=Side(
            total_bps=150 * M,
            bands=PerLevel(
                Band(guarantee_bps=82_500_000, ceiling_bps=150 * M),
                Band(guarantee_bps=30 * M, ceiling_bps=150 * M),
                Band(guarantee_bps=37_500_000, ceiling_bps=150 * M),
            ),
        ),
    )
    assert own_policy(None).sides == shown.sides


def test_a_file_in_any_shape_gives_its_levels_and_totals() -> None:
    shown = read_policy(UPSTREAM, "slo.yaml", None)
    assert (shown.sides.tx.total_bps, shown.sides.rx.total_bps) == (400 * M, 400 * M)
    assert shown.sides.tx.bands.l1 == Band(guarantee_bps=100 * M, ceiling_bps=200 * M)
    assert shown.sides.rx.bands.l1 == Band(guarantee_bps=20 * M, ceiling_bps=160 * M)
    assert shown.sides.tx.bands.l2 == Band(guarantee_bps=40 * M, ceiling_bps=300 * M)


def test_the_command_lines_total_wins_and_reaches_the_daemon() -> None:
    shown = read_policy(UPSTREAM, "slo.yaml", 1000 * M)
    assert shown.sides.tx.bands.l1 == Band(guarantee_bps=250 * M, ceiling_bps=500 * M)
    assert shown.sides.rx.bands.l1 == Band(guarantee_bps=37_500_000, ceiling_bps=300 * M)
    assert shown.sections["node"] == {"bandwidth": {"tx": "1G", "rx": "750M"}}


def test_only_what_concerns_levels_is_taken_from_a_file() -> None:
    text = "{node: {uplinks: [eth0]}, policy: {enable: true}, paths: {state: /var/lib/x}, loop: {interval: 20ms}}"
    assert set(read_policy(text, "node.yaml", None).sections) == {"node", "policy", "loop"}


@pytest.mark.parametrize(
    ("text", "total", "problem"),
    [
        ("policy: {enable: false}", None, "network QoS is off"),
        ("", None, "network QoS is off"),
        (
            "policy: {enable: true, levels: {l1: {txMin: 10G}}}",
            100 * M,
            "guarantee 10G is over its ceiling 100M",
        ),
        ("policy: {enable: true, levels: {l3: {}}}", None, "f.yaml:1:"),
        ("policy: {enable: true}", 9 * M, "a total of 9M is too small"),
    ],
)
def test_a_policy_that_cannot_be_shown_says_why(text: str, total: int | None, problem: str) -> None:
    with pytest.raises(Rejected) as caught:
        read_policy(text, "f.yaml", total)
    assert problem in "\n".join([str(caught.value), *caught.value.problems])
