"""HTTP messages as values, the table of routes, and the typed answer to a request that is wrong.

Nothing here touches a socket: `netqos.observe.httpserver` turns bytes into a `Request` and a `Response` into bytes.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote_to_bytes, urlsplit

JSON = "application/json"
MOST_PARAMETERS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request: decoded path segments (`/v1/pods/a%2Fb` is `("v1", "pods", "a/b")`), and what came with it.

    Header names are in lower case; of a repeated header the last one counts. `peer_uid` is the user at the other end
    of a Unix socket in this process' user namespace, None over TCP.
    """

    method: str
    path: tuple[str, ...]
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    peer_uid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One answer; with `parts` the body is sent piece by piece as it comes, and the connection ends with it."""

    status: int = 200
    body: bytes = b""
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    parts: AsyncGenerator[bytes, None] | None = None


class HttpError(Exception):
    """Ends a request with a typed error; the text parts are meant for the person at the other end."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        hint: str = "",
        problems: tuple[str, ...] = (),
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """`code` is stable and kebab-case; programs compare it, never the message."""
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.hint = hint
        self.problems = problems
        self.headers = headers

    def response(self) -> Response:
        """The answer that says so."""
        error = {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "problems": list(self.problems),
        }
        body = json.dumps({"error": error}, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        return Response(status=self.status, body=body, headers=self.headers)


Handler = Callable[[Request], Awaitable[Response]]
Endpoint = Callable[[Request, Mapping[str, str]], Awaitable[Response]]


def parse_target(target: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Path segments and query parameters of a request target in origin or absolute form; else `HttpError` 400."""
    if target.startswith("/"):
        path, _, query = target.partition("?")
    else:
        path, query = _split_absolute(target)
    try:
        segments = tuple(unquote_to_bytes(part).decode() for part in path.split("/")[1:])
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=MOST_PARAMETERS)
    except ValueError as problem:
        raise HttpError(400, "bad-target", f"the request target cannot be read: {problem}") from None
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise HttpError(400, "bad-query", "a query parameter is given twice", hint="give each one once")
    return segments, dict(pairs)


def _split_absolute(target: str) -> tuple[str, str]:
    try:
        parts = urlsplit(target)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        hint = "a target is a path such as /v1/status"
        raise HttpError(400, "bad-target", "the request target is neither a path nor an http URL", hint=hint)
    return parts.path or "/", parts.query


@dataclass(frozen=True, slots=True)
class _Entry:
    pattern: tuple[str, ...]
    endpoints: dict[str, Endpoint]


class Router:
    """Finds the endpoint of a request by path and method: 404 and 405 otherwise. HEAD is answered as GET is."""

    def __init__(self) -> None:
        """Start without routes."""
        self._entries: dict[str, _Entry] = {}

    def add(self, method: str, pattern: str, endpoint: Endpoint) -> None:
        """Answer `method` on `pattern` (`/v1/pods/{uid}`; a braced name takes one whole segment)."""
        entry = self._entries.setdefault(pattern, _Entry(tuple(pattern.split("/")[1:]), {}))
        entry.endpoints[method] = endpoint

    async def __call__(self, request: Request) -> Response:
        """Answer the request."""
        for entry in self._entries.values():
            values = _match(entry.pattern, request.path)
            if values is not None:
                return await self._endpoint(entry, request)(request, values)
        raise HttpError(
            404,
            "no-such-resource",
            f"nothing is at {shown_path(request)}",
            hint="GET /v1/openapi.json lists all",
        )

    def _endpoint(self, entry: _Entry, request: Request) -> Endpoint:
        method = "GET" if request.method == "HEAD" else request.method
        endpoint = entry.endpoints.get(method)
        if endpoint is not None:
            return endpoint
        allowed = sorted(entry.endpoints) + (["HEAD"] if "GET" in entry.endpoints else [])
        raise HttpError(
            405,
            "method-not-allowed",
            f"{request.method[:20]} is not allowed on {shown_path(request)}",
            hint=f"allowed are {', '.join(allowed)}",
            headers=(("Allow", ", ".join(allowed)),),
        )


def shown_path(request: Request) -> str:
    """The path for a message: printable and not longer than a line."""
    text = "/" + "/".join(request.path)
    printable = "".join(char if char.isprintable() else "?" for char in text[:120])
    return printable + ("..." if len(text) > len(printable) else "")


def _match(pattern: tuple[str, ...], path: tuple[str, ...]) -> dict[str, str] | None:
    """The values of the braced names, None when the path is another one."""
    if len(pattern) != len(path):
        return None
    values = {}
    for wanted, met in zip(pattern, path, strict=True):
        if wanted.startswith("{") and met:
            values[wanted[1:-1]] = met
        elif wanted != met:
            return None
    return values
