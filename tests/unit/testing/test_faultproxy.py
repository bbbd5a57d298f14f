"""The fault proxy before a tiny HTTP server: each trouble is what a client meets."""

from __future__ import annotations

import errno
import http.client
import json
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from netqos.testing.faultproxy import FaultProxy
from netqos.testing.faultreplies import Body, CutBody, HalfBody, HangUp, NoAnswer, Silence, gone, status
from netqos.testing.faultwire import unacknowledged_bytes

LIST = b'{"kind": "PodList", "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]}'
TIMEOUT_S = 5.0
SHORT_S = 0.2
TCP_CLOSE = 7  # include/net/tcp_states.h


class Handler(BaseHTTPRequestHandler):
    """/list: LIST; /stream: one chunk, then one more for each byte that arrives at the server's gate."""

    protocol_version = "HTTP/1.1"
    gate = threading.Semaphore(0)

    def do_GET(self) -> None:
        if self.path.startswith("/stream"):
            self.stream()
        else:
            self.reply(LIST)

    def do_POST(self) -> None:
        self.reply(b"got " + self.rfile.read(int(self.headers["Content-Length"])))

    def stream(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(2):
            self.wfile.write(b"8\r\nevent %d\n\r\n" % number)
            self.wfile.flush()
            self.gate.acquire(timeout=TIMEOUT_S)
        self.wfile.write(b"0\r\n\r\n")

    def reply(self, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that goes is what these tests are about."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def proxy(server: str, tmp_path: Path) -> Iterator[FaultProxy]:
    with FaultProxy(server, None, folder=tmp_path) as proxy:
        yield proxy


@pytest.fixture
def pipe(server: str, tmp_path: Path) -> Iterator[FaultProxy]:
    with FaultProxy(server, None, folder=tmp_path, http=False) as proxy:
        yield proxy


@pytest.fixture
def client(proxy: FaultProxy) -> Iterator[http.client.HTTPConnection]:
    connection = connect(proxy)
    yield connection
    connection.close()


@pytest.fixture
def plain(pipe: FaultProxy) -> Iterator[http.client.HTTPConnection]:
    connection = connect(pipe)
    yield connection
    connection.close()


def connect(proxy: FaultProxy, *, timeout_s: float = TIMEOUT_S) -> http.client.HTTPConnection:
    host = proxy.url.partition("://")[2]
    if proxy.url.startswith("http:"):
        return http.client.HTTPConnection(host, timeout=timeout_s)
    context = ssl.create_default_context(cafile=str(proxy.ca_file))
    return http.client.HTTPSConnection(host, timeout=timeout_s, context=context)


def ask(
    client: http.client.HTTPConnection, target: str = "/list", method: str = "GET", body: bytes | None = None
) -> tuple[int, bytes]:
    try:
        client.request(method, target, body)
        response = client.getresponse()
        return response.status, response.read()
    except OSError:
        client.close()
        raise


# ------------------------------------------------------------------ no trouble


def test_hands_on_what_the_server_says(
    client: http.client.HTTPConnection, plain: http.client.HTTPConnection
) -> None:
    assert ask(client) == ask(plain) == (200, LIST)
    assert ask(client, method="POST", body=b"this") == ask(plain, method="POST", body=b"this")


def test_one_connection_carries_many_requests(proxy: FaultProxy, client: http.client.HTTPConnection) -> None:
    assert [ask(client, f"/list?n={n}") for n in range(3)] == [(200, LIST)] * 3
    assert [one.query for one in proxy.requests] == [{"n": "0"}, {"n": "1"}, {"n": "2"}]
    assert proxy.connections == 1


@pytest.mark.parametrize("name", ["client", "plain"])
def test_hands_on_each_piece_of_a_stream_as_it_comes(name: str, request: pytest.FixtureRequest) -> None:
    client: http.client.HTTPConnection = request.getfixturevalue(name)
    client.request("GET", "/stream")
    response = client.getresponse()
    assert response.readline() == b"event 0\n"
    Handler.gate.release()
    assert response.readline() == b"event 1\n"
    Handler.gate.release()
    assert response.read() == b""


# ------------------------------------------------------------------ HTTP


def test_answers_in_the_servers_place_as_often_as_told(
    client: http.client.HTTPConnection, proxy: FaultProxy
) -> None:
    proxy.answer(status(429, retry_after_s=7), path="/list", times=2)
    client.request("GET", "/list")
    response = client.getresponse()
    assert (response.status, response.headers["Retry-After"]) == (429, "7")
    document = json.loads(response.read())
    assert (document["code"], document["reason"]) == (429, "TooManyRequests")
    assert document["details"] == {"retryAfterSeconds": 7}
    assert [ask(client)[0] for _ in range(2)] == [429, 200]
    assert [one.status for one in proxy.requests] == [429, 429, 200]


@pytest.mark.parametrize("code", [401, 403, 404, 409, 410, 500, 503])
def test_words_a_refusal_as_an_api_server(
    client: http.client.HTTPConnection, proxy: FaultProxy, code: int
) -> None:
    proxy.answer(status(code))
    found, content = ask(client)
    document = json.loads(content)
    assert (found, document["kind"], document["status"], document["code"]) == (
        code,
        "Status",
        "Failure",
        code,
    )
    assert document["reason"]


def test_answers_only_the_requests_that_are_meant(
    client: http.client.HTTPConnection, proxy: FaultProxy
) -> None:
    proxy.answer(status(500), method="POST")
    proxy.answer(gone(), path="/pods", watch=True)
    assert ask(client, "/pods") == (200, LIST)
    found, content = ask(client, "/pods?watch=1")
    event = json.loads(content)
    assert (found, event["type"], event["object"]["code"]) == (200, "ERROR", 410)
    assert ask(client, method="POST", body=b"x")[0] == 500
    proxy.clear()
    assert ask(client, method="POST", body=b"x") == (200, b"got x")


def test_answers_garbage(client: http.client.HTTPConnection, proxy: FaultProxy) -> None:
    proxy.answer(Body(content=b"\x00<html>"))
    assert ask(client) == (200, b"\x00<html>")


def test_answers_half_as_if_it_were_whole(client: http.client.HTTPConnection, proxy: FaultProxy) -> None:
    proxy.answer(HalfBody(), times=1)
    assert ask(client) == (200, LIST[: len(LIST) // 2])
    assert ask(client) == (200, LIST)


@pytest.mark.parametrize("reset", [True, False])
def test_ends_in_the_middle_of_an_answer(
    client: http.client.HTTPConnection, proxy: FaultProxy, *, reset: bool
) -> None:
    proxy.answer(CutBody(reset=reset))
    client.request("GET", "/list")
    sock = client.sock
    response = client.getresponse()
    # OpenSSL may tell a reset as a plain end, so that the kernel is asked too.
    with pytest.raises((http.client.IncompleteRead, ssl.SSLEOFError, ConnectionResetError)) as met:
        response.read()
    if isinstance(met.value, http.client.IncompleteRead):
        assert met.value.partial == LIST[: len(LIST) // 2]
    assert (tcp_info(sock)[0] == TCP_CLOSE) is reset


def test_begins_a_good_answer_and_says_nothing_more(proxy: FaultProxy) -> None:
    proxy.answer(Silence())
    client = connect(proxy, timeout_s=SHORT_S)
    client.request("GET", "/list?watch=true")
    response = client.getresponse()
    assert response.status == 200
    with pytest.raises(TimeoutError):
        response.read(1)
    client.close()


def test_does_not_answer(proxy: FaultProxy) -> None:
    proxy.answer(NoAnswer())
    client = connect(proxy, timeout_s=SHORT_S)
    with pytest.raises(TimeoutError):
        ask(client)
    client.close()


def test_hangs_up(proxy: FaultProxy, client: http.client.HTTPConnection) -> None:
    proxy.answer(HangUp(), times=1)
    with pytest.raises((ConnectionResetError, ssl.SSLEOFError)):
        ask(client)
    client.close()
    assert ask(client) == (200, LIST)


def test_another_certificate_is_met_by_new_connections(
    proxy: FaultProxy, client: http.client.HTTPConnection
) -> None:
    assert ask(client) == (200, LIST)
    before = connect(proxy)
    proxy.change_certificate(trusted=False)
    assert ask(client) == (200, LIST)
    with pytest.raises(ssl.SSLCertVerificationError):
        ask(before)
    proxy.change_certificate(forget=True)
    with pytest.raises(ssl.SSLCertVerificationError):
        ask(before)
    assert proxy.ca_file.read_text(encoding="ascii").count("BEGIN CERTIFICATE") == 1
    proxy.change_certificate()
    assert proxy.ca_file.read_text(encoding="ascii").count("BEGIN CERTIFICATE") == 2
    after = connect(proxy)
    assert ask(after) == (200, LIST)
    after.close()
    before.close()


# ------------------------------------------------------------------ below HTTP


@pytest.mark.parametrize("name", ["proxy", "pipe"])
def test_refuses_new_connections_and_keeps_the_open(name: str, request: pytest.FixtureRequest) -> None:
    proxy: FaultProxy = request.getfixturevalue(name)
    first, second = connect(proxy), connect(proxy)
    assert ask(first) == (200, LIST)
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        ask(second)
    assert ask(first) == (200, LIST)
    proxy.restore()
    assert ask(second) == (200, LIST)
    first.close()
    second.close()


@pytest.mark.parametrize("name", ["proxy", "pipe"])
def test_resets_what_is_open(name: str, request: pytest.FixtureRequest) -> None:
    proxy: FaultProxy = request.getfixturevalue(name)
    client = connect(proxy)
    assert ask(client) == (200, LIST)
    proxy.reset()
    assert proxy.connections == 0
    with pytest.raises((ConnectionResetError, BrokenPipeError, ssl.SSLEOFError)):
        ask(client)
    client.close()
    assert ask(client) == (200, LIST)
    client.close()


def test_a_black_hole_acknowledges_nothing_and_gives_back_what_it_took(pipe: FaultProxy) -> None:
    client = connect(pipe)
    assert ask(client) == (200, LIST)
    pipe.blackhole()
    client.request("GET", "/list")
    assert client.sock is not None
    assert unacknowledged(client.sock) == 1
    stranger = connect(pipe, timeout_s=SHORT_S)
    with pytest.raises(TimeoutError):
        ask(stranger)
    assert unacknowledged(client.sock) == 1
    pipe.restore()
    assert client.getresponse().read() == LIST
    assert ask(stranger) == (200, LIST)
    client.close()
    stranger.close()


def test_a_black_hole_is_noticed_by_a_kernel_that_was_told_to_look(pipe: FaultProxy) -> None:
    with socket.create_connection(("127.0.0.1", int(pipe.url.rpartition(":")[2])), TIMEOUT_S) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT):
            sock.setsockopt(socket.IPPROTO_TCP, option, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 300)
        pipe.blackhole()
        sock.sendall(b"GET /list")
        with pytest.raises(TimeoutError) as told:
            sock.recv(1)
    assert told.value.errno == errno.ETIMEDOUT  # by the kernel, and not by the timeout of Python


def test_a_black_hole_repeats_nothing_of_what_was_under_way(proxy: FaultProxy) -> None:
    client = connect(proxy)
    client.request("GET", "/stream")
    response = client.getresponse()
    assert response.readline() == b"event 0\n"
    assert client.sock is not None
    client.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
    Handler.gate.release()
    assert response.readline() == b"event 1\n"
    proxy.blackhole()
    (wire,) = proxy._wires
    assert unacknowledged_bytes(wire.socket) == 0
    client.close()
    Handler.gate.release()


def test_a_black_hole_holds_back_what_the_server_says(proxy: FaultProxy) -> None:
    client = connect(proxy, timeout_s=SHORT_S)
    client.request("GET", "/stream")
    response = client.getresponse()
    assert response.readline() == b"event 0\n"
    proxy.blackhole()
    Handler.gate.release()
    with pytest.raises(TimeoutError):
        response.readline()
    client.close()
    Handler.gate.release()


def test_cuts_after_some_bytes(pipe: FaultProxy) -> None:
    client = connect(pipe)
    assert ask(client) == (200, LIST)
    pipe.cut(150)  # the answer is more, and no piece of it is
    client.request("GET", "/list")
    with pytest.raises(ConnectionResetError):
        client.getresponse().read()
    client.close()
    pipe.restore()
    assert ask(client) == (200, LIST)
    client.close()


def test_delays(pipe: FaultProxy) -> None:
    client = connect(pipe, timeout_s=SHORT_S)
    pipe.delay(30)
    with pytest.raises(TimeoutError):
        ask(client)
    client.close()
    pipe.restore()
    assert ask(client) == (200, LIST)
    client.close()


def test_a_server_that_is_away_looks_away(tmp_path: Path) -> None:
    with FaultProxy("http://127.0.0.1:1", None, folder=tmp_path, http=False) as proxy:
        client = connect(proxy)
        with pytest.raises((ConnectionResetError, http.client.RemoteDisconnected)):
            ask(client)
        client.close()


def unacknowledged(sock: socket.socket) -> int:
    """How many segments wait for an acknowledgement: tcpi_unacked."""
    return int.from_bytes(tcp_info(sock)[24:28], sys.byteorder)


def tcp_info(sock: socket.socket | None) -> bytes:
    """struct tcp_info of include/uapi/linux/tcp.h; its first byte is the connection's state."""
    assert sock is not None
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
