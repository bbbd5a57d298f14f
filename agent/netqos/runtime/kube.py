"""The Kubernetes sources put together, and their way into the cells.

Each source has a thread; one more joins what they have into whole inputs, so that the event loop and the fast loop's
thread never wait for a list to be decoded. The event loop takes the newest inputs only. Loaded on nodes that follow
Kubernetes, and nowhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from netqos.host.cgroups import Cgroups
from netqos.host.clock import Clock
from netqos.model.composed import Composition
from netqos.model.health import Finding, info, warning
from netqos.model.inputs import Freshness, NodePolicy, PodFacts, SourceState
from netqos.observe.kubereporter import Reporter
from netqos.observe.kubestatus import STATUS_EVERY_S, status_text
from netqos.observe.logs import get_logger
from netqos.runtime.reconciler import World
from netqos.settings.values import Settings, Toggle
from netqos.sources.kube.connection import Connection
from netqos.sources.kube.kubelet import NOT_ASKED, Kubelet
from netqos.sources.kube.listwatch import NOT_YET, ListWatch, Pace, Parse
from netqos.sources.kube.located import Locator
from netqos.sources.kube.nodes import NodeNote, NodeSlo, parse_node, parse_slo
from netqos.sources.kube.pods import KubePod, parse_pod
from netqos.sources.kube.podset import merge, settle_addresses
from netqos.sources.kube.watcher import T, Target, Watcher

LOOK_S = 1.0
"""How often cgroups are looked for, and the node's addresses compared, without an event."""

FIRST_S = 10.0
"""How long a single pass (`--once`, `--dry-run`) waits for the first snapshots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeInputs:
    """What all sources say together at one moment. `slo` and `bandwidth` count only where `has_slo`, `has_node`."""

    pods: tuple[PodFacts, ...] = ()
    has_pods: bool = False
    slo: NodeSlo | None = None
    has_slo: bool = False
    bandwidth: str | None = None
    has_node: bool = False

    @property
    def complete(self) -> bool:
        """Whether every source has delivered."""
        return self.has_pods and self.has_slo and self.has_node


class KubeSources:
    """All of them for one node; `start` and `stop` in the event loop."""

    def __init__(
        self,
        settings: Settings,
        node: str,
        clock: Clock,
        *,
        own_addresses: Callable[[], frozenset[str]] = frozenset,
        pace: Pace | None = None,
    ) -> None:
        """Nothing is loaded, read or started yet."""
        kubernetes = settings.kubernetes
        self._clock = clock
        self._own_addresses = own_addresses
        self._log = get_logger("netqos.kubernetes")
        self._news = threading.Event()
        self._stopped = threading.Event()
        self._inputs = KubeInputs()
        self._locator = Locator(Cgroups(Path(settings.paths.cgroup)))
        self._pace = pace
        self._node = node
        kubeconfig = Path(kubernetes.kubeconfig) if kubernetes.kubeconfig is not None else None
        self._connection = Connection(kubeconfig)
        self._pods: Watcher[KubePod] = self._watcher(
            Target(name="pods", path="/api/v1/pods", selectors={"fieldSelector": f"spec.nodeName={node}"}),
            parse_pod,
        )
        self._slo: Watcher[NodeSlo] = self._watcher(
            Target(
                name="nodeslo", path="/apis/slo.koordinator.sh/v1alpha1/nodeslos", selectors=_by_name(node)
            ),
            parse_slo,
            may_be_absent=True,
        )
        self._note: Watcher[NodeNote] = self._watcher(
            Target(name="node", path="/api/v1/nodes", selectors=_by_name(node)), parse_node
        )
        self._kubelet = self._make_kubelet(kubernetes.kubelet)
        self._reporter = Reporter(node, self._post, clock, log=self._log.warning)
        self._publishes = kubernetes.publish_status
        self._publish_at_s = 0.0
        self._world: World | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._arrived = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="kube-inputs", daemon=True)

    # -------------------------------------------------------------- life

    def start(self, world: World) -> None:
        """Begin to fill the cells, from the running event loop."""
        self._world, self._loop = world, asyncio.get_running_loop()
        for part in (self._pods, self._slo, self._note, self._kubelet, self._reporter):
            if part is not None:
                part.start()
        self._thread.start()

    def stop(self) -> None:
        """End every thread soon; nobody waits for them."""
        self._stopped.set()
        self._news.set()
        for part in (self._pods, self._slo, self._note, self._kubelet, self._reporter):
            if part is not None:
                part.stop()

    def join(self, timeout_s: float) -> None:
        """Wait after `stop` until the threads have ended; a daemon that ends need not."""
        end_s = self._clock.monotonic() + timeout_s
        for part in (self._pods, self._slo, self._note, self._kubelet, self._reporter):
            if part is not None:
                part.join(max(0.0, end_s - self._clock.monotonic()))
        self._thread.join(max(0.0, end_s - self._clock.monotonic()))

    async def first(self, timeout_s: float = FIRST_S) -> bool:
        """Wait until every source has delivered; False when it takes too long."""
        assert self._world is not None
        try:
            async with asyncio.timeout(timeout_s):
                while not self._world.complete.value:
                    await self._arrived.wait()
                    self._arrived.clear()
        except TimeoutError:
            return False
        return True

    # -------------------------------------------------------------- what is shown

    def states(self) -> Mapping[str, SourceState]:
        """Each source's state by its name."""
        parts = {"pods": self._pods.state, "nodeslo": self._slo.state, "node": self._note.state}
        return parts if self._kubelet is None else {**parts, "kubelet": self._kubelet.state}

    def findings(self) -> tuple[Finding, ...]:
        """What is wrong in the NodeSLO, with the sources themselves, and what may not be told."""
        slo = self._inputs.slo
        away = [_away(name, one) for name, one in self.states().items() if _is_away(one)]
        has_kind = not self._slo.state.detail or self._slo.state.freshness is not Freshness.FRESH
        of_slo = slo.findings if slo is not None else ()
        return (*of_slo, *away, *(() if has_kind else (_NO_KIND,)), *self._reporter.findings())

    def report(self, composition: Composition) -> None:
        """Tell the cluster of rejected annotations, and where it is wanted of the node; returns at once."""
        self._reporter.see(composition.pods)
        now_s = self._clock.monotonic()
        if self._publishes and composition.desired.complete and now_s >= self._publish_at_s:
            self._publish_at_s = now_s + STATUS_EVERY_S
            self._reporter.annotate(status_text(composition))

    # -------------------------------------------------------------- joining

    def _run(self) -> None:
        log = self._log
        while not self._stopped.is_set():
            try:
                self._join()
            except Exception:  # a source's border: the next look may succeed, and what was taken stays
                log.exception("kubernetes_inputs_failed")
            self._news.wait(LOOK_S)
            self._news.clear()

    def _join(self) -> None:
        inputs = self._newest()
        if inputs != self._inputs:
            self._inputs = inputs
            if self._loop is not None:
                with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                    self._loop.call_soon_threadsafe(self._take)

    def _newest(self) -> KubeInputs:
        kubelet = self._kubelet.items if self._kubelet is not None else None
        is_current = self._pods.state.freshness is Freshness.FRESH
        merged = merge(self._pods.items, kubelet, is_api_current=is_current)
        settled = settle_addresses(merged or (), of_node=self._own_addresses())
        slos, notes = self._slo.items, self._note.items
        return KubeInputs(
            pods=self._locator.locate(settled, now_s=self._clock.monotonic()),
            has_pods=merged is not None,
            slo=slos[-1] if slos else None,
            has_slo=slos is not None,
            bandwidth=notes[-1].bandwidth if notes else None,
            has_node=notes is not None,
        )

    def _take(self) -> None:
        """Put the newest inputs into the cells; a source that has not delivered leaves what was remembered."""
        world, inputs = self._world, self._inputs
        if world is None or self._stopped.is_set():
            return
        if inputs.has_pods:
            world.pods.set(inputs.pods)
        if inputs.has_slo:
            world.slo.set(_policy(inputs.slo))
        if inputs.has_node:
            world.bandwidth_annotation.set(inputs.bandwidth)
        if inputs.complete:
            world.complete.set(True)
        self._arrived.set()

    # -------------------------------------------------------------- making

    def _watcher(self, target: Target, parse: Parse[T], *, may_be_absent: bool = False) -> Watcher[T]:
        core: ListWatch[T] = ListWatch(
            parse,
            chance=random.random,
            pace=self._pace,
            may_be_absent=may_be_absent,
        )
        return Watcher(
            target, core, self._connection, self._clock, changed=self._news.set, crashed=self._crashed
        )

    def _make_kubelet(self, toggle: Toggle) -> Kubelet | None:
        if toggle is Toggle.OFF:
            return None

        def is_wanted() -> bool:
            return toggle is Toggle.ON or self._pods.state.freshness is not Freshness.FRESH

        return Kubelet(self._connection, self._clock, is_wanted=is_wanted, changed=self._news.set)

    def _crashed(self, name: str) -> None:
        self._log.exception("source_failed", source=name)

    def _post(self, method: str, path: str, body: object, content_type: str) -> None:
        self._connection.request(method, path, body=body, content_type=content_type).close()


_NO_KIND = info(
    "nodeslo-kind-missing",
    "source nodeslo",
    "the API server knows no NodeSLO: the policy of the configuration file holds",
    hint="to give policies by NodeSLO install Koordinator, or daemonset/crd where there is none",
)


def _by_name(node: str) -> Mapping[str, str]:
    return {"fieldSelector": f"metadata.name={node}"}


def _policy(slo: NodeSlo | None) -> NodePolicy | None:
    return slo.policy if slo is not None else None


def _is_away(state: SourceState) -> bool:
    return state.freshness is not Freshness.FRESH and state.detail not in {NOT_YET, NOT_ASKED}


def _away(name: str, state: SourceState) -> Finding:
    kept = (
        "the last known state stays" if state.since_s is not None else "nothing is removed until it answers"
    )
    return warning(
        "source-away",
        f"source {name}",
        f"{state.detail}; {kept}",
        hint="see whether the API server is reachable and the service account has its rights",
    )
