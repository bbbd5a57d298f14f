"""The kubelet as a source, against a small HTTPS server with a certificate that nobody vouches for."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from netqos.host.clock import SystemClock
from netqos.sources.kube.connection import Connection
from netqos.sources.kube.kubelet import Kubelet
from netqos.testing.certificates import make_certificate
from netqos.testing.clock import FakeClock
from tests.unit.sources.kube.test_pods import pod
from tests.waiting import wait_until


class Server(ThreadingHTTPServer):
    """Answers with what it is told; remembers who asked."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        made = make_certificate(folder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(made.certificate, made.key)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.status = 200
        self.pods: list[dict[str, Any]] = []
        self.tokens: list[str] = []

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.server_port}/pods"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.tokens.append(self.headers.get("Authorization", ""))
        body = json.dumps({"kind": "PodList", "metadata": {}, "items": self.server.pods}).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def connection(tmp_path: Path) -> Connection:
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "clusters": [{"name": "x", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "x", "user": {"token": "secret"}}],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(kubeconfig))
    return Connection(path)


def test_the_kubelet_is_asked_while_it_is_wanted(server: Server, connection: Connection) -> None:
    wanted = threading.Event()
    kubelet = Kubelet(
        connection,
        SystemClock(),
        is_wanted=wanted.is_set,
        changed=lambda: None,
        url=server.url,
        poll_s=0.02,
    )
    kubelet.start()
    try:
        assert (kubelet.items, kubelet.state.detail) == (None, "not asked")
        server.pods = [pod(), pod(uid="u-2", name="done", status={"phase": "Succeeded"})]
        wanted.set()
        wait_until(lambda: kubelet.items is not None)
        assert [one.facts.name for one in kubelet.items or ()] == ["web-0"]
        assert (kubelet.state.freshness.value, set(server.tokens)) == ("fresh", {"Bearer secret"})
        before = kubelet.items
        server.status = 403
        wait_until(lambda: kubelet.state.freshness.value == "stale")
        assert kubelet.items is before
        server.status, server.pods = 200, [pod(), pod(uid="u-3", name="new")]
        wait_until(lambda: len(kubelet.items or ()) == 2)
        assert kubelet.items is not None
        assert before is not None
        assert kubelet.items[0] is before[0]
        wanted.clear()
        wait_until(lambda: kubelet.items is None)
    finally:
        kubelet.stop()
        kubelet._thread.join(5)


def test_while_nobody_wants_its_pods_it_is_asked_once_a_minute_that_it_remembers_who_we_are(
    server: Server, connection: Connection
) -> None:
    clock = FakeClock()
    kubelet = Kubelet(
        connection, clock, is_wanted=lambda: False, changed=lambda: None, url=server.url, poll_s=0.01
    )
    kubelet.start()
    try:
        wait_until(lambda: len(server.tokens) == 1)
        clock.advance(59.0)
        time.sleep(0.1)
        assert len(server.tokens) == 1
        server.status = 401
        clock.advance(2.0)
        wait_until(lambda: len(server.tokens) == 2)
        assert (kubelet.items, kubelet.state.detail) == (None, "not asked")
        server.status = 200
        clock.advance(61.0)
        wait_until(lambda: len(server.tokens) == 3)
    finally:
        kubelet.stop()
        kubelet._thread.join(5)


def test_a_kubelet_that_is_not_there_is_told(connection: Connection) -> None:
    kubelet = Kubelet(
        connection,
        SystemClock(),
        is_wanted=lambda: True,
        changed=lambda: None,
        url="https://127.0.0.1:1/pods",
        poll_s=0.01,
    )
    kubelet.start()
    try:
        wait_until(lambda: kubelet.state.detail != "not asked")
        assert (kubelet.items, kubelet.state.freshness.value) == (None, "waiting")
    finally:
        kubelet.stop()
        kubelet._thread.join(5)
