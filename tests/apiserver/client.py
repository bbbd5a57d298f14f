"""A small client for tests: JSON in, JSON out, nothing hidden. What netqosd itself uses is not tested by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3

Document = dict[str, Any]

JSON = "application/json"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


class ApiError(Exception):
    """The server answered with an error: `status` is the HTTP status, `body` its Status object or text."""

    def __init__(self, status: int, body: Document | str, call: str) -> None:
        """`call` names the request, for the message."""
        said = body.get("message") if isinstance(body, dict) else body
        super().__init__(f"{call}: {status} {said}")
        self.status = status
        self.body = body


class Api:
    """One user of one API server. Safe in several threads; `close` it, or use it as a context."""

    def __init__(self, url: str, ca_file: Path, token: str | None, *, timeout_s: float = 20) -> None:
        self.url = url
        self.ca_file = ca_file
        self.token = token
        self._timeout_s = timeout_s
        self._pool = self._new_pool()

    def __enter__(self) -> Api:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up all connections; the next call opens new ones."""
        self._pool.close()
        self._pool = self._new_pool()

    def as_user(self, token: str | None) -> Api:
        """The same server with another token, None for none."""
        return Api(self.url, self.ca_file, token, timeout_s=self._timeout_s)

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, object] | None = None,
        content: str = JSON,
    ) -> Document:
        """One request; the object that comes back. `ApiError` for every status from 400 on."""
        response = self._pool.request(
            method,
            _target(path, query),
            body=None if body is None else json.dumps(body).encode(),
            headers=self._headers(content),
            timeout=self._timeout_s,
        )
        answer = _decode(response.data)
        if response.status >= 400 or isinstance(answer, str):
            raise ApiError(response.status, answer, f"{method} {path}")
        return answer

    def get(self, path: str, **query: object) -> Document:
        """GET an object or a list."""
        return self.call("GET", path, query=query)

    def create(self, path: str, body: Document, **query: object) -> Document:
        """POST an object to its collection."""
        return self.call("POST", path, body, query=query)

    def patch(self, path: str, body: Document, **query: object) -> Document:
        """JSON merge patch: a null removes a key."""
        return self.call("PATCH", path, body, query=query, content=MERGE)

    def delete(self, path: str, **query: object) -> Document:
        """DELETE an object or, with the path of a collection, all that the query selects."""
        return self.call("DELETE", path, query=query)

    def apply(self, path: str, body: Document, **query: object) -> Document:
        """Server-side apply of an object to its own path; `dryRun="All"` stores nothing."""
        return self.call(
            "PATCH", path, body, query={"fieldManager": "tests", "force": "true", **query}, content=APPLY
        )

    def watch(self, path: str, *, timeout_s: float = 10, **query: object) -> Iterator[Document]:
        """The events of a watch until the server ends it, after `timeout_s` (whole seconds) at the latest."""
        response = self._pool.request(
            "GET",
            _target(path, {"watch": "1", "timeoutSeconds": int(timeout_s), **query}),
            headers=self._headers(JSON),
            timeout=urllib3.Timeout(connect=self._timeout_s, read=timeout_s + 5),
            preload_content=False,
        )
        try:
            if response.status >= 400:
                raise ApiError(response.status, _decode(response.data), f"watch {path}")
            for line in _lines(response):
                yield json.loads(line)
        finally:
            response.close()

    def path_of(self, document: Document, *, namespace: str | None = None) -> str:
        """The path of an object of any kind that the server knows, by its discovery; LookupError if it does not."""
        version, kind, meta = document["apiVersion"], document["kind"], document["metadata"]
        base = f"/apis/{version}" if "/" in version else f"/api/{version}"
        for resource in self.get(base)["resources"]:
            if resource["kind"] == kind and "/" not in resource["name"]:
                place = meta.get("namespace") or namespace or "default"
                inside = f"/namespaces/{place}" if resource["namespaced"] else ""
                return f"{base}{inside}/{resource['name']}/{meta['name']}"
        raise LookupError(f"the server knows no {kind} in {version}")

    def _new_pool(self) -> urllib3.HTTPSConnectionPool:
        """A pool of one host: unlike a PoolManager's, its connections are closed when it is told to."""
        host, _, port = self.url.removeprefix("https://").rpartition(":")
        return urllib3.HTTPSConnectionPool(
            host, int(port), ca_certs=str(self.ca_file), cert_reqs="CERT_REQUIRED", maxsize=8, retries=False
        )

    def _headers(self, content: str) -> dict[str, str]:
        headers = {"Accept": JSON, "Content-Type": content}
        return headers if self.token is None else {**headers, "Authorization": f"Bearer {self.token}"}


def _target(path: str, query: Mapping[str, object] | None) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _decode(data: bytes) -> Document | str:
    text = data.decode(errors="replace")
    try:
        document: Document = json.loads(text)
    except ValueError:
        return text
    return document


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    rest = b""
    for part in response.stream(1 << 16):
        *whole, rest = (rest + part).split(b"\n")
        yield from whole
