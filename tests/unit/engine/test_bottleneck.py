"""Windows as they were measured behind a narrow next hop (200 Mbit/s, bbr, one flow in L0 and L1, sixteen in L2).

Each is the levels' rates in Mbit/s, the share of the time in which packets waited, and where losses were counted the
answers that report a gap and the packets, by level, of the workloads that dropped nothing of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from netqos.engine import bottleneck
from netqos.engine.pathsigns import PathPolicy, signs_of
from netqos.engine.pathstate import PathState, Reason
from netqos.engine.pathwindow import WINDOW_S, Losses, Window
from netqos.model.levels import PerLevel

M = 1_000_000
Triple = tuple[float, float, float]
Counts = tuple[int, int, int]
Row = tuple[Triple, float, Counts | None, Counts | None]

AUTO = PathPolicy(total_bps=200 * M, floor_bps=101 * M, guarantees_bps=PerLevel(100 * M, 60 * M, 40 * M))
FIXED = PathPolicy(total_bps=200 * M, floor_bps=186 * M, guarantees_bps=AUTO.guarantees_bps)

EGRESS_160: Sequence[Row] = (
    ((28.2, 66.7, 61.9), 0.51, None, None),
    ((16.0, 0.8, 174.9), 0.40, None, None),
    ((8.3, 1.3, 174.8), 0.0, None, None),
    ((7.4, 0.8, 178.3), 0.0, None, None),
    ((7.0, 1.5, 179.1), 0.0, (83, 7, 2350), (288, 60, 7415)),
    ((7.7, 1.2, 178.2), 0.0, (34, 6, 2256), (318, 49, 7351)),
    ((4.9, 0.4, 172.7), 0.75, (59, 3, 0), (196, 17, 0)),
    ((2.4, 1.3, 172.3), 1.0, (18, 10, 0), (104, 53, 0)),
    ((3.8, 0.0, 172.1), 1.0, (45, 0, 0), (154, 1, 0)),
    ((0.2, 0.9, 175.1), 1.0, (1, 7, 0), (5, 38, 0)),
    ((1.6, 0.4, 174.1), 1.0, (14, 3, 0), (68, 15, 0)),
    ((4.4, 0.2, 155.9), 1.0, (5, 1, 0), (182, 8, 0)),
    ((6.0, 0.2, 153.8), 1.0, (0, 0, 0), (250, 9, 0)),
    ((7.7, 0.2, 152.1), 1.0, (0, 0, 0), (318, 9, 0)),
    ((8.9, 0.2, 151.0), 1.0, (0, 0, 0), (368, 7, 0)),
    ((9.1, 0.2, 150.7), 1.0, (0, 0, 0), (376, 9, 0)),
)
"""The hop carries 160: at the last limit the levels that it starved lose nothing more, though they are a twentieth."""

INGRESS_194: Sequence[Row] = (
    ((13.3, 22.2, 159.3), 0.0, None, None),
    ((0.6, 14.3, 179.0), 0.0, None, None),
    ((0.5, 10.4, 183.1), 0.0, None, None),
    ((0.0, 8.4, 185.7), 0.0, (0, 110, 2627), (0, 346, 7658)),
    ((0.0, 7.9, 186.1), 0.0, (0, 128, 3081), (0, 330, 7676)),
    ((0.0, 8.0, 185.9), 0.0, (3, 108, 2519), (5, 326, 7715)),
    ((0.4, 6.8, 181.4), 0.73, (7, 111, 0), (15, 282, 0)),
    ((0.4, 6.8, 178.9), 1.0, (5, 58, 0), (16, 278, 0)),
    ((0.8, 6.5, 178.8), 1.0, (12, 54, 0), (31, 268, 0)),
    ((0.2, 6.8, 179.0), 1.0, (3, 68, 0), (7, 282, 0)),
    ((0.4, 7.5, 178.1), 1.0, (8, 97, 0), (17, 310, 0)),
)
"""The hop carries 194, and its queue stays full under the lowest limit that is allowed without auto."""


def window(row: Row, at_s: float) -> Window:
    rates, waiting, answers, packets = row
    losses = None
    if answers is not None and packets is not None:
        losing = sum(count > 0 for count in answers)
        losses = Losses(answers=PerLevel(*answers), packets=PerLevel(*packets), workloads=losing)
    rates_bps = PerLevel(*(round(rate * M) for rate in rates))
    return Window(at_s=at_s, span_s=WINDOW_S, rates_bps=rates_bps, waiting=waiting, losses=losses)


def watched(rows: Sequence[Row], policy: PathPolicy) -> tuple[list[tuple[Reason, int]], list[PathState]]:
    """Each step with the total after it in Mbit/s, and every state."""
    steps, states = [], [PathState()]
    for number, row in enumerate(rows, start=1):
        state, made = bottleneck.step(states[-1], window(row, 100.0 + number * WINDOW_S), policy)
        states.append(state)
        if made is not None:
            steps.append((made.reason, round(made.after_bps / M)))
    return steps, states


def test_losses_of_starved_levels_that_are_gone_prove_a_limit() -> None:
    steps, states = watched(EGRESS_160, AUTO)
    assert steps == [(Reason.TRY_LOWER, 176), (Reason.TRY_LOWER, 160), (Reason.EASED, 160)]
    assert states[-1].limit_bps == pytest.approx(160 * M, rel=0.001)


def test_where_a_fifth_is_lost_it_is_told_though_the_sum_is_near_the_total() -> None:
    steps, states = watched(INGRESS_194, FIXED)
    assert steps == [(Reason.TRY_LOWER, 186), (Reason.NOT_PROVEN, 200)]
    assert [state.shortfall is not None for state in states].index(True) == 6
    assert states[-1].shortfall is not None
    assert round(states[-1].shortfall.plateau_bps / M) == 194


def test_each_level_is_held_against_itself() -> None:
    """L2 alone loses packets, far away; in a trial it waits here, and the others have none as before."""
    before = signs_of([window(((40, 30, 70), 0.0, (0, 0, 116), (1650, 1240, 2890)), 1.0)] * 6)
    trial = signs_of([window(((40, 30, 67), 1.0, (0, 0, 0), (1650, 1240, 0)), 5.0)] * 3)
    assert not trial.has_eased(before)
    less = signs_of([window(((40, 30, 67), 1.0, (0, 0, 5), (1650, 1240, 2760)), 5.0)] * 3)
    assert less.has_eased(before)
    few = signs_of([window(((40, 30, 67), 1.0, (0, 0, 0), (1650, 1240, 80)), 5.0)] * 3)
    assert not few.has_eased(before)
