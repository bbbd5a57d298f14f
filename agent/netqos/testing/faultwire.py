"""One client's connection to a fault proxy, and the troubles below HTTP that it may meet."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fcntl
import socket
import struct
import sys
import termios
from asyncio.trsock import TransportSocket
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias

SO_ATTACH_FILTER = 26  # include/uapi/asm-generic/socket.h; the module socket has neither
SO_DETACH_FILTER = 27
BPF_RET_K = 0x06
PART = 1 << 16
READING_S = 0.05


class _DropAll:
    """A classic BPF program that returns 0: the kernel drops each packet before TCP sees it (tcp_filter)."""

    def __init__(self) -> None:
        self._code = ctypes.create_string_buffer(struct.pack("HBBI", BPF_RET_K, 0, 0, 0))
        self.program = struct.pack("HP", 1, ctypes.addressof(self._code))


_DROP_ALL = _DropAll()

Filterable: TypeAlias = socket.socket | TransportSocket


def attach_drop_all(sock: Filterable) -> None:
    """From now on nothing reaches the socket: it acknowledges nothing, and a listening one answers no SYN."""
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, _DROP_ALL.program)


def detach_drop_all(sock: Filterable) -> None:
    """The opposite; no error where nothing is attached. What was lost meanwhile comes again by retransmission."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)


def unacknowledged_bytes(sock: Filterable) -> int:
    """What was sent and is not acknowledged (SIOCOUTQ of tcp(7)); 0 for a socket that is closed."""
    if sock.fileno() < 0:
        return 0
    answer = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4))
    return int.from_bytes(answer, sys.byteorder)


@dataclass(slots=True)
class Trouble:
    """What all connections meet now. `passing` is cleared while nothing may be sent."""

    delay_s: float = 0.0
    cut_after_bytes: int | None = None
    passing: asyncio.Event = field(default_factory=asyncio.Event)


class Wire:
    """A client's connection. It is read by one task at a time, and answers go through `send` alone."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, trouble: Trouble) -> None:
        """Part of one proxy, whose `trouble` it looks at before each piece it sends."""
        self._reader = reader
        self._writer = writer
        self._trouble = trouble
        self._reading: asyncio.Task[bytes] | None = None
        self.budget = trouble.cut_after_bytes
        # For options only. Kept, since a transport forgets it at its end.
        self.socket: TransportSocket = writer.get_extra_info("socket")

    def upcoming(self) -> asyncio.Task[bytes]:
        """What comes next from the client, b"" at its end; the same task until `receive` has taken it."""
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._reader.read(PART))
        return self._reading

    async def receive(self) -> bytes:
        """Wait for the next piece; b"" at the end."""
        piece = await self.upcoming()
        self._reading = None
        return piece

    async def send(self, data: bytes) -> None:
        """Send, as far as the troubles of the moment let it. `ConnectionAbortedError` where they end the connection."""
        if self._trouble.delay_s:
            await asyncio.sleep(self._trouble.delay_s)
        await self._trouble.passing.wait()
        if self.budget is not None:
            data, rest = data[: self.budget], data[self.budget :]
            self.budget -= len(data)
            if rest:
                await self._write(data)
                await self.hang_up()
        await self._write(data)

    async def hang_up(self) -> NoReturn:
        """Reset the connection when the client has had the time to read what it was sent; a reset discards the rest."""
        await asyncio.sleep(READING_S)
        self.abort()
        raise ConnectionAbortedError

    def abort(self) -> None:
        """Reset the connection at once."""
        with contextlib.suppress(OSError):
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def close(self) -> None:
        """End it in order, and without waiting where the other side does not take part."""
        if self._reading is not None:
            self._reading.cancel()
        self._writer.close()
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            await asyncio.wait_for(self._writer.wait_closed(), 0.5)

    async def _write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


async def pass_through(wire: Wire, upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    """Hand bytes on in both directions until both sides or one's connection has ended."""
    reader, writer = upstream

    async def ask() -> None:
        while data := await wire.receive():
            writer.write(data)
            await writer.drain()
        writer.write_eof()

    async def answer() -> None:
        while data := await reader.read(PART):
            await wire.send(data)

    asking = asyncio.ensure_future(ask())
    try:
        await answer()
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
