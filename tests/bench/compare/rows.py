"""The rows of the comparison: what each number is called and how it was measured. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from netqos.model.levels import Direction, Level
from tests.bench.moments import STEP_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One row: its key, what it is called, its unit, whether less is better (None: neither), how it was measured.

    `resolution`: what can be told apart at all, in its unit.
    """

    key: str
    title: str
    unit: str
    less_is_better: bool | None
    how: str
    resolution: float = 0.0


_READ = "read every 50 ms at the receiver"
_BINS = f"bins of 100 ms, one each 50 ms, {_READ}"
_ALL = f"after the first second of all three levels together, {_READ}"
PERCENTS = (50.0, 99.0, 99.9)
SHORT_PERCENTS = (50.0, 99.0)


def _of_direction(way: Direction) -> Iterator[Measure]:
    word = way.pod_word
    for level in Level:
        yield Measure(
            key=f"{way.value}.onset.{level.name}",
            title=f"{word}: {level.name} joins, all within 10 % of their share after",
            unit="ms",
            less_is_better=True,
            how=f"two greedy levels run, from its first data until all three stay there; {_BINS}",
            resolution=1000 * STEP_S,
        )
    for level in Level:
        yield Measure(
            key=f"{way.value}.release.{level.name}",
            title=f"{word}: {level.name} stops, the others use what is free after",
            unit="ms",
            less_is_better=True,
            how="from its last data until the others together stay above 90 percent of what they may have",
            resolution=1000 * STEP_S,
        )
    yield Measure(
        key=f"{way.value}.settled",
        title=f"{word}: L0 joins, steady after",
        unit="ms",
        less_is_better=True,
        how="until every level is within 10 percent of its own rate at the end, in nine bins of ten for a second",
        resolution=1000 * STEP_S,
    )
    yield from _of_rates(way)
    for percent in SHORT_PERCENTS:
        yield Measure(
            key=f"{way.value}.short.p{percent:g}",
            title=f"{word}: flow of 100 kB in L0 while L2 floods, p{percent:g}",
            unit="ms",
            less_is_better=True,
            how="connect to last byte, one after the other; L2 sends 1.5 times the total as UDP",
        )


def _of_rates(way: Direction) -> Iterator[Measure]:
    word = way.pod_word
    rows = (
        ("guarantee.worst", "worst second of the least served level, of its guarantee", False),
        ("guarantee.mean", "mean of the least served level, of its guarantee", False),
        ("used", "use of the total", None),
        ("total.best", "most in a second, of the total", True),
    )
    for key, title, less in rows:
        yield Measure(
            key=f"{way.value}.{key}", title=f"{word}: {title}", unit="%", less_is_better=less, how=_ALL
        )
    for key, title in (
        ("best", "most of a level in a second"),
        ("mean", "highest mean of a level in a part"),
    ):
        yield Measure(
            key=f"{way.value}.ceiling.{key}",
            title=f"{word}: {title}, of its ceiling",
            unit="%",
            less_is_better=None,
            how="the whole run, each level gone once",
        )


_WHOLE: tuple[Measure, ...] = (
    Measure(
        key="rx.node",
        title="ingress: the node itself receives a quarter, with it all together, of the total",
        unit="%",
        less_is_better=True,
        how="UDP to the node's own address beside three greedy levels, mean of 0.8 s, 0.4 s after it began",
    ),
    *(
        Measure(
            key=f"request.p{percent:g}",
            title=f"64-byte request of an L0 pod, p{percent:g}",
            unit="ms",
            less_is_better=True,
            how="an echo each 5 ms, answered and stamped by the kernel, while greedy flows fill both directions",
        )
        for percent in PERCENTS
    ),
    Measure(
        key="agent.cpu",
        title="agent: CPU",
        unit="% of a core",
        less_is_better=True,
        how="of its process, while greedy flows run",
    ),
    Measure(
        key="agent.rss",
        title="agent: memory",
        unit="MiB",
        less_is_better=True,
        how="resident, at the end of that",
    ),
    Measure(
        key="agent.late",
        title="agent: tick lateness p99",
        unit="ms",
        less_is_better=True,
        how="as it tells itself",
    ),
    Measure(
        key="agent.writes",
        title="agent: netlink writes",
        unit="a second",
        less_is_better=None,
        how="as it tells itself; of an agent that does not tell: what the kernel reports as changed",
    ),
)

MEASURES: Mapping[str, Measure] = {
    one.key: one for one in (*(row for way in Direction for row in _of_direction(way)), *_WHOLE)
}
