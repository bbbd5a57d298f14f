"""netqosctl limit and limits: temporary overrides."""

from __future__ import annotations

from netqos.cli.client import Json, NotFound, path_of
from netqos.cli.commands.common import DONE, Call, known_shape, tell
from netqos.cli.render import Column, Screen, Span
from netqos.cli.units import rate, span

COLUMNS = (
    Column(head="pod", flexible=True),
    Column(head="level"),
    Column(head="egress", right=True),
    Column(head="ingress", right=True),
    Column(head="left", right=True),
    Column(head="by uid", right=True),
    Column(head="reason", flexible=True, wraps=True),
)


def limit(call: Call) -> int:
    """Override a pod's limits or level for a time."""
    arguments = call.arguments
    wanted = {"egress": arguments.egress, "ingress": arguments.ingress, "level": arguments.level}
    body: Json = {name: value for name, value in wanted.items() if value is not None}
    body |= {"ttl": arguments.duration, "reason": arguments.reason}
    answer = call.client.put("/v1/overrides", body, pod=arguments.pod)
    return tell(call, "limit", answer, _show_override)


def _show_override(screen: Screen, answer: Json) -> None:
    changes = [f"level {answer['level']}"] if answer["level"] else []
    changes += [
        f"{word} {_limit(answer[f'{word}_bps'])}"
        for word in ("egress", "ingress")
        if answer[f"{word}_bps"] is not None
    ]
    told = f": {', '.join(changes)} for {span(answer['expires_in_s'])}"
    screen.prose(Span(answer["pod"] or answer["uid"], "head"), told, hang=2)


def limits(call: Call) -> int:
    """List the overrides in force, or end one."""
    answer = call.client.get("/v1/overrides")
    with known_shape():
        overrides = list(answer["overrides"])
        if call.arguments.delete is not None:
            return _delete(call, overrides, call.arguments.delete)
        if call.wants_json:
            call.screen.json("limits", answer)
        elif overrides:
            call.screen.table(COLUMNS, [_row(one) for one in overrides])
        else:
            call.screen.say("there are no overrides")
    return DONE


def _delete(call: Call, overrides: list[Json], name: str) -> int:
    """End the override of a pod by its name or UID; the pod itself may be gone."""
    uids = [str(one["uid"]) for one in overrides if name in {one["pod"], one["uid"]}]
    if not uids:
        raise NotFound(f"there is no override of {name!r}", hint="netqosctl limits lists them")
    for uid in uids:
        answer = call.client.delete(path_of("overrides", uid))
        if call.wants_json:
            call.screen.json("limits-delete", answer)
        else:
            call.screen.line(Span(name, "head"), ": override ended")
    return DONE


def _row(one: Json) -> list[Span | str]:
    return [
        one["pod"] or f"{one['uid']} (gone)",
        one["level"] or "-",
        _limit(one["egress_bps"]),
        _limit(one["ingress_bps"]),
        span(one["expires_in_s"]),
        str(one["author_uid"]),
        one["reason"],
    ]


def _limit(bps: int | None) -> str:
    return "no limit" if bps == 0 else rate(bps)
