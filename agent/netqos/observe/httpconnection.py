"""One HTTP connection: requests one after the other, each read, answered and written within its deadlines."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import h11

from netqos.observe.http import Handler, HttpError, Request, Response, parse_target

if TYPE_CHECKING:
    import structlog

READ_BYTES = 65536
PIECE_BYTES = 65536
LINGER_BYTES = 1 << 20
UCRED = struct.Struct("=iII")  # struct ucred of socket(7): pid, uid, gid


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one client may take: sizes in bytes, times in seconds.

    `head_s` runs from a request's first byte (of the first request: from the connect) to the end of its head, `body_s`
    to the end of its body; `idle_s` is the longest rest between two requests; `piece_s` the longest that a client may
    take to accept the next 64 KiB of an answer.
    """

    head_bytes: int = 65536
    body_bytes: int = 65536
    connections: int = 256
    head_s: float = 10.0
    body_s: float = 10.0
    idle_s: float = 60.0
    handle_s: float = 30.0
    piece_s: float = 10.0
    linger_s: float = 1.0


class _Gone(Exception):
    """The client went away, or took too long: there is nobody to answer."""


class Connection:
    """Reads requests from one client and writes the handler's answers."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        handler: Handler,
        limits: Limits,
        log: structlog.stdlib.BoundLogger,
    ) -> None:
        """Nothing is read before `run`."""
        self._reader = reader
        self._writer = writer
        self._handler = handler
        self._limits = limits
        self._log = log
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.head_bytes)
        self._peer_uid = _peer_uid(writer)
        self._patience_s = limits.head_s
        self.is_idle = False
        # drain() then returns only when the kernel has taken everything, so that its deadline means the client.
        writer.transport.set_write_buffer_limits(high=0)

    async def run(self) -> None:
        """Serve the client until either side has had enough; the connection is closed afterwards."""
        try:
            while await self._exchange():
                self._h11.start_next_cycle()
                self._patience_s = self._limits.idle_s
            await self._linger()
        except (_Gone, OSError, h11.LocalProtocolError):
            pass
        except Exception:  # noqa: BLE001 - the border of one connection: a fault here must not end the others
            self._log.exception("connection_failed")
        finally:
            self._writer.transport.abort()

    def abort(self) -> None:
        """Close at once."""
        self._writer.transport.abort()

    async def _exchange(self) -> bool:
        """One request and its answer; False when no other may follow."""
        method = "GET"
        try:
            head = await self._read_head()
            if head is None:
                return False
            method = head.method.decode("ascii")
            response = await self._answer(await self._read_request(head))
        except HttpError as problem:
            response = problem.response()
        except h11.RemoteProtocolError as problem:
            response = _as_error(problem).response()
        await self._send(response, is_head=method == "HEAD")
        # A body that was refused is still on its way, and after a broken request nothing can be told apart.
        return self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE

    async def _read_head(self) -> h11.Request | None:
        """The next request's head, None when the client has no more."""
        clock = asyncio.get_running_loop().time
        until_s = clock() + self._patience_s
        self.is_idle = not self._h11.trailing_data[0]
        while True:
            event = self._h11.next_event()
            if isinstance(event, h11.Request):
                return event
            if event is not h11.NEED_DATA:
                return None
            await self._receive(until_s)
            if self.is_idle:
                self.is_idle = False
                until_s = clock() + self._limits.head_s

    async def _read_request(self, head: h11.Request) -> Request:
        if head.http_version not in {b"1.0", b"1.1"}:
            raise HttpError(505, "http-version", "only HTTP/1.0 and HTTP/1.1 are spoken here")
        headers = {name.decode("ascii"): value.decode("latin-1") for name, value in head.headers}
        if int(headers.get("content-length", "0")) > self._limits.body_bytes:
            raise self._body_too_large()
        if self._h11.they_are_waiting_for_100_continue:
            await self._write(h11.InformationalResponse(status_code=100, headers=[], reason="Continue"))
        body = await self._read_body()
        path, query = parse_target(head.target.decode("latin-1"))
        return Request(
            method=head.method.decode("ascii"),
            path=path,
            query=query,
            headers=headers,
            body=body,
            peer_uid=self._peer_uid,
        )

    async def _read_body(self) -> bytes:
        until_s = asyncio.get_running_loop().time() + self._limits.body_s
        body = bytearray()
        while True:
            event = self._h11.next_event()
            if isinstance(event, h11.EndOfMessage):
                return bytes(body)
            if isinstance(event, h11.Data):
                body += event.data
                if len(body) > self._limits.body_bytes:
                    raise self._body_too_large()
            elif event is h11.NEED_DATA:
                await self._receive(until_s)
            else:
                raise _Gone

    def _body_too_large(self) -> HttpError:
        return HttpError(413, "body-too-large", f"a body has at most {self._limits.body_bytes} bytes")

    async def _receive(self, until_s: float) -> None:
        """Hand h11 what comes next, at the latest at loop time `until_s`."""
        try:
            async with asyncio.timeout_at(until_s):
                data = await self._reader.read(READ_BYTES)
        except TimeoutError:
            if self.is_idle or self._h11.our_state is not h11.IDLE:
                raise _Gone from None
            raise HttpError(408, "request-too-slow", "the request did not come in time") from None
        self._h11.receive_data(data)

    async def _answer(self, request: Request) -> Response:
        try:
            async with asyncio.timeout(self._limits.handle_s):
                return await self._handler(request)
        except HttpError:
            raise
        except TimeoutError:
            self._log.warning("request_timed_out", method=request.method, path=request.path)
            hint = "the daemon is busy; try again"
            raise HttpError(
                504, "timeout", f"no answer within {self._limits.handle_s:g} s", hint=hint
            ) from None
        except Exception:  # noqa: BLE001 - the border of one request: logged here, once, and the daemon goes on
            self._log.exception("request_failed", method=request.method, path=request.path)
            hint = "the daemon's log has the reason"
            raise HttpError(500, "internal", "the daemon failed to answer", hint=hint) from None

    async def _send(self, response: Response, *, is_head: bool) -> None:
        if self._h11.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            raise _Gone
        await self._write(_head_of(response, ends=self._h11.their_state is not h11.DONE))
        if response.parts is not None:
            await self._send_parts(response.parts, is_head=is_head)
        elif not is_head:
            for start in range(0, len(response.body), PIECE_BYTES):
                await self._write(h11.Data(data=response.body[start : start + PIECE_BYTES]))
        await self._write(h11.EndOfMessage())

    async def _send_parts(self, parts: AsyncGenerator[bytes, None], *, is_head: bool) -> None:
        """Send pieces until they end or the client goes."""
        async with aclosing(parts):
            if is_head:
                return
            pump = asyncio.create_task(self._pump(parts), name="http-pump")
            gone = asyncio.create_task(self._until_gone(), name="http-gone")
            try:
                await asyncio.wait({pump, gone}, return_when=asyncio.FIRST_COMPLETED)
                if not pump.done():
                    raise _Gone
            finally:
                for task in (pump, gone):
                    task.cancel()
                await asyncio.gather(pump, gone, return_exceptions=True)
            pump.result()

    async def _pump(self, parts: AsyncGenerator[bytes, None]) -> None:
        async for part in parts:
            await self._write(h11.Data(data=part))

    async def _until_gone(self) -> None:
        with suppress(OSError):
            while await self._reader.read(READ_BYTES):
                pass

    async def _write(self, event: h11.Event) -> None:
        data = self._h11.send(event)
        if not data:
            return
        self._writer.write(data)
        try:
            async with asyncio.timeout(self._limits.piece_s):
                await self._writer.drain()
        except TimeoutError:
            raise _Gone from None

    async def _linger(self) -> None:
        """Take what is still on its way: a close with unread data resets the connection and may lose the answer."""
        if self._writer.can_write_eof():
            self._writer.write_eof()
        taken = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.linger_s):
                while taken < LINGER_BYTES and (data := await self._reader.read(READ_BYTES)):
                    taken += len(data)


def refusal(problem: HttpError) -> bytes:
    """The whole answer to a client whose request is not read at all."""
    connection = h11.Connection(h11.SERVER)
    response = problem.response()
    events = (_head_of(response, ends=True), h11.Data(data=response.body), h11.EndOfMessage())
    return b"".join(connection.send(event) or b"" for event in events)


def _head_of(response: Response, *, ends: bool) -> h11.Response:
    """The head of an answer; `ends` announces that the connection closes after it."""
    headers = [("Content-Type", response.content_type), ("Cache-Control", "no-store"), *response.headers]
    if response.parts is None:
        headers.append(("Content-Length", str(len(response.body))))
    if ends or response.parts is not None:
        headers.append(("Connection", "close"))
    return h11.Response(status_code=response.status, headers=headers)


def _as_error(problem: h11.RemoteProtocolError) -> HttpError:
    if problem.error_status_hint == 431:
        return HttpError(431, "head-too-large", "the request's head is too large")
    return HttpError(problem.error_status_hint, "bad-request", f"this is no HTTP request: {problem}")


def _peer_uid(writer: asyncio.StreamWriter) -> int | None:
    """The user at the other end of a Unix socket as the kernel knows it (SO_PEERCRED), None for other sockets."""
    sock = writer.get_extra_info("socket")
    if sock is None or sock.family != socket.AF_UNIX:
        return None
    _pid, uid, _gid = UCRED.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, UCRED.size))
    return int(uid)
