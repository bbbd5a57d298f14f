from __future__ import annotations

import asyncio
import os
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from netqos.errors import Fatal
from netqos.observe.listen import UnixListener, answers
from netqos.observe.statusserver import serve_status
from tests.unit.observe.sample import CLOCK, SampleAgent
from tests.unit.observe.serving import ask, until


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="netqos-") as name:
        yield Path(name)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_the_socket_has_mode_0660_under_any_umask_and_its_folder_is_made(folder: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        listener = UnixListener(folder / "a" / "b" / "s")
    finally:
        os.umask(before)
    assert stat.S_IMODE(listener.path.stat().st_mode) == 0o660
    listener.close()
    assert not listener.path.exists()


def test_a_stale_socket_is_taken_over(folder: Path) -> None:
    path = folder / "s"
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(path))
    dead.close()
    assert not answers(path)
    UnixListener(path).close()


def test_a_second_daemon_refuses_and_leaves_the_first_alone(folder: Path) -> None:
    first = UnixListener(folder / "s")
    with pytest.raises(Fatal, match="another daemon answers") as caught:
        UnixListener(folder / "s")
    assert "systemctl stop" in caught.value.hint
    assert first.is_in_place()
    assert answers(first.path)
    first.close()


def test_a_daemon_whose_queue_is_full_is_alive(folder: Path) -> None:
    path = folder / "s"
    busy = socket.socket(socket.AF_UNIX)
    busy.bind(str(path))
    busy.listen(0)
    waiting = [socket.socket(socket.AF_UNIX) for _ in range(3)]
    for one in waiting:
        one.settimeout(0)
        one.connect_ex(str(path))
    with pytest.raises(Fatal, match="another daemon answers"):
        UnixListener(path)
    for one in (busy, *waiting):
        one.close()


def test_the_socket_is_never_open_to_everybody_not_even_for_a_moment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = []

    def chmod(path: Path, mode: int) -> None:
        modes.append(stat.S_IMODE(path.stat().st_mode))

    monkeypatch.setattr(Path, "chmod", chmod)
    before = os.umask(0)
    try:
        UnixListener(folder / "s").close()
    finally:
        os.umask(before)
    assert modes == [0o660]


def test_of_many_that_start_together_one_gets_the_socket(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hesitating(found: Path) -> bool:
        result = answers(found)
        time.sleep(0.02)
        return result

    monkeypatch.setattr("netqos.observe.listen.answers", hesitating)
    path = folder / "s"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()

    def attempt(_: int) -> UnixListener | None:
        try:
            return UnixListener(path)
        except Fatal:
            return None

    with ThreadPoolExecutor(8) as pool:
        listeners = [one for one in pool.map(attempt, range(8)) if one is not None]
    assert len(listeners) == 1
    assert listeners[0].is_in_place()
    listeners[0].close()


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_something_that_is_no_socket_is_left_alone(folder: Path, kind: str) -> None:
    path = folder / "s"
    if kind == "file":
        path.write_text("precious", encoding="ascii")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(folder / "elsewhere")
    with pytest.raises(Fatal, match="no socket"):
        UnixListener(path)
    assert path.is_symlink() or path.exists()


def test_a_path_that_is_too_long_is_a_clear_error(folder: Path) -> None:
    longest = folder / ("x" * (107 - len(str(folder)) - 1))
    UnixListener(longest).close()
    with pytest.raises(Fatal, match="108 bytes, a Unix socket's has at most 107") as caught:
        UnixListener(longest.with_name(longest.name + "x"))
    assert "paths.socket" in caught.value.hint


def test_a_folder_that_cannot_be_made_is_a_clear_error(folder: Path) -> None:
    (folder / "file").touch()
    with pytest.raises(Fatal, match="cannot be made"):
        UnixListener(folder / "file" / "s")
    with pytest.raises(Fatal, match=r"cannot be made|cannot listen"):
        UnixListener(Path("/proc/netqos/s"))


def test_close_removes_only_what_is_still_ours(folder: Path) -> None:
    listener = UnixListener(folder / "s")
    listener.path.unlink()
    listener.path.write_text("somebody's", encoding="ascii")
    listener.close()
    assert listener.path.read_text(encoding="ascii") == "somebody's"


async def test_a_removed_socket_file_is_made_again(folder: Path) -> None:
    listener = UnixListener(folder / "s")
    task = asyncio.create_task(serve_status(listener, SampleAgent(), CLOCK, look_s=0.05))
    assert (await ask(listener.path, "/v1/status")).status == 200
    listener.path.unlink()
    await until(listener.path.exists)
    assert (await ask(listener.path, "/v1/status")).status == 200
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert not listener.path.exists()


async def test_a_socket_file_that_somebody_replaced_is_left_to_them(folder: Path) -> None:
    listener = UnixListener(folder / "s")
    task = asyncio.create_task(serve_status(listener, SampleAgent(), CLOCK, look_s=0.05))
    await asyncio.sleep(0.05)
    listener.path.unlink()
    listener.path.write_text("somebody's", encoding="ascii")
    await asyncio.sleep(0.2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert listener.path.read_text(encoding="ascii") == "somebody's"
