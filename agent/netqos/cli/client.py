"""A client of the status socket on the standard library alone, since commands have to start at once.

Whatever is at the other end, the caller gets a JSON object or one of three errors that say what to do.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
from typing import Any
from urllib.parse import quote, urlencode

DEFAULT_SOCKET = "/run/netqos/netqosd.sock"
ANSWER_S = 10.0
CHANGE_S = 40.0
MOST_BYTES = 256 << 20

Json = dict[str, Any]


class Problem(Exception):
    """A command cannot go on: `code` is the exit status, `hint` the next step, `problems` all details."""

    code = 1

    def __init__(self, message: str, *, hint: str = "", problems: tuple[str, ...] = ()) -> None:
        """Texts are for people; they are made safe for a terminal where they are shown."""
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.problems = problems


class Unreachable(Problem):
    """No daemon answers."""

    code = 3


class NotFound(Problem):
    """The daemon knows no such pod or override."""

    code = 4


class InputRejected(Problem):
    """The daemon refuses a value."""

    code = 5


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("netqos", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class StatusClient:
    """Asks one daemon, each request on a connection of its own."""

    def __init__(self, path: str | None = None) -> None:
        """`path` of the socket; None: $NETQOS_SOCKET, else the default."""
        self.path = path or os.environ.get("NETQOS_SOCKET") or DEFAULT_SOCKET

    def get(self, target: str, **query: str) -> Json:
        """The answer of a GET."""
        return self._request("GET", _with(target, query), None, ANSWER_S)

    def put(self, target: str, body: Json, **query: str) -> Json:
        """The answer of a PUT."""
        return self._request("PUT", _with(target, query), body, CHANGE_S)

    def post(self, target: str) -> Json:
        """The answer of a POST without a body."""
        return self._request("POST", target, None, CHANGE_S)

    def delete(self, target: str) -> Json:
        """The answer of a DELETE."""
        return self._request("DELETE", target, None, CHANGE_S)

    def _request(self, method: str, target: str, body: Json | None, timeout_s: float) -> Json:
        connection = _Connection(self.path, timeout_s)
        try:
            connection.connect()
        except OSError as problem:
            connection.close()
            raise self.unreachable(problem) from None
        try:
            status, raw = self._exchange(connection, method, target, body)
        finally:
            connection.close()
        return self.check(status, raw)

    def check(self, status: int, raw: bytes) -> Json:
        """The object of an answer; a refusal is raised as the `Problem` that it tells."""
        return self._checked(status, self._parsed(raw))

    def _exchange(
        self, connection: _Connection, method: str, target: str, body: Json | None
    ) -> tuple[int, bytes]:
        headers = {"Connection": "close"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, target, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            if answer.length is not None and answer.length > MOST_BYTES:
                raise self.garbage()
            return answer.status, answer.read()
        except TimeoutError:
            raise self.silent(connection.timeout or 0.0) from None
        except (http.client.IncompleteRead, OSError):
            hint = "see whether it runs: systemctl status netqosd"
            raise Unreachable("netqosd went away while it was answering", hint=hint) from None
        except http.client.HTTPException:
            raise self.garbage() from None

    def unreachable(self, problem: OSError) -> Unreachable:
        """Why no connection to the socket came about, and what to do."""
        if isinstance(problem, FileNotFoundError):
            message, hint = "there is no such socket", "start netqosd, or name its socket with --socket"
        elif isinstance(problem, ConnectionRefusedError):
            message, hint = "nobody listens there", "start netqosd: systemctl start netqosd"
        elif isinstance(problem, PermissionError):
            message, hint = "permission denied", "run it as root, or as a member of the socket's group"
        elif isinstance(problem, TimeoutError):
            message, hint = "no connection in time", "netqosd may be overloaded; try again"
        else:
            message, hint = problem.strerror or str(problem), "name the daemon's socket with --socket"
        return Unreachable(f"netqosd is not reachable at {self.path}: {message}", hint=hint)

    def silent(self, after_s: float) -> Unreachable:
        """It took the request, and says nothing."""
        hint = "its log tells what it is doing: journalctl -u netqosd"
        return Unreachable(f"netqosd did not answer within {after_s:g} s", hint=hint)

    def garbage(self) -> Problem:
        """What is at the other end is no netqosd."""
        hint = "name the daemon's socket with --socket"
        return Problem(f"what answers at {self.path} does not speak netqosd's language", hint=hint)

    def _parsed(self, raw: bytes) -> Json:
        try:
            answer = json.loads(raw)
        except (ValueError, RecursionError):
            raise self.garbage() from None
        if not isinstance(answer, dict):
            raise self.garbage()
        return answer

    def _checked(self, status: int, answer: Json) -> Json:
        if 200 <= status < 300:
            return answer
        error = answer.get("error")
        if not isinstance(error, dict):
            raise self.garbage()
        raise _as_problem(status, error)


def path_of(*segments: str) -> str:
    """A target below /v1 with each segment quoted."""
    return "/v1/" + "/".join(quote(segment, safe=":") for segment in segments)


def _with(target: str, query: dict[str, str]) -> str:
    return f"{target}?{urlencode(query)}" if query else target


def _as_problem(status: int, error: Json) -> Problem:
    """The error that the daemon told, as the kind that decides about the exit status."""
    code, message = str(error.get("code", "")), str(error.get("message", "no reason given"))
    told = error.get("problems")
    problems = tuple(str(one) for one in told) if isinstance(told, list) else ()
    kind = Problem
    if code in {"no-such-pod", "no-such-override"}:
        kind = NotFound
    elif status in {400, 409, 413, 415, 422}:
        kind = InputRejected
    return kind(message, hint=str(error.get("hint", "")), problems=problems if len(problems) > 1 else ())
