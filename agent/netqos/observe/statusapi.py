"""The status socket's endpoints: each asks the agent, and answers with a model of `netqos.observe.wire`.

Readers share what costs something: plans and counters are read one at a time and at most a few times a second, however
many ask. Changing needs root or the daemon's own user at the other end of the socket.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing

from netqos.engine.recording import Head, RoundWriter, head_line
from netqos.errors import NetqosError, Rejected, Retryable, Unsupported
from netqos.host.clock import Clock
from netqos.model.composed import PodView
from netqos.observe import answers, pathparts, wire
from netqos.observe import requests as asked
from netqos.observe import wireparts as parts
from netqos.observe.decisionparts import decision
from netqos.observe.enforced import Enforcement
from netqos.observe.http import Endpoint, HttpError, Request, Response, Router
from netqos.observe.looks import LastLooks, Look
from netqos.observe.moment import Moment
from netqos.observe.recorder import Recorder
from netqos.observe.shared import Shared
from netqos.observe.statusroutes import ROUTES, Route
from netqos.observe.ticklines import TickLines
from netqos.observe.view import Agent

MOST_STREAMS = 16
LONGEST_MESSAGE = 1000

SLICE = 50
"""Items of a long list that are encoded before other tasks get their turn."""

REJECTIONS = frozenset({400, 413, 415, 422})

Values = Mapping[str, str]


class StatusApi:
    """Answers the requests of the status socket."""

    def __init__(self, agent: Agent, clock: Clock, recorder: Recorder | None = None) -> None:
        """Every answer is made from the agent's newest view; rejected bodies are counted by the recorder."""
        self._agent = agent
        self._recorder = recorder
        self._clock = clock
        self._plan_shared = Shared(agent.plan, clock)
        self._counters_shared = Shared(agent.all_counters, clock)
        self._looks = LastLooks()
        self._ticks = TickLines(clock)
        self._streams = 0

    def router(self) -> Router:
        """All routes of `netqos.observe.statusroutes`, each with its endpoint."""
        router = Router()
        for route in ROUTES:
            router.add(route.method, route.path, self._endpoint(route))
        return router

    def _endpoint(self, route: Route) -> Endpoint:
        answer: Callable[[Request, Values], Awaitable[Response]] = getattr(self, f"_{route.name}")

        async def endpoint(request: Request, values: Values) -> Response:
            if route.changes:
                require_root(request)
            query = asked.parameters(request, route)
            try:
                return await answer(request, {**values, **query})
            except NetqosError as problem:
                raise self._counted(as_http(problem)) from None
            except HttpError as problem:
                raise self._counted(problem) from None

        return endpoint

    def _counted(self, problem: HttpError) -> HttpError:
        """The same problem, counted when it is an input that was rejected."""
        if problem.status in REJECTIONS and self._recorder is not None:
            self._recorder.rejected("invalid-override")
        return problem

    async def _status(self, _request: Request, _values: Values) -> Response:
        return _json(answers.status(self._agent.view(), Moment.now(self._clock)))

    async def _node(self, _request: Request, _values: Values) -> Response:
        return _json(answers.node(self._agent.view()))

    async def _pods(self, _request: Request, values: Values) -> Response:
        counters = await self._counters_shared.get() if values.get("counters") == "true" else None
        view = self._agent.view()
        enforcement = Enforcement(view)
        pods = sorted(view.composition.pods if view.composition is not None else (), key=_order)
        return await _json_list(b'{"pods":[', (parts.pod(pod, enforcement, counters) for pod in pods))

    async def _pod(self, _request: Request, values: Values) -> Response:
        counters = await self._counters_shared.get()
        view = self._agent.view()
        return _json(parts.pod(asked.pod_by_uid(view, values["uid"]), Enforcement(view), counters))

    async def _explain(self, _request: Request, values: Values) -> Response:
        return await self._explained(asked.pod_by_uid(self._agent.view(), values["uid"]))

    async def _explain_named(self, _request: Request, values: Values) -> Response:
        return await self._explained(asked.pod_by_name(self._agent.view(), values["pod"]))

    async def _explained(self, found: PodView) -> Response:
        counters = await self._agent.counters(found)
        view = self._agent.view()
        # The newest composition may have changed the pod meanwhile, or lost it.
        pod = asked.pod_by_uid(view, found.uid)
        moment = Moment.now(self._clock)
        before = self._looks.turn(pod.uid, Look.of(moment.monotonic_s, counters))
        return _json(answers.explain(view, pod, {pod.uid: counters}, moment, before=before))

    async def _plan(self, _request: Request, _values: Values) -> Response:
        plans = await self._plan_shared.get()
        return _json(wire.PlanWire(plans=[parts.plan(one) for one in plans]))

    async def _history(self, _request: Request, values: Values) -> Response:
        moment = Moment.now(self._clock)
        wanted = asked.history_filter(values, moment.monotonic_s)
        scope = asked.history_scope(values, moment.monotonic_s)
        steps = pathparts.steps(self._agent.view().paths, moment, scope)
        head = b'{"now_s":%.6f,"steps":[%s],"decisions":[' % (
            moment.monotonic_s,
            b",".join(map(wire.encode, steps)),
        )
        found = (one for one in self._agent.history() if wanted(one.decision))
        return await _json_list(head, (decision(one, moment) for one in found))

    async def _stream(self, _request: Request, _values: Values) -> Response:
        return self._streamed(self._ticks_told())

    async def _record(self, _request: Request, _values: Values) -> Response:
        return self._streamed(self._rounds_told())

    def _streamed(self, lines: AsyncGenerator[bytes, None]) -> Response:
        if self._streams >= MOST_STREAMS:
            hint = "close one first"
            raise HttpError(
                503, "too-many-streams", f"{MOST_STREAMS} streams are being read already", hint=hint
            )
        return Response(content_type="application/x-ndjson", parts=self._counting(lines))

    async def _counting(self, lines: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        self._streams += 1
        try:
            async with aclosing(lines):
                async for line in lines:
                    yield line
        finally:
            self._streams -= 1

    async def _ticks_told(self) -> AsyncGenerator[bytes, None]:
        ticks = self._agent.stream()
        following: int | None = None
        async with aclosing(ticks):
            async for told in ticks:
                lines = []
                for tick in told:
                    missed = 0 if following is None else tick.number - following
                    following = tick.number + 1
                    lines.append(self._ticks.line(tick, missed=missed))
                yield b"".join(lines)

    async def _rounds_told(self) -> AsyncGenerator[bytes, None]:
        view, moment, writer = self._agent.view(), Moment.now(self._clock), RoundWriter()
        at_s = moment.monotonic_s
        head = Head(node=view.node, netqos=view.version, at_s=at_s, unix_s=moment.unix_s(at_s))
        yield _lines([head_line(head)])
        rounds = self._agent.rounds()
        async with aclosing(rounds):
            async for told in rounds:
                yield _lines(
                    line
                    for one in told
                    for line in writer.lines(one.number, one.item.backend, one.item.taken)
                )

    async def _overrides(self, _request: Request, _values: Values) -> Response:
        view, moment = self._agent.view(), Moment.now(self._clock)
        return _json(
            wire.OverridesWire(overrides=[parts.override(one, view, moment) for one in view.overrides])
        )

    async def _put_override(self, request: Request, values: Values) -> Response:
        return await self._overridden(request, asked.pod_by_uid(self._agent.view(), values["uid"]))

    async def _put_override_named(self, request: Request, values: Values) -> Response:
        return await self._overridden(request, asked.pod_by_name(self._agent.view(), values["pod"]))

    async def _overridden(self, request: Request, pod: PodView) -> Response:
        accepted = await self._agent.set_override(pod.uid, asked.override_request(request))
        return _json(parts.override(accepted, self._agent.view(), Moment.now(self._clock)))

    async def _delete_override(self, _request: Request, values: Values) -> Response:
        uid = asked.as_uid(values["uid"])
        if not await self._agent.delete_override(uid):
            hint = "netqosctl limits lists the overrides in force"
            raise HttpError(404, "no-such-override", f"there is no override of {uid[:300]!r}", hint=hint)
        return _json(wire.DeletedWire(uid=uid))

    async def _reconcile(self, _request: Request, _values: Values) -> Response:
        results = await self._agent.reconcile()
        answer = {name: parts.result(one) for name, one in results.items()}
        return _json(wire.ReconcileWire(ok=all(one.ok for one in answer.values()), results=answer))

    async def _openapi(self, _request: Request, _values: Values) -> Response:
        from netqos.observe.openapi import document  # noqa: PLC0415 - 7 MiB that only who asks shall cost

        return Response(body=await asyncio.to_thread(document))


def require_root(request: Request) -> None:
    """Let root of this user namespace and the daemon's own user pass; 403 for everybody else."""
    if request.peer_uid is not None and request.peer_uid in {0, os.geteuid()}:
        return
    raise HttpError(
        403,
        "forbidden",
        f"changing something needs uid 0, the request came from uid {request.peer_uid}",
        hint="run the command as root (sudo netqosctl ...)",
    )


def as_http(problem: NetqosError) -> HttpError:
    """The typed answer for an error that was raised on purpose."""
    status, code = 500, "failed"
    if isinstance(problem, Rejected):
        status, code = 422, "rejected"
    elif isinstance(problem, Retryable):
        status, code = 503, "try-again"
    elif isinstance(problem, Unsupported):
        status, code = 501, "unsupported"
    text = f"{problem.subject}: {problem.message}" if problem.subject else problem.message
    problems = (problem.problems if isinstance(problem, Rejected) else ()) or (problem.message,)
    return HttpError(status, code, _short(text), hint=problem.hint, problems=tuple(map(_short, problems)))


def _short(text: str) -> str:
    """A message may quote what was sent, and that may be long."""
    return text if len(text) <= LONGEST_MESSAGE else text[:LONGEST_MESSAGE] + "..."


def _order(pod: PodView) -> tuple[str, str]:
    return pod.full_name, pod.uid


def _lines(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def _json(answer: object) -> Response:
    return Response(body=wire.encode(answer) + b"\n")


async def _json_list(head: bytes, items: Iterable[object]) -> Response:
    """A list, encoded item by item and in slices, so that a long one stops neither the tasks nor the other threads."""
    encoded: list[bytes] = []
    for item in items:
        encoded.append(wire.encode(item))
        if len(encoded) % SLICE == 0:
            await asyncio.sleep(0)
    return Response(body=head + b",".join(encoded) + b"]}\n")
