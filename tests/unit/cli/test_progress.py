"""What is told of a long computation: now and then, on a terminal alone, and nothing stays of it."""

from __future__ import annotations

import contextlib
import io

import pytest

from netqos.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now_s = [128.0]
    monkeypatch.setattr("netqos.cli.progress.time.monotonic", lambda: now_s[0])
    monkeypatch.setenv("TERM", "xterm")
    return now_s


def told(talk: io.StringIO, clock: list[float], *, steps: int) -> str:
    with Progress(talk) as progress:
        for step in range(steps + 1):
            progress.tell(f"egress: {step}s of 40s", step / 40)
            clock[0] += 1 / 16
    return talk.getvalue()


def test_it_is_drawn_over_itself_and_gone_at_the_end(clock: list[float]) -> None:
    drawn = [f"egress: {step}s of 40s, {share}%" for step, share in ((8, 20), (12, 30), (16, 40), (20, 50))]
    assert told(Terminal(), clock, steps=20) == "".join(f"\r{one}\x1b[K" for one in (*drawn, ""))


def test_what_takes_a_moment_only_tells_nothing(clock: list[float]) -> None:
    assert told(Terminal(), clock, steps=7) == ""


def test_where_nothing_can_be_drawn_nothing_is_told(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told(io.StringIO(), clock, steps=40) == ""
    monkeypatch.setenv("TERM", "dumb")
    assert told(Terminal(), clock, steps=40) == ""


def test_a_text_is_made_safe_and_fits_the_line(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    talk = Terminal()
    with Progress(talk) as progress:
        clock[0] += 1
        progress.tell("\x1b[2J, a name for any line", 0.25)
    assert talk.getvalue() == "\r\\x1b[2J, a..., 25%\x1b[K\r\x1b[K"


def test_an_end_in_the_midst_leaves_no_line(clock: list[float]) -> None:
    talk = Terminal()
    with contextlib.suppress(KeyboardInterrupt), Progress(talk) as progress:
        clock[0] += 1
        progress.tell("egress: 1s of 2s", 0.5)
        raise KeyboardInterrupt
    assert talk.getvalue() == "\regress: 1s of 2s, 50%\x1b[K\r\x1b[K"
