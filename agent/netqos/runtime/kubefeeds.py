"""The Kubernetes sources of one node, each in a thread of its own, and what they say together at one moment."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from netqos.host.cgroups import Cgroups
from netqos.host.clock import Clock
from netqos.model.inputs import Freshness, PodFacts, SourceState
from netqos.observe.logs import get_logger
from netqos.runtime.kubefindings import KUBELET
from netqos.settings.values import Settings, Toggle
from netqos.sources.kube.asking import Pace
from netqos.sources.kube.connection import Connection
from netqos.sources.kube.kubelet import Kubelet
from netqos.sources.kube.listwatch import ListWatch, Parse
from netqos.sources.kube.located import Locator
from netqos.sources.kube.nodes import NodeNote, NodeSlo, parse_node, parse_slo
from netqos.sources.kube.pods import KubePod, parse_pod
from netqos.sources.kube.podset import joined, merge, settle_addresses
from netqos.sources.kube.watcher import T, Target, Watcher

SLOS = "/apis/slo.koordinator.sh/v1alpha1/nodeslos"


class Thread(Protocol):
    """What starts, and ends soon after it was asked to."""

    def start(self) -> None:
        """Begin."""
        ...

    def stop(self) -> None:
        """End soon."""
        ...

    def join(self, timeout_s: float) -> None:
        """Wait for the end."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeInputs:
    """What all sources say together at one moment. `slo` and `bandwidth` count only where `has_slo`, `has_node`.

    `is_unknown`: the server has no Node of our name, so that its answers about us may be about nobody.
    """

    pods: tuple[PodFacts, ...] = ()
    has_pods: bool = False
    slo: NodeSlo | None = None
    has_slo: bool = False
    bandwidth: str | None = None
    has_node: bool = False
    is_unknown: bool = False

    @property
    def answered(self) -> bool:
        """Whether every source has said something."""
        return self.has_pods and self.has_slo and (self.has_node or self.is_unknown)

    @property
    def complete(self) -> bool:
        """Whether every source has delivered, of a node that the server knows."""
        return self.answered and self.has_node


class KubeFeeds:
    """Pods, NodeSLO and Node by list and watch, and the kubelet where it is wanted."""

    def __init__(
        self,
        settings: Settings,
        node: str,
        clock: Clock,
        *,
        own_addresses: Callable[[], frozenset[str]],
        pace: Pace | None,
        remembered: Sequence[KubePod],
        changed: Callable[[], None],
    ) -> None:
        """`remembered` stand in for the pods until these are known. `changed` is called from any thread."""
        kubernetes = settings.kubernetes
        self._clock = clock
        self._own_addresses = own_addresses
        self._changed = changed
        self._locator = Locator(Cgroups(Path(settings.paths.cgroup)))
        self._pace = pace
        self.connection = Connection(
            Path(kubernetes.kubeconfig) if kubernetes.kubeconfig is not None else None
        )
        self.known_pods = tuple(remembered)
        self._pods: Watcher[KubePod] = self._watcher(
            Target(
                name="pods",
                kind="Pod",
                path="/api/v1/pods",
                selectors={"fieldSelector": f"spec.nodeName={node}"},
            ),
            parse_pod,
            remembered={pod.facts.uid: pod for pod in remembered},
        )
        self._slo: Watcher[NodeSlo] = self._watcher(
            Target(name="nodeslo", kind="NodeSLO", path=SLOS, selectors=_by_name(node)),
            parse_slo,
            may_be_absent=True,
        )
        self._note: Watcher[NodeNote] = self._watcher(
            Target(name="node", kind="Node", path="/api/v1/nodes", selectors=_by_name(node)), parse_node
        )
        self._kubelet = self._make_kubelet(kubernetes.kubelet)

    def threads(self) -> Iterator[Thread]:
        """Every source."""
        yield from (self._pods, self._slo, self._note)
        if self._kubelet is not None:
            yield self._kubelet

    def states(self) -> dict[str, SourceState]:
        """Each source's state by its name."""
        parts = {"pods": self._pods.state, "nodeslo": self._slo.state, "node": self._note.state}
        return parts if self._kubelet is None else {**parts, KUBELET: self._kubelet.state}

    def newest(self) -> KubeInputs:
        """What they say now. Pods that were known last stay while there is no word of any, or our node is not known.

        Under a wrong name the list of pods is empty, and may come before it is known that there is no such node.
        """
        kubelet = self._kubelet.items if self._kubelet is not None else None
        is_current = self._pods.state.freshness is Freshness.FRESH
        merged = merge(self._pods.items, kubelet, is_api_current=is_current)
        slos, notes = self._slo.items, self._note.items
        if merged is not None and notes:
            self.known_pods = merged
        listed = self.known_pods if notes else joined(merged or (), self.known_pods)
        settled = settle_addresses(listed, of_node=self._own_addresses())
        return KubeInputs(
            pods=self._locator.locate(settled, now_s=self._clock.monotonic()),
            has_pods=merged is not None,
            slo=slos[-1] if slos else None,
            has_slo=slos is not None,
            bandwidth=notes[-1].bandwidth if notes else None,
            has_node=bool(notes),
            is_unknown=notes == (),
        )

    def _watcher(
        self,
        target: Target,
        parse: Parse[T],
        *,
        may_be_absent: bool = False,
        remembered: Mapping[str, T] | None = None,
    ) -> Watcher[T]:
        core: ListWatch[T] = ListWatch(
            parse,
            chance=random.random,
            pace=self._pace,
            may_be_absent=may_be_absent,
            remembered=remembered,
        )
        return Watcher(target, core, self.connection, self._clock, changed=self._changed, crashed=_crashed)

    def _make_kubelet(self, toggle: Toggle) -> Kubelet | None:
        if toggle is Toggle.OFF:
            return None

        def is_wanted() -> bool:
            return toggle is Toggle.ON or self._pods.state.freshness is not Freshness.FRESH

        return Kubelet(self.connection, self._clock, is_wanted=is_wanted, changed=self._changed)


def _crashed(name: str) -> None:
    get_logger("netqos.kubernetes").exception("source_failed", source=name)


def _by_name(node: str) -> Mapping[str, str]:
    return {"fieldSelector": f"metadata.name={node}"}
