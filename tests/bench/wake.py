"""wake-up: 250 idle workloads of L2 that begin to send in one moment, while L0 is at its promise."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator, Sequence

from netqos.model.levels import Direction, Level
from netqos.testing.analysis import Series
from netqos.testing.meter import Meter, Source, udp_framing
from netqos.testing.namespaces import Namespace
from netqos.testing.netns import Rig
from netqos.testing.traffic import UDP_PAYLOAD, Datagrams, Traffic, arriving
from tests.bench import crowd
from tests.bench.figures import Figure, at_least
from tests.bench.options import Options, say
from tests.bench.shapers import M, running

COUNT = 250
TOTAL_BPS = 400 * M
_L0_BPS = TOTAL_BPS // 2
_GUARANTEES = {"l1": TOTAL_BPS * 3 // 10, "l2": TOTAL_BPS // 5}
_WAKES, _IDLE_S, _AWAKE_S = 3, 1.2, 0.8
_UDP_SEGMENT = 103  # include/uapi/linux/udp.h
_PORT, _PORTS = 7100, 7


def wake_up(options: Options) -> list[Figure]:
    """The worst 100 ms of L0, which offers 97 percent of its guarantee: what arrives of what comes to the node."""
    figures = []
    for direction in Direction:
        say(f"wake-up: {direction.pod_word}")
        runs, calm = [], []
        for _ in range(options.runs):
            woken, before = _measure(direction)
            runs.append(woken)
            calm.append(before)
        figures.append(
            Figure(
                bench="wake-up",
                what=f"{direction.pod_word}, {COUNT} workloads of L2 wake: worst 100 ms of L0",
                unit="%",
                runs=tuple(runs),
                target=at_least(95),
                baseline=tuple(calm),
                baseline_name="while they are idle",
            )
        )
    return figures


def _measure(direction: Direction) -> tuple[float, float]:
    way = direction.value
    levels = {name: {f"{way}Min": str(bps)} for name, bps in _GUARANTEES.items()}
    with Rig(pods=("web", "api", crowd.NAME)) as rig:
        crowd.settle(rig, COUNT)
        workloads = [
            *crowd.workloads(COUNT, level=lambda _number: Level.L2),
            {"name": "web", "match": {"addresses": [rig.pod("web").address]}, "level": "l0"},
            {"name": "api", "match": {"addresses": [rig.pod("api").address]}, "level": "l1"},
        ]
        document = crowd.config(workloads, total=str(TOTAL_BPS), rx=str(TOTAL_BPS))
        document["policy"]["levels"] = levels
        with running(rig, document):
            return _watch(rig, direction)


def _watch(rig: Rig, direction: Direction) -> tuple[float, float]:
    traffic = Traffic(rig)
    towards_pod = direction is Direction.RX
    traffic.udp("web", Datagrams(rate_bps=_L0_BPS * 97 // 100, segments=2), towards_pod=towards_pod).start()
    traffic.tcp("api", towards_pod=towards_pod).start()
    framing = udp_framing(UDP_PAYLOAD)
    web = rig.pod("web").address
    metered = {
        "arrived": arriving(rig, "web", direction, framing=framing),
        "offered": Source(address=web, framing=framing, at=rig.node, is_target=towards_pod),
    }
    here, there = rig.pod(crowd.NAME), rig.wire
    source, sink = (there, here) if towards_pod else (here, there)
    time.sleep(1)
    with _taken(sink), Meter(rig.wire, metered, interval_s=0.01) as meter:
        time.sleep(_IDLE_S)
        woken = source.fork(_wake, crowd.addresses(COUNT), rig.wire.address, towards_pod=towards_pod)
        at_s = woken.result(timeout_s=30)
        series = meter.stop()
    traffic.stop()
    calm = _worst(series, series.at_s[0], at_s[0])
    return 100 * min(_worst(series, one, one + _AWAKE_S) for one in at_s), 100 * calm


@contextlib.contextmanager
def _taken(sink: Namespace) -> Iterator[None]:
    """Sockets that take the packets of those who wake, and drop them: no answers that nobody listens."""
    with contextlib.ExitStack() as stack:
        for port in range(_PORT, _PORT + _PORTS):
            with sink.entered():
                one = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            one.bind(("", port))
        yield


def _worst(series: Series, start_s: float, end_s: float) -> float:
    """The least share of what was offered in 100 ms that arrived in them."""
    seen = series.between(start_s, end_s)
    arrived, offered = (seen.windows(name, width_s=0.1) for name in ("arrived", "offered"))
    return min(one / other for one, other in zip(arrived, offered, strict=True) if other > 0)


def _wake(pods: Sequence[str], wire: str, *, towards_pod: bool) -> list[float]:
    """Several times: nothing for a while, then all at once; the moments of the first packets.

    From each, at once 256 KB in packets of 64, more than its burst and its queue, then together twice the link.
    """
    sockets = []
    for place, pod in enumerate(pods):
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        one.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, UDP_PAYLOAD)
        one.bind(("" if towards_pod else pod, 0))
        one.connect((pod if towards_pod else wire, _PORT + place % _PORTS))
        one.setblocking(False)
        sockets.append(one)
    large, small = bytes(UDP_PAYLOAD * 44), bytes(UDP_PAYLOAD * 8)
    moments = []
    for _ in range(_WAKES):
        moments.append(time.monotonic())
        for _ in range(4):
            _send_all(sockets, large)
        while time.monotonic() < moments[-1] + _AWAKE_S:
            _send_all(sockets, small)
            time.sleep(0.03)
        time.sleep(_IDLE_S)
    return moments


def _send_all(sockets: Sequence[socket.socket], data: bytes) -> None:
    for one in sockets:
        with contextlib.suppress(OSError):  # a full queue, or the answer of a port that nobody listens on
            one.send(data)
