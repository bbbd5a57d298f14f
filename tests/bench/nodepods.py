"""node-pods: from a pod's address in the API to its class on a real Kubernetes node; promises on its pods' traffic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from netqos.model.levels import Direction, Level
from netqos.testing.analysis import Series, percentile, summarize
from tests.bench.figures import Figure, Target, at_least, at_most
from tests.bench.options import Options, say
from tests.node.churn import CLASSES, Known, Listener, churn
from tests.node.contention import RECEIVERS, SENDERS, Contention
from tests.node.fixtures import warm_up
from tests.node.load import RX, TX, flow_name
from tests.node.policies import M
from tests.node.programs import find_node_programs
from tests.node.realnode import RealNode
from tests.node.scene import Scene

PODS = 40
CHURN_S = 120.0
_GROUP = 4
_MEASURE_S = 5.0
_TOTAL_BPS = {TX: 200 * M, RX: 150 * M}
_LINE_BPS = 165 * M
_POLICY = {
    "networkQOSStrategy": {
        "enable": True,
        "nodeBandwidthLimit": {
            "hw": {"tx": "200M", "rx": "150M"},
            "l1": {"txMin": "60M", "rxMin": "37M"},
            "l2": {"txMin": "40M", "rxMin": "53M"},
        },
    }
}
_GUARANTEES_BPS: Mapping[Direction, Mapping[Level, int]] = {
    TX: {Level.L0: 100 * M, Level.L1: 60 * M, Level.L2: 40 * M},
    RX: {Level.L0: 60 * M, Level.L1: 37 * M, Level.L2: 53 * M},
}


def node_pods(options: Options) -> list[Figure]:
    """With 40 pods that come, then 40 that are replaced for two minutes while the levels are full."""
    with ExitStack() as stack:
        node = stack.enter_context(RealNode(find_node_programs()))
        warm_up(node)
        scene = stack.enter_context(Scene(node, "node-pods"))
        contention = Contention(scene, _POLICY, line_bps=_LINE_BPS)
        return [
            *_promises(contention, options.runs),
            *_arrivals(scene),
            *_churned(contention, (options.minutes or CHURN_S / 60) * 60),
        ]


def _promises(contention: Contention, runs: int) -> Iterator[Figure]:
    """One direction after the other: the acknowledgements of one take their part of the other's guarantees."""
    for direction, members in ((TX, SENDERS), (RX, RECEIVERS)):
        way = direction.pod_word
        say(f"node-pods: promises, {way}, {runs} times")
        with contention.load() as load:
            load.start(members, [direction])
            found = [load.series(_MEASURE_S) for _ in range(runs)]
        least = tuple(min(_kept(series, members, direction).values()) for series in found)
        yield _one(f"{way}: worst second, of the guarantee", "%", least, at_least(98))
        totals = [summarize(_summed(series, members, direction), "all") for series in found]
        total_bps = _TOTAL_BPS[direction]
        used = tuple(100 * one.mean_bps / total_bps for one in totals)
        yield _one(f"{way}: link used", "%", used, at_least(98))
        best = tuple(100 * one.best_bps / total_bps for one in totals)
        yield _one(f"{way}: best second, of the total", "%", best, at_most(102))


def _kept(series: Series, members: Mapping[str, Level], direction: Direction) -> Mapping[Level, float]:
    """The worst second of each level in percent of its guarantee."""
    return {
        level: 100
        * summarize(series, flow_name((name, direction))).worst_bps
        / _GUARANTEES_BPS[direction][level]
        for name, level in members.items()
    }


def _summed(series: Series, members: Mapping[str, Level], direction: Direction) -> Series:
    return series.summed("all", [flow_name((name, direction)) for name in members])


def _arrivals(scene: Scene) -> Iterator[Figure]:
    say(f"node-pods: {PODS} pods come, {_GROUP} at a time")
    names = [f"come-{number}" for number in range(PODS)]
    with Listener(scene.node, scene.kube.namespace) as listener:
        for first in range(0, PODS, _GROUP):
            group = names[first : first + _GROUP]
            for number, name in enumerate(group):
                scene.pods.create(name, **CLASSES[number % len(CLASSES)])
            for name in group:
                scene.pods.wait_running(name)
        known = listener.known()
    scene.pods.delete(*names)
    yield from _delays(f"{PODS} pods come", known)


def _churned(contention: Contention, seconds: float) -> Iterator[Figure]:
    say(f"node-pods: {PODS} pods are replaced for {seconds:.0f} s")
    scene = contention.scene
    with Listener(scene.node, scene.kube.namespace) as listener, contention.load() as load:
        load.start(SENDERS, [TX])
        with load.metered() as meter:
            made = churn(scene, pods=PODS, seconds=seconds)
            series = meter.stop()
        known = listener.known()
    yield _one(f"churn of {seconds:.0f} s: pods that came", "", (float(made),), None)
    yield from _delays(f"churn of {seconds:.0f} s", known)
    for level, kept in _kept(_settled(series), SENDERS, TX).items():
        yield _one(
            f"churn of {seconds:.0f} s, egress: {level.name}'s worst second", "%", (kept,), at_least(95)
        )


def _settled(series: Series) -> Series:
    """Without the first second, in which flows find their shares."""
    return series.between(series.at_s[0] + 1, series.at_s[-1])


def _delays(what: str, known: Sequence[Known]) -> Iterator[Figure]:
    found = [1000 * one.delay_s for one in known]
    text = f"{what}: address in the API until its packets are in its level"
    yield _one(f"{text}: p50", "ms", (percentile(found, 50),), None)
    figure = _one(f"{text}: p95", "ms", (percentile(found, 95),), at_most(300))
    yield replace(figure, note=f"{len(found)} pods, at most {max(found):.0f} ms")


def _one(what: str, unit: str, runs: tuple[float, ...], target: Target | None) -> Figure:
    return Figure(bench="node-pods", what=what, unit=unit, runs=runs, target=target)
