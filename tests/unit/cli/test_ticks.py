"""netqosctl top follows the stream: no decision between two pictures is lost, and a daemon may come and go."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from netqos.cli.client import StatusClient
from netqos.cli.commands import top
from netqos.cli.ctl import main
from netqos.cli.render import Screen
from netqos.cli.ticks import Ticks
from netqos.engine.why import Ground
from netqos.model.levels import PerLevel
from netqos.observe.view import Numbered
from tests.unit.cli.daemon import answering, running
from tests.unit.observe.sample import GROUND, QUIET, RX_GROUND, M, SampleAgent
from tests.waiting import eventually

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _plain_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NETQOS_SOCKET", "NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


def tick(number: int, ground: Ground, **changes: object) -> Numbered[Ground]:
    decision = replace(ground.decision, **changes)  # type: ignore[arg-type]
    return Numbered(number, Ground(decision, ground.policy, ground.state))


def test_what_changed_and_where_contention_begins_or_ends_is_news() -> None:
    agent = SampleAgent()
    for one in (
        tick(0, QUIET),
        tick(1, GROUND, changed=False, at_s=1.0),
        tick(2, GROUND, changed=False, at_s=2.0),
        tick(3, RX_GROUND),
        tick(9, GROUND, at_s=3.0),
    ):
        agent.ticks.put_nowait(one)
    with running(agent) as path:
        ticks = Ticks(StatusClient(str(path)))
        ticks.open()
        news = ticks.follow(time.monotonic() + 0.5)
        ticks.close()
    assert [one["at_s"] for one in news] == [1.0, 3.0]
    assert (list(ticks.news), ticks.missed, ticks.problem) == (news, 5, "")


def test_a_stream_that_ends_is_told_and_begun_again() -> None:
    def answer(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(b"HTTP/1.1 200 \r\n\r\n")

    with answering(answer) as path:
        ticks = Ticks(StatusClient(str(path)))
        ticks.open()
        started_s = time.monotonic()
        assert ticks.follow(started_s + 0.2) == []
        assert time.monotonic() - started_s >= 0.2
        assert ticks.problem == "netqosd went away while it was answering"
        ticks.open()
        assert ticks.problem == ""
        ticks.close()


def test_pictures_show_the_last_decisions_and_json_those_since_the_last(capsys: Captured) -> None:
    agent = SampleAgent()
    lower = PerLevel(550 * M, 800 * M, 1000 * M)

    with running(agent) as path:
        for words in (["--json"], []):
            agent.ticks.put_nowait(tick(0, GROUND, ceilings_bps=lower))
            assert main(["--socket", str(path), *words, "top", "--count", "2", "--interval", "0.5"]) == 0
            out = capsys.readouterr().out
            if words:
                first, second = (json.loads(line)["decisions"] for line in out.splitlines())
                assert (first, [one["ceilings_bps"]["L0"] for one in second]) == ([], [550 * M])
            else:
                assert out.count("last decisions") == 1
                assert "22:13:19.900  egress up0  L0 612M of 550M waits" in out
            assert eventually(lambda: agent.readers == 0)


def test_a_picture_fits_eighty_columns(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with running(SampleAgent()) as path:
        assert main(["--socket", str(path), "top", "--count", "1"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "L0 may use 600M: L1 is left 200M and L2 keeps its guarantee of" in out


def test_without_a_free_stream_pictures_go_on_and_say_so(path_of_full: Path, capsys: Captured) -> None:
    assert main(["--socket", str(path_of_full), "top", "--count", "2", "--interval", "0.05"]) == 0
    told = "decisions between two pictures are not seen: 0 streams are being read already"
    assert capsys.readouterr().out.replace("\n  ", " ").count(told) == 2


@pytest.fixture
def path_of_full(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr("netqos.observe.statusapi.MOST_STREAMS", 0)
    with running(SampleAgent()) as path:
        yield path


def test_one_write_draws_a_picture() -> None:
    written: list[str] = []

    class Terminal:
        encoding = "utf-8"

        def write(self, text: str) -> None:
            written.append(text)

        def flush(self) -> None:
            pass

    screen = Screen(out=Terminal(), talk=Terminal())  # type: ignore[arg-type]
    top._draw(screen, "one\ntwo\n")
    assert written == ["\x1b[?2026h\x1b[Hone\x1b[K\ntwo\x1b[K\n\x1b[J\x1b[?2026l"]
