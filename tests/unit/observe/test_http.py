from __future__ import annotations

import asyncio
import json
import select
import socket
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from netqos.observe.http import Handler, HttpError, Request, Response, Router, parse_target
from netqos.observe.httpserver import HttpServer, Limits
from netqos.observe.view import Numbered
from tests.unit.observe.sample import GROUND, SampleAgent
from tests.unit.observe.serving import QUICK, Answer, ask, parse, serving, talk, until

GET = b"GET /v1/node HTTP/1.1\r\nHost: n\r\n"
WHOLE = GET + b"Connection: close\r\n\r\n"


async def still_serves(path: Path) -> None:
    assert (await ask(path, "/v1/node")).status == 200


# ------------------------------------------------------------------ what a request says


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/v1/status", ("v1", "status"), {}),
        ("/v1/pods/workload:web", ("v1", "pods", "workload:web"), {}),
        ("/v1/pods/a%2Fb%20c?x=1&y=", ("v1", "pods", "a/b c"), {"x": "1", "y": ""}),
        ("http://netqos/v1/explain?pod=prod%2Fdb", ("v1", "explain"), {"pod": "prod/db"}),
        ("//v1/status", ("", "v1", "status"), {}),
        ("/../../etc/passwd", ("..", "..", "etc", "passwd"), {}),
    ],
)
def test_a_target_becomes_segments_and_parameters(
    target: str, path: tuple[str, ...], query: dict[str, str]
) -> None:
    assert parse_target(target) == (path, query)


@pytest.mark.parametrize(
    "target", ["*", "v1/status", "ftp://x/y", "http://[::1", "/%ff", "/?a=%ff", "/?a=1&a=2", "/?" + "a&" * 40]
)
def test_a_target_that_cannot_be_read_is_400(target: str) -> None:
    with pytest.raises(HttpError) as caught:
        parse_target(target)
    assert caught.value.status == 400


async def test_a_router_tells_unknown_paths_from_wrong_methods() -> None:
    router = Router()

    async def endpoint(_request: Request, values: object) -> Response:
        return Response(body=repr(values).encode())

    router.add("GET", "/a/{x}", endpoint)
    router.add("PUT", "/a/{x}", endpoint)
    assert (await router(Request(method="GET", path=("a", "b")))).body == b"{'x': 'b'}"
    assert (await router(Request(method="HEAD", path=("a", "b")))).body == b"{'x': 'b'}"
    with pytest.raises(HttpError) as missing:
        await router(Request(method="GET", path=("a", "")))
    with pytest.raises(HttpError) as refused:
        await router(Request(method="POST", path=("a", "b")))
    assert (missing.value.status, missing.value.code) == (404, "no-such-resource")
    assert (refused.value.status, refused.value.headers) == (405, (("Allow", "GET, PUT, HEAD"),))


# ------------------------------------------------------------------ clients that behave


async def test_a_connection_is_kept_alive_for_several_requests_and_pipelined_ones() -> None:
    async with serving() as path:
        raw = await talk(path, GET + b"\r\n" + GET + b"\r\n" + WHOLE)
        assert raw.count(b"HTTP/1.1 200") == 3
        assert raw.count(b"onnection: close") == 1


async def test_head_is_get_without_the_body() -> None:
    async with serving() as path:
        full, head = await ask(path, "/v1/node"), await ask(path, "/v1/node", "HEAD")
        assert head == replace(full, body=b"")
        assert (await ask(path, "/nothing", "HEAD")).body == b""
        assert (await ask(path, "/v1/stream", "HEAD")).body == b""


async def test_a_client_that_closes_its_sending_side_gets_its_answer() -> None:
    async with serving() as path:
        assert parse(await talk(path, GET + b"\r\n", ends=True)).status == 200


async def test_http_1_0_is_answered_and_closed() -> None:
    async with serving() as path:
        assert parse(await talk(path, b"GET /v1/node HTTP/1.0\r\n\r\n")).status == 200


async def test_a_client_that_waits_for_100_continue_is_told_to_go_on() -> None:
    body = b'{"level": "l1", "ttl": "10m"}'
    head = (
        b"PUT /v1/overrides?pod=web HTTP/1.1\r\nHost: n\r\nConnection: close\r\nExpect: 100-continue\r\n"
        b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n"
    )
    async with serving() as path:
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(head)
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        assert parse(await reader.read()).status == 200
        writer.close()


async def test_a_chunked_body_is_read() -> None:
    sent = (
        b"PUT /v1/overrides?pod=web HTTP/1.1\r\nHost: n\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        b'7\r\n{"ttl":\r\n13\r\n"10m","level":"l1"}\r\n0\r\n\r\n'
    )
    async with serving() as path:
        assert parse(await talk(path, sent)).status == 200


# ------------------------------------------------------------------ clients that do not


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, "bad-request"),
        (b"GET\r\n\r\n", 400, "bad-request"),
        (b"GET /v1/node HTTP/1.1\r\n\r\n", 400, "bad-request"),  # HTTP/1.1 without a Host
        (b"GET /v1/node HTTP/9.9\r\nHost: n\r\n\r\n", 505, "http-version"),
        (b"GET /v1/node HTTP/1.1\r\nHost: n\r\nA B: c\r\n\r\n", 400, "bad-request"),
        (b"GET * HTTP/1.1\r\nHost: n\r\n\r\n", 400, "bad-target"),
        (b"PUT /v1/node HTTP/1.1\r\nHost: n\r\nContent-Length: -1\r\n\r\n", 400, "bad-request"),
        (
            b"PUT /v1/node HTTP/1.1\r\nHost: n\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            400,
            "bad-request",
        ),
        (b"PUT /v1/node HTTP/1.1\r\nHost: n\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400, "bad-request"),
        (b"PUT /v1/node HTTP/1.1\r\nHost: n\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "bad-request"),
        (b"PUT /v1/node HTTP/1.1\r\nHost: n\r\nContent-Length: 65537\r\n\r\n", 413, "body-too-large"),
        (
            b"PUT /v1/node HTTP/1.1\r\nHost: n\r\nTransfer-Encoding: chunked\r\n\r\n10001\r\n" + b"x" * 65537,
            413,
            "body-too-large",
        ),
        (b"GET / HTTP/1.1\r\nHost: n\r\nA: " + b"a" * 70_000, 431, "head-too-large"),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 15_000, 431, "head-too-large"),
        (b"GET /" + b"a" * 70_000, 431, "head-too-large"),
        (b"BREW /v1/node HTTP/1.1\r\nHost: n\r\n\r\n", 405, "method-not-allowed"),
        (b"CONNECT n:1 HTTP/1.1\r\nHost: n\r\n\r\n", 400, "bad-target"),
        (b"GET /v1/node HTTP/1.1\r\nHo", 400, "bad-request"),
    ],
)
async def test_a_broken_request_gets_a_typed_error_and_the_next_client_its_answer(
    sent: bytes, status: int, code: str
) -> None:
    async with serving(limits=QUICK) as path:
        answer = parse(await talk(path, sent, ends=True))
        assert (answer.status, answer.error["code"]) == (status, code)
        assert answer.headers["content-type"] == "application/json"
        await still_serves(path)


@pytest.mark.parametrize(
    "sent", [b"", b"GET /v1", GET, b"PUT /v1/node HTTP/1.1\r\nHost: n\r\nContent-Length: 9\r\n\r\nx"]
)
async def test_a_client_that_never_ends_its_request_is_dropped(sent: bytes) -> None:
    async with serving(limits=QUICK) as path:
        answer = await talk(path, sent)
        assert answer == b"" or parse(answer).error["code"] == "request-too-slow"


async def test_a_byte_at_a_time_does_not_stretch_the_deadline() -> None:
    async with serving(limits=QUICK) as path:
        reader, writer = await asyncio.open_unix_connection(path)
        started = time.monotonic()
        for byte in b"GET /v1/node HTTP/1.1\r\nX: " + b"y" * 10_000:
            writer.write(bytes([byte]))
            await asyncio.sleep(0.02)
            if reader.at_eof() or writer.is_closing():
                break
        assert time.monotonic() - started < 5
        writer.close()


async def test_an_idle_connection_is_closed() -> None:
    async with serving(limits=QUICK) as path:
        raw = await talk(path, GET + b"\r\n")
        assert raw.startswith(b"HTTP/1.1 200")


async def test_a_client_that_never_reads_is_dropped_and_holds_nobody_up() -> None:
    async with serving(limits=QUICK) as path:
        with socket.socket(socket.AF_UNIX) as deaf:
            deaf.settimeout(0)
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            deaf.connect(str(path))
            deaf.send((GET + b"\r\n") * 100)
            for _ in range(20):
                await still_serves(path)
            await until(lambda: is_closed(deaf))


def is_closed(sock: socket.socket) -> bool:
    """Whether the other end has closed, told without reading what it sent."""
    poll = select.poll()
    poll.register(sock, select.POLLHUP)
    return bool(poll.poll(0))


async def test_two_hundred_connects_at_once_are_all_answered() -> None:
    async with serving() as path:
        answers = await asyncio.gather(*(ask(path, "/v1/status") for _ in range(200)))
        assert {answer.status for answer in answers} == {200}


async def test_beyond_the_limit_idle_connections_give_way_and_busy_ones_do_not() -> None:
    limits = Limits(connections=3)
    agent = SampleAgent()
    async with serving(agent, limits) as path:
        idle = [await asyncio.open_unix_connection(path) for _ in range(3)]
        await still_serves(path)
        streams = [await asyncio.open_unix_connection(path) for _ in range(3)]
        for reader, writer in streams:
            writer.write(b"GET /v1/stream HTTP/1.1\r\nHost: n\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
        refused = parse(await talk(path, WHOLE))
        assert (refused.status, refused.error["code"]) == (503, "too-many-connections")
        for _, writer in (*idle, *streams):
            writer.close()
        await asyncio.sleep(0.1)
        await still_serves(path)


async def test_a_failing_handler_is_logged_once_and_tells_no_internals() -> None:
    agent = SampleAgent()
    agent.failure = ZeroDivisionError("secret detail")
    async with serving(agent) as path:
        with structlog.testing.capture_logs() as lines:
            answer = await ask(path, "/v1/status")
    assert (answer.status, answer.error["code"]) == (500, "internal")
    assert b"secret" not in answer.body
    assert [line["event"] for line in lines] == ["request_failed"]


async def test_a_handler_that_hangs_is_504_and_others_are_answered_meanwhile() -> None:
    agent = SampleAgent()
    agent.delay_s = 30.0
    async with serving(agent, QUICK) as path:
        slow = asyncio.create_task(ask(path, "/v1/plan"))
        await still_serves(path)
        assert (await slow).error["code"] == "timeout"


async def test_a_client_that_leaves_while_it_is_answered_is_nobodys_problem() -> None:
    agent = SampleAgent()
    agent.delay_s = 0.2
    async with serving(agent) as path:
        with structlog.testing.capture_logs() as lines:
            _, writer = await asyncio.open_unix_connection(path)
            writer.write(b"GET /v1/plan HTTP/1.1\r\nHost: n\r\n\r\n")
            await asyncio.sleep(0.05)
            writer.transport.abort()
            await asyncio.sleep(0.3)
            await still_serves(path)
    assert lines == []


# ------------------------------------------------------------------ streams


async def test_a_stream_sends_a_line_a_tick_and_ends_with_its_reader() -> None:
    agent = SampleAgent()
    async with serving(agent) as path:
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"GET /v1/stream HTTP/1.1\r\nHost: n\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        for number, missed in ((7, 0), (8, 0), (20, 11), (21, 0)):
            agent.ticks.put_nowait(Numbered(number, GROUND))
            size = int(await reader.readline(), 16)
            line = json.loads(await reader.readexactly(size + 2))
            assert (line["at_s"], line["missed"]) == (999.9, missed)
        writer.close()
        await until(lambda: agent.readers == 0)


@asynccontextmanager
async def over_tcp(handler: Handler) -> AsyncIterator[tuple[HttpServer, int]]:
    """A server on a TCP port, and the port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = HttpServer("test", handler, limits=QUICK)
        task = asyncio.create_task(server.serve(listener))
        await asyncio.sleep(0.05)
        try:
            yield server, listener.getsockname()[1]
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_a_slow_reader_of_a_stream_is_dropped_while_others_go_on() -> None:
    async def endless() -> AsyncGenerator[bytes, None]:
        while True:
            yield b"x" * 10_000
            await asyncio.sleep(0)

    async def handler(request: Request) -> Response:
        return Response(parts=endless()) if request.path == ("stream",) else Response(body=b"ok")

    async with over_tcp(handler) as (server, port):
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(b"GET /stream HTTP/1.1\r\nHost: n\r\n\r\n")
        _, other = await asyncio.open_connection("127.0.0.1", port)
        await until(lambda: server.connections == 2)
        other.close()
        await until(lambda: server.connections == 0)
        writer.transport.abort()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


async def test_a_refusal_is_heard_by_a_client_that_goes_on_sending() -> None:
    async def handler(_request: Request) -> Response:
        return Response(body=b"ok")

    sent = b"PUT / HTTP/1.1\r\nHost: n\r\nContent-Length: 400000\r\n\r\n" + b"x" * 400_000
    async with over_tcp(handler) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for start in range(0, len(sent), 50_000):
            writer.write(sent[start : start + 50_000])
            await asyncio.sleep(0.005)
        raw = await reader.read()
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)
    assert parse(raw).error["code"] == "body-too-large"


async def test_there_are_only_so_many_streams() -> None:
    async with serving() as path:
        writers = []
        for _ in range(16):
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(b"GET /v1/stream HTTP/1.1\r\nHost: n\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            writers.append(writer)
        assert (await ask(path, "/v1/stream")).error["code"] == "too-many-streams"
        for writer in writers:
            writer.close()


# ------------------------------------------------------------------ whatever comes


@settings(max_examples=200)
@given(sent=st.binary(max_size=300) | st.builds(lambda tail: GET + tail, st.binary(max_size=100)))
def test_no_bytes_make_the_server_fail(sent: bytes) -> None:
    async def attempt() -> None:
        async with serving(limits=replace(QUICK, head_s=0.05, idle_s=0.05, body_s=0.05)) as path:
            raw = await talk(path, sent, ends=True)
            assert raw == b"" or 200 <= first(raw).status < 600
            assert b" 500 " not in raw

    with structlog.testing.capture_logs() as lines:
        asyncio.run(attempt())
    assert lines == []


def first(raw: bytes) -> Answer:
    head, _, _ = raw.partition(b"\r\n\r\n")
    return Answer(status=int(head.split()[1]), headers={}, body=b"")


@settings(max_examples=200)
@given(segments=st.lists(st.text(max_size=30), max_size=5), query=st.text(max_size=40))
def test_no_target_is_read_wrongly(segments: list[str], query: str) -> None:
    path = "/" + "/".join(quote(segment, safe="", errors="replace") for segment in segments)
    expected = tuple(segment.encode("utf-8", "replace").decode() for segment in segments) or ("",)
    try:
        outcome: object = parse_target(f"{path}?{query}")[0]
    except HttpError as problem:
        outcome = problem.status
    assert outcome in (expected, 400)
