from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from netqos.observe.loglines import MOST_CHARACTERS, MOST_OF_TRACEBACK, render_json, render_text
from netqos.observe.logs import Logs, get_logger
from netqos.observe.logwriter import MOST_WAITING, LineWriter
from netqos.settings.values import LogSettings

JSON = LogSettings(format="json")


@dataclass
class Pipe:
    """A pipe that stands for stderr; `read` takes everything written up to the end."""

    reader: int
    writer: int

    def read(self) -> bytes:
        os.close(self.writer)
        self.writer = -1
        with os.fdopen(os.dup(self.reader), "rb") as file:
            return file.read()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe(*os.pipe())
    yield made
    os.close(made.reader)
    if made.writer >= 0:
        os.close(made.writer)


@contextmanager
def _installed(logs: Logs) -> Iterator[None]:
    hooks, handlers = (sys.excepthook, threading.excepthook), logging.root.handlers[:]
    level = logging.root.level
    logs.install()
    try:
        yield
    finally:
        logs.close()
        structlog.reset_defaults()
        logging.captureWarnings(capture=False)
        (sys.excepthook, threading.excepthook), logging.root.handlers = hooks, handlers
        logging.root.setLevel(level)


def _events(text: bytes) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in json.loads(line).items() if key != "time"} for line in text.splitlines()
    ]


def test_one_line_an_event_with_its_place_and_values(pipe: Pipe) -> None:
    early = get_logger("netqos.early")
    with _installed(Logs(JSON, descriptor=pipe.writer)):
        early.warning("link-lost", device="eth0", path=Path("/x"), missing=None)
        get_logger("netqos.runner").bind(backend="tc").info("applied", writes=3)
        early.debug("not-shown")
    assert _events(pipe.read()) == [
        {
            "level": "warning",
            "event": "link-lost",
            "logger": "netqos.early",
            "device": "eth0",
            "path": "/x",
            "missing": None,
        },
        {"level": "info", "event": "applied", "logger": "netqos.runner", "backend": "tc", "writes": 3},
    ]


def test_the_level_can_change_while_it_runs(pipe: Pipe) -> None:
    logs = Logs(LogSettings(level="error", format="json"), descriptor=pipe.writer)
    with _installed(logs):
        log = get_logger("netqos")
        log.warning("one")
        log.error("two")
        logs.apply(LogSettings(level="debug", format="json"))
        log.debug("three")
    assert [event["event"] for event in _events(pipe.read())] == ["two", "three"]


def test_an_exception_is_one_line(pipe: Pipe) -> None:
    with _installed(Logs(JSON, descriptor=pipe.writer)):
        try:
            int("bad\nvalue")
        except ValueError:
            get_logger("netqos").exception("plugin-failed", backend="tc")
    (event,) = _events(pipe.read())
    assert event["event"] == "plugin-failed"
    assert event["level"] == "error"
    assert event["exception"].startswith("Traceback")
    assert event["exception"].endswith(r"'bad\nvalue'")


@pytest.mark.filterwarnings("default")
def test_libraries_and_uncaught_exceptions_come_out_the_same_way(pipe: Pipe) -> None:
    def fail() -> None:
        raise RuntimeError("in a thread")

    with _installed(Logs(JSON, descriptor=pipe.writer)):
        logging.getLogger("watchdog").error("broken %s", "thing")
        logging.getLogger("watchdog").error("wrong %d", "words")
        logging.getLogger("watchdog").info("chatter")
        warnings.warn("old", stacklevel=1)
        thread = threading.Thread(target=fail, name="worker")
        thread.start()
        thread.join()
        sys.excepthook(KeyError, KeyError("x"), None)
        sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    events = _events(pipe.read())
    assert [(event["logger"], event["event"]) for event in events] == [
        ("watchdog", "library"),
        ("watchdog", "library"),
        ("py.warnings", "library"),
        ("netqos", "uncaught-exception"),
        ("netqos", "uncaught-exception"),
    ]
    assert [event["message"] for event in events[:2]] == ["broken thing", "wrong %d"]
    assert events[3]["thread"] == "worker"
    assert events[3]["exception"].endswith("RuntimeError: in a thread")
    assert events[4]["exception"] == "KeyError: 'x'"


def test_the_journal_gets_priorities(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    found = os.fstat(pipe.writer)
    monkeypatch.setenv("JOURNAL_STREAM", f"{found.st_dev}:{found.st_ino}")
    with _installed(Logs(LogSettings(level="debug"), descriptor=pipe.writer)):
        logger = get_logger("netqos")
        for speak in (logger.debug, logger.info, logger.warning, logger.error, logger.critical):
            speak("event")
    assert [line[:4] for line in pipe.read().splitlines()] == [b"<7>{", b"<6>{", b"<4>{", b"<3>{", b"<2>{"]


def test_a_terminal_gets_text() -> None:
    main, terminal = os.openpty()
    with _installed(Logs(LogSettings(), descriptor=terminal)):
        get_logger("netqos").info("ready", backends="tc")
    assert os.read(main, 4096).decode().split(" ", 1)[1] == "info    ready backends=tc\r\n"
    os.close(main)
    os.close(terminal)


def test_a_full_pipe_delays_nobody_and_what_was_lost_is_told(pipe: Pipe) -> None:
    logs = Logs(JSON, descriptor=pipe.writer)
    with _installed(logs):
        log = get_logger("netqos")
        text = "x" * 1000
        for _ in range(3 * MOST_WAITING // 1000):
            log.info("line", text=text)  # would never come back, were it written here
        assert logs.dropped > 0
        dropped = logs.dropped
        lines: list[bytes] = []
        with os.fdopen(os.dup(pipe.reader), "rb") as reader:
            while not lines or b"log-lines-dropped" not in lines[-1]:
                lines.append(reader.readline())
    assert json.loads(lines[-1])["count"] == dropped == logs.dropped
    assert len(lines) - 1 + dropped == 3 * MOST_WAITING // 1000


def test_a_descriptor_made_non_blocking_by_others_loses_nothing(pipe: Pipe) -> None:
    os.set_blocking(pipe.writer, False)
    writer = LineWriter(pipe.writer, report=lambda count: f"lost {count}")
    lines = [f"{number} {'x' * 1000}" for number in range(500)]
    for line in lines:
        writer.put(line)
    got = b""
    while got.count(b"\n") < len(lines):
        got += os.read(pipe.reader, 65536)
    writer.close(1.0)
    assert got.decode().splitlines() == lines
    assert writer.dropped == 0


def test_a_reader_that_went_away_costs_only_the_lines() -> None:
    reader, descriptor = os.pipe()
    os.close(reader)
    writer = LineWriter(descriptor, report=lambda count: f"lost {count}")
    writer.put("one")
    writer.close(1.0)
    writer.put("two")
    os.close(descriptor)
    assert writer.dropped == 2


def test_closing_does_not_wait_for_a_stuck_reader(pipe: Pipe) -> None:
    writer = LineWriter(pipe.writer, report=lambda count: f"lost {count}")
    for _ in range(500):
        writer.put("x" * 1000)
    writer.close(0.01)
    os.set_blocking(pipe.reader, False)
    while writer._thread.is_alive():  # so that nobody writes into a descriptor that is somebody else's next
        try:
            os.read(pipe.reader, 65536)
        except BlockingIOError:
            writer._thread.join(0.01)


class Colour(Enum):
    RED = 1


class Unshowable:
    def __str__(self) -> str:
        raise RuntimeError("no")


def test_values_that_json_does_not_know() -> None:
    event = {
        "event": "e",
        "colour": Colour.RED,
        "nan": float("nan"),
        "list": [1, "two"],
        "deep": [float("nan")],
        "odd": {(1, 2): 3},
        "bad": Unshowable(),
        "long": "y" * (MOST_CHARACTERS + 5),
        "exception": "a" + "z" * MOST_OF_TRACEBACK,
    }
    found = json.loads(render_json(event))
    del found["time"]
    assert found == {
        "event": "e",
        "colour": "Colour.RED",
        "nan": "nan",
        "list": [1, "two"],
        "deep": "[nan]",
        "odd": "{(1, 2): 3}",
        "bad": "<Unshowable that cannot be shown: RuntimeError>",
        "long": "y" * MOST_CHARACTERS + "...(5 characters left out)",
        "exception": "(1 characters left out)..." + "z" * MOST_OF_TRACEBACK,
    }


def test_text_shows_the_traceback_below() -> None:
    line = render_text(
        {"event": "failed", "level": "error", "why": "no way", "exception": "Traceback\n  x\x1b[31m"}
    )
    assert line.split(" ", 1)[1] == 'error   failed why="no way"\n    Traceback\n      x?[31m'


@given(st.text(), st.text())
def test_no_value_breaks_out_of_its_line(name: str, value: str) -> None:
    event = {"event": name, "level": "info", "value": value}
    text = render_text(event)
    assert len(text.splitlines()) == 1
    assert text.isprintable()
    line = render_json(event)
    assert len(line.splitlines()) == 1
    assert json.loads(line)["value"] == value


def test_the_daemon_does_not_load_rich() -> None:
    code = "import sys, netqos.observe.logs; print([name for name in sys.modules if name.startswith('rich')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
