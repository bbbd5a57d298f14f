"""Why a decision is what it is: the terms give back what the law gave, and the sentences have the figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.engine.allocate import l0_floor_bps
from netqos.engine.rounds import Steering, decide
from netqos.engine.unitstate import LoopPolicy, initial_state
from netqos.engine.why import Cause, Ground, Term, Why, grounds, why
from netqos.engine.whywords import amount, is_contention, of_contention, of_level, of_onset, of_room, whole
from netqos.model import traffic
from netqos.model.desired import Band
from netqos.model.levels import Level, PerLevel
from netqos.model.traffic import UnitSample
from tests.property import strategies as possible
from tests.unit.engine.test_steer import LENDING, POLICING, UNIT, M, Rates

START = UnitSample(
    unit=UNIT, taken_at_s=100.0, level_bytes=PerLevel(7, 5, 3), device_bytes=0, offered_bytes=0
)


class Unit:
    """One unit tick by tick, with the ground of its newest decision."""

    def __init__(self, policy: LoopPolicy) -> None:
        self.policy = policy
        self.sample = replace(START, offered_bytes=None)
        self.steering, _ = decide(Steering(states={UNIT: initial_state()}), (self.sample,), self.policies)

    @property
    def policies(self) -> Mapping[traffic.Unit, LoopPolicy]:
        return {UNIT: self.policy}

    def tick(
        self, rates: Rates, *, waits: bool = False, beside: float | None = None, after_s: float = 0.05
    ) -> Ground:
        step = [round(rate * M * after_s / 8) for rate in rates]
        carried = sum(step) + round((beside or 0) * M * after_s / 8)
        self.sample = replace(
            self.sample,
            taken_at_s=self.sample.taken_at_s + after_s,
            level_bytes=PerLevel(
                *(then + more for then, more in zip(self.sample.level_bytes, step, strict=True))
            ),
            backlogged=waits,
            device_bytes=(self.sample.device_bytes or 0) + carried,
            offered_bytes=None if beside is None else (self.sample.offered_bytes or 0) + sum(step),
        )
        self.steering, decisions = decide(self.steering, (self.sample,), self.policies)
        (found,) = grounds(decisions, self.policies, self.steering.states)
        return found

    def settle(self, rates: Rates, *, waits: bool = False, beside: float | None = None) -> Why:
        return why([self.tick(rates, waits=waits, beside=beside) for _ in range(6)][-1])


def by_terms(found: Why, policy: LoopPolicy) -> list[int]:
    """What the law gives each level, put together again from the term and the figures that are told."""
    given = []
    for level in Level:
        one, band = found.levels[level], policy.bands[level]
        given.append(
            {
                Term.OWN_CEILING: band.ceiling_bps,
                Term.ROOM: band.ceiling_bps,
                Term.GUARANTEE: band.guarantee_bps,
                Term.FLOOR: l0_floor_bps(band),
                Term.LEFT: policy.total_bps - sum(one.kept_bps),
            }[one.term]
        )
    return given


@given(st.data())
def test_the_terms_give_back_what_the_law_gave(data: st.DataObject) -> None:
    total_bps = data.draw(possible.totals())
    lends = data.draw(st.booleans())
    bands = data.draw(possible.bands(total_bps))
    if data.draw(st.booleans()):
        rest_bps = total_bps - bands.l1.guarantee_bps - bands.l2.guarantee_bps
        bands = replace(bands, l0=Band(guarantee_bps=rest_bps, ceiling_bps=total_bps))
    policy = LoopPolicy(
        total_bps=total_bps,
        bands=bands,
        lends=lends,
        headroom=0.0 if lends else data.draw(possible.headrooms()),
    )
    unit = Unit(policy)
    for _ in range(data.draw(st.integers(1, 8))):
        greedy = data.draw(possible.rates(total_bps))
        rates = data.draw(st.sampled_from((greedy, PerLevel(total_bps, greedy.l1, greedy.l2 // 4))))
        ground = unit.tick(tuple(one / M for one in rates), waits=data.draw(st.booleans()))  # type: ignore[arg-type]
        found, state = why(ground), ground.state
        assert state.policy is not None
        assert state.wanted_bps is not None
        assert by_terms(found, state.policy) == list(state.wanted_bps)
        assert [one.ceiling_bps for one in found.levels] == list(ground.decision.ceilings_bps)
        assert is_contention(found) is ground.decision.contention
        assert (found.contention.onset is not None) is ground.decision.contention
        assert whole(found).isprintable()


@pytest.mark.parametrize(
    ("rates", "waits", "said"),
    [
        ((0, 0, 1000), True, "L0 may use 800M: L1 uses nothing and L2 keeps its guarantee of 200M"),
        (
            (500, 300, 200),
            True,
            "L0 may use 500M, its guarantee: L1 keeps its guarantee of 300M and L2 keeps its guarantee of 200M",
        ),
        ((850, 100, 50), True, "L0 may use 850M: L1 is left 100M and L2 is left 50M"),
        ((990, 0, 0), False, "L0 may use 1G, its own ceiling"),
    ],
)
def test_what_bound_l0_is_said(rates: Rates, waits: bool, said: str) -> None:
    found = Unit(LENDING).settle(rates, waits=waits)
    assert of_level(Level.L0, found.levels.l0) == said
    assert of_level(Level.L1, found.levels.l1) == "L1 may use 800M, its own ceiling"
    assert said in whole(found)


def test_every_level_is_told_of_where_nobody_lends() -> None:
    unit = Unit(POLICING)
    found = unit.settle((300, 300, 400), waits=True)
    assert whole(found).split("; ")[1:] == [
        "L0 may use 500M, its guarantee: L1 keeps its guarantee of 300M and L2 keeps its guarantee of 200M",
        "L1 may use 470M: L0 is left 330M and L2 keeps its guarantee of 200M",
        "L2 may use 200M, its guarantee: L0 is left 330M and L1 is left 470M",
    ]


def test_the_floor_and_a_level_without_a_guarantee_are_said() -> None:
    bands = PerLevel(
        Band(guarantee_bps=M, ceiling_bps=100 * M),
        Band(guarantee_bps=99 * M, ceiling_bps=100 * M),
        Band(guarantee_bps=0, ceiling_bps=100 * M),
    )
    found = Unit(replace(LENDING, total_bps=100 * M, bands=bands)).settle((1, 99, 0), waits=True)
    said = "L0 may use 5M, the least that the node itself needs: L1 keeps its guarantee of 99M and L2 has no guarantee"
    assert of_level(Level.L0, found.levels.l0) == said


def test_contention_from_its_begin_to_its_end() -> None:
    unit = Unit(LENDING)
    said = [of_contention(why(unit.tick((600, 10, 2))).contention)]
    said.append(of_contention(why(unit.tick((900, 10, 2), waits=True)).contention))
    said.append(of_contention(why(unit.tick((940, 10, 2), waits=True)).contention))
    said.append(of_contention(why(unit.tick((900, 10, 2))).contention))
    calm = [why(unit.tick((200, 10, 2))) for _ in range(5)][-1]
    said += [of_contention(calm.contention), of_onset(calm.contention)]
    assert said == [
        "no contention: 612M of 1G used, 61.2%, it begins at 95%",
        "contention: 912M of 1G used, 91.2%, from 90% on as packets of L0 wait",
        "contention for 0.05s: 952M of 1G used, 95.2%, from 95% on",
        "contention for 0.1s: 912M of 1G used, 91.2%, it ends under 85%",
        "contention for 0.35s: 212M of 1G used, 21.2%, under 85% for 0.2s of 1s",
        "it began with 912M of 1G while packets waited",
    ]
    assert of_onset(why(Unit(LENDING).tick((1, 0, 0))).contention) == ""


def test_a_ceiling_that_is_held_back_says_so() -> None:
    unit = Unit(LENDING)
    unit.settle((790, 100, 100), waits=True)
    found = [why(unit.tick((780, 110, 100), waits=True)) for _ in range(6)][-1]
    assert of_level(Level.L0, found.levels.l0) == (
        "L0 may use 800M: the law gives 790M (L1 is left 110M and L2 is left 100M), "
        "but so little less has to stand for 1s, 0.1s so far"
    )


def test_a_ceiling_that_was_raised_and_stays_says_so() -> None:
    unit = Unit(LENDING)
    unit.settle((500, 300, 200), waits=True)
    raised = why(unit.tick((510, 290, 200), waits=True))
    assert of_level(Level.L0, raised.levels.l0) == (
        "L0 may use 520M: the law gives 510M (L1 is left 290M and L2 keeps its guarantee of 200M), "
        "but it is raised by whole steps and stays for 1s"
    )
    unit.settle((700, 100, 100), waits=True)
    found = [why(unit.tick((500, 300, 200), waits=True)) for _ in range(6)][-1]
    assert of_level(Level.L0, found.levels.l0) == (
        "L0 may use 800M: the law gives 500M, its guarantee (L1 keeps its guarantee of 300M and L2 keeps its "
        "guarantee of 200M), but this was needed 0.15s ago and stays for 1s"
    )


def test_the_room_beside_the_node_is_said() -> None:
    unit = Unit(LENDING)
    found = unit.settle((200, 20, 2), beside=250.0)
    assert found.room is not None
    assert of_room(found.room) == "room 750M of 1G: the node itself receives 250M"
    assert of_level(Level.L1, found.levels.l1) == "L1 may use 750M, all of the room"
    assert of_contention(found.contention).startswith("no contention: 222M of 750M used")
    most = Unit(LENDING).settle((200, 20, 2), beside=700.0)
    assert most.room is not None
    assert of_room(most.room) == (
        "room 505M of 1G: the node itself receives 703.1M, but L1 and L2 keep their guarantees and L0 its least"
    )


def test_a_part_of_a_shared_total_is_said() -> None:
    found = Unit(replace(LENDING, is_shared=True)).settle((200, 20, 2))
    assert found.room is not None
    assert of_room(found.room) == (
        "room 1G of 1G: its part by what its traffic needs, the other uplinks have the rest"
    )


def test_a_quiet_unit_says_only_that() -> None:
    found = Unit(LENDING).settle((1, 0, 0))
    assert (found.contention.cause, whole(found)) == (
        Cause.BELOW,
        "no contention: 1M of 1G used, 0.1%, it begins at 95%",
    )


@pytest.mark.parametrize(
    ("bps", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1k"),
        (201_503_114, "201.5M"),
        (999_960_000, "1G"),
        (4 * 10**11, "400G"),
    ],
)
def test_an_amount_has_four_digits(bps: int, text: str) -> None:
    assert amount(bps) == text
