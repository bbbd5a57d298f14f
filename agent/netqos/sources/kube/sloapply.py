"""Writing one NodeSLO for many nodes: server-side apply under a manager of its own, node by node.

Nothing is taken from another manager unless that is asked for, and nothing is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from netqos.sources.kube.answers import Broken, Kind, read_object, read_page
from netqos.sources.kube.connection import Connection

NODES, NODESLOS = "/api/v1/nodes", "/apis/slo.koordinator.sh/v1alpha1/nodeslos"
MANAGER = "netqosctl"
APPLY = "application/apply-patch+yaml"

_PAGE = 100
_REST = "not tried, since the API server is away"

Spec = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """One node. `result`: created, changed, unchanged or failed; `message`: why it failed."""

    node: str
    result: str
    message: str = ""


def node_names(connection: Connection, selector: str) -> Sequence[str]:
    """The nodes that a label selector matches, by name; `Broken` as requests raise it."""
    return sorted(name for name, _ in _listed(connection, "Node", NODES, {"labelSelector": selector}))


def existing(connection: Connection) -> Mapping[str, Spec]:
    """The specs of all NodeSLOs by name; `Broken` with code 404 where the server does not know the kind."""
    return dict(_listed(connection, "NodeSLO", NODESLOS, {}))


def apply(
    connection: Connection,
    document: Mapping[str, object],
    nodes: Sequence[str],
    before: Mapping[str, Spec],
    *,
    force: bool,
    dry_run: bool,
) -> Sequence[Applied]:
    """Each node gets the document under its name; one that fails keeps no other from it. `dry_run` stores nothing."""
    query = {"fieldManager": MANAGER, "force": str(force).lower(), **({"dryRun": "All"} if dry_run else {})}
    found: list[Applied] = []
    for place, node in enumerate(nodes):
        try:
            spec = _apply_one(connection, {**document, "metadata": {"name": node}}, query)
        except Broken as problem:
            found.append(Applied(node=node, result="failed", message=problem.failure.detail))
            if problem.failure.kind is Kind.LOST:
                found += [Applied(node=rest, result="failed", message=_REST) for rest in nodes[place + 1 :]]
                break
        else:
            earlier = before.get(node)
            result = "created" if earlier is None else "unchanged" if earlier == spec else "changed"
            found.append(Applied(node=node, result=result))
    return found


def _apply_one(connection: Connection, document: Mapping[str, object], query: Mapping[str, object]) -> Spec:
    name = document["metadata"]["name"]  # type: ignore[index] # made above
    path = f"{NODESLOS}/{quote(str(name), safe='')}"
    response = connection.request("PATCH", path, query=query, body=document, content_type=APPLY)
    try:
        spec = read_object(response.read_all(), "NodeSLO").get("spec")
    finally:
        response.close()
    return spec if isinstance(spec, dict) else {}


def _listed(
    connection: Connection, kind: str, path: str, selectors: Mapping[str, object]
) -> list[tuple[str, Spec]]:
    """(name, spec) of every object."""
    found: list[tuple[str, Spec]] = []
    take = _taker(found)
    query: dict[str, object] = {**selectors, "limit": _PAGE}
    while True:
        response = connection.request("GET", path, query=query)
        try:
            meta = read_page(response.pieces(), kind, take)
        finally:
            response.close()
        if not meta.token:
            return found
        query["continue"] = meta.token


def _taker(found: list[tuple[str, Spec]]) -> Callable[[object], None]:
    def take(item: object) -> None:
        metadata, spec = (item.get(key) if isinstance(item, dict) else None for key in ("metadata", "spec"))
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if isinstance(name, str):
            found.append((name, spec if isinstance(spec, dict) else {}))

    return take
