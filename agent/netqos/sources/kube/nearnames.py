"""Which Nodes may be meant by a name that the server does not know: in another case, with or without a domain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from netqos.sources.kube.answers import Broken, read_page
from netqos.sources.kube.connection import Connection

NODES = "/api/v1/nodes"
MOST_LOOKED_AT = 500
"""One page of names; of a larger cluster those that can be asked for by name are found all the same."""

_NAMES_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


def near(name: str, names: Iterable[str]) -> tuple[str, ...]:
    """Those of `names` that differ from `name` in case or domain only, in order."""
    ours = name.casefold()
    host = ours.partition(".")[0]

    def is_near(other: str) -> bool:
        theirs = other.casefold()
        has_one_domain = "." not in ours or "." not in theirs
        return theirs == ours or (has_one_domain and theirs.partition(".")[0] == host)

    return tuple(sorted({other for other in names if other != name and is_near(other)}))


def ask_near(connection: Connection, name: str) -> tuple[str, ...]:
    """The near names that the server knows; none where it does not answer."""
    lower = name.lower()
    candidates = {lower, lower.partition(".")[0]} - {name}
    queries: list[Mapping[str, object]] = [
        *({"fieldSelector": f"metadata.name={one}"} for one in sorted(candidates)),
        {"limit": MOST_LOOKED_AT},
    ]
    found: set[str] = set()
    for query in queries:
        try:
            found |= _names(connection, query)
        except Broken:
            break
    return near(name, found)


def _names(connection: Connection, query: Mapping[str, object]) -> set[str]:
    found: set[str] = set()

    def each(item: object) -> None:
        metadata = item.get("metadata") if isinstance(item, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if isinstance(name, str):
            found.add(name[:253])

    response = connection.request("GET", NODES, query=query, accept=_NAMES_ONLY)
    try:
        read_page(response.pieces(), "PartialObjectMetadata", each)
    finally:
        response.close()
    return found
