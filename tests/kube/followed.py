"""The Kubernetes sources at work in a test: cells filled by an event loop of their own, read from the test's thread."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from netqos.host.clock import SystemClock
from netqos.model.health import Finding
from netqos.model.inputs import NodeFacts, NodePolicy, PodFacts, SourceState
from netqos.runtime.kube import KubeSources
from netqos.runtime.reconciler import World
from netqos.runtime.store import Cell, Wake
from netqos.settings.values import KubernetesSettings, Settings, Toggle
from netqos.sources.kube.asking import Pace


class Followed:
    """The inputs of one node. Use it as a context."""

    def __init__(self, kubeconfig: Path, node: str, *, pace: Pace | None = None) -> None:
        """Nothing runs yet."""
        kubernetes = KubernetesSettings(enable=Toggle.ON, kubeconfig=str(kubeconfig))
        self.settings = Settings(kubernetes=kubernetes)
        self.node = node
        self._pace = pace
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.world: World
        self.sources: KubeSources

    def __enter__(self) -> Followed:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self.sources.stop)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()
        self.sources.join(5)
        # urllib3 closes what a cleared pool holds when it is collected: now, so that no later test counts it.
        gc.collect()

    async def _start(self) -> None:
        wake = Wake()
        self.world = World(
            wake=wake,
            settings=Cell(self.settings, wake=wake),
            node=Cell(NodeFacts(name=self.node), wake=wake),
            workloads=Cell((), wake=wake),
            pods=Cell((), wake=wake),
            slo=Cell(None, wake=wake),
            bandwidth_annotation=Cell(None, wake=wake),
            complete=Cell(value=False, wake=wake),
            path_limits=Cell({}, wake=wake),
        )
        self.sources = KubeSources(self.settings, self.node, SystemClock(), pace=self._pace)
        self.sources.start(self.world)

    def settings_path(self) -> Path:
        """The kubeconfig."""
        return Path(self.settings.kubernetes.kubeconfig or "")

    @property
    def pods(self) -> Mapping[str, PodFacts]:
        """The pods by name."""
        return {pod.name: pod for pod in self.world.pods.value}

    @property
    def slo(self) -> NodePolicy | None:
        """The NodeSLO's policy."""
        return self.world.slo.value

    @property
    def bandwidth(self) -> str | None:
        """The Node's annotation."""
        return self.world.bandwidth_annotation.value

    @property
    def complete(self) -> bool:
        """Whether every source has delivered."""
        return self.world.complete.value

    @property
    def states(self) -> Mapping[str, SourceState]:
        """The sources' states."""
        return self.sources.states()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The sources' findings."""
        return self.sources.findings()

    def freshness(self) -> dict[str, str]:
        """The sources' states in a word each."""
        return {name: state.freshness.value for name, state in self.states.items()}

    def until(self, check: Callable[[], bool], timeout_s: float = 10.0) -> float:
        """Wait until it holds; how long that took. AssertionError when it takes too long."""
        began_s = time.monotonic()
        while not check():
            assert time.monotonic() - began_s < timeout_s, (self.pods, self.states)
            time.sleep(0.002)
        return time.monotonic() - began_s

    def ready(self, timeout_s: float = 15.0) -> Followed:
        """Wait until all is there and fresh."""
        self.until(lambda: self.complete and set(self.freshness().values()) == {"fresh"}, timeout_s)
        return self
