"""Uplinks that share one total: whatever each needs, and whatever traffic they carry."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from netqos.engine.shares import FLOOR_PERCENT, Share, divide, portions
from netqos.engine.sharing import KEPT_TICKS, NOTHING_SHARED, STEPS, narrow
from netqos.engine.unitstate import LoopPolicy
from netqos.model.desired import Band
from netqos.model.ids import IfName
from netqos.model.levels import Direction, Level, PerLevel
from netqos.model.traffic import Unit, UnitSample
from netqos.testing.states import bands
from tests.property import fluids as some

M = 1_000_000
TICK_S = 0.02


@st.composite
def promises(draw: st.DrawFn) -> tuple[int, PerLevel[Band]]:
    total = draw(st.integers(10 * M, 100_000 * M))
    m1 = draw(st.integers(0, total * 49 // 100))
    m2 = draw(st.integers(0, total * 99 // 100 - m1))
    ceilings = [draw(st.integers(max(least, total // 4), total)) for least in (total - m1 - m2, m1, m2)]
    guarantees = (total - m1 - m2, m1, m2)
    return total, PerLevel(
        *(Band(guarantee_bps=one, ceiling_bps=two) for one, two in zip(guarantees, ceilings, strict=True))
    )


@st.composite
def needs_of(draw: st.DrawFn, bands: PerLevel[Band], count: int) -> list[PerLevel[int]]:
    def need(level: Level) -> int:
        return draw(st.sampled_from([0, bands[level].ceiling_bps]) | st.integers(0, bands[level].ceiling_bps))

    return [PerLevel(need(Level.L0), need(Level.L1), need(Level.L2)) for _ in range(count)]


@given(promises(), st.integers(1, 25), st.data())
def test_parts_fill_the_total_and_never_more(
    promised: tuple[int, PerLevel[Band]], count: int, data: st.DataObject
) -> None:
    total, bands = promised
    shares = divide(total_bps=total, bands=bands, needs=data.draw(needs_of(bands, count)))
    assert sum(one.total_bps for one in shares) == total
    least = min(total * FLOOR_PERCENT // 100, total // count)
    assert all(one.total_bps >= least for one in shares)
    for level in Level:
        assert sum(one.bands[level].guarantee_bps for one in shares) <= bands[level].guarantee_bps
    for one in shares:
        assert sum(band.guarantee_bps for band in one.bands) <= one.total_bps
        assert all(band.guarantee_bps <= band.ceiling_bps <= one.total_bps for band in one.bands)


@given(promises(), st.integers(2, 5), st.data())
def test_a_need_within_what_is_promised_is_met(
    promised: tuple[int, PerLevel[Band]], count: int, data: st.DataObject
) -> None:
    """One uplink's guarantees are never lost to others, but for the floors that these get."""
    total, bands = promised
    needs = data.draw(needs_of(bands, count))
    mine = [min(need, band.guarantee_bps) for need, band in zip(needs[0], bands, strict=True)]
    needs = [PerLevel(*mine), *(PerLevel(0, 0, 0) for _ in needs[1:-1]), needs[-1]]
    if any(needs[-1][level] and mine[level.value] for level in Level):
        needs[-1] = PerLevel(*(0 if own else need for own, need in zip(mine, needs[-1], strict=True)))
    share = divide(total_bps=total, bands=bands, needs=needs)[0]
    floors = (count - 1) * (total * FLOOR_PERCENT // 100)
    assert share.total_bps >= sum(mine) - floors - count


@given(st.integers(0, 10**12), st.lists(st.integers(0, 10**12), min_size=1, max_size=30))
def test_portions_follow_need(amount: int, needs: list[int]) -> None:
    parts = portions(amount, needs)
    assert sum(parts) == amount
    for less, more in pairwise(sorted(range(len(needs)), key=lambda place: needs[place])):
        assert parts[less] <= parts[more] + 3 * len(needs)


@given(promises(), st.data())
def test_what_one_uplink_cannot_pass_others_may(
    promised: tuple[int, PerLevel[Band]], data: st.DataObject
) -> None:
    total, bands = promised
    most = data.draw(st.integers(total // 10, total))
    needs = data.draw(needs_of(bands, 2))
    shares = divide(total_bps=total, bands=bands, needs=needs, most_bps=[most, None])
    assert shares[0].total_bps <= most
    assert total - 20 <= sum(one.total_bps for one in shares) <= total


class Uplink:
    """HTB under traffic of constant demand: who has a guarantee first gets that, then L0 to L2 get the rest."""

    def __init__(self, name: str, demand: PerLevel[int]) -> None:
        self.unit = Unit(Direction.TX, IfName(name))
        self.demand = demand
        self.sample = UnitSample(unit=self.unit, taken_at_s=0.0, level_bytes=PerLevel(0, 0, 0))

    def pass_on(self, total_bps: int, bands: PerLevel[Band], *, exact: bool) -> PerLevel[int]:
        wanted = [min(want, band.ceiling_bps) for want, band in zip(self.demand, bands, strict=True)]
        passed = [min(want, band.guarantee_bps) for want, band in zip(wanted, bands, strict=True)]
        for place, want in enumerate(wanted):
            passed[place] += min(want - passed[place], total_bps - sum(passed))
        waiting = [got < want for got, want in zip(passed, self.demand, strict=True)]
        self.sample = UnitSample(
            unit=self.unit,
            taken_at_s=self.sample.taken_at_s + TICK_S,
            level_bytes=PerLevel(
                *(
                    before + round(bps * TICK_S / 8)
                    for before, bps in zip(self.sample.level_bytes, passed, strict=True)
                )
            ),
            backlogged=any(waiting),
            level_backlogged=PerLevel(*waiting) if exact else None,
        )
        return PerLevel(*passed)


def run(
    uplinks: Sequence[Uplink], policy: LoopPolicy, ticks: int, *, exact: bool = True
) -> list[dict[Unit, Share]]:
    sharing, found = NOTHING_SHARED, []
    policies = {one.unit: policy for one in uplinks}
    for _ in range(ticks):
        sharing, _narrowed = narrow(sharing, [one.sample for one in uplinks], policies)
        for one in uplinks:
            share = sharing.shares[one.unit]
            one.pass_on(share.total_bps, share.bands, exact=exact)
        found.append(dict(sharing.shares))
    return found


@st.composite
def plain_promises(draw: st.DrawFn) -> tuple[int, PerLevel[Band]]:
    """Guarantees of none or some percent: with some bits a second, whole bytes a tick are noise."""
    total = draw(st.integers(100 * M, 100_000 * M))
    m1, m2 = (draw(st.just(0) | st.integers(total // 50, total * 45 // 100)) for _ in range(2))
    guarantees = (total - m1 - m2, m1, m2)
    ceilings = [draw(st.integers(max(least, total // 4), total)) for least in guarantees]
    return total, PerLevel(
        *(Band(guarantee_bps=one, ceiling_bps=two) for one, two in zip(guarantees, ceilings, strict=True))
    )


@st.composite
def demand_of(draw: st.DrawFn, total: int) -> PerLevel[int]:
    l0, l1, l2 = (draw(st.sampled_from([0, total]) | st.integers(total // 100, total)) for _ in Level)
    return PerLevel(l0, l1, l2)


def shared_policy(promised: tuple[int, PerLevel[Band]]) -> LoopPolicy:
    total, bands = promised
    return LoopPolicy(total_bps=total, bands=bands, lends=True, headroom=0.0, is_shared=True)


@settings(max_examples=30, phases=some.PHASES)
@given(plain_promises(), st.integers(2, 3), st.data())
def test_constant_traffic_comes_to_rest(
    promised: tuple[int, PerLevel[Band]], count: int, data: st.DataObject
) -> None:
    """Or moves twice a second at most, where what a level is given for its waiting is just what it lacked."""
    uplinks = [Uplink(f"up{place}", data.draw(demand_of(promised[0]))) for place in range(count)]
    shares = run(uplinks, shared_policy(promised), 75)
    assert sum(before != after for before, after in pairwise(shares[25:])) <= 2


def test_a_need_that_came_back_by_waiting_alone_is_held() -> None:
    """What L2 is given on the third uplink for its waiting is just what it lacked: it moved parts every six ticks."""
    promised = bands((93_491_299, 0, 6_508_701), (93_491_299, 89_619_604, 89_619_604))
    demands = (PerLevel(0, 0, 0), PerLevel(100 * M, 0, 100 * M), PerLevel(0, 100 * M, 1_942_348))
    uplinks = [Uplink(f"up{place}", one) for place, one in enumerate(demands)]
    shares = run(uplinks, shared_policy((100 * M, promised)), 125)
    assert sum(before != after for before, after in pairwise(shares[25:])) <= 4


@settings(max_examples=30)
@given(
    plain_promises(), st.lists(st.tuples(st.sampled_from(Level), st.integers(0, 99)), min_size=2, max_size=3)
)
def test_it_comes_to_rest_by_what_htb_says_too(
    promised: tuple[int, PerLevel[Band]], demands: list[tuple[Level, int]]
) -> None:
    """One level on each uplink; of several HTB tells only that somebody waits."""
    total = promised[0]
    uplinks = [
        Uplink(f"up{place}", PerLevel(*(total * part // 50 if one is level else 0 for one in Level)))
        for place, (level, part) in enumerate(demands)
    ]
    shares = run(uplinks, shared_policy(promised), 40, exact=False)
    for unit, last in shares[-1].items():
        assert all(abs(one[unit].total_bps - last.total_bps) <= total // STEPS for one in shares[25:])


@given(promises(), st.data())
def test_traffic_that_moves_from_one_uplink_to_the_other_has_its_place_in_ten_ticks(
    promised: tuple[int, PerLevel[Band]], data: st.DataObject
) -> None:
    total, bands = promised
    greedy = PerLevel(*(band.ceiling_bps for band in bands))
    level = data.draw(st.sampled_from(Level))
    demand = PerLevel(*(greedy[one] if one is level else 0 for one in Level))
    first, second = Uplink("up0", demand), Uplink("up1", PerLevel(0, 0, 0))
    policy = shared_policy(promised)
    sharing = NOTHING_SHARED
    policies = {one.unit: policy for one in (first, second)}
    for tick in range(40):
        if tick == 30 - KEPT_TICKS - 5:
            first.demand, second.demand = second.demand, first.demand
        sharing, _ = narrow(sharing, [first.sample, second.sample], policies)
        for one in (first, second):
            one.pass_on(sharing.shares[one.unit].total_bps, sharing.shares[one.unit].bands, exact=True)
        if tick >= 30:
            got = sharing.shares[second.unit].total_bps
            assert got >= total * (100 - FLOOR_PERCENT) // 100 - total // STEPS
