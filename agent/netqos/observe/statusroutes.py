"""Every route of the status socket in one table: the server answers it, and the OpenAPI document is made from it."""

from __future__ import annotations

from dataclasses import dataclass, field

from netqos.observe import wire


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A query parameter and what it means."""

    name: str
    text: str
    required: bool = False
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method on one path. `name` is the handler's; `errors` lists the status codes beyond those of every route."""

    name: str
    method: str
    path: str
    summary: str
    answer: type | None
    query: tuple[Parameter, ...] = ()
    body: type | None = None
    errors: tuple[int, ...] = ()
    content_type: str = "application/json"
    changes: bool = field(default=False)


POD = Parameter(name="pod", text="`namespace/name` of a pod, the name of a workload, or a UID", required=True)
COUNTERS = Parameter(
    name="counters", text="`true` adds the kernel's counters of each pod", values=("true", "false")
)

HISTORY = (
    Parameter(name="since_s", text="only the last so many seconds"),
    Parameter(name="direction", text="only this direction", values=("tx", "rx")),
    Parameter(name="device", text="only this device"),
    Parameter(
        name="changes",
        text="`true`: only what changed a ceiling or the room, or began or ended contention",
        values=("true", "false"),
    ),
)

ROUTES: tuple[Route, ...] = (
    Route(
        name="status",
        method="GET",
        path="/v1/status",
        summary="The whole node at a glance",
        answer=wire.StatusWire,
    ),
    Route(
        name="node",
        method="GET",
        path="/v1/node",
        summary="Uplinks, totals and the promises of each level",
        answer=wire.NodeWire,
    ),
    Route(
        name="pods",
        method="GET",
        path="/v1/pods",
        summary="All pods with their level, limits and findings",
        answer=wire.PodsWire,
        query=(COUNTERS,),
    ),
    Route(
        name="pod",
        method="GET",
        path="/v1/pods/{uid}",
        summary="One pod, with its counters",
        answer=wire.PodWire,
        errors=(404,),
    ),
    Route(
        name="explain_named",
        method="GET",
        path="/v1/explain",
        summary="Why a pod has what it has, by name",
        answer=wire.ExplainWire,
        query=(POD,),
        errors=(404, 409),
    ),
    Route(
        name="explain",
        method="GET",
        path="/v1/explain/{uid}",
        summary="Why a pod has what it has",
        answer=wire.ExplainWire,
        errors=(404,),
    ),
    Route(
        name="plan",
        method="GET",
        path="/v1/plan",
        summary="What the next reconcile would change; nothing is changed",
        answer=wire.PlanWire,
        errors=(503,),
    ),
    Route(
        name="history",
        method="GET",
        path="/v1/history",
        summary="Samples, decisions, and steps of totals of the last minutes, with their reasons",
        answer=wire.HistoryWire,
        query=HISTORY,
    ),
    Route(
        name="stream",
        method="GET",
        path="/v1/stream",
        summary="Every tick from now on, one JSON line for each device and direction; slow readers miss some",
        answer=wire.DecisionWire,
        errors=(503,),
        content_type="application/x-ndjson",
    ),
    Route(
        name="record",
        method="GET",
        path="/v1/record",
        summary="Every round of the loop from now on, with all that it takes to run it again; as netqosctl replays it",
        answer=None,
        errors=(503,),
        content_type="application/x-ndjson",
    ),
    Route(
        name="overrides",
        method="GET",
        path="/v1/overrides",
        summary="All temporary overrides in force",
        answer=wire.OverridesWire,
    ),
    Route(
        name="put_override_named",
        method="PUT",
        path="/v1/overrides",
        summary="Override a pod's limits or level for a time, by name",
        answer=wire.OverrideWire,
        query=(POD,),
        body=wire.OverrideBody,
        errors=(404, 409, 415, 422, 503),
        changes=True,
    ),
    Route(
        name="put_override",
        method="PUT",
        path="/v1/overrides/{uid}",
        summary="Override a pod's limits or level for a time",
        answer=wire.OverrideWire,
        body=wire.OverrideBody,
        errors=(404, 415, 422, 503),
        changes=True,
    ),
    Route(
        name="delete_override",
        method="DELETE",
        path="/v1/overrides/{uid}",
        summary="End an override now",
        answer=wire.DeletedWire,
        errors=(404, 503),
        changes=True,
    ),
    Route(
        name="reconcile",
        method="POST",
        path="/v1/reconcile",
        summary="Reconcile now and wait for the result",
        answer=wire.ReconcileWire,
        errors=(503,),
        changes=True,
    ),
    Route(
        name="openapi",
        method="GET",
        path="/v1/openapi.json",
        summary="This document",
        answer=None,
    ),
)
