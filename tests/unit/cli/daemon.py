"""A daemon for commands under test: the real status socket over a sample agent, in a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from netqos.observe.listen import UnixListener
from netqos.observe.statusserver import serve_status
from tests.unit.observe.sample import SampleAgent


@contextmanager
def running(agent: SampleAgent | None = None) -> Iterator[Path]:
    """The path of a socket that answers."""
    with tempfile.TemporaryDirectory(prefix="netqos-") as folder:
        path = Path(folder) / "s"
        served = agent or SampleAgent()
        listener = UnixListener(path)
        loop = asyncio.new_event_loop()
        task: asyncio.Task[None] = loop.create_task(serve_status(listener, served, served.clock))
        thread = threading.Thread(target=_run, args=(loop, task))
        thread.start()
        try:
            yield path
        finally:
            loop.call_soon_threadsafe(task.cancel)
            thread.join()


def _run(loop: asyncio.AbstractEventLoop, task: asyncio.Task[None]) -> None:
    try:
        loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        loop.run_until_complete(asyncio.sleep(0.01))  # connections that were aborted close in the loop
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[Path]:
    """The path of a socket whose other end does what `answer` does with each connection."""
    with tempfile.TemporaryDirectory(prefix="netqos-") as folder, socket.socket(socket.AF_UNIX) as listener:
        path = Path(folder) / "s"
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=_accept, args=(listener, answer))
        thread.start()
        try:
            yield path
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _accept(listener: socket.socket, answer: Callable[[socket.socket], None]) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            answer(connection)
