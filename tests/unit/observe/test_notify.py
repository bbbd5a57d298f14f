from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from netqos.observe.notify import MOST_OF_STATUS, Notifier


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(5)
        yield listening


def _notifier(manager: socket.socket) -> Notifier:
    return Notifier({"NOTIFY_SOCKET": manager.getsockname()}, monotonic_ns=lambda: 12_345_678)


def _lines(manager: socket.socket) -> list[str]:
    return manager.recv(4096).decode().split("\n")


def test_a_life_as_the_service_manager_hears_it(manager: socket.socket) -> None:
    notifier = _notifier(manager)
    assert notifier.is_supervised
    assert notifier.ready("shaping eth0")
    assert _lines(manager) == ["READY=1", "STATUS=shaping eth0"]
    assert notifier.watchdog()
    assert _lines(manager) == ["WATCHDOG=1"]
    assert notifier.reloading()
    assert _lines(manager) == ["RELOADING=1", "MONOTONIC_USEC=12345"]
    assert notifier.ready()
    assert _lines(manager) == ["READY=1"]
    assert notifier.status("2 pods\nREADY=1 limited")
    assert _lines(manager) == ["STATUS=2 pods READY=1 limited"]
    assert notifier.stopping()
    assert _lines(manager) == ["STOPPING=1"]


def test_a_long_status_is_cut(manager: socket.socket) -> None:
    assert _notifier(manager).status("ä" * 10_000)
    assert _lines(manager) == ["STATUS=" + "ä" * MOST_OF_STATUS]


def test_an_abstract_socket() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        name = f"netqos-test-{os.getpid()}"
        manager.bind("\0" + name)
        manager.settimeout(5)
        assert Notifier({"NOTIFY_SOCKET": "@" + name}).ready()
        assert _lines(manager) == ["READY=1"]


@pytest.mark.parametrize("address", ["", "vsock:2:1234", "relative/path"])
def test_without_a_socket_nothing_is_sent(address: str) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": address})
    assert not notifier.is_supervised
    assert not notifier.ready()


def test_a_manager_that_is_away_does_not_stop_the_daemon(manager: socket.socket, tmp_path: Path) -> None:
    notifier = _notifier(manager)
    (tmp_path / "notify").unlink()
    assert not notifier.ready()


def test_a_manager_that_does_not_read_delays_nobody(manager: socket.socket) -> None:
    notifier = _notifier(manager)
    sent = [notifier.status("x" * 400) for _ in range(3000)]
    assert sent[0]
    assert not sent[-1]


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "1500000", "WATCHDOG_PID": "42"}, 1.5),
        ({"WATCHDOG_USEC": "1500000", "WATCHDOG_PID": "43"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "-5"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "٣"}, None),
        ({"WATCHDOG_PID": "42"}, None),
    ],
)
def test_the_watchdog_of_this_process(environ: dict[str, str], expected: float | None) -> None:
    assert Notifier(environ, pid=42).watchdog_s == expected
