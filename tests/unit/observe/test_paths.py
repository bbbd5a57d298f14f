"""What lies behind the uplinks, as status, findings and metrics tell it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from netqos.engine.pathstate import Reason, Shortfall
from netqos.model.health import Severity
from netqos.observe import answers
from netqos.observe.measure import measure
from netqos.observe.moment import Moment
from netqos.observe.pathview import PathView, path_findings
from netqos.observe.recorder import Recorder
from tests.unit.observe.sample import CLOCK, RX_PATH, RX_UNIT, TX_PATH, UNIT, view

M = 1_000_000
SEEN = Shortfall(plateau_bps=801_234_567, loss_share=0.0125, workloads=3, since_s=900.0, seen_s=940.0)


def test_status_has_each_path_with_its_last_changes() -> None:
    shown = [asdict(one) for one in answers.status(view(), Moment.now(CLOCK)).paths]
    tried = {
        "device": RX_UNIT.device,
        "direction": "rx",
        "at_s": 948.1,
        "unix_s": pytest.approx(1_700_000_000 - 51.9),
        "reason": "try-lower",
        "reason_text": Reason.TRY_LOWER.value,
        "before_bps": 600 * M,
        "after_bps": 470 * M,
    }
    proven = {
        **tried,
        "at_s": 950.0,
        "unix_s": pytest.approx(1_700_000_000 - 50),
        "reason": "eased",
        "reason_text": "with less, nothing is lost beyond the node: the path carries no more",
        "before_bps": 470 * M,
    }
    rx = {"device": RX_UNIT.device, "direction": "rx", "configured_bps": 600 * M, "follows": True}
    rx |= {"floor_bps": 305 * M, "limit_bps": 470 * M, "measured_bps": 480 * M, "proposed_bps": 470 * M}
    tx = {"device": UNIT.device, "direction": "tx", "configured_bps": 1000 * M, "follows": False}
    tx |= {"floor_bps": 930 * M, "limit_bps": None, "measured_bps": None, "proposed_bps": None}
    assert shown == [{**rx, "steps": [tried, proven]}, {**tx, "steps": []}]
    assert json.dumps(shown)


def test_the_metric_is_zero_while_nothing_speaks_against_the_total() -> None:
    found = {
        one.labels: one.value
        for one in measure(view(), {}, Recorder().read(), Moment.now(CLOCK))
        if one.name == "netqos_path_bits_per_second"
    }
    assert found == {(UNIT.device, "tx"): 0, (RX_UNIT.device, "rx"): 470 * M}


def test_a_path_that_carries_its_total_is_not_mentioned() -> None:
    assert list(path_findings(UNIT, TX_PATH)) == []


def test_a_lowered_total_is_told_with_both_amounts() -> None:
    (found,) = path_findings(RX_UNIT, RX_PATH)
    assert (found.code, found.severity, found.subject) == ("total-lowered", Severity.INFO, RX_UNIT.device)
    assert found.message.startswith("rx total 470M instead of 600M (78%)")


def told(path: PathView) -> tuple[str, str]:
    (found,) = path_findings(UNIT, path)
    assert (found.code, found.severity) == ("total-not-reached", Severity.WARNING)
    return found.message, found.hint


def test_a_shortfall_is_told_with_figures_and_evidence() -> None:
    message, hint = told(replace(TX_PATH, shortfall=SEEN))
    assert message == (
        "the tx total of 1G is not reached: all levels together stand still at 801M (80%), nothing waits in the node, "
        "and the receivers of 3 workloads report gaps (1.25% of the packets) that no queue of this node made: behind "
        "this node the path is narrower, and guarantees do not hold"
    )
    assert hint == "set node.bandwidth to {tx: 785M}, or to {tx: auto}, which follows what the path carries"


def test_where_much_is_lost_the_sum_need_not_stand_still() -> None:
    message, hint = told(replace(TX_PATH, shortfall=replace(SEEN, loss_share=0.3)))
    assert message.startswith(
        "the tx total of 1G is not where packets wait: all levels together come to 801M (80%)"
    )
    assert hint.startswith("set node.bandwidth to {tx: 785M} or less")


@pytest.mark.parametrize(
    ("floor", "hint"),
    [
        (500, "set node.bandwidth to {tx: 785M}"),
        (900, "set node.bandwidth to {tx: 785M}; auto goes no further down than 900M"),
    ],
)
def test_under_auto_it_says_how_far_auto_goes(floor: int, hint: str) -> None:
    assert told(replace(TX_PATH, follows=True, floor_bps=floor * M, shortfall=SEEN))[1] == hint


def test_where_much_is_lost_less_may_arrive_than_was_seen_to_leave() -> None:
    flood = replace(SEEN, plateau_bps=940 * M, loss_share=0.33)
    message, hint = told(replace(TX_PATH, shortfall=flood))
    assert "(33.00% of the packets)" in message
    assert hint.startswith("set node.bandwidth to {tx: 921M} or less, or to {tx: auto}")
