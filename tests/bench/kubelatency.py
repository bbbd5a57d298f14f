"""kube-latency: from a write to a real API server to the kernel, with 500 pods on the node; cold start; memory."""

from __future__ import annotations

import math
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from netqos.testing.daemon import Daemon
from netqos.testing.netns import Rig
from netqos.testing.relay import Relay
from tests.apiserver.kube import Kube
from tests.apiserver.server import ApiServer
from tests.bench.figures import Figure, at_most
from tests.bench.kubenode import EGRESS, cluster
from tests.bench.options import Options, say

PODS = 500
SAMPLES = 100

_CEIL = re.compile(r"ceil (\w+)")
_ADDRESS = re.compile(r"\b10\.88\.\d+\.\d+\b")
_WAIT_S = 5.0


class Heard:
    """What a monitor of the kernel told, each word with the time at which it was first told."""

    def __init__(self, rig: Rig, command: Sequence[str], word: re.Pattern[str]) -> None:
        """Start it in the rig's node."""
        self._word = word
        self._times: dict[str, float] = {}
        self._news = threading.Condition()
        self._process = rig.node.popen(["stdbuf", "-oL", *command], stdout=subprocess.PIPE)
        threading.Thread(target=self._listen, daemon=True).start()

    def wait(self, word: str) -> float:
        """When the word was told; inf where it is not within 5 s."""
        with self._news:
            self._news.wait_for(lambda: word in self._times, _WAIT_S)
            return self._times.get(word, float("inf"))

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            now_s = time.monotonic()
            with self._news:
                for word in self._word.findall(line.decode(errors="replace")):
                    self._times.setdefault(word, now_s)
                self._news.notify_all()


def kube_latency(options: Options) -> list[Figure]:
    """Annotation, new pod and NodeSLO until the kernel has them; cold start and memory with 500 pods."""
    del options
    with ExitStack() as stack:
        server, kube = stack.enter_context(cluster())
        rig = stack.enter_context(Rig(pods=("web",)))
        stack.enter_context(Relay(rig, int(server.access.url.rpartition(":")[2])))
        say(f"kube-latency: {PODS} pods")
        kube.create_pods(PODS, annotations={EGRESS: "10M"})
        daemon = Daemon(rig, _document(kube, server))
        started_s = _cold_start(rig, daemon)
        try:
            figures = [_one("cold start to everything enforced", "s", started_s, 3), *_latencies(rig, kube)]
            return [*figures, *_own(daemon)]
        finally:
            daemon.stop()


def _document(kube: Kube, server: ApiServer) -> dict[str, Any]:
    return {
        "node": {"name": kube.node, "bandwidth": {"tx": "900M", "rx": "800M"}},
        "policy": {"enable": True},
        "kubernetes": {"enable": True, "kubeconfig": str(server.access.kubeconfig)},
    }


def _cold_start(rig: Rig, daemon: Daemon) -> float:
    """Seconds from the process's start until every pod has its class."""
    began_s = time.monotonic()
    daemon.spawn()
    while time.monotonic() < began_s + 60:
        shown = rig.node.run(["tc", "class", "show", "dev", rig.uplink]).stdout
        if shown.count("ceil 10Mbit") >= PODS:
            return time.monotonic() - began_s
        time.sleep(0.02)
    daemon.check()
    return float("inf")


def _latencies(rig: Rig, kube: Kube) -> Iterator[Figure]:
    time.sleep(3)
    classes = Heard(rig, ["tc", "monitor"], _CEIL)
    elements = Heard(rig, ["nft", "monitor", "elements"], _ADDRESS)
    time.sleep(0.5)

    def annotate(number: int) -> str:
        kube.annotate_pod(f"pod-{number}", {EGRESS: f"{20_001 + number}k"})
        return f"{20_001 + number}Kbit"

    def bind(number: int) -> None:
        kube.create_pod(f"new-{number}", phase=None)

    def report(number: int) -> str:
        address = f"10.88.9.{number + 1}"
        kube.report_pod(f"new-{number}", ips=[address], phase="Running")
        return address

    def level(number: int) -> str:
        ceiling = f"{300_001 + number}k"
        kube.patch_slo({"resourceQOSStrategy": {"beClass": {"networkQOS": {"egressLimit": ceiling}}}})
        return f"{300_001 + number}Kbit"

    try:
        yield from _figures("annotation patched to class changed", _sample(classes, annotate), (25, 100))
        yield from _figures("pod has its address to classified", _sample(elements, report, bind), (None, 100))
        kube.create_slo({"resourceQOSStrategy": {"beClass": {"networkQOS": {"enable": True}}}})
        time.sleep(1)
        yield from _figures("NodeSLO patched to levels changed", _sample(classes, level), (None, 100))
    finally:
        classes.close()
        elements.close()


def _sample(
    heard: Heard, write: Callable[[int], str], before: Callable[[int], None] = lambda _number: None
) -> list[float]:
    """Milliseconds, each from before the write was sent; what comes before it has a moment to settle."""
    found = []
    for number in range(SAMPLES):
        before(number)
        time.sleep(0.1)
        began_s = time.monotonic()
        found.append(1000 * (heard.wait(write(number)) - began_s))
    return found


def _figures(what: str, found: list[float], most: tuple[float | None, float | None]) -> Iterator[Figure]:
    ordered = sorted(found)
    for name, share, limit in (("p50", 0.5, most[0]), ("p99", 0.99, most[1])):
        value = ordered[math.ceil(share * len(ordered)) - 1]  # the nearest rank
        yield _one(f"{what}: {name}", "ms", value, limit)


def _own(daemon: Daemon) -> Iterator[Figure]:
    text = Path(f"/proc/{daemon.pid}/status").read_text(encoding="ascii")
    resident = re.search(r"VmRSS:\s+(\d+)", text)
    assert resident is not None
    yield _one(f"memory with {PODS} pods", "MiB", int(resident[1]) / 1024, 72)


def _one(what: str, unit: str, value: float, most: float | None) -> Figure:
    target = None if most is None else at_most(most)
    return Figure(bench="kube-latency", what=what, unit=unit, runs=(value,), target=target)
