"""A client of the daemon's status socket for tests, demo and benchmarks; the command line has its own."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from netqos.errors import NetqosError, Rejected


class NotReachable(NetqosError):
    """Nobody answers on the socket."""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("netqos", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class StatusClient:
    """One request a connection; answers are decoded JSON."""

    def __init__(self, path: Path, *, timeout_s: float = 5) -> None:
        """`path` is the socket; it need not exist yet."""
        self.path = path
        self._timeout_s = timeout_s

    def get(self, path: str) -> Any:
        """`/v1/status` and others."""
        return self.request("GET", path)

    def put(self, path: str, document: Mapping[str, object]) -> Any:
        """Send a document."""
        return self.request("PUT", path, document)

    def request(self, method: str, path: str, document: Mapping[str, object] | None = None) -> Any:
        """The answer; `NotReachable` when nobody answers, `Rejected` with the daemon's words for any other than 2xx."""
        connection = _UnixConnection(self.path, self._timeout_s)
        try:
            body = None if document is None else json.dumps(document)
            connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            answer = connection.getresponse()
            status, text = answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException) as problem:
            raise NotReachable(str(problem), subject=str(self.path)) from problem
        finally:
            connection.close()
        if not 200 <= status < 300:
            raise Rejected(f"status {status}: {text.strip()}", subject=f"{method} {path}")
        return json.loads(text) if text.strip() else None

    def wait_until(self, path: str, accept: Any, *, timeout_s: float = 15) -> Any:
        """Ask every 20 ms until `accept(answer)` is true; the answer. `TimeoutError` tells the last one."""
        last: object = "no answer"
        end_s = time.monotonic() + timeout_s
        while time.monotonic() < end_s:
            try:
                last = self.get(path)
            except NotReachable as problem:
                last = problem
            else:
                if accept(last):
                    return last
            time.sleep(0.02)
        raise TimeoutError(f"{path} is not as expected after {timeout_s:.0f} s: {last}")
