"""The engine's fluid tree has the numbers that the tc backend gives the kernel."""

from __future__ import annotations

import pytest

from netqos.engine.fluid import Htb
from netqos.engine.fluidtree import Member as FluidMember
from netqos.engine.fluidtree import Tree as FluidTree
from netqos.model.levels import Level, PerLevel
from netqos.testing.states import M, bands
from netqos_tc import numbers, params
from netqos_tc.ground import Ground, Member
from netqos_tc.keys import ClassKey, QueueKey
from netqos_tc.spec import ClassSpec, LeafQueueSpec
from netqos_tc.tree import tree

IFINDEX = 7


def fluid_numbers(one: Htb) -> list[float]:
    return [one.shape.rate, one.shape.ceil, one.shape.burst, one.shape.cburst]


def kernel_numbers(spec: ClassSpec) -> list[float]:
    return [
        spec.rate,
        spec.ceil,
        params.burst_bytes(spec.buffer, spec.rate),
        params.burst_bytes(spec.cbuffer, spec.ceil),
    ]


@pytest.mark.parametrize("total", [20, 60, 600, 10_000, 90_000])
@pytest.mark.parametrize("count", [1, 7, 300])
def test_classes_and_queues_are_those_of_the_backend(total: int, count: int) -> None:
    total_bps = total * M
    promised = bands(
        (total_bps * 5 // 10, total_bps * 3 // 10, total_bps * 2 // 10),
        (total_bps * 9 // 10, total_bps * 8 // 10, total_bps),
    )
    limits = [None, total_bps // 17, M]
    members = [
        FluidMember(name=f"p{n}", level=Level(n % 3), limit_bps=limits[n % 5 % 3]) for n in range(count)
    ]
    fluid = FluidTree(total_bps=total_bps, bands=promised, members=members)
    minors = {numbers.FIRST_POD + place: one for place, one in enumerate(members)}
    ground = Ground(ifindex=IFINDEX, mtu=1500, total_bps=total_bps, bands=promised, queue_ms=20)
    specs = tree(
        ground,
        {minor: Member(level=one.level, limit_bps=one.limit_bps) for minor, one in minors.items()},
        {},
    ).specs
    wanted = {numbers.TOTAL: fluid.total, **dict(zip(numbers.LEVELS.values(), fluid.levels, strict=True))}
    wanted |= dict(zip(minors, fluid.leaves, strict=True))
    for minor, one in wanted.items():
        spec = specs[ClassKey(IFINDEX, minor)]
        assert isinstance(spec, ClassSpec)
        assert fluid_numbers(one) == pytest.approx(kernel_numbers(spec), rel=0.01, abs=1)
        if minor in minors:
            queue = specs[QueueKey(IFINDEX, minor)]
            assert isinstance(queue, LeafQueueSpec)
            assert (one.prio, one.quantum) == (spec.prio, spec.quantum)
            assert fluid.limits[minor - numbers.FIRST_POD] == pytest.approx(queue.limit, abs=1)


@pytest.mark.parametrize(
    ("ceiling", "room"), [(700, None), (100, None), (5000, None), (600, 700), (650, 300)]
)
def test_what_the_loop_moves_is_moved_alike(ceiling: int, room: int | None) -> None:
    promised = bands((500 * M, 300 * M, 200 * M), (1000 * M, 800 * M, 1000 * M))
    fluid = FluidTree(total_bps=1000 * M, bands=promised, members=[])
    ground = Ground(ifindex=numbers.IFB_INDEX, mtu=1500, total_bps=1000 * M, bands=promised, queue_ms=20)
    steered = tree(ground, {}, {}).steered
    assert steered is not None
    fluid.lend(ceiling * M, None if room is None else room * M)
    moved = steered if room is None else steered.in_room(room * M // 8)
    moved = moved.with_ceiling(min(ceiling, 1000) * M // 8)
    for one, spec in zip([fluid.total, *fluid.levels], [moved.total, *moved.levels], strict=True):
        assert fluid_numbers(one) == pytest.approx(kernel_numbers(spec), rel=0.01, abs=1)


def test_a_part_of_a_shared_total_is_put_in_force_alike() -> None:
    promised = bands((500 * M, 300 * M, 200 * M), (1000 * M, 800 * M, 1000 * M))
    fluid = FluidTree(total_bps=1000 * M, bands=promised, members=[])
    ground = Ground(ifindex=IFINDEX, mtu=1500, total_bps=1000 * M, bands=promised, queue_ms=20, parts=2)
    steered = tree(ground, {}, {}).steered
    assert steered is not None
    guarantees, ceilings = PerLevel(90 * M, 250 * M, 10 * M), PerLevel(300 * M, 350 * M, 50 * M)
    fluid.share(350 * M, guarantees, ceilings)
    part = steered.in_part(
        350 * M // 8, guarantees.map(lambda bps: bps // 8), ceilings.map(lambda bps: bps // 8)
    )
    for one, spec in zip([fluid.total, *fluid.levels], [part.total, *part.levels], strict=True):
        assert fluid_numbers(one) == pytest.approx(kernel_numbers(spec), rel=0.01, abs=1)
