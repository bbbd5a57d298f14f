"""Reading what a client sends: query parameters, the pod it means, the body of an override; else a typed error."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from netqos.model.composed import PodView
from netqos.model.ids import PodUid
from netqos.model.traffic import Decision, Unit
from netqos.observe.http import JSON, HttpError, Request
from netqos.observe.statusroutes import Route
from netqos.observe.view import AgentView, OverrideRequest
from netqos.observe.wire import OverrideBody

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

LONGEST_REASON = 256
_DURATION = re.compile(r"(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9}(?:\.[0-9]{1,6})?)s?)?")
_DURATION_FORMS = "seconds, or a duration such as 90s, 10m or 1h30m"


_WORDS = {
    "unexpected_keyword_argument": "is unknown; allowed: egress, ingress, level, ttl, reason",
    "missing": "is missing",
    "string_type": "must be a text such as 10M, l1 or 10m, in quotes",
    "float_type": "must be a number of seconds",
}


def parameters(request: Request, route: Route) -> dict[str, str]:
    """The query parameters of a route, checked against its table; every problem is reported at once."""
    known = {one.name: one for one in route.query}
    problems = [f"unknown parameter {name[:40]!r}" for name in request.query if name not in known]
    for name, one in known.items():
        value = request.query.get(name)
        if one.required and not value:
            problems.append(f"parameter {name!r} is missing: {one.text}")
        elif value is not None and one.values and value not in one.values:
            problems.append(f"parameter {name!r} is {value[:40]!r}, allowed are {', '.join(one.values)}")
    if problems:
        hint = f"{route.path} takes {', '.join(known) or 'no parameters'}"
        raise HttpError(400, "bad-query", problems[0], hint=hint, problems=tuple(problems))
    return dict(request.query)


def history_filter(values: Mapping[str, str], now_s: float) -> Callable[[Decision], bool]:
    """Which decisions the query of the history asks for, told in order; `now_s` is the monotonic time."""
    is_asked = history_scope(values, now_s)
    is_changes_only = values.get("changes") == "true"
    contention: dict[Unit, bool] = {}

    def is_wanted(made: Decision) -> bool:
        is_news = made.changed or contention.get(made.unit, False) is not made.contention
        contention[made.unit] = made.contention
        return is_asked(made.unit, made.at_s) and (is_news or not is_changes_only)

    return is_wanted


def history_scope(values: Mapping[str, str], now_s: float) -> Callable[[Unit, float], bool]:
    """Which units and (monotonic) times the query of the history asks for."""
    after_s = -math.inf if "since_s" not in values else now_s - _span_s(values["since_s"])
    direction, device = values.get("direction"), values.get("device")

    def is_asked(unit: Unit, at_s: float) -> bool:
        return at_s >= after_s and direction in {None, unit.direction.value} and device in {None, unit.device}

    return is_asked


def _span_s(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", text, re.ASCII):
        message = f"parameter 'since_s' is {text[:40]!r}, allowed are seconds such as 120"
        raise HttpError(400, "bad-query", message, problems=(message,))
    return float(text)


def pod_by_uid(view: AgentView, uid: str) -> PodView:
    """The pod of this UID, else 404; 503 while nothing is known yet."""
    for pod in _pods(view):
        if pod.uid == uid:
            return pod
    raise no_such_pod(uid)


def pod_by_name(view: AgentView, name: str) -> PodView:
    """The pod of this full name or UID; 409 for a name that two pods bear (one ends while its successor starts)."""
    pods = _pods(view)
    named = [pod for pod in pods if pod.full_name == name] or [pod for pod in pods if pod.uid == name]
    if not named:
        raise no_such_pod(name, near=[pod.full_name for pod in pods if pod.name == name.rpartition("/")[2]])
    if len(named) > 1:
        raise HttpError(
            409,
            "ambiguous-pod",
            f"{name} is the name of {len(named)} pods",
            hint="give the UID instead",
            problems=tuple(f"{pod.full_name} has UID {pod.uid}" for pod in named),
        )
    return named[0]


def no_such_pod(name: str, *, near: list[str] | None = None) -> HttpError:
    """The 404 for a pod that is not on this node."""
    hint = "netqosctl pods lists the pods of this node"
    if near:
        hint = f"did you mean {' or '.join(near[:3])}?"
    return HttpError(404, "no-such-pod", f"no pod or workload {name[:300]!r} is on this node", hint=hint)


def _pods(view: AgentView) -> tuple[PodView, ...]:
    if view.composition is None:
        hint = "the daemon has just started; try again in a second"
        raise HttpError(503, "starting", "no pods are known yet", hint=hint)
    return view.composition.pods


def override_request(request: Request) -> OverrideRequest:
    """The override asked for in a PUT's body; wrong form is 400 or 415 here, wrong values are the agent's to refuse."""
    body = _body(request)
    return OverrideRequest(
        egress=body.egress,
        ingress=body.ingress,
        level=body.level,
        ttl_s=_seconds(body.ttl),
        reason=_reason(body.reason),
        author_uid=request.peer_uid or 0,
    )


def _body(request: Request) -> OverrideBody:
    content_type = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if content_type != JSON:
        hint = f"send the header Content-Type: {JSON}"
        raise HttpError(
            415, "unsupported-media-type", f"a body of type {content_type[:80]!r} cannot be read", hint=hint
        )
    from pydantic import ValidationError  # noqa: PLC0415 - only those who change something pay for it

    try:
        return _reader().validate_json(request.body, strict=True, extra="forbid")
    except ValidationError as problem:
        problems = tuple(_problems(problem))
        hint = 'send for instance {"egress": "10M", "ttl": "10m"}'
        raise HttpError(400, "bad-body", problems[0], hint=hint, problems=problems) from None


@cache
def _reader() -> TypeAdapter[OverrideBody]:
    from pydantic import TypeAdapter  # noqa: PLC0415 - as above

    return TypeAdapter(OverrideBody)


def _problems(problem: ValidationError) -> list[str]:
    """One line for each error, a union's branches joined: `egress: Input should be a valid string`."""
    by_place: dict[str, str] = {}
    for error in problem.errors(include_url=False, include_context=False, include_input=False):
        place = str(error["loc"][0])[:40] if error["loc"] else "body"
        message = _WORDS.get(error["type"], str(error["msg"])[:200])
        by_place[place] = f"{by_place[place]}, or {message}" if place in by_place else f"{place}: {message}"
    return list(by_place.values())


def _seconds(ttl: float | str) -> float:
    if isinstance(ttl, str):
        found = _DURATION.fullmatch(ttl) if ttl else None
        if found is None:
            raise _bad_ttl(repr(ttl[:40]))
        hours, minutes, seconds = (float(part or 0) for part in found.groups())
        return hours * 3600 + minutes * 60 + seconds
    if not math.isfinite(ttl):
        raise _bad_ttl(str(ttl))
    return float(ttl)


def _bad_ttl(met: str) -> HttpError:
    message = f"ttl: {met} is no duration; allowed: {_DURATION_FORMS}"
    return HttpError(400, "bad-body", message, hint="write it as 10m", problems=(message,))


def _reason(text: str) -> str:
    if len(text) > LONGEST_REASON:
        message = f"reason: {len(text)} characters; allowed are up to {LONGEST_REASON}"
        raise HttpError(400, "bad-body", message, hint="shorten it", problems=(message,))
    return text


def as_uid(text: str) -> PodUid:
    """A path segment taken as a UID."""
    return PodUid(text)
