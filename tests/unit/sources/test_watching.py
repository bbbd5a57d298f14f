"""Real inotify under the ways in which configuration files are really changed."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from netqos.host.clock import SystemClock
from netqos.sources.acceptance import Configuration
from netqos.sources.base import Snapshot
from netqos.sources.localfile import LocalFile, Pace
from netqos.sources.watching import FolderWatch

# Only an event makes it look in time.
PACE = Pace(settle_s=0.02, settle_most_s=0.5, recheck_s=600.0, poll_s=600.0, deadline_s=60.0)


Next = Callable[[], Coroutine[None, None, Snapshot[Configuration]]]


@asynccontextmanager
async def following(path: Path) -> AsyncIterator[Next]:
    source = LocalFile(path, clock=SystemClock(), pace=PACE)
    stream: AsyncIterator[Snapshot[Configuration]] = source.snapshots()

    try:
        yield lambda: asyncio.wait_for(anext(stream), 20)
    finally:
        await stream.aclose()  # type: ignore[attr-defined]  # it is an async generator


def _write(path: Path) -> None:
    path.write_text("onExit: restore\n")


def _rename(path: Path) -> None:
    new = path.with_name("4913")
    new.write_text("onExit: restore\n")
    new.rename(path)


def _keep_backup(path: Path) -> None:
    path.rename(path.with_name("netqos.yaml~"))
    path.write_text("onExit: restore\n")


def _write_slowly(path: Path) -> None:
    with path.open("w") as file:
        for letter in "onExit: restore\n":
            file.write(letter)
            file.flush()


def _add_a_folder(path: Path) -> None:
    (path.parent / "conf.d").mkdir()
    (path.parent / "conf.d/10.yaml").write_text("onExit: restore\n")


def _replace_the_folder(path: Path) -> None:
    new = path.parent.with_name("new")
    shutil.copytree(path.parent, new)
    (new / path.name).write_text("onExit: restore\n")
    path.unlink()
    path.parent.rmdir()
    new.rename(path.parent)


@pytest.mark.parametrize(
    "change", [_write, _rename, _keep_backup, _write_slowly, _add_a_folder, _replace_the_folder]
)
async def test_a_change_is_seen_however_it_is_made(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = tmp_path / "etc/netqos.yaml"
    path.parent.mkdir()
    path.write_text("onExit: keep\n")
    async with following(path) as next_snapshot:
        assert (await next_snapshot()).value.settings.on_exit.value == "keep"
        await asyncio.to_thread(change, path)
        while (await next_snapshot()).value.settings.on_exit.value != "restore":
            pass


class ConfigMap:
    """A volume as the kubelet keeps it (pkg/volume/util/atomic_writer.go): a link is swapped."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0

    def put(self, **files: str) -> None:
        self.count += 1
        version = self.folder / f"..{self.count}"
        version.mkdir(parents=True)
        for name, text in files.items():
            (version / f"{name}.yaml").write_text(text)
        link = self.folder / "..data_tmp"
        link.symlink_to(version.name)
        link.rename(self.folder / "..data")
        for name in files:
            seen = self.folder / f"{name}.yaml"
            if not seen.is_symlink():
                seen.symlink_to(f"..data/{name}.yaml")
        old = self.folder / f"..{self.count - 1}"
        if old.exists():
            shutil.rmtree(old)


async def test_swaps_of_a_mounted_configmap_are_seen(tmp_path: Path) -> None:
    main, more = ConfigMap(tmp_path), ConfigMap(tmp_path / "conf.d")
    main.put(netqos="log: {level: info}\n")
    more.put(extra="onExit: keep\n")
    async with following(tmp_path / "netqos.yaml") as next_snapshot:
        await next_snapshot()
        for level in ("debug", "error", "warning"):
            main.put(netqos=f"log: {{level: {level}}}\n")
            assert (await next_snapshot()).value.settings.log.level == level
        more.put(extra="onExit: restore\n")
        assert (await next_snapshot()).value.settings.on_exit.value == "restore"


@pytest.fixture
def watch() -> Iterator[tuple[FolderWatch, threading.Event]]:
    told = threading.Event()
    made = FolderWatch(told.set)
    yield made, told
    made.close()


def test_reading_is_no_change(tmp_path: Path, watch: tuple[FolderWatch, threading.Event]) -> None:
    folders, told = watch
    (tmp_path / "a").write_text("1")
    assert folders.follow([tmp_path]) == ""
    (tmp_path / "a").read_text()
    list(tmp_path.iterdir())
    assert not told.wait(0.2)
    (tmp_path / "a").write_text("2")
    assert told.wait(10)


def test_only_the_folders_asked_for_are_watched(
    tmp_path: Path, watch: tuple[FolderWatch, threading.Event]
) -> None:
    folders, told = watch
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    assert folders.follow([one, tmp_path / "missing"]) == ""
    assert folders.follow([other]) == ""
    (one / "a").write_text("1")
    assert not told.wait(0.2)
    (other / "a").write_text("1")
    assert told.wait(10)


def test_a_folder_made_anew_is_watched_anew(
    tmp_path: Path, watch: tuple[FolderWatch, threading.Event]
) -> None:
    folders, told = watch
    place = tmp_path / "etc"
    for _ in range(3):
        place.mkdir()
        assert folders.follow([place]) == ""
        told.clear()
        (place / "a").write_text("1")
        assert told.wait(10)
        shutil.move(place, tmp_path / f"old{os.urandom(4).hex()}")


LIMITED = """
import sys
from pathlib import Path
from netqos.sources.watching import FolderWatch
Path("/proc/sys/user", sys.argv[1]).write_text("0")
watch = FolderWatch(lambda: None)
print(watch.follow([Path(sys.argv[2])]))
watch.close()
"""


@pytest.mark.parametrize("limit", ["max_inotify_instances", "max_inotify_watches"])
def test_exhausted_limits_are_told(tmp_path: Path, limit: str, require_kernel: Callable[..., None]) -> None:
    require_kernel("netns")
    program = ["unshare", "--user", "--map-root-user", sys.executable, "-c", LIMITED, limit, str(tmp_path)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=30, check=False)
    assert "limit reached" in done.stdout, done.stderr
