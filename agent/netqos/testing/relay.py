"""A way out of a network namespace for one address: a server on the machine's loopback, reached from a rig's node.

Two processes of this module hand bytes on: one listens on 127.0.0.1 inside the node and connects to a Unix socket, the
other listens on that socket outside and connects to the server. Nothing is opened to any network.

    with Relay(rig, 6443):
        ...  # inside the node, 127.0.0.1:6443 is the server now
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from netqos.errors import NetqosError
from netqos.testing.namespaces import Foothold
from netqos.testing.processes import tool_environment

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_CHUNK = 1 << 16
_START_S = 10.0


class Site(Protocol):
    """What has a node: a rig, or a machine of another kind."""

    @property
    def node(self) -> Foothold:
        """Where the server is to be reached."""

    @property
    def folder(self) -> Path:
        """For the relay's socket."""


class Relay:
    """The server's own address and port, inside the node's namespace too. Use it as a context."""

    def __init__(self, site: Site, port: int) -> None:
        """`port` is the server's, on 127.0.0.1."""
        self._site = site
        self._tcp = f"127.0.0.1:{port}"
        self._socket = site.folder / f"relay-{port}.sock"
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        """Start both processes; connections work when this returns."""
        try:
            self._start()
        except BaseException:  # an interruption too
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End both; what is connected is reset."""
        self._stop()

    def _start(self) -> None:
        command = [sys.executable, "-m", "netqos.testing.relay"]
        tied = ["setpriv", "--pdeathsig", "KILL", *command]  # no later sweep would find it
        self._processes.append(
            subprocess.Popen([*tied, str(self._socket), self._tcp], env=tool_environment())
        )
        self._wait(self._socket.exists)
        self._site.node.run(["ip", "link", "set", "lo", "up"])
        ready = self._socket.with_suffix(".ready")
        self._processes.append(self._site.node.popen([*command, self._tcp, str(self._socket), str(ready)]))
        self._wait(ready.exists)

    def _stop(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def _wait(self, check: Callable[[], bool]) -> None:
        end_s = time.monotonic() + _START_S
        while not check():
            if time.monotonic() > end_s or any(one.poll() is not None for one in self._processes):
                raise NetqosError("the relay did not start", subject=self._tcp)
            time.sleep(0.01)


async def serve(listen: str, connect: str, ready: Callable[[], None]) -> None:
    """Hand on every connection to `listen` to `connect`; each is `host:port` or the path of a Unix socket."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await _connect(connect)
        except OSError:
            writer.transport.abort()
            return
        await _join((reader, writer), there)

    server = await _listen(listen, handle)
    ready()
    async with server:
        await server.serve_forever()


async def _listen(place: str, handle: Callable[..., Awaitable[None]]) -> asyncio.Server:
    if place.startswith("/"):
        return await asyncio.start_unix_server(handle, place)
    host, _, port = place.rpartition(":")
    return await asyncio.start_server(handle, host, int(port))


async def _connect(place: str) -> Streams:
    if place.startswith("/"):
        return await asyncio.open_unix_connection(place)
    host, _, port = place.rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def _join(one: Streams, other: Streams) -> None:
    """Until either side ends."""
    halves = [
        asyncio.ensure_future(_copy(one[0], other[1])),
        asyncio.ensure_future(_copy(other[0], one[1])),
    ]
    await asyncio.wait(halves, return_when=asyncio.FIRST_COMPLETED)
    for half in halves:
        half.cancel()
    for _, writer in (one, other):
        writer.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()


if __name__ == "__main__":
    listening = Path(sys.argv[3] if len(sys.argv) > 3 else os.devnull)
    asyncio.run(serve(sys.argv[1], sys.argv[2], listening.touch))
