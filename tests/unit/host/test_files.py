"""Whole files: what a reader, an attacker, a crash and a full disk may see."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path, PurePath

import pytest

from netqos.errors import Rejected, Retryable
from netqos.host import files, folders
from netqos.host.files import AtomicFiles
from netqos.testing.filehosts import quick_folder

SMALL = b'{"a":1}'
LARGE = json.dumps({"a": 1, "filling": "x" * 1_000_000}).encode()


@pytest.fixture
def store() -> AtomicFiles:
    return AtomicFiles()


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """In memory: what these tests force to disk would otherwise wait for it."""
    with quick_folder() as folder:
        yield Path(folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "koordinator" / "net"


@pytest.fixture(params=[0o077, 0o000, 0o777], ids=lambda mask: f"umask {mask:03o}")
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


class TestReplace:
    def test_makes_folders_and_file_readable_whatever_the_umask(
        self, store: AtomicFiles, folder: Path, umask: int
    ) -> None:
        assert store.replace(folder / "node", SMALL)
        assert [mode(one) for one in (folder.parent, folder, folder / "node")] == [0o755, 0o755, 0o644]

    def test_keeps_the_mode_of_folders_that_are_there(self, store: AtomicFiles, folder: Path) -> None:
        folder.mkdir(parents=True)
        folder.chmod(0o750)
        store.replace(folder / "node", SMALL)
        assert mode(folder) == 0o750

    def test_opens_a_folder_that_was_made_with_mode_zero(self, store: AtomicFiles, folder: Path) -> None:
        folder.parent.mkdir(mode=0)
        store.replace(folder / "node", SMALL)
        assert mode(folder.parent) == 0o755

    def test_writes_nothing_when_the_bytes_are_equal(self, store: AtomicFiles, folder: Path) -> None:
        path = folder / "node"
        assert store.replace(path, SMALL)
        before = store.signature(path)
        assert not store.replace(path, SMALL)
        assert not AtomicFiles().replace(path, SMALL)
        assert store.signature(path) == before

    def test_gives_back_the_mode(self, store: AtomicFiles, folder: Path) -> None:
        path = folder / "node"
        store.replace(path, SMALL)
        inode = path.stat().st_ino
        path.chmod(0o600)
        assert store.replace(path, SMALL)
        assert (mode(path), path.stat().st_ino) == (0o644, inode)

    def test_renames_a_new_file_into_the_same_folder(self, store: AtomicFiles, folder: Path) -> None:
        path = folder / "node"
        store.replace(path, SMALL)
        file, parent = path.stat().st_ino, folder.stat().st_ino
        assert store.replace(path, LARGE)
        assert store.read(path) == LARGE
        assert path.stat().st_ino != file
        assert folder.stat().st_ino == parent
        assert names(folder) == ["node"]

    def test_refuses_what_is_no_absolute_path(self, store: AtomicFiles) -> None:
        for path in ("node", "/", "/tmp/.."):
            with pytest.raises(Rejected, match="absolute path"):
                store.replace(PurePath(path), SMALL)


class TestReadAndDelete:
    def test_nothing_there(self, store: AtomicFiles, folder: Path) -> None:
        path = folder / "node"
        assert (store.read(path), store.signature(path), store.delete(path)) == (None, None, False)
        assert not folder.parent.exists()

    def test_delete(self, store: AtomicFiles, folder: Path) -> None:
        store.replace(folder / "node", SMALL)
        assert store.delete(folder / "node")
        assert names(folder) == []

    def test_signature_tells_every_change(self, store: AtomicFiles, folder: Path) -> None:
        path = folder / "node"
        store.replace(path, SMALL)
        times = path.stat()
        seen = {store.signature(path)}
        path.chmod(0o600)
        seen.add(store.signature(path))
        path.write_bytes(SMALL[::-1])
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        seen.add(store.signature(path))
        store.replace(path, SMALL)
        seen.add(store.signature(path))
        assert len(seen) == 4


class TestSymbolicLinks:
    def test_in_the_place_of_the_file(self, store: AtomicFiles, folder: Path) -> None:
        folder.mkdir(parents=True)
        victim = folder / "victim"
        victim.write_bytes(b"precious")
        (folder / "node").symlink_to(victim)
        for call in (lambda: store.replace(folder / "node", SMALL), lambda: store.read(folder / "node")):
            with pytest.raises(Rejected, match=r"node: is a symbolic link.*remove it"):
                call()
        with pytest.raises(Rejected):
            store.delete(folder / "node")
        assert victim.read_bytes() == b"precious"
        assert (folder / "node").is_symlink()

    def test_in_the_place_of_the_folder(self, store: AtomicFiles, folder: Path, tmp_path: Path) -> None:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        folder.parent.mkdir()
        folder.symlink_to(elsewhere)
        with pytest.raises(Rejected, match="'net' is a symbolic link"):
            store.replace(folder / "node", SMALL)
        assert names(elsewhere) == []
        assert folder.is_symlink()

    def test_in_the_place_of_the_temporary_file(self, store: AtomicFiles, folder: Path) -> None:
        store.replace(folder / "other", SMALL)
        victim = folder / "victim"
        victim.write_bytes(b"precious")
        (folder / f".node{files.TEMPORARY_SUFFIX}").symlink_to(victim)
        assert store.replace(folder / "node", SMALL)
        assert victim.read_bytes() == b"precious"
        assert names(folder) == ["node", "other", "victim"]

    @pytest.mark.parametrize("is_relative", [True, False])
    def test_of_ours_on_the_way_is_followed(
        self, store: AtomicFiles, tmp_path: Path, is_relative: bool
    ) -> None:
        (tmp_path / "run").mkdir()
        (tmp_path / "var").mkdir()
        (tmp_path / "var" / "run").symlink_to("../run" if is_relative else tmp_path / "run")
        store.replace(tmp_path / "var" / "run" / "net" / "node", SMALL)
        assert (tmp_path / "run" / "net" / "node").read_bytes() == SMALL

    def test_of_somebody_else_on_the_way(
        self, store: AtomicFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Only root could give a link away, so here it is trust that is taken away."""
        (tmp_path / "run").mkdir()
        (tmp_path / "var").symlink_to(tmp_path / "run")
        monkeypatch.setattr(folders, "_trusted_owners", lambda: {os.geteuid() + 1})
        with pytest.raises(Rejected, match=f"'var' of user {os.geteuid()}"):
            store.replace(tmp_path / "var" / "net" / "node", SMALL)
        assert names(tmp_path / "run") == []

    def test_root_and_we_ourselves_are_trusted(self) -> None:
        assert {0, os.geteuid()} <= folders._trusted_owners()

    def test_in_a_circle(self, store: AtomicFiles, tmp_path: Path) -> None:
        (tmp_path / "a").symlink_to("b")
        (tmp_path / "b").symlink_to("a")
        with pytest.raises(Rejected, match="too many"):
            store.replace(tmp_path / "a" / "net" / "node", SMALL)


class TestForeignThings:
    def test_a_folder_or_fifo_in_the_place_of_the_file(self, store: AtomicFiles, folder: Path) -> None:
        (folder / "node").mkdir(parents=True)
        os.mkfifo(folder / "pods")
        for name, kind in (("node", "a folder"), ("pods", "no regular file")):
            with pytest.raises(Rejected, match=f"{name}: is {kind}"):
                store.replace(folder / name, SMALL)
            with pytest.raises(Rejected):
                store.read(folder / name)
        assert names(folder) == ["node", "pods"]

    def test_a_file_in_the_place_of_the_folder(self, store: AtomicFiles, folder: Path) -> None:
        folder.parent.write_bytes(b"")
        with pytest.raises(Rejected, match="'koordinator' is no folder"):
            store.replace(folder / "node", SMALL)

    def test_leftovers_of_a_crash_are_swept_and_nothing_else(self, store: AtomicFiles, folder: Path) -> None:
        folder.mkdir(parents=True)
        for name in (f".node{files.TEMPORARY_SUFFIX}", f".gone{files.TEMPORARY_SUFFIX}", ".theirs.tmp"):
            (folder / name).write_bytes(b"half")
        assert store.read(folder / "node") is None
        assert names(folder) == [".theirs.tmp"]


@pytest.mark.parametrize(
    "failure",
    [
        ("fsync", errno.ENOSPC, "free space"),
        ("rename", errno.EROFS, "mount that file system writable"),
        ("open", errno.EACCES, "run as root"),
    ],
    ids=lambda failure: errno.errorcode[failure[1]],
)
def test_a_failing_file_system_is_retried_later(
    store: AtomicFiles, folder: Path, monkeypatch: pytest.MonkeyPatch, failure: tuple[str, int, str]
) -> None:
    call, code, hint = failure
    path = folder / "node"
    store.replace(path, SMALL)
    real = getattr(os, call)

    def fail(*arguments: object, **options: object) -> object:
        if call == "open" and not (isinstance(arguments[0], str) and arguments[0].startswith(".")):
            return real(*arguments, **options)
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(Retryable, match=f"node: cannot write it: .*{errno.errorcode[code]}.*{hint}"):
        store.replace(path, LARGE)
    monkeypatch.undo()
    assert store.read(path) == SMALL
    assert names(folder) == ["node"]
    assert store.replace(path, LARGE)


@pytest.mark.kernel
def test_a_full_file_system_for_real(tmp_path: Path) -> None:
    """In a mount namespace of its own: a tmpfs of 64 KiB."""
    script = f"""
        import sys
        from pathlib import Path
        from netqos.errors import Retryable
        from netqos.host.files import AtomicFiles
        path, store = Path({str(tmp_path)!r}) / "node", AtomicFiles()
        store.replace(path, b"old")
        try:
            store.replace(path, b"x" * 1_000_000)
        except Retryable as problem:
            print(problem)
        print(store.read(path), [entry.name for entry in path.parent.iterdir()])
    """
    command = [
        "unshare",
        "-rm",
        "sh",
        "-c",
        f'mount -t tmpfs -o size=64k tmpfs {tmp_path} && exec "$@"',
        "sh",
    ]
    done = subprocess.run(
        [*command, sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    said, left = done.stdout.splitlines()
    assert "ENOSPC" in said
    assert left == "b'old' ['node']"


def test_a_reader_never_sees_less_than_a_whole_file(store: AtomicFiles, folder: Path) -> None:
    path = folder / "node"
    store.replace(path, SMALL)
    stop, seen, reads = threading.Event(), set[bytes](), 0

    def write() -> None:
        for number in range(150):
            store.replace(path, (LARGE, SMALL)[number % 2])
        stop.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not stop.is_set():
        seen.add(path.read_bytes())
        reads += 1
    writer.join()
    assert seen <= {SMALL, LARGE}
    assert reads > 50


KILLED_WRITER = """
    import os, signal, sys
    from pathlib import Path
    from netqos.host.files import AtomicFiles
    path, at = Path(sys.argv[1]), int(sys.argv[2])
    step = 0
    def dying(real):
        def call(*arguments, **options):
            global step
            step += 1
            if step == at:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)
        return call
    store = AtomicFiles()
    for name in ("open", "fchmod", "fsync", "rename", "unlink", "close"):
        setattr(os, name, dying(getattr(os, name)))
    store.replace(path, b"new" * 100_000)
    print("done")
"""


def test_sigkill_between_any_two_steps_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "net" / "node"
    old, new = b"old" * 100_000, b"new" * 100_000
    for step in range(1, 200):
        AtomicFiles().replace(path, old)
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(KILLED_WRITER), str(path), str(step)],
            capture_output=True,
            check=False,
        )
        assert path.read_bytes() in {old, new}
        assert AtomicFiles().replace(path, new) or path.read_bytes() == new
        assert names(path.parent) == ["node"]
        if done.returncode != -signal.SIGKILL:
            assert done.stdout == b"done\n"
            break
    else:
        pytest.fail("the writer never ended")
    assert step > 10


def test_no_descriptor_is_left_over_1000_cycles(store: AtomicFiles, folder: Path) -> None:
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    path = folder / "node"
    before = count()
    for number in range(1000):
        store.replace(path, b"%d" % number)
        store.replace(path, b"%d" % number)
        store.read(path)
        store.signature(path)
        store.delete(path)
    store.replace(path, SMALL)
    (folder / "link").symlink_to(path)
    for _ in range(100):
        with pytest.raises(Rejected):
            store.replace(folder / "link", SMALL)
        with pytest.raises(Rejected):
            store.replace(folder / "link" / "net" / "node", SMALL)
    assert count() == before
