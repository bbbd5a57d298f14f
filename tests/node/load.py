"""Greedy traffic of real pods, in either direction, and what of it arrives."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Self

from netqos.model.levels import Direction
from netqos.testing.analysis import Series
from netqos.testing.meter import Meter, Source
from netqos.testing.traffic import TcpFlow, Traffic
from tests.node.pods import Pods

TX, RX = Direction.TX, Direction.RX
SETTLE_S = 1.0

Key = tuple[str, Direction]


class Load:
    """Flows by pod and direction; use it in a `with` statement."""

    def __init__(self, pods: Pods) -> None:
        """Nothing is sent yet."""
        self._pods = pods
        self._traffic = Traffic(pods)
        self._flows: dict[Key, TcpFlow] = {}
        self._heard: dict[Key, int] = {}
        self._listeners: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        """Nothing more."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all flows, and hear nobody more."""
        self._traffic.stop()
        for one in self._listeners:
            one.kill()
            one.wait()

    def start(self, names: Iterable[str], directions: Iterable[Direction] = (TX, RX)) -> None:
        """A greedy flow of each pod in each direction, from now on."""
        made = {
            (name, direction): self._traffic.tcp(name, towards_pod=direction is RX)
            for name in names
            for direction in directions
        }
        for flow in made.values():
            flow.start()
        self._flows |= made

    def hear(self, name: str, port: int) -> list[str]:
        """Count what a pod sends to a port of the wire by itself; the command that makes it do so."""
        listener = self._pods.wire.popen(["iperf3", "--server", "--port", str(port)])
        self._listeners.append(listener)
        self._heard[name, TX] = port
        return ["iperf3", "--client", self._pods.wire.address, "--port", str(port), "--time", "3600"]

    def stop(self, *names: str) -> None:
        """End all flows of these pods."""
        for name, direction in list(self._flows):
            if name in names:
                self._flows.pop((name, direction)).stop()

    def series(self, seconds: float, *, settle_s: float = SETTLE_S) -> Series:
        """What arrives of each flow from now on (`settle_s` later)."""
        time.sleep(settle_s)
        with self.metered() as meter:
            time.sleep(seconds)
            for flow in self._flows.values():
                flow.check()
            return meter.stop()

    def metered(self) -> Meter:
        """What counts all flows, by `pod direction`, in Ethernet bytes."""
        sources = {flow_name(key): self._source(key) for key in self._flows}
        sources |= {flow_name(key): Source(port=port) for key, port in self._heard.items()}
        return Meter(self._pods.wire, sources)

    def rates(self, seconds: float = 2.0, *, settle_s: float = SETTLE_S) -> Mapping[Key, float]:
        """The mean rate of each flow, in bits per second."""
        series = self.series(seconds, settle_s=settle_s)
        began_s, ended_s = series.at_s[0], series.at_s[-1]
        keys = (*self._flows, *self._heard)
        return {key: series.rate_bps(flow_name(key), began_s, ended_s) for key in keys}

    def expect(self, wanted: Mapping[Key, float], *, seconds: float = 1.5, tries: int = 10) -> None:
        """That the flows come to what is wanted, in bits per second; AssertionError with all that was met otherwise.

        A direction as a whole must carry 90 to 103 percent, and each flow's part of it be within 8 percent of its own:
        on a busy machine all flows together lose what the kernel's timers are late by.
        """
        met = []
        for _ in range(tries):
            rates = self.rates(seconds, settle_s=0.5)
            if all(is_close(rates, wanted, direction) for direction in (TX, RX)):
                return
            met.append({f"{name} {way.value}": f"{rate / 1e6:.1f}" for (name, way), rate in rates.items()})
        told = {f"{name} {way.value}": f"{rate / 1e6:.1f}" for (name, way), rate in wanted.items()}
        raise AssertionError(f"wanted {told}, met {met} Mbit/s")

    def _source(self, key: Key) -> Source:
        name, direction = key
        if direction is TX:
            return Source(port=self._flows[key].port)
        return Source(address=self._pods.wire.address, at=self._pods.place(name))


def is_close(rates: Mapping[Key, float], wanted: Mapping[Key, float], direction: Direction) -> bool:
    """Whether a direction's flows together, and each one's part of them, are what is wanted."""
    found = {key: rates.get(key, 0.0) for key in rates.keys() | wanted.keys() if key[1] is direction}
    total, whole = sum(found.values()), sum(wanted.get(key, 0.0) for key in found)
    if not 0.9 * whole <= total <= 1.03 * whole:
        return False
    return all(
        abs(rate / total - wanted.get(key, 0.0) / whole) <= 0.08 * wanted.get(key, 0.0) / whole + 0.005
        for key, rate in found.items()
    )


def flow_name(key: Key) -> str:
    """As a flow is called in a series."""
    return f"{key[0]} {key[1].value}"
