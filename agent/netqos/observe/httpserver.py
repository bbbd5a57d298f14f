"""A small HTTP/1.1 server over asyncio streams: bounded in bytes, in time and in connections, for local readers.

Whatever a client does (half a request, a byte a second, never reading, thousands of connects), it holds only its own
connection and only up to a deadline; no other client and no other task of the process waits for it. The protocol
itself is h11's work, what is answered is the handler's.
"""

from __future__ import annotations

import asyncio
import socket

from netqos.observe.http import Handler, HttpError
from netqos.observe.httpconnection import Connection, Limits, refusal
from netqos.observe.logs import get_logger

ACCEPT_QUEUE = 512
GOODBYE_S = 0.5
MOST_REFUSED = 64

__all__ = ["HttpServer", "Limits"]


class HttpServer:
    """Serves one listening socket."""

    def __init__(self, name: str, handler: Handler, *, limits: Limits | None = None) -> None:
        """`name` is for the log. The handler may raise `HttpError`; all else it raises is logged and answered 500."""
        self._handler = handler
        self._limits = limits if limits is not None else Limits()
        self._log = get_logger("netqos.http").bind(server=name)
        self._connections: dict[Connection, None] = {}
        self._refused: set[asyncio.StreamWriter] = set()
        self._group: asyncio.TaskGroup | None = None

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._connections)

    async def serve(self, listener: socket.socket) -> None:
        """Serve until cancelled; then the listener and every connection are closed."""
        try:
            async with asyncio.TaskGroup() as group:
                await self._accept(listener, group)
        finally:
            # A connection whose task was cancelled before its first step has closed nothing.
            for connection in self._connections:
                connection.abort()
            for writer in self._refused:
                writer.transport.abort()

    async def _accept(self, listener: socket.socket, group: asyncio.TaskGroup) -> None:
        start = asyncio.start_unix_server if listener.family == socket.AF_UNIX else asyncio.start_server
        server = await start(self._accepted, sock=listener, backlog=ACCEPT_QUEUE)
        self._group = group
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._group = None
            server.close()

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._group is None:
            writer.transport.abort()
        elif not self._make_room():
            self._turn_away(writer)
        else:
            connection = Connection(reader, writer, handler=self._handler, limits=self._limits, log=self._log)
            self._connections[connection] = None
            self._group.create_task(self._run(connection), name="http-connection")

    async def _run(self, connection: Connection) -> None:
        try:
            await connection.run()
        finally:
            del self._connections[connection]

    def _make_room(self) -> bool:
        """Have a place for one more: when all are taken, the one that has been idle longest has to go."""
        if len(self._connections) < self._limits.connections:
            return True
        idle = next((one for one in self._connections if one.is_idle), None)
        if idle is None:
            return False
        idle.abort()
        return True

    def _turn_away(self, writer: asyncio.StreamWriter) -> None:
        """Tell a client that there is no place, and give it a moment to hear it: a close at once would reset."""
        if len(self._refused) >= MOST_REFUSED:
            writer.transport.abort()
            return
        hint = "try again in a second"
        writer.write(refusal(HttpError(503, "too-many-connections", "all connections are taken", hint=hint)))
        writer.write_eof()
        self._refused.add(writer)
        asyncio.get_running_loop().call_later(GOODBYE_S, self._forget, writer)

    def _forget(self, writer: asyncio.StreamWriter) -> None:
        self._refused.discard(writer)
        writer.transport.abort()
