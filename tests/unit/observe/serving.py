"""A status socket under test, and clients that speak to it byte by byte."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netqos.observe.httpserver import Limits
from netqos.observe.listen import UnixListener
from netqos.observe.statusserver import serve_status
from tests.unit.observe.sample import CLOCK, SampleAgent

QUICK = Limits(head_s=0.3, body_s=0.3, idle_s=0.3, piece_s=0.3, linger_s=0.1, handle_s=0.3)
PATIENCE_S = 20.0


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = self.json["error"]
        assert set(error) == {"code", "message", "hint", "problems"}
        return error


@asynccontextmanager
async def serving(agent: SampleAgent | None = None, limits: Limits | None = None) -> AsyncIterator[Path]:
    """A served status socket; the path is short enough for a socket whatever the test's name is."""
    with tempfile.TemporaryDirectory(prefix="netqos-") as folder:
        path = Path(folder) / "s"
        listener = UnixListener(path)
        task = asyncio.create_task(serve_status(listener, agent or SampleAgent(), CLOCK, limits=limits))
        try:
            yield path
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert not path.exists()


async def talk(path: Path, sent: bytes, *, ends: bool = False) -> bytes:
    """Send bytes, and return all that comes until the server closes."""
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        writer.write(sent)
        if ends:
            writer.write_eof()
        async with asyncio.timeout(PATIENCE_S):
            return await reader.read()
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


async def ask(
    path: Path, target: str, method: str = "GET", body: bytes | str | None = None, **headers: str
) -> Answer:
    """One request on a connection of its own."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"{method} {target} HTTP/1.1", "Host: netqos", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if data is not None:
        lines.append(f"Content-Length: {len(data)}")
    return parse(await talk(path, "\r\n".join([*lines, "", ""]).encode() + (data or b"")))


def parse(raw: bytes) -> Answer:
    """The one answer in `raw`, which ends where the connection did."""
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if "content-length" in headers:
        assert len(body) in {0, int(headers["content-length"])}
    return Answer(status=int(first.split()[1]), headers=headers, body=body)


async def until(holds: Callable[[], bool]) -> None:
    """Wait for something that no event tells."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.01)
