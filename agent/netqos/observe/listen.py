"""The status socket's file: made with its mode, taken over when stale, never taken from a daemon that lives.

A socket file is stale when a connect to it is refused. The sequence look - remove - bind - listen runs under a lock on
the folder, so that of two daemons that start together one sees the other.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from netqos.errors import Fatal

MODE = 0o660
LONGEST_PATH = 107  # sun_path of unix(7) has 108 bytes, the last one is 0
LOCK_WAIT_S = 2.0


class UnixListener:
    """A listening Unix socket and its file, which is removed again by `close` unless somebody replaced it."""

    def __init__(self, path: Path) -> None:
        """Bind and listen; raises `Fatal` (in use, path too long, folder not writable) with the next step."""
        self.path = path
        _check_length(path)
        _make_folder(path.parent)
        with _locked(path.parent):
            _remove_stale(path)
            self.socket = _bind(path)
            self._identity = _identity(path)

    def is_in_place(self) -> bool:
        """Whether the file is still there and ours, so that new clients find us."""
        return self._identity is not None and _identity(self.path) == self._identity

    def close(self) -> None:
        """Stop listening and remove the file if it is still ours."""
        if self.is_in_place():
            self.path.unlink(missing_ok=True)
        self.socket.close()


def _check_length(path: Path) -> None:
    length = len(os.fsencode(path))
    if length > LONGEST_PATH:
        raise Fatal(
            f"the path has {length} bytes, a Unix socket's has at most {LONGEST_PATH}",
            subject=f"status socket {path}",
            hint="set paths.socket to a shorter one",
        )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as problem:
        raise Fatal(
            f"the folder cannot be made: {problem.strerror}",
            subject=f"status socket in {folder}",
            hint="set paths.socket to a folder that the daemon may write to",
        ) from None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; go on without it after two seconds, since anybody who may read the folder may hold it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        until_s = time.monotonic() + LOCK_WAIT_S
        while time.monotonic() < until_s:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)


def _remove_stale(path: Path) -> None:
    """Remove a socket file that nobody listens on; `Fatal` for one that lives and for anything that is no socket."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise Fatal(
            "something that is no socket is at this path, and was left alone",
            subject=f"status socket {path}",
            hint="move it away, or set paths.socket to another path",
        )
    if answers(path):
        raise Fatal(
            "another daemon answers on this socket",
            subject=f"status socket {path}",
            hint="stop it first (systemctl stop netqosd), or set paths.socket to another path",
        )
    path.unlink(missing_ok=True)


def answers(path: Path) -> bool:
    """Whether somebody listens on the socket file: only a refused connect, or no file, proves that nobody does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0)
        try:
            probe.connect(os.fspath(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            # EAGAIN: its queue is full; EACCES: not ours to judge.
            return True
    return True


def _bind(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        # The file takes the socket's own mode less the umask (net/unix/af_unix.c, unix_bind_bsd): never wider than
        # MODE, not even for a moment; the second chmod undoes a tighter umask.
        os.fchmod(listener.fileno(), MODE)
        listener.bind(os.fspath(path))
        path.chmod(MODE)
        listener.listen(socket.SOMAXCONN)
    except OSError as problem:
        listener.close()
        hint = "run as root, or set paths.socket to a folder that the daemon may write to"
        if problem.errno not in {errno.EACCES, errno.EPERM, errno.EROFS}:
            hint = "set paths.socket to another path"
        raise Fatal(
            f"cannot listen: {problem.strerror}", subject=f"status socket {path}", hint=hint
        ) from None
    return listener


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
