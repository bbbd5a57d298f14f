"""Requests to the API server as one user; answers stay raw bytes.

Every request has a deadline for connecting and for each piece of the answer; a peer that is gone without a word is
noticed by keepalive within 25 s. One pool serves all watches and workers (case K8). Credentials are read anew after a
401 or a refused certificate (case K7).
"""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from netqos.sources.kube import account
from netqos.sources.kube.answers import Broken, garbled, lost, refusal
from netqos.sources.kube.login import SOCKET_OPTIONS, Login, of_kubeconfig, of_pod

CONNECT_S = 5.0
READ_S = 15.0
MOST_BYTES = 64 << 20
"""An answer that is larger is nonsense: etcd's objects have 1.5 MiB at most, and lists come in pages."""

_CHUNK = 1 << 16
_DEEPEST = 16


class Response:
    """An answer under way; `close` it. Reading raises `Broken`."""

    def __init__(self, raw: Any) -> None:
        """`raw` is urllib3's response, its content unread."""
        self._raw = raw

    def read_all(self) -> bytes:
        """The whole content."""
        return b"".join(self.pieces())

    def pieces(self) -> Iterator[bytes]:
        """The whole content, piece by piece as it comes."""
        size = 0
        while part := self.read_some():
            size += len(part)
            if size > MOST_BYTES:
                raise garbled(f"the answer has more than {MOST_BYTES >> 20} MiB")
            yield part

    def read_some(self) -> bytes:
        """What came, as soon as something did; empty at the end."""
        try:
            data: bytes = self._raw.read1(_CHUNK)
        except Exception as problem:
            raise _broken(problem) from problem
        return data

    def wait_at_most(self, seconds: float) -> None:
        """The longest silence from now on."""
        connection = getattr(self._raw, "connection", None)
        sock = getattr(connection, "sock", None)
        if sock is not None:
            sock.settimeout(seconds)

    def interrupt(self) -> None:
        """End a `read_some` that another thread waits in."""
        with contextlib.suppress(ValueError, RuntimeError, OSError):
            self._raw.shutdown()

    def close(self) -> None:
        """Give the connection back where all was read, else end it."""
        if getattr(self._raw, "connection", None) is not None:
            self._raw.close()
        self._raw.release_conn()


class Connection:
    """One user of one API server, for several threads."""

    def __init__(self, kubeconfig: Path | None = None) -> None:
        """With None the service account of the pod. Nothing is read or loaded yet."""
        self._kubeconfig = kubeconfig
        self._lock = threading.Lock()
        self._login: Login | None = None
        self._generation = 0

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: object = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        read_s: float = READ_S,
    ) -> Response:
        """Ask; the answer when its head is there. `Broken` where there is none, and for every status but success."""
        login = self._ready_login()
        url = f"{login.url}{path}"
        if query:
            url = f"{url}?{urlencode(query)}"
        headers = {"Accept": accept, "User-Agent": "netqosd", **self._authorization(login)}
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            return _checked(_send(login.pool, method, url, headers=headers, body=body, read_s=read_s))
        except Broken as problem:
            raise _with_ca(problem, login.ca_file) from problem

    def bearer(self) -> Mapping[str, str]:
        """The headers that authenticate, also towards the kubelet."""
        return self._authorization(self._ready_login())

    @property
    def generation(self) -> int:
        """Counts how often the credentials were read."""
        return self._generation

    def reload(self, seen: int) -> None:
        """Read the credentials anew with the next request, unless somebody did since generation `seen`."""
        with self._lock:
            if self._generation == seen and self._login is not None:
                self._login.pool.clear()
                self._login = None

    def what_is_missing(self) -> str:
        """Why no request can be made with the credentials that there are; empty where they can be read."""
        try:
            self.bearer()
        except Broken as problem:
            return problem.failure.detail
        return ""

    def close(self) -> None:
        """End idle connections."""
        self.reload(self._generation)

    def _ready_login(self) -> Login:
        with self._lock:
            if self._login is None:
                try:
                    self._login = of_pod() if self._kubeconfig is None else of_kubeconfig(self._kubeconfig)
                except Exception as problem:
                    raise self._unusable(problem) from problem
                self._generation += 1
            return self._login

    def _unusable(self, problem: Exception) -> Broken:
        place = account.SERVICE_ACCOUNT if self._kubeconfig is None else self._kubeconfig
        return lost(f"no usable credentials in {place}: {_words(problem)}", is_stale_login=True)

    def _authorization(self, login: Login) -> dict[str, str]:
        try:
            return login.headers()
        except Exception as problem:  # the token's file is read
            raise self._unusable(problem) from problem


def loopback_get(url: str, headers: Mapping[str, str], *, read_s: float = READ_S) -> Response:
    """GET from a server on this very node, whose certificate nobody else can vouch for (the kubelet's own)."""
    import urllib3  # noqa: PLC0415 - as the package's docstring says

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    # It would be repeated with each poll, and nothing could be done about it.
    urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    pool = urllib3.PoolManager(ssl_context=context, retries=False, socket_options=SOCKET_OPTIONS)
    return _checked(_send(pool, "GET", url, headers=headers, body=None, read_s=read_s))


def _send(
    pool: Any, method: str, url: str, *, headers: Mapping[str, str], body: object, read_s: float
) -> Any:
    import urllib3  # noqa: PLC0415 - as the module's docstring says

    try:
        return pool.request(
            method,
            url,
            body=None if body is None else json.dumps(body).encode(),
            headers=dict(headers),
            timeout=urllib3.Timeout(connect=CONNECT_S, read=read_s),
            preload_content=False,
            retries=False,
            redirect=False,
        )
    except Exception as problem:
        raise _broken(problem) from problem


def _checked(raw: Any) -> Response:
    response = Response(raw)
    if raw.status < 300:
        return response
    try:
        data = response.read_all()
    except Broken:
        data = b""
    finally:
        response.close()
    raise Broken(refusal(raw.status, data, raw.headers.get("Retry-After")))


def _broken(problem: Exception) -> Broken:
    """Whatever the transport raises is a failed request; a certificate that does not fit may be a new one."""
    seen: BaseException | None = problem
    for _ in range(_DEEPEST):
        if seen is None:
            break
        if isinstance(seen, ssl.SSLError | FileNotFoundError | PermissionError):
            # Files: of certificates, read with each connection, and of whose names Python says nothing.
            return lost(f"TLS: {_words(seen)}", is_stale_login=True)
        if isinstance(seen, HTTPException):
            # Also an end within a chunk, which is a ValueError: what came before it was whole.
            return lost(_words(seen))
        if isinstance(seen, ValueError) and not isinstance(seen, OSError):
            return garbled(_words(seen))
        seen = seen.__cause__ or seen.__context__ or _reason(seen)
    return lost(_words(problem))


def _with_ca(problem: Broken, ca_file: object) -> Broken:
    """Of a certificate that is refused the file by which it is judged."""
    failure = problem.failure
    if not failure.detail.startswith("TLS: ") or not ca_file:
        return problem
    return Broken(replace(failure, detail=f"{failure.detail} (the CA's file is {ca_file})"))


def _reason(problem: BaseException) -> BaseException | None:
    """What urllib3 wrapped."""
    reason = getattr(problem, "reason", None)
    return reason if isinstance(reason, BaseException) else None


def _words(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {' '.join(str(problem).split())}"[:200]
