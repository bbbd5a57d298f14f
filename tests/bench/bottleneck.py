"""bottleneck: a next hop that carries the total, 3 percent less, and 20 percent less.

L0 and L1 have one flow each, L2 has sixteen: in a queue that knows no levels it would get nearly all. Each figure is of
one run from the start of the traffic; what is behind the hop is counted where it arrives. A lone bbr flow pauses for a
fifth of a second every ten (PROBE_RTT): its worst second may be 80 percent of a share that nobody took from it, and the
mean tells.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from netqos.model.levels import Direction, Level
from netqos.testing import nexthop
from netqos.testing.analysis import median, settled_after_s, summarize
from netqos.testing.daemon import Daemon, Document, workload
from netqos.testing.meter import Meter
from netqos.testing.netns import Rig
from netqos.testing.networks import Network
from netqos.testing.traffic import Traffic, arriving
from tests.bench.figures import Figure, at_least, at_most
from tests.bench.options import Options, congestions, say
from tests.bench.shapers import M, running

TOTAL_BPS = 200 * M
PODS = {"web": Level.L0, "api": Level.L1, "batch": Level.L2}
FLOWS = {"web": 1, "api": 1, "batch": 16}
GUARANTEES = {"web": 0.5, "api": 0.3, "batch": 0.2}
NETWORK = Network(hop=True)
_RUN_S, _JUDGED_S, _BACK_S, _LONGEST_S = 26.0, 6.0, 120.0, 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """One direction, and what its next hop carries of the total."""

    direction: Direction
    share: float

    @property
    def carries_bps(self) -> int:
        """In HTB's counting."""
        return round(TOTAL_BPS * self.share)


def document(rig: Rig, *, auto: bool) -> Document:
    """Guarantees of 50, 30 and 20 percent; the other direction has twice the total."""
    word = "auto " if auto else ""
    levels = {name: {"txMin": share, "rxMin": share} for name, share in (("l1", "30%"), ("l2", "20%"))}
    return {
        "node": {"bandwidth": {"tx": f"{word}{TOTAL_BPS}", "rx": f"{word}{TOTAL_BPS}"}},
        "policy": {"enable": True, "levels": levels},
        "workloads": [workload(rig, name, level) for name, level in PODS.items()],
    }


@contextmanager
def contended(rig: Rig, path: Path, congestion: str) -> Iterator[Meter]:
    """All levels greedy, through the hop."""
    assert rig.hop is not None
    nexthop.narrow(rig.hop, path.direction, path.carries_bps)
    traffic = Traffic(rig)
    towards_pod = path.direction is Direction.RX
    flows = [
        traffic.tcp(name, congestion=congestion, streams=FLOWS[name], towards_pod=towards_pod)
        for name in PODS
    ]
    with Meter(rig.wire, {name: arriving(rig, name, path.direction) for name in PODS}) as meter:
        for flow in flows:
            flow.start()
        try:
            yield meter
        finally:
            traffic.stop()


def status_of(daemon: Daemon) -> Document:
    """The status, however long a busy machine takes."""
    while True:
        with contextlib.suppress(TimeoutError):
            found: Document = daemon.client.get("/v1/status")
            return found


def path_of(daemon: Daemon, direction: Direction) -> Mapping[str, object]:
    """What status says of the direction's path."""
    return next((one for one in status_of(daemon)["paths"] if one["direction"] == direction.value), {})


def bottleneck(options: Options) -> list[Figure]:
    """Guarantees at the three paths, and the time until one that is not reached is told, met, and left again."""
    figures: list[Figure] = []
    for direction in Direction:
        for congestion in congestions():
            for share, auto in ((1.0, False), (0.97, False), (0.8, True)):
                path = Path(direction=direction, share=share)
                say(f"bottleneck: {options.runs} times {direction.pod_word}, {congestion}, {share:.0%}")
                seen = [_run(path, congestion, auto=auto) for _ in range(options.runs)]
                figures += _figures(path, congestion, seen, auto=auto)
    return figures


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    worst: Mapping[str, float]
    mean: Mapping[str, float]
    settled_s: float
    told_s: float
    back_s: float


def _run(path: Path, congestion: str, *, auto: bool) -> _Seen:
    with Rig(pods=tuple(PODS), network=NETWORK) as rig, running(rig, document(rig, auto=auto)) as daemon:
        with contended(rig, path, congestion) as meter:
            start_s = time.monotonic()
            told_s = _told_after_s(daemon, path.direction, start_s) if auto else float("nan")
            time.sleep(max(0.0, start_s + _RUN_S - time.monotonic()))
            series = meter.series()
            back_s = _back_after_s(rig, daemon, path.direction) if auto else float("nan")
        promised = {name: share * path.carries_bps for name, share in GUARANTEES.items()}
        settled = settled_after_s(
            series, promised, start_s=start_s, end_s=start_s + _RUN_S, width_s=1.0, step_s=0.5
        )
        judged = series.between(start_s + _RUN_S - _JUDGED_S, start_s + _RUN_S)
        of_share = {name: summarize(judged, name) for name in promised}
        return _Seen(
            worst={name: 100 * of_share[name].worst_bps / bps for name, bps in promised.items()},
            mean={name: 100 * of_share[name].mean_bps / bps for name, bps in promised.items()},
            settled_s=float("inf") if settled is None else settled,
            told_s=told_s,
            back_s=back_s,
        )


def _told_after_s(daemon: Daemon, direction: Direction, start_s: float) -> float:
    while time.monotonic() - start_s < _LONGEST_S:
        if path_of(daemon, direction).get("proposed_bps") is not None:
            return time.monotonic() - start_s
        time.sleep(0.1)
    return float("inf")


def _back_after_s(rig: Rig, daemon: Daemon, direction: Direction) -> float:
    """Until the total is in force again once the hop lets everything pass."""
    assert rig.hop is not None
    nexthop.widen(rig.hop, direction)
    start_s = time.monotonic()
    while time.monotonic() - start_s < _BACK_S:
        total_bps = status_of(daemon)["directions"][direction.value]["total_bps"]
        if total_bps == TOTAL_BPS and path_of(daemon, direction)["limit_bps"] is None:
            return time.monotonic() - start_s
        time.sleep(0.2)
    return float("inf")


def _figures(path: Path, congestion: str, seen: list[_Seen], *, auto: bool) -> list[Figure]:
    what = f"{path.direction.pod_word}, {congestion}, path of {path.share:.0%}"
    by_level = ", ".join(
        f"{level.name} {median([one.worst[name] for one in seen]):.1f} "
        f"(mean {median([one.mean[name] for one in seen]):.1f})"
        for name, level in PODS.items()
    )
    figures = [
        Figure(
            bench="bottleneck",
            what=f"{what}: worst second of its share, from second {_RUN_S - _JUDGED_S:.0f} on",
            unit="%",
            runs=tuple(min(one.worst.values()) for one in seen),
            target=at_least(95),
            note=by_level,
        ),
        Figure(
            bench="bottleneck",
            what=f"{what}: all levels within 10 percent of their shares",
            unit="s",
            runs=tuple(one.settled_s for one in seen),
            note="from the start of the traffic",
        ),
    ]
    if auto:
        figures += [
            Figure(
                bench="bottleneck",
                what=f"{what}: told",
                unit="s",
                runs=tuple(one.told_s for one in seen),
                target=at_most(10),
            ),
            Figure(
                bench="bottleneck",
                what=f"{what}: the total is back after the path is wide again",
                unit="s",
                runs=tuple(one.back_s for one in seen),
            ),
        ]
    return figures
