"""kube-outage, kube-reconnects and kube-quiet: a long outage, many lost connections, and what a quiet node asks.

Durations are those of the claims; each takes minutes, so that they run only when they are named.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.bench.figures import Figure, at_most, number
from tests.bench.kubenode import EGRESS, KubeNode, following_node
from tests.bench.options import Options, say

OUTAGE_PODS, OUTAGE_MIN, SAMPLE_S = 300, 10, 1.0
CHANGED, REMOVED, CREATED = 80, 60, 60
RECONNECT_PODS, WARM_UP = 500, 50
QUIET_PODS, QUIET_MIN, HEARTBEAT_S = 100, 60, 10.0

Limits = Mapping[str, str]


# -------------------------------------------------------------- kube-outage


def kube_outage(options: Options) -> list[Figure]:
    """The server refuses for minutes while 200 pods change, come and go; then how soon the kernel has the truth."""
    minutes = options.minutes or OUTAGE_MIN
    say(f"kube-outage: {OUTAGE_PODS} pods, {minutes} minutes")
    with following_node(OUTAGE_PODS) as node:
        before = node.limits()
        node.proxy.refuse()
        node.proxy.reset()
        after, wrong, samples = outage(node, before, 60.0 * minutes)
        node.proxy.restore()
        converged_s, wrong_after, samples_after = recovery(node, before, after)
    told = f"{minutes} min, {len(_changes())} pod changes"
    figure = partial(_figure, bench="kube-outage")
    return [
        figure(f"{told}: converged after its end", "s", converged_s, 2),
        figure("wrong limits meanwhile", f"of {samples} samples", wrong, 0, note="one a second"),
        figure("wrong limits afterwards", f"of {samples_after} samples", wrong_after, 0),
    ]


@dataclass(frozen=True, slots=True)
class _Change:
    """One pod, by its address, and the limit that it has from then on; None: it is gone."""

    name: str
    address: str
    limit: str | None
    is_new: bool = False

    def make(self, node: KubeNode) -> None:
        """Write it to the server."""
        if self.limit is None:
            node.kube.remove_pod(self.name)
        elif self.is_new:
            node.kube.create_pod(self.name, ips=[self.address], annotations={EGRESS: self.limit})
        else:
            node.kube.annotate_pod(self.name, {EGRESS: self.limit})


def _changes() -> list[_Change]:
    """80 other limits, 60 pods that go, 60 that come: half of these with the address of one that went."""

    def address(place: int) -> str:
        return f"10.88.{place >> 8}.{place & 255}"

    found = [_Change(f"pod-{place}", address(place + 1), "20M") for place in range(CHANGED)]
    gone = range(CHANGED, CHANGED + REMOVED)
    found += [_Change(f"pod-{place}", address(place + 1), None) for place in gone]
    places = [*gone[: CREATED // 2], *range(1000, 1000 + CREATED // 2)]
    return [*found, *(_Change(f"new-{place}", address(place + 1), "30M", is_new=True) for place in places)]


def outage(node: KubeNode, before: Limits, length_s: float) -> tuple[Limits, int, int]:
    """What the limits shall be afterwards; samples with anything else than `before`; all samples."""
    began_s, expected, wrong, samples = time.monotonic(), dict(before), 0, 0
    changes = _changes()
    for place, change in enumerate(changes, 1):
        change.make(node)
        expected.pop(change.address, None)
        if change.limit is not None:
            expected[change.address] = f"{change.limit}bit"
        while True:
            node.daemon.check()
            samples += 1
            wrong += node.limits() != before
            left_s = began_s + length_s * place / len(changes) - time.monotonic()
            time.sleep(max(0.0, min(SAMPLE_S, left_s)))
            if left_s <= SAMPLE_S:
                break
    return expected, wrong, samples


def recovery(
    node: KubeNode, before: Limits, after: Limits, *, settled_s: float = 10.0
) -> tuple[float, int, int]:
    """Seconds until the limits are `after`; samples up to `settled_s` later with a limit of neither; all samples."""
    began_s, converged_s, wrong, samples = time.monotonic(), math.inf, 0, 0
    while (now_s := time.monotonic() - began_s) < min(60.0, converged_s + settled_s):
        found = node.limits()
        samples += 1
        if found == after:
            converged_s = min(converged_s, time.monotonic() - began_s)
        elif now_s > converged_s or not _is_between(found, before, after):
            wrong += 1
    return converged_s, wrong, samples


def _is_between(found: Limits, before: Limits, after: Limits) -> bool:
    """Every address has the limit of before or of after; one that changed hands may be nobody's for a moment."""
    addresses = {*found, *before, *after}

    def allowed(address: str) -> set[str | None]:
        then = after.get(address)
        return {before.get(address), then, *([None] if then == "30Mbit" else [])}

    return all(found.get(one) in allowed(one) for one in addresses)


# -------------------------------------------------------------- kube-reconnects


def kube_reconnects(options: Options) -> list[Figure]:
    """All connections reset again and again: threads, descriptors and memory of the daemon before and after."""
    say(f"kube-reconnects: {RECONNECT_PODS} pods, {options.reconnects} resets of all three watches")
    with following_node(RECONNECT_PODS) as node:
        for _ in range(WARM_UP):
            _reconnect(node)
        before = _usage(node)
        for _ in range(options.reconnects):
            _reconnect(node)
        after = _usage(node)
    told = f"{options.reconnects} reconnects"
    return [
        _growth(f"{told}: {what} more", unit, (getattr(before, what), getattr(after, what)), most)
        for what, unit, most in (("threads", "", 0), ("descriptors", "", 0), ("memory", "MiB", 1))
    ]


@dataclass(frozen=True, slots=True)
class _Usage:
    threads: int
    descriptors: int
    memory: float


def _reconnect(node: KubeNode) -> None:
    """Reset every connection; wait until all three watches were asked for again."""
    seen = len(node.proxy.requests)
    node.proxy.reset()
    if node.wait(lambda: len(node.proxy.requests) >= seen + 3, 30) == math.inf:
        raise RuntimeError("not connected again within 30 s")
    node.daemon.check()


def _usage(node: KubeNode) -> _Usage:
    """Once all watches stand."""
    node.wait(lambda: node.proxy.connections >= 3, 10)
    time.sleep(2)
    folder = Path(f"/proc/{node.daemon.pid}")
    text = (folder / "status").read_text(encoding="ascii")
    threads, resident = (re.search(rf"^{key}:\s+(\d+)", text, re.MULTILINE) for key in ("Threads", "VmRSS"))
    assert threads is not None
    assert resident is not None
    return _Usage(int(threads[1]), len(list((folder / "fd").iterdir())), int(resident[1]) / 1024)


def _growth(what: str, unit: str, pair: tuple[float, float], most: float) -> Figure:
    note = f"{number(pair[0])} before, {number(pair[1])} after"
    return _figure(what, unit, pair[1] - pair[0], most, bench="kube-reconnects", note=note)


# -------------------------------------------------------------- kube-quiet


def kube_quiet(options: Options) -> list[Figure]:
    """Requests of a node on which nothing changes, while others of the cluster send their heartbeats."""
    minutes = options.minutes or QUIET_MIN
    say(f"kube-quiet: {QUIET_PODS} pods, {minutes} minutes")
    with following_node(QUIET_PODS) as node:
        node.wait(lambda: sum(one.is_watch for one in node.proxy.requests) >= 3, 10)
        began = len(node.proxy.requests)
        watches = _listen(node, 60.0 * minutes)
        asked = node.proxy.requests[began:]
    lists = sum(not one.is_watch for one in asked)
    note = f"{lists} of them lists, which come every 45 to 90 minutes"
    most = 30 * minutes / 60
    counted = _figure(f"requests in {minutes} min", "", len(asked), most, bench="kube-quiet", note=note)
    return [counted, *_periods(watches)]


def _listen(node: KubeNode, length_s: float) -> Mapping[str, list[float]]:
    """When each path was watched anew; a foreign object is written each 10 s, as another node's lease would be."""
    began_s = beat_s = time.monotonic()
    seen = len(node.proxy.requests)
    times: dict[str, list[float]] = {}
    other = node.kube.create_node("heartbeats")["metadata"]["name"]
    while (now_s := time.monotonic()) < began_s + length_s:
        if now_s >= beat_s:
            beat_s += HEARTBEAT_S
            node.kube.annotate_node({"example.org/beat": str(now_s)}, node=other)
        for request in node.proxy.requests[seen:]:
            seen += 1
            if request.is_watch:
                times.setdefault(request.path, []).append(now_s)
        time.sleep(0.2)
    return times


def _periods(watches: Mapping[str, list[float]]) -> Iterator[Figure]:
    """Requests an hour from whole periods alone: from one watch to a later one of the same kind."""
    whole = {path: times for path, times in watches.items() if len(times) > 1}
    periods = sum(len(times) - 1 for times in whole.values())
    if len(whole) < 3:
        say(f"kube-quiet: {periods} whole periods in all: too few for requests an hour")
        return
    rate = sum((len(times) - 1) * 3600 / (times[-1] - times[0]) for times in whole.values())
    note = f"from {periods} whole periods; and 4 lists at most"
    yield _figure("watches an hour", "", rate, 26, bench="kube-quiet", note=note)


def _figure(what: str, unit: str, value: float, most: float, *, bench: str, note: str = "") -> Figure:
    return Figure(bench=bench, what=what, unit=unit, runs=(float(value),), target=at_most(most), note=note)
