"""A path behind a unit as a fluid, a window at a time: what the levels want, what HTB gives, what the path lets pass.

Coarse on purpose: what matters to `netqos.engine.bottleneck` are half seconds, not packets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from netqos.engine import bottleneck
from netqos.engine.allocate import shares_bps
from netqos.engine.pathsigns import PathPolicy
from netqos.engine.pathstate import PathState, Step
from netqos.engine.pathwindow import WINDOW_S, Losses, Window
from netqos.model.desired import Band
from netqos.model.levels import Level, PerLevel

M = 1_000_000
GREEDY_BPS = 10**12
PATH_LOSS = 5e-3
FRAME_BITS = 1514 * 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """One level's traffic: what it wants at most, in how many flows, and whether its flows see and report losses.

    `queue_bps`: a limit of the workload's own, at which packets wait in the unit. `remote_loss`: the share of packets
    that is lost elsewhere, whatever this node does. `pushes`: what is lost makes it no slower.
    """

    wants_bps: int = 0
    flows: int = 1
    queue_bps: int | None = None
    remote_loss: float = 0.0
    pushes: bool = False

    @property
    def most_bps(self) -> int:
        """What reaches the level at most."""
        return self.wants_bps if self.queue_bps is None else min(self.wants_bps, self.queue_bps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One window's conditions: `path_bps` is what the path carries.

    `shows_loss`, `path_loss`: whether its queue drops for TCP, and how much.
    """

    demands: PerLevel[Demand]
    path_bps: int
    shows_loss: bool = True
    path_loss: float = PATH_LOSS
    noise: PerLevel[float] = field(default=PerLevel(1.0, 1.0, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One window as it was, and what the watch made of it."""

    window: Window
    applied_bps: int
    state: PathState
    step: Step | None


def run(
    moments: Sequence[Moment], policy: PathPolicy, state: PathState | None = None, *, start_s: float = 100.0
) -> list[Seen]:
    """Every window in order; a limit holds from the window after the one that gave it."""
    state = state or PathState()
    seen = []
    for number, moment in enumerate(moments, start=1):
        applied = state.applied_bps(policy.total_bps)
        window = window_at(moment, applied, policy, start_s + number * WINDOW_S)
        if not bottleneck.wants_losses(state, policy):
            window = replace(window, losses=None)
        state, step = bottleneck.step(state, window, policy)
        seen.append(Seen(window=window, applied_bps=applied, state=state, step=step))
    return seen


def window_at(moment: Moment, applied: int, policy: PathPolicy, at_s: float) -> Window:
    """What a unit under a limit shows."""
    demands = moment.demands
    wants = demands.map(lambda one: one.most_bps)
    bands = policy.guarantees_bps.map(
        lambda bps: Band(guarantee_bps=bps * applied // policy.total_bps, ceiling_bps=applied)
    )
    given = shares_bps(total_bps=applied, bands=bands, needs=wants)
    is_narrow = sum(given) > moment.path_bps
    pushed = is_narrow and any(one.pushes for one in demands)
    rates = given
    if pushed:
        rates = _pushed_aside(given, demands)
    elif is_narrow:
        rates = _shared(moment.path_bps, wants, demands)
    at_limit = demands.map(lambda one: one.queue_bps is not None and one.wants_bps > one.queue_bps)
    cut = PerLevel(
        *(
            got < want and (not is_narrow or demand.pushes)
            for got, want, demand in zip(given, wants, demands, strict=True)
        )
    )
    held = PerLevel(*(one or other for one, other in zip(at_limit, cut, strict=True)))
    noisy = PerLevel(*(round(rate * noise) for rate, noise in zip(rates, moment.noise, strict=True)))
    return Window(
        at_s=at_s,
        span_s=WINDOW_S,
        rates_bps=noisy,
        waiting=1.0 if any(held) else 0.0,
        sum_variance=0.3 if is_narrow else 1.0,
        level_variance=1.0,
        losses=_losses(moment, noisy, is_narrow=is_narrow, held=held),
    )


def _losses(moment: Moment, rates: PerLevel[int], *, is_narrow: bool, held: PerLevel[bool]) -> Losses:
    """Of the levels that drop nothing of their own."""
    packets = [
        0 if own else round(rate * WINDOW_S / FRAME_BITS) for rate, own in zip(rates, held, strict=True)
    ]
    shares = [
        one.remote_loss + (moment.path_loss if is_narrow and moment.shows_loss else 0.0)
        for one in moment.demands
    ]
    answers = [round(count * share) for count, share in zip(packets, shares, strict=True)]
    return Losses(
        answers=PerLevel(*answers), packets=PerLevel(*packets), workloads=sum(one > 0 for one in answers)
    )


def _pushed_aside(given: PerLevel[int], demands: PerLevel[Demand]) -> PerLevel[int]:
    """Who slows down keeps a tenth; the others have the rest, up to what the unit lets pass."""
    kept = [0 if demand.pushes else got // 10 for got, demand in zip(given, demands, strict=True)]
    pushing = sum(demand.pushes for demand in demands)
    rest = (sum(given) - sum(kept)) // pushing
    return PerLevel(*(rest if demand.pushes else own for own, demand in zip(kept, demands, strict=True)))


def _shared(path_bps: int, wants: PerLevel[int], demands: PerLevel[Demand]) -> PerLevel[int]:
    """A queue without levels: every flow gets the same, and nobody more than it wants."""
    left, open_levels = path_bps, {level for level in Level if wants[level] > 0}
    got = dict.fromkeys(Level, 0)
    while open_levels:
        each = left / sum(demands[level].flows for level in open_levels)
        met = {level for level in open_levels if wants[level] <= each * demands[level].flows}
        for level in met or open_levels:
            got[level] = wants[level] if met else int(each * demands[level].flows)
        if not met:
            break
        left -= sum(got[level] for level in met)
        open_levels -= met
    return PerLevel(got[Level.L0], got[Level.L1], got[Level.L2])


def each(count: int, moment: Callable[[int], Moment] | Moment) -> list[Moment]:
    """So many windows."""
    return [moment(place) if callable(moment) else moment for place in range(count)]
