"""The HTTP half of a fault proxy: requests one after the other, handed to the server or answered in its place."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeAlias
from urllib.parse import SplitResult

import h11

from netqos.testing.faultreplies import (
    Body,
    CutBody,
    HalfBody,
    HangUp,
    NoAnswer,
    Reply,
    Request,
    Silence,
    parse_request,
)
from netqos.testing.faultwire import PART, Wire

HOP_BY_HOP = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"upgrade"})
JSON_HEADERS = [(b"content-type", b"application/json")]

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Headers: TypeAlias = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """Where the server is; `context` None for plain HTTP."""

    address: SplitResult
    context: ssl.SSLContext | None

    async def connect(self, *, tls: bool = True) -> Streams:
        """A new connection; without `tls` plain TCP, for who passes TLS through."""
        assert self.address.hostname is not None
        context = self.context if tls else None
        return await asyncio.open_connection(self.address.hostname, self.address.port, ssl=context)


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Where a connection asks what to do with a request, and tells what was answered."""

    choose: Callable[[Request], Reply | None]
    record: Callable[[Request], None]


class HttpRelay:
    """Serves one client's connection."""

    def __init__(self, wire: Wire, upstream: Upstream, desk: Desk) -> None:
        """Nothing is read before `run`."""
        self._wire = wire
        self._upstream = upstream
        self._desk = desk
        self._client = h11.Connection(h11.SERVER)
        self._server: tuple[h11.Connection, Streams] | None = None

    async def run(self) -> None:
        """Answer requests until the client ends its connection or an answer ends it."""
        try:
            while (asked := await self._next_request()) is not None:
                await self._answer(*asked)
                if self._client.our_state is not h11.DONE or self._client.their_state is not h11.DONE:
                    return
                self._client.start_next_cycle()
        finally:
            self._drop_server()

    # -------------------------------------------------------------- the client's side

    async def _next_request(self) -> tuple[h11.Request, bytes] | None:
        head: h11.Request | None = None
        body = b""
        while True:
            event = self._client.next_event()
            if event is h11.NEED_DATA:
                self._client.receive_data(await self._wire.receive())
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                return head, body
            else:
                return None

    async def _answer(self, head: h11.Request, body: bytes) -> None:
        request = parse_request(head.method, head.target, list(head.headers), body)
        reply = self._desk.choose(request)
        match reply:
            case None:
                await self._while_wanted(self._relay(head, body, request))
            case Body():
                await self._tell(reply, request)
            case HalfBody() | CutBody():
                await self._while_wanted(self._relay_half(head, body, request, reply))
            case Silence():
                self._desk.record(replace(request, status=200))
                await self._send(h11.Response(status_code=200, headers=JSON_HEADERS, reason=b"OK"))
                await self._wait_for_end()
            case NoAnswer():
                self._desk.record(request)
                await self._wait_for_end()
            case HangUp():
                self._desk.record(request)
                await self._wire.hang_up()

    async def _tell(self, reply: Body, request: Request) -> None:
        self._desk.record(replace(request, status=reply.status))
        headers = [(name.encode(), value.encode()) for name, value in reply.headers.items()]
        headers.append((b"Content-Length", str(len(reply.content)).encode()))
        await self._send(h11.Response(status_code=reply.status, headers=headers))
        await self._send(h11.Data(data=reply.content), h11.EndOfMessage())

    async def _send(self, *events: h11.Event) -> None:
        data = b"".join(self._client.send(event) or b"" for event in events)
        if data:
            await self._wire.send(data)

    async def _wait_for_end(self) -> None:
        while await self._wire.receive():
            pass

    async def _while_wanted(self, work: Awaitable[None]) -> None:
        """Do it to its end, or until the client leaves."""
        task = asyncio.ensure_future(work)
        upcoming = self._wire.upcoming()
        try:
            await asyncio.wait({task, upcoming}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done() and not upcoming.result():
                raise ConnectionAbortedError
            await task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    # -------------------------------------------------------------- the server's side

    async def _relay(self, head: h11.Request, body: bytes, request: Request) -> None:
        server, streams = await self._ask(head, body)
        while True:
            event = await _next(server, streams)
            if isinstance(event, h11.Response):
                self._desk.record(replace(request, status=event.status_code))
                await self._send(_handed_on(event))
            elif isinstance(event, h11.Data):
                await self._send(h11.Data(data=bytes(event.data)))
            elif isinstance(event, h11.EndOfMessage):
                await self._send(h11.EndOfMessage())
                self._end_cycle(server)
                return
            elif not isinstance(event, h11.InformationalResponse):
                await self._wire.hang_up()

    async def _relay_half(
        self, head: h11.Request, body: bytes, request: Request, reply: HalfBody | CutBody
    ) -> None:
        response, content = await self._whole_answer(*await self._ask(head, body))
        self._desk.record(replace(request, status=response.status_code))
        half = content[: len(content) // 2]
        told = half if isinstance(reply, HalfBody) else content
        kept = [pair for pair in _handed_on(response).headers if pair[0] != b"transfer-encoding"]
        headers = [pair for pair in kept if pair[0] != b"content-length"]
        headers.append((b"content-length", str(len(told)).encode()))
        await self._send(h11.Response(status_code=response.status_code, headers=headers))
        await self._send(h11.Data(data=half))
        if isinstance(reply, HalfBody):
            await self._send(h11.EndOfMessage())
        elif reply.reset:
            await self._wire.hang_up()

    async def _whole_answer(self, server: h11.Connection, streams: Streams) -> tuple[h11.Response, bytes]:
        response: h11.Response | None = None
        content = b""
        while True:
            event = await _next(server, streams)
            if isinstance(event, h11.Response):
                response = event
            elif isinstance(event, h11.Data):
                content += event.data
            elif isinstance(event, h11.EndOfMessage) and response is not None:
                self._end_cycle(server)
                return response, content
            elif not isinstance(event, h11.InformationalResponse):
                await self._wire.hang_up()

    async def _ask(self, head: h11.Request, body: bytes) -> tuple[h11.Connection, Streams]:
        if self._server is None:
            self._server = h11.Connection(h11.CLIENT), await self._upstream.connect()
        server, streams = self._server
        dropped = HOP_BY_HOP | {b"transfer-encoding", b"content-length", b"expect"}
        headers: Headers = [(name, value) for name, value in head.headers if name not in dropped]
        if body:
            headers.append((b"content-length", str(len(body)).encode()))
        events: list[h11.Event] = [h11.Request(method=head.method, target=head.target, headers=headers)]
        events += [h11.Data(data=body), h11.EndOfMessage()] if body else [h11.EndOfMessage()]
        streams[1].write(b"".join(server.send(event) or b"" for event in events))
        await streams[1].drain()
        return self._server

    def _end_cycle(self, server: h11.Connection) -> None:
        if server.our_state is h11.DONE and server.their_state is h11.DONE:
            server.start_next_cycle()
        else:
            self._drop_server()

    def _drop_server(self) -> None:
        if self._server is not None:
            with contextlib.suppress(OSError):
                self._server[1][1].transport.abort()
            self._server = None


async def _next(server: h11.Connection, streams: Streams) -> h11.Event:
    while True:
        event = server.next_event()
        if isinstance(event, h11.Event):
            return event
        if event is h11.PAUSED:
            raise ConnectionAbortedError  # it speaks another protocol than HTTP
        server.receive_data(await streams[0].read(PART))


def _handed_on(response: h11.Response) -> h11.Response:
    headers = [(name, value) for name, value in response.headers if name not in HOP_BY_HOP]
    return h11.Response(status_code=response.status_code, headers=headers, reason=response.reason)
