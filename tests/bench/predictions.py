"""predictions: what `netqosctl simulate` says of thirty scenarios, against the real daemon and the kernel."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from netqos.engine.demandtext import parse_demand
from netqos.engine.fluidflows import Kind
from netqos.engine.predict import predict
from netqos.engine.scenario import read_scenario
from netqos.model.levels import Direction, Level
from netqos.testing.daemon import Document, workload
from netqos.testing.meter import TCP, Meter, udp_framing
from netqos.testing.netns import Rig
from netqos.testing.traffic import UDP_PAYLOAD, Datagrams, Traffic, arriving
from tests.bench.figures import Figure, at_most
from tests.bench.options import Options, say
from tests.bench.predicted import CASES, Case
from tests.bench.shapers import M, running

WARM_S, MEASURE_S = 1.2, 1.8
LEAST = 0.05
"""A level that is predicted less than this share of the total is compared in parts of that share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One scenario: bits per second by level, predicted and measured."""

    case: Case
    total_bps: int
    predicted: Mapping[Level, float]
    measured: Mapping[Level, float]

    @property
    def off(self) -> float:
        """The largest deviation of a level, as a share of what was predicted."""
        return max(
            abs(self.measured[level] - wanted) / max(wanted, LEAST * self.total_bps)
            for level, wanted in self.predicted.items()
        )

    def __str__(self) -> str:
        return ", ".join(
            f"{level.name} {self.measured[level] / M:.1f} of {wanted / M:.1f}"
            for level, wanted in self.predicted.items()
        )


def predictions(options: Options) -> list[Figure]:
    """The level that is farthest from its prediction, for each scenario."""
    figures = []
    for case in CASES:
        say(f"predictions: {case.name}")
        found = [compared(case) for _ in range(options.runs)]
        figures.append(
            Figure(
                bench="predictions",
                what=f"{case.way.pod_word}, {case.name}: farthest level",
                unit="%",
                runs=tuple(100 * one.off for one in found),
                target=at_most(5),
                note=f"Mbit/s: {found[-1]}",
            )
        )
    return figures


def compared(case: Case, *, warm_s: float = WARM_S, measure_s: float = MEASURE_S) -> Compared:
    """Predict one scenario, then let it happen."""
    (found,) = predict(read_scenario(text_of(case), case.name))
    levels = {Level.parse(pod.level) for pod in case.pods} - {None}
    predicted = {level: float(found.phases[-1].levels_bps[level]) for level in Level if level in levels}
    with Rig(pods=tuple(case.each)) as rig, running(rig, _document(rig, case)):
        rates = _measure(rig, case, warm_s, measure_s)
    measured = dict.fromkeys(predicted, 0.0)
    for name, pod in case.each.items():
        level = Level.parse(pod.level)
        assert level is not None
        measured[level] += rates[name]
    return Compared(case=case, total_bps=found.total_bps, predicted=predicted, measured=measured)


def text_of(case: Case) -> str:
    """The scenario as a file has it."""
    return json.dumps(case.scenario)


def _document(rig: Rig, case: Case) -> Document:
    word = case.way.pod_word
    workloads = []
    for name, pod in case.each.items():
        level = Level.parse(pod.level)
        assert level is not None
        more = {"limits": {word: pod.limit}} if pod.limit else {}
        workloads.append(workload(rig, name, level, **more))
    return {**case.head, "workloads": workloads}


def _measure(rig: Rig, case: Case, warm_s: float, measure_s: float) -> Mapping[str, float]:
    """Bits per second of each pod as HTB counts them, after things have come to rest."""
    traffic = Traffic(rig)
    towards_pod = case.way is Direction.RX
    metered = {}
    with ExitStack() as stack:
        stack.callback(traffic.stop)
        for name, pod in case.each.items():
            demand = parse_demand(pod.wants)
            if demand.kind is Kind.UDP:
                datagrams = Datagrams(rate_bps=demand.rate_bps or 0, segments=4)
                traffic.udp(name, datagrams, towards_pod=towards_pod).start()
            else:
                traffic.tcp(name, streams=demand.flows, towards_pod=towards_pod).start()
            framing = udp_framing(UDP_PAYLOAD) if demand.kind is Kind.UDP else TCP
            metered[name] = arriving(rig, name, case.way, framing=framing)
        with Meter(rig.wire, metered) as meter:
            time.sleep(warm_s + measure_s)
            series = meter.stop()
    end_s = series.at_s[-1]
    return {name: series.rate_bps(name, end_s - measure_s, end_s) for name in metered}
