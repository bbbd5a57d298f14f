"""A proxy that makes trouble on purpose, between a client and a real HTTP server, driven by method calls of a test.

Below TLS it can refuse, reset, delay, cut, and lose everything without a word; above (`http=True`) it has a
throw-away certificate of its own, sees the requests, and can answer in the server's place with what
`netqos.testing.faultreplies` has. It runs in a thread of its own, so that tests may block; every call has taken effect
when it returns.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import h11

from netqos.testing.certificates import make_certificate
from netqos.testing.faulthttp import Desk, HttpRelay, Upstream
from netqos.testing.faultreplies import Reply, Request, Rule
from netqos.testing.faultwire import (
    Filterable,
    Trouble,
    Wire,
    attach_drop_all,
    detach_drop_all,
    pass_through,
    unacknowledged_bytes,
)

T = TypeVar("T")

CALL_TIMEOUT_S = 10.0
ACKNOWLEDGING_S = 1.0

_log = logging.getLogger(__name__)
_numbers = itertools.count(1)


class FaultProxy:
    """One listening address on 127.0.0.1 before one server. `close` it, or use it as a context (which starts it)."""

    def __init__(self, upstream: str, upstream_ca: Path | None, *, folder: Path, http: bool = True) -> None:
        """`upstream` is the server's URL, `upstream_ca` what signs its certificate, None for plain HTTP.

        `folder` takes the certificates of `http`; without it what comes is passed through as it is.
        """
        parts = urlsplit(upstream)
        context = ssl.create_default_context(cafile=str(upstream_ca)) if upstream_ca is not None else None
        self._upstream = Upstream(address=parts, context=context)
        self._folder = folder
        self._front: ssl.SSLContext | None = None
        self._ca_file = upstream_ca
        if http:
            self._front = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._ca_file = folder / f"faultproxy-{next(_numbers)}.crt"
            self._show_new_certificate(self._ca_file, forget=True)
        self._scheme = "https" if http else parts.scheme
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="faultproxy", daemon=True)
        self._trouble = Trouble()
        self._trouble.passing.set()
        self._listening: asyncio.Server | None = None
        self._port = 0
        self._wires: dict[Wire, asyncio.Task[None]] = {}
        self._rules: list[Rule] = []
        self._requests: list[Request] = []

    def __enter__(self) -> FaultProxy:
        """Start it."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def start(self) -> None:
        """Listen; `url` is known afterwards."""
        self._thread.start()
        self._do(self._listen())

    def close(self) -> None:
        """End everything; connections that are open are reset."""
        if self._thread.is_alive():
            self._do(self._shut())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()

    # -------------------------------------------------------------- what a client is given, and what came

    @property
    def url(self) -> str:
        """Where clients connect to; it stays the same for the proxy's life."""
        return f"{self._scheme}://127.0.0.1:{self._port}"

    @property
    def ca_file(self) -> Path:
        """The certificates that a client is to trust."""
        assert self._ca_file is not None, "plain HTTP is passed through: there is no certificate"
        return self._ca_file

    @property
    def requests(self) -> tuple[Request, ...]:
        """The requests so far whose answer has begun, or that shall get none; the oldest first."""
        return tuple(self._requests)

    @property
    def connections(self) -> int:
        """How many clients' connections are open."""
        return len(self._wires)

    # -------------------------------------------------------------- troubles below HTTP

    def refuse(self) -> None:
        """Refuse new connections; what is open stays."""
        self._do(self._stop_listening())

    def reset(self) -> None:
        """Reset all connections that are open."""
        self._do(self._reset())

    def blackhole(self) -> None:
        """Lose everything in both directions: no acknowledgement, no reset, no end, new connections time out."""
        self._do(self._lose())

    def delay(self, seconds: float) -> None:
        """Send each piece of an answer later."""
        self._trouble.delay_s = seconds

    def cut(self, after_bytes: int) -> None:
        """Reset each connection, open or new, when it was sent that many bytes from now on (of HTTP or of TLS)."""
        self._do(self._cut(after_bytes))

    def restore(self) -> None:
        """End all troubles below HTTP; what was in the black hole goes on by retransmission."""
        self._do(self._restore())

    # -------------------------------------------------------------- troubles of HTTP

    def answer(
        self,
        reply: Reply,
        *,
        method: str | None = None,
        path: str = "",
        watch: bool | None = None,
        times: int | None = None,
    ) -> None:
        """Give this reply to requests with that method, with `path` in their path, that (do not) watch.

        It holds `times` times, None until `clear`. Of several that match, the oldest counts.
        """
        assert self._front is not None, "only with http=True"
        rule = Rule(reply=reply, method=method, path=path, watch=watch, left=times)
        self._do(self._later(lambda: self._rules.append(rule)))

    def clear(self) -> None:
        """Forget all replies, so that the server answers; answers that have begun are not changed."""
        self._do(self._later(self._rules.clear))

    def change_certificate(self, *, trusted: bool = True, forget: bool = False) -> None:
        """Show another certificate to new connections; `trusted` adds it to `ca_file`, `forget` removes the others."""
        assert self._front is not None, "only with http=True"
        path = self.ca_file if trusted else self._folder / "untrusted.crt"
        self._do(self._later(lambda: self._show_new_certificate(path, forget=forget)))

    def _show_new_certificate(self, ca_file: Path, *, forget: bool) -> None:
        assert self._front is not None
        made = make_certificate(self._folder)
        earlier = "" if forget or not ca_file.exists() else ca_file.read_text(encoding="ascii")
        fresh = ca_file.with_suffix(".new")
        fresh.write_text(earlier + made.certificate.read_text(encoding="ascii"), encoding="ascii")
        fresh.replace(ca_file)
        self._front.load_cert_chain(made.certificate, made.key)

    # -------------------------------------------------------------- in the thread

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(CALL_TIMEOUT_S)

    async def _later(self, work: Callable[[], object]) -> None:
        work()

    async def _listen(self) -> None:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self._port))
        self._port = listener.getsockname()[1]
        self._listening = await asyncio.start_server(
            self._serve, sock=listener, ssl=self._front, backlog=1024
        )

    async def _stop_listening(self) -> None:
        if self._listening is not None:
            self._listening.close()
            self._listening = None
            await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        wire = Wire(reader, writer, self._trouble)
        self._wires[wire] = task
        if not self._trouble.passing.is_set():
            attach_drop_all(wire.socket)  # it was connected before, and waited to be accepted
        try:
            await self._converse(wire)
        except (OSError, EOFError, h11.ProtocolError) as problem:
            _log.debug("a connection ended: %r", problem)
            wire.abort()
        except asyncio.CancelledError:
            wire.abort()
        finally:
            self._wires.pop(wire, None)
            await wire.close()

    async def _converse(self, wire: Wire) -> None:
        if self._front is not None:
            await HttpRelay(wire, self._upstream, Desk(choose=self._choose, record=self._record)).run()
            return
        reader, writer = await self._upstream.connect(tls=False)
        try:
            await pass_through(wire, (reader, writer))
        finally:
            writer.transport.abort()

    def _choose(self, request: Request) -> Reply | None:
        return next((rule.reply for rule in self._rules if rule.takes(request)), None)

    def _record(self, request: Request) -> None:
        self._requests.append(request)

    async def _reset(self) -> None:
        tasks = list(self._wires.values())
        for wire, task in list(self._wires.items()):
            wire.abort()
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _lose(self) -> None:
        """What is under way arrives first: our kernel would repeat it, and each repetition is a sign of life."""
        self._trouble.passing.clear()
        end_s = self._loop.time() + ACKNOWLEDGING_S
        while self._is_under_way() and self._loop.time() < end_s:  # noqa: ASYNC110 - the kernel tells nobody of it
            await asyncio.sleep(0.005)
        for sock in self._sockets():
            attach_drop_all(sock)

    def _is_under_way(self) -> bool:
        return any(unacknowledged_bytes(wire.socket) for wire in self._wires)

    async def _cut(self, after_bytes: int) -> None:
        self._trouble.cut_after_bytes = after_bytes
        for wire in self._wires:
            wire.budget = after_bytes

    async def _restore(self) -> None:
        self._trouble.delay_s = 0.0
        self._trouble.cut_after_bytes = None
        for wire in self._wires:
            wire.budget = None
        for sock in self._sockets():
            detach_drop_all(sock)
        self._trouble.passing.set()
        if self._listening is None:
            await self._listen()

    def _sockets(self) -> list[Filterable]:
        listening = () if self._listening is None else self._listening.sockets
        return [*listening, *(wire.socket for wire in self._wires)]

    async def _shut(self) -> None:
        await self._stop_listening()
        self._trouble.passing.set()
        await self._reset()
        await asyncio.sleep(0)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._loop.shutdown_asyncgens(), 1)
