"""/metrics, /healthz and /readyz over TCP. A port that is taken is a finding and is tried again, never a crash."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
from collections.abc import Callable, Mapping

from netqos.errors import NetqosError
from netqos.host.clock import Clock
from netqos.model.health import Finding, error
from netqos.observe.http import HttpError, Request, Response, Router
from netqos.observe.httpserver import HttpServer, Limits
from netqos.observe.logs import get_logger
from netqos.observe.measure import measure
from netqos.observe.moment import Moment
from netqos.observe.recorder import Recorder
from netqos.observe.shared import Shared
from netqos.observe.view import Agent, AgentView

RETRY_S = 5.0
COUNTERS_S = 2.0
"""A scrape waits this long for the pods' counters, then goes without them."""

STALLED_S = 5.0
"""A loop that had something to steer and has not ticked for so long is stuck."""

LIMITS = Limits(connections=64)

Report = Callable[[Finding | None], None]


async def serve_metrics(
    listen: str, agent: Agent, recorder: Recorder, clock: Clock, *, report: Report, retry_s: float = RETRY_S
) -> None:
    """Serve `host:port` until cancelled; `report` is told of a port that cannot be had, and None when it is had."""
    log = get_logger("netqos.metrics").bind(listen=listen)
    told = ""
    while True:
        try:
            listener = await _listen(listen)
        except OSError as problem:
            finding = _taken(listen, problem)
            report(finding)
            if finding.message != told:
                log.warning("metrics_not_served", problem=finding.message)
            told = finding.message
            await asyncio.sleep(retry_s)
            continue
        report(None)
        log.info("metrics_served", address=listener.getsockname()[:2])
        with listener:
            await HttpServer("metrics", MetricsApi(agent, recorder, clock).router(), limits=LIMITS).serve(
                listener
            )


async def _listen(listen: str) -> socket.socket:
    host, _, port = listen.rpartition(":")
    found = await asyncio.get_running_loop().getaddrinfo(
        host.strip("[]") or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind | socket.SOCK_NONBLOCK, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener


def _taken(listen: str, problem: OSError) -> Finding:
    hint = "set metrics.listen to another address, or to null"
    if problem.errno == errno.EADDRINUSE:
        hint = f"find out who listens there (ss -ltnp), or {hint}"
    why = os.strerror(problem.errno) if problem.errno and problem.errno > 0 else str(problem)
    return error(
        "metrics-not-served", f"metrics.listen {listen}", f"cannot listen: {why}; trying again", hint=hint
    )


class MetricsApi:
    """Answers scrapes and probes."""

    def __init__(self, agent: Agent, recorder: Recorder, clock: Clock) -> None:
        """Loads prometheus_client."""
        from netqos.observe.exposition import Exposition  # noqa: PLC0415 - 4 MiB that only this server needs

        self._agent = agent
        self._recorder = recorder
        self._clock = clock
        self._exposition = Exposition()
        self._counters = Shared(agent.all_counters, clock)

    def router(self) -> Router:
        """The three paths."""
        router = Router()
        router.add("GET", "/metrics", self._metrics)
        router.add("GET", "/healthz", self._healthz)
        router.add("GET", "/readyz", self._readyz)
        return router

    async def _metrics(self, request: Request, _values: Mapping[str, str]) -> Response:
        try:
            async with asyncio.timeout(COUNTERS_S):
                counters = await self._counters.get()
        except (TimeoutError, NetqosError):
            counters = {}
        samples = measure(self._agent.view(), counters, self._recorder.read(), Moment.now(self._clock))
        accept = request.headers.get("accept", "")
        # A thread, so that a scrape of a thousand series does not hold up the daemon's other tasks.
        body, content_type = await asyncio.to_thread(self._exposition.render, samples, accept)
        return Response(body=body, content_type=content_type)

    async def _healthz(self, _request: Request, _values: Mapping[str, str]) -> Response:
        problem = stalled(self._agent.view(), self._clock)
        if problem:
            raise HttpError(503, "stalled", problem, hint="the supervisor should restart the daemon")
        return _words({"status": "ok"})

    async def _readyz(self, _request: Request, _values: Mapping[str, str]) -> Response:
        view = self._agent.view()
        if not view.ready:
            raise HttpError(
                503, "not-ready", not_ready(view), hint="see netqosctl status", problems=waited_for(view)
            )
        return _words({"status": "ready"})


def not_ready(view: AgentView) -> str:
    """Why the daemon is not ready."""
    names = ", ".join(view.waited_for)
    return f"waiting for {names}" if names else "no pass is done yet with all inputs"


def waited_for(view: AgentView) -> tuple[str, ...]:
    """Each source that is waited for, with what is the matter."""
    return tuple(f"source {name}: {detail}" for name, detail in view.waited_for.items())


def stalled(view: AgentView, clock: Clock) -> str:
    """What is stuck; empty when nothing is. A loop without anything to steer does not tick, and is not stuck."""
    last_s = view.loop.last_tick_s
    if last_s is None or clock.monotonic() - last_s <= STALLED_S:
        return ""
    return f"the fast loop has not ticked for {clock.monotonic() - last_s:.1f} s"


def _words(answer: Mapping[str, str]) -> Response:
    return Response(body=json.dumps(answer).encode("ascii") + b"\n")
