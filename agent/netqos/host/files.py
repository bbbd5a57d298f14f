"""Whole files that other programs read: replaced atomically, or not touched at all.

A reader sees the old content or the new one, never less: the new one is written to a temporary file beside it, forced
to disk and renamed over it. Files are 0644 in folders of 0755 whatever the umask. Nothing is followed through a
symbolic link that somebody else could have put there, and the folder itself is never replaced, so that a watch on it
keeps working. A crash leaves at most one temporary file for each path; the next use of the folder removes it.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path, PurePath

from netqos.backend import FileSignature
from netqos.errors import NetqosError, Rejected, Retryable
from netqos.host.folders import Folder, open_folder

FILE_MODE = 0o644
TEMPORARY_SUFFIX = ".netqos-tmp"

_HINTS = {
    errno.ENOSPC: "free space or inodes on that file system; until then readers keep the last content",
    errno.EDQUOT: "raise the quota; until then readers keep the last content",
    errno.EROFS: "mount that file system writable, or configure another folder",
    errno.EACCES: "run as root, or give the folder to the user that runs this",
    errno.EPERM: "run as root, or give the folder to the user that runs this",
    errno.EIO: "the disk reports an error; see the kernel's log",
}


class AtomicFiles:
    """The `netqos.backend.FileStore` of this host; safe to use from several threads."""

    def __init__(self) -> None:
        """Nothing is opened or touched before the first call."""
        self._lock = threading.Lock()
        self._swept: set[Path] = set()

    def read(self, path: PurePath) -> bytes | None:
        """The content, None when there is no such file."""
        with self._folder(path, "read", create=False) as folder:
            return _read(folder, path) if folder is not None else None

    def replace(self, path: PurePath, content: bytes) -> bool:
        """Write content unless the file has it already; True when something was written.

        A file with the right content and another mode gets the mode alone.
        """
        with self._folder(path, "write", create=True) as folder:
            assert folder is not None
            if _read(folder, path) == content:
                return _restore_mode(folder, path)
            _write(folder, path, content)
            return True

    def delete(self, path: PurePath) -> bool:
        """Remove the file; True when there was one."""
        with self._folder(path, "remove", create=False) as folder:
            if folder is None or not _has_file(folder, path):
                return False
            os.unlink(path.name, dir_fd=folder.descriptor)
            _sync_folder(folder)
            return True

    def signature(self, path: PurePath) -> FileSignature | None:
        """The file's signature, None when there is nothing at the path."""
        try:
            status = Path(path).lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as problem:
            raise _retryable(problem, "look at", path) from problem
        return FileSignature(
            inode=status.st_ino,
            size=status.st_size,
            mtime_ns=status.st_mtime_ns,
            ctime_ns=status.st_ctime_ns,
            mode=stat.S_IMODE(status.st_mode),
        )

    @contextmanager
    def _folder(self, path: PurePath, action: str, *, create: bool) -> Iterator[Folder | None]:
        """The opened folder of `path`, alone in this process; None when it is not there. OSErrors become ours."""
        if not path.is_absolute() or path.name in {"", ".."}:
            raise Rejected("is not an absolute path of a file", subject=str(path))
        with self._lock:
            try:
                folder = open_folder(Path(path.parent), create=create)
                if folder is None:
                    yield None
                    return
                with closing(folder):
                    self._sweep(folder)
                    yield folder
            except NetqosError:
                raise
            except OSError as problem:
                raise _retryable(problem, action, path) from problem

    def _sweep(self, folder: Folder) -> None:
        """Remove what a crashed process of ours left, once for each folder."""
        if folder.path in self._swept:
            return
        with suppress(OSError):
            with os.scandir(folder.descriptor) as entries:
                names = [entry.name for entry in entries]
            for name in names:
                if name.startswith(".") and name.endswith(TEMPORARY_SUFFIX):
                    os.unlink(name, dir_fd=folder.descriptor)
            self._swept.add(folder.path)


def _has_file(folder: Folder, path: PurePath) -> bool:
    """Whether a regular file is at the path; anything else but nothing is refused."""
    try:
        mode = os.stat(path.name, dir_fd=folder.descriptor, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISREG(mode):
        return True
    kind = (
        "a symbolic link" if stat.S_ISLNK(mode) else "a folder" if stat.S_ISDIR(mode) else "no regular file"
    )
    raise Rejected(
        f"is {kind} that netqos did not make, so it is left alone",
        subject=str(path),
        hint="remove it, or configure another folder",
    )


def _read(folder: Folder, path: PurePath) -> bytes | None:
    if not _has_file(folder, path):
        return None
    # O_NONBLOCK: should a FIFO have taken the file's place meanwhile, opening it must not wait for a writer.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(path.name, flags, dir_fd=folder.descriptor), "rb") as file:  # noqa: PTH123 - a descriptor
        return file.read()


def _restore_mode(folder: Folder, path: PurePath) -> bool:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(path.name, flags, dir_fd=folder.descriptor), "rb") as file:  # noqa: PTH123 - a descriptor
        if stat.S_IMODE(os.fstat(file.fileno()).st_mode) == FILE_MODE:
            return False
        os.fchmod(file.fileno(), FILE_MODE)
        return True


def _write(folder: Folder, path: PurePath, content: bytes) -> None:
    temporary = f".{path.name}{TEMPORARY_SUFFIX}"
    descriptor = _create(folder, temporary)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
            file.write(content)
            file.flush()
            os.fchmod(descriptor, FILE_MODE)
            os.fsync(descriptor)
        os.rename(temporary, path.name, src_dir_fd=folder.descriptor, dst_dir_fd=folder.descriptor)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder.descriptor)
        raise
    _sync_folder(folder)


def _create(folder: Folder, name: str) -> int:
    """A new file of ours; one of that name is a crash's leftover, or a trap that O_EXCL does not follow."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, flags, FILE_MODE, dir_fd=folder.descriptor)
    except FileExistsError:
        os.unlink(name, dir_fd=folder.descriptor)
        return os.open(name, flags, FILE_MODE, dir_fd=folder.descriptor)


def _sync_folder(folder: Folder) -> None:
    try:
        os.fsync(folder.descriptor)
    except OSError as problem:
        if problem.errno not in {errno.EINVAL, errno.ENOTSUP}:  # a file system without folders to sync
            raise


def _retryable(problem: OSError, action: str, path: PurePath) -> Retryable:
    name = errno.errorcode.get(problem.errno or 0, "error")
    text = f"cannot {action} it: {problem.strerror or problem} ({name})"
    return Retryable(text, subject=str(path), hint=_HINTS.get(problem.errno or 0, "it is tried again"))
