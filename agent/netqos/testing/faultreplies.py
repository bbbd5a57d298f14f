"""What a fault proxy may answer in a server's place, to which requests, and what it has seen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import parse_qs, urlsplit

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request that came in; `status` is what was answered, None while nothing was."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""
    status: int | None = None

    @property
    def is_watch(self) -> bool:
        """Whether it asks for a stream of events."""
        return self.query.get("watch") in {"1", "true", "True"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A whole answer. Without other `headers` than these it is JSON by its own word, whatever `content` is."""

    content: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})


@dataclass(frozen=True, slots=True)
class HalfBody:
    """The first half of the server's answer, as if that were all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CutBody:
    """The first half of the server's answer, then the connection ends: a reset, or a plain end."""

    reset: bool = True


@dataclass(frozen=True, slots=True)
class Silence:
    """The head of a good answer, and then nothing for ever."""


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Nothing at all; the connection stays."""


@dataclass(frozen=True, slots=True)
class HangUp:
    """The connection is reset when the request is there."""


Reply: TypeAlias = Body | HalfBody | CutBody | Silence | NoAnswer | HangUp


def status(code: int, *, retry_after_s: int | None = None, message: str = "by the fault proxy") -> Body:
    """A refusal as an API server words it; seconds of Retry-After are a header and in the details."""
    document = _status_object(code, message)
    headers = {"Content-Type": "application/json"}
    if retry_after_s is not None:
        headers["Retry-After"] = str(retry_after_s)
        document["details"] = {"retryAfterSeconds": retry_after_s}
    return Body(content=json.dumps(document).encode(), status=code, headers=headers)


def gone(message: str = "too old resource version: 1 (2)") -> Body:
    """A watch that is accepted and tells by an ERROR event that its version is 410 Gone."""
    event = {"type": "ERROR", "object": _status_object(410, message)}
    return Body(content=json.dumps(event).encode() + b"\n")


def _status_object(code: int, message: str) -> dict[str, object]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": REASONS.get(code, ""),
        "code": code,
    }


@dataclass(slots=True, kw_only=True)
class Rule:
    """Which requests get a reply; each criterion that is None lets all pass. `left` counts down, None never does."""

    reply: Reply
    method: str | None = None
    path: str = ""
    watch: bool | None = None
    left: int | None = None

    def takes(self, request: Request) -> bool:
        """Whether this rule answers the request; counts it then."""
        matches = (
            self.left != 0
            and self.method in {None, request.method}
            and self.path in request.path
            and self.watch in {None, request.is_watch}
        )
        if matches and self.left is not None:
            self.left -= 1
        return matches


def parse_request(
    method: bytes, target: bytes, headers: list[tuple[bytes, bytes]], body: bytes = b""
) -> Request:
    """A request from its parts; of a query key that is given twice the last value counts."""
    parts = urlsplit(target.decode("ascii"))
    return Request(
        method=method.decode("ascii"),
        path=parts.path,
        query={key: values[-1] for key, values in parse_qs(parts.query, keep_blank_values=True).items()},
        headers={name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers},
        body=body,
    )
