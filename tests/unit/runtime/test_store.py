from __future__ import annotations

from netqos.runtime.store import Cell, Wake


async def test_a_cell_wakes_its_reader_only_for_a_different_value() -> None:
    wake = Wake()
    cell = Cell(1, wake=wake)
    assert not cell.set(1)
    assert not await wake.wait(0.0)
    assert cell.set(2)
    assert cell.value == 2
    assert await wake.wait(0.0)


async def test_many_events_count_as_one() -> None:
    wake = Wake()
    for _ in range(5):
        wake.set()
    assert await wake.wait(None)
    assert not await wake.wait(0.0)
