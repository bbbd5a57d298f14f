"""Who shapes the rig's traffic in a measurement: the daemon, the same tree by hand, or one plain queue."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from netqos.model.desired import Band
from netqos.model.levels import Direction, Level, PerLevel
from netqos.testing.daemon import Daemon, Document, workload
from netqos.testing.netns import Rig
from tests.bench import baseline

M = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is measured: a direction with its total and levels, and the pods with their levels.

    The other direction has more, and the usual levels: figures of one that were really the other's would be wrong.
    """

    total_bps: int
    pods: Mapping[str, Level]
    direction: Direction = Direction.TX
    ceilings_bps: Mapping[Level, int] = field(default_factory=dict)
    limits_bps: Mapping[str, int] = field(default_factory=dict)

    @property
    def bands(self) -> PerLevel[Band]:
        """Guarantees of a half, a third and a sixth, as in all of the project's comparisons."""
        l1, l2 = self.total_bps // 3, self.total_bps // 6
        guarantees = PerLevel(self.total_bps - l1 - l2, l1, l2)

        def band(level: Level) -> Band:
            ceiling = self.ceilings_bps.get(level, self.total_bps)
            return Band(guarantee_bps=min(guarantees[level], ceiling), ceiling_bps=ceiling)

        return PerLevel(band(Level.L0), band(Level.L1), band(Level.L2))

    def config(self, rig: Rig, *, backends: Sequence[str] = ("tc",)) -> Document:
        """The daemon's configuration for it."""
        bands, way = self.bands, self.direction.value
        levels = {
            level.name.lower(): {
                f"{way}Min": str(bands[level].guarantee_bps),
                f"{way}Max": str(bands[level].ceiling_bps),
            }
            for level in (Level.L1, Level.L2)
        }
        totals = {
            one.value: self.total_bps if one is self.direction else self.total_bps * 5 // 4
            for one in Direction
        }
        return {
            "node": {"bandwidth": {name: str(total) for name, total in totals.items()}},
            "policy": {"enable": True, "levels": levels},
            "workloads": [self._workload(rig, name, level) for name, level in self.pods.items()],
            "backends": list(backends),
        }

    def _workload(self, rig: Rig, name: str, level: Level) -> Document:
        limit = self.limits_bps.get(name)
        more = {} if limit is None else {"limits": {self.direction.pod_word: str(limit)}}
        return workload(rig, name, level, **more)


Shaper = Callable[[Rig, Case], AbstractContextManager[None]]


@contextmanager
def netqosd(rig: Rig, case: Case) -> Iterator[None]:
    """The real daemon with its tc backend."""
    with running_daemon(rig, case):
        yield


@contextmanager
def running_daemon(rig: Rig, case: Case, *, backends: Sequence[str] = ("tc",)) -> Iterator[Daemon]:
    """The same, for those who ask or end the daemon."""
    with running(rig, case.config(rig, backends=backends)) as daemon:
        yield daemon


@contextmanager
def running(rig: Rig, document: Document) -> Iterator[Daemon]:
    """A daemon with any configuration, from its start until it is killed."""
    daemon = Daemon(rig, document)
    daemon.start()
    try:
        yield daemon
    finally:
        with contextlib.suppress(ProcessLookupError):
            daemon.kill()


@contextmanager
def static_tree(rig: Rig, case: Case) -> Iterator[None]:
    """HTB and nft by hand, with nobody behind them."""
    baseline.install_static(
        rig, case.pods, total_bps=case.total_bps, bands=case.bands, direction=case.direction
    )
    yield


@contextmanager
def plain_queue(rig: Rig, case: Case) -> Iterator[None]:
    """The same bottleneck without levels."""
    baseline.install_plain(rig, total_bps=case.total_bps, direction=case.direction)
    yield


SHAPERS: Mapping[str, Shaper] = {"netqosd": netqosd, "static HTB": static_tree, "plain queue": plain_queue}
