"""What some windows in a row say of the path behind a unit. Pure; bits per second.

Thresholds were measured on the rig with cubic and BBR, see docs/decisions/0024.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from netqos.engine.pathwindow import Window
from netqos.model.levels import Level, PerLevel

LEAST_SHARE = 0.5
"""Under this share of the total a plateau is never taken for the path's."""

REACHED = 0.985
"""A sum from this share of a limit on is the limit: windows spread by less."""

SPREAD = 0.1
"""How far the sums of a plateau's windows may be apart, as a share of their median."""

FREE, HELD, BUSY = 0.2, 0.5, 0.7
"""Shares of the time with packets waiting: of a unit that holds nothing back, at most of one that does not hold all
back, and at least of one that does."""

LOSING, CLEAN, HEAVY, FLOODED = 5e-4, 5e-3, 0.05, 0.2
"""Answers that report a gap, for each packet: from which on there are losses; at most so many where they are said to be
gone; from which on much of what was sent did not arrive; and so much that it says no more how much."""

EASED, BETTER, WORSE = 0.3, 0.9, 3.0
"""What is left of the losses, at most, where less made them go, and where it helped; how many times as many are new."""

TRADING, CEILING, LONG = 0.7, 1.025, 12
"""What tells a narrow path from losses that each has elsewhere: a share of variance (`Signs.trading`) up to which
levels gain what others lose; or how far, in so many windows, the highest sum is above the median at most."""

ENOUGH = 10.0
"""So many answers must have been expected to say that losses are gone: what the packets of each level whose losses are
known would have caused with the losses that it had. Workloads with own drops tell none."""

SHORT, RICH = 0.9, 1.05
"""A level lacks something under this share of its guarantee, while another has more than that share of its own."""

GROWN, LEAST_GROWN = 0.3, 0.03
"""What a level must gain to have grown: this share of what it lacked, and of the total."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathPolicy:
    """What is known of a unit: its total, how far down a limit may go, and the levels' guarantees under the total."""

    total_bps: int
    floor_bps: int
    guarantees_bps: PerLevel[int]

    def promised(self, applied_bps: int) -> PerLevel[int]:
        """The guarantees under a limit."""
        return self.guarantees_bps.map(lambda bps: bps * applied_bps // self.total_bps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """Some windows in a row as one: medians of sum and rates, the time with packets waiting, the losses.

    `packets` are those of which losses are known, and `level_losses` the answers for each. `trading` is the variance of
    the sum as a share of what the levels' variances add up to: about 1 for levels that know nothing of each other, less
    where one gains what another loses. `peak` is the highest sum as a share of the median.
    """

    count: int
    sum_bps: int
    spread: float
    rates_bps: PerLevel[int]
    waiting: float
    loss_share: float
    level_losses: PerLevel[float]
    losing_workloads: int
    packets: PerLevel[int]
    trading: float
    peak: float

    def binds(self, applied_bps: int) -> bool:
        """Whether the unit's own queue is what holds the traffic back."""
        return self.waiting >= BUSY and self.sum_bps >= REACHED * applied_bps

    def stands_still(self, applied_bps: int, policy: PathPolicy) -> bool:
        """Whether the sum is a plateau that the unit's own queue does not make."""
        is_own = self.waiting > HELD and self.sum_bps >= REACHED * applied_bps
        return self.sum_bps >= LEAST_SHARE * policy.total_bps and self.spread <= SPREAD and not is_own

    @property
    def is_losing(self) -> bool:
        """Whether packets are lost beyond the node."""
        return self.loss_share >= LOSING

    def is_held_beyond(self, promised: PerLevel[int]) -> bool:
        """Whether a level lacks what it was promised, loses packets, and something beyond the node holds the sum."""
        is_held = self.trading <= TRADING or (self.count >= LONG and self.peak <= CEILING)
        return is_held and self.is_robbed(promised)

    def has_eased(self, before: Signs) -> bool:
        """Whether losses that there were are gone: each level against itself, for others may lose nothing anyway."""
        expected = sum(self.packets[level] * before.level_losses[level] for level in Level)
        left = sum(self.packets[level] * self.level_losses[level] for level in Level)
        most = min(EASED * expected, CLEAN * sum(self.packets))
        return before.is_losing and expected >= ENOUGH and left <= most

    def has_worsened(self, before: Signs) -> bool:
        """Whether there are losses that were not there."""
        return self.loss_share >= max(CLEAN, WORSE * before.loss_share)

    def lacking(self, promised: PerLevel[int]) -> Mapping[Level, int]:
        """What levels lack of their guarantees while another one has more than its own."""
        rates = self.rates_bps
        if not any(rates[level] > RICH * promised[level] for level in Level):
            return {}
        short = [level for level in Level if 0 < rates[level] < SHORT * promised[level]]
        return {level: promised[level] - rates[level] for level in short}

    def is_starving(self, promised: PerLevel[int]) -> bool:
        """Whether a level lacks something and nothing waits."""
        return self.waiting <= FREE and bool(self.lacking(promised))

    def is_robbed(self, promised: PerLevel[int]) -> bool:
        """Whether a level lacks something and loses packets beyond the node, even if others wait in the unit."""
        return any(self.level_losses[level] >= LOSING for level in self.lacking(promised))

    def has_grown(self, before: Signs, promised: PerLevel[int]) -> bool:
        """Whether a level that lacked something has got a good part of it."""
        least_bps = LEAST_GROWN * sum(promised)
        return any(
            self.rates_bps[level] - before.rates_bps[level] >= max(GROWN * lacked, least_bps)
            for level, lacked in before.lacking(promised).items()
        )


def signs_of(windows: Sequence[Window]) -> Signs:
    """The signs of one window or more."""
    sums = sorted(window.sum_bps for window in windows)
    middle = sums[len(sums) // 2]
    losses = [window.losses for window in windows if window.losses is not None]
    answers = [sum(one.answers[level] for one in losses) for level in Level]
    packets = [sum(one.packets[level] for one in losses) for level in Level]
    shares = [of / out if out else 0.0 for of, out in zip(answers, packets, strict=True)]

    variance = sum(window.level_variance for window in windows)

    def rate(level: Level) -> int:
        return sorted(window.rates_bps[level] for window in windows)[len(windows) // 2]

    return Signs(
        count=len(windows),
        sum_bps=middle,
        spread=(sums[-1] - sums[0]) / max(1, middle),
        rates_bps=PerLevel(*map(rate, Level)),
        waiting=sum(window.waiting for window in windows) / len(windows),
        loss_share=sum(answers) / sum(packets) if any(packets) else 0.0,
        level_losses=PerLevel(*shares),
        losing_workloads=max((one.workloads for one in losses), default=0),
        packets=PerLevel(*packets),
        peak=sums[-1] / max(1, middle),
        trading=sum(window.sum_variance for window in windows) / variance if variance else 1.0,
    )
