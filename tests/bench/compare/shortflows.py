"""Short TCP flows, one after the other, each timed from its connect to its last byte's answer."""

from __future__ import annotations

import contextlib
import math
import socket
import time

from netqos.testing.namespaces import Namespace
from netqos.testing.processes import Call

SIZE = 100_000
_PART = 1 << 16


class Server:
    """Takes or gives `SIZE` bytes a connection, in a child process inside a namespace."""

    def __init__(self, namespace: Namespace, port: int) -> None:
        """It listens when this returns."""
        self.address = (namespace.address, port)
        with namespace.entered():
            listener = socket.create_server(self.address, backlog=16)
        self._call = namespace.fork(_serve, listener)
        listener.close()

    def stop(self) -> None:
        """End it."""
        self._call.kill()


def start_flows(
    source: Namespace, server: Server, *, towards_source: bool, for_s: float
) -> Call[list[float]]:
    """Flow after flow for a time; seconds of each, inf for one that was not done at its end."""
    return source.fork(_ask, server.address, towards_source, for_s)


def _ask(place: tuple[str, int], towards_source: bool, for_s: float) -> list[float]:
    end_s = time.monotonic() + for_s
    found: list[float] = []
    while (start_s := time.monotonic()) < end_s:
        try:
            with socket.create_connection(place, timeout=end_s - start_s) as connection:
                _exchange(connection, towards_source=towards_source)
            found.append(time.monotonic() - start_s)
        except OSError:
            found.append(math.inf)
        time.sleep(0.005)
    return found


def _exchange(connection: socket.socket, *, towards_source: bool) -> None:
    if towards_source:
        connection.sendall(b"g")
        _take(connection, SIZE)
    else:
        connection.sendall(b"t" + bytes(SIZE - 1))
        _take(connection, 1)


def _take(connection: socket.socket, size: int) -> None:
    while size > 0:
        part = connection.recv(min(size, _PART))
        if not part:
            raise ConnectionError("ended early")
        size -= len(part)


def _serve(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        with contextlib.suppress(OSError), connection:
            connection.settimeout(5)
            if connection.recv(1) == b"g":
                connection.sendall(bytes(SIZE))
            else:
                _take(connection, SIZE - 1)
                connection.sendall(b".")
