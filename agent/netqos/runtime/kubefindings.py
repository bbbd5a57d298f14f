"""What is wrong with the Kubernetes sources, in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from netqos.model.health import Finding, error, info, warning
from netqos.model.inputs import Freshness, SourceState
from netqos.sources.kube.kubelet import NOT_ASKED
from netqos.sources.kube.listwatch import NOT_YET

NODE, KUBELET = "node", "kubelet"
"""Names of sources. The kubelet is a second one of pods, asked while the first one is away: nobody waits for it."""

NO_KIND = info(
    "nodeslo-kind-missing",
    "source nodeslo",
    "the API server knows no NodeSLO: the policy of the configuration file holds",
    hint="to give policies by NodeSLO install Koordinator, or daemonset/crd where there is none",
)


def with_memory(states: Mapping[str, SourceState], heard: Mapping[str, float]) -> dict[str, SourceState]:
    """The states, with the age of what is remembered of a source that has not delivered since the start."""
    return {
        name: replace(
            state,
            freshness=Freshness.STALE,
            since_s=heard[name],
            detail=f"{state.detail}; remembered from before the restart",
        )
        if state.freshness is Freshness.WAITING and name in heard
        else state
        for name, state in states.items()
    }


def good_until(states: Mapping[str, SourceState], now_s: float) -> dict[str, float]:
    """When each source that has delivered since the start was last known to be good (monotonic)."""
    found = {
        name: now_s if state.freshness is Freshness.FRESH else state.since_s
        for name, state in states.items()
        if state.freshness is not Freshness.WAITING
    }
    return {name: at_s for name, at_s in found.items() if at_s is not None}


def undelivered(states: Mapping[str, SourceState]) -> dict[str, str]:
    """The sources that are waited for since the start, and what is the matter with each."""
    return {
        name: state.detail
        for name, state in states.items()
        if name != KUBELET and state.freshness is Freshness.WAITING
    }


def away(states: Mapping[str, SourceState], heard: Mapping[str, float]) -> list[Finding]:
    """A finding for each source that failed."""
    return [
        _away(name, state, is_remembered=name in heard)
        for name, state in states.items()
        if state.freshness is not Freshness.FRESH and state.detail not in {NOT_YET, NOT_ASKED}
    ]


def no_such_node(node: str) -> str:
    """What is the matter with a node whose name the server does not know."""
    return f"no Node {node} on this server"


def node_unknown(node: str, near: tuple[str, ...]) -> Finding:
    """The server has no Node of our name: whatever it says of pods and policy may be said of nobody."""
    meant = f"it knows {', '.join(near)}: set node.name" if near else "set node.name"
    return error(
        "node-unknown",
        f"node {node}",
        f"{no_such_node(node)}: nothing is removed until there is one",
        hint=f"{meant} (or $NODE_NAME) to the Node's name, as `kubectl get nodes` shows it",
    )


def _away(name: str, state: SourceState, *, is_remembered: bool) -> Finding:
    is_known = state.since_s is not None or is_remembered
    kept = "the last known state stays" if is_known else "nothing is removed until it answers"
    hint = "see whether the API server is reachable and the service account has its rights"
    if name == KUBELET:
        hint = "see whether the kubelet listens on this node, and the service account may get nodes/pods"
    return warning("source-away", f"source {name}", f"{state.detail}; {kept}", hint=hint)
