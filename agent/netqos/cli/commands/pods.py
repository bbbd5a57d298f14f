"""netqosctl pods: every pod with its level and limits."""

from __future__ import annotations

from netqos.cli.client import Json
from netqos.cli.commands.common import Call, tell
from netqos.cli.render import Column, Screen, Span
from netqos.cli.units import count, rate

COLUMNS = (
    Column(head="pod", flexible=True),
    Column(head="level"),
    Column(head="egress", right=True),
    Column(head="ingress", right=True),
    Column(head="level from", flexible=True),
    Column(head="notes", flexible=True, wraps=True),
)


def run(call: Call) -> int:
    """List the pods; with --names only their names, one a line."""

    def show(screen: Screen, answer: Json) -> None:
        pods = [one for one in answer["pods"] if _is_wanted(one, call.arguments.level)]
        if call.arguments.names:
            screen.lines([full_name(one)] for one in pods)
        elif pods:
            screen.table(COLUMNS, [_row(one) for one in pods])
        else:
            screen.say("there are no such pods on this node")

    return tell(call, "pods", call.client.get("/v1/pods"), show)


def full_name(pod: Json) -> str:
    """`namespace/name`, or a workload's bare name."""
    return f"{pod['namespace']}/{pod['name']}" if pod["namespace"] else str(pod["name"])


def _is_wanted(pod: Json, level: str | None) -> bool:
    return level is None or pod["level"] == level.upper()


def _row(pod: Json) -> list[Span | str]:
    limits = pod["limits"]
    return [
        full_name(pod),
        pod["level"],
        _limit(limits["egress"]),
        _limit(limits["ingress"]),
        pod["level_source"],
        Span(", ".join(_notes(pod)), "warn" if pod["findings"] else ""),
    ]


def _limit(limit: Json) -> Span:
    """A limit; one that nobody enforces is marked."""
    if not limit["bps"]:
        return Span("-", "dim")
    return Span(
        rate(limit["bps"]) + ("" if limit["enforced_by"] else " !"), "" if limit["enforced_by"] else "warn"
    )


def _notes(pod: Json) -> list[str]:
    notes = []
    if any(one["bps"] and not one["enforced_by"] for one in pod["limits"].values()):
        notes.append("! not enforced")
    if pod["overridden"]:
        notes.append("override")
    if pod["host_network"]:
        notes.append("host network")
    if pod["findings"]:
        notes.append(count(len(pod["findings"]), "finding"))
    return notes
