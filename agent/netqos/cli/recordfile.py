"""The file of a recording while it is written: whole lines only, readable by its owner alone, never over another."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from netqos.cli.client import InputRejected, Problem

MODE = 0o600


class RecordFile:
    """A new file. Whatever happens while it is written, what stays ends with a whole line."""

    def __init__(self, path: Path, *, replaces: bool) -> None:
        """`replaces`: another file of this name gives way; else it is an `InputRejected`."""
        self.path = path
        self.size = 0
        try:
            self._file = _replacing(path) if replaces else _create(path)
        except FileExistsError:
            hint = "--force replaces it, or give another name"
            raise InputRejected(f"{path} is there already", hint=hint) from None
        except OSError as problem:
            told = f"{path} cannot be written: {problem.strerror}"
            raise InputRejected(told, hint="give another name") from None

    def __enter__(self) -> RecordFile:
        """The file itself."""
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _problem: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Leave whole lines; `Problem` where the disk does not keep them."""
        try:
            os.ftruncate(self._file, self.size)
            os.fsync(self._file)
        except OSError as problem:
            hint = "its last lines may be lost"
            raise Problem(f"{self.path} cannot be written: {problem.strerror}", hint=hint) from None
        finally:
            os.close(self._file)

    def write(self, lines: Iterable[bytes]) -> None:
        """Append whole lines; `Problem` where the disk takes no more, with what was there before kept, and where the
        file has been replaced or removed, so that nobody would ever see them.
        """
        data = b"".join(lines)
        done = 0
        try:
            while done < len(data):
                done += os.write(self._file, data[done:])
        except OSError as problem:
            hint = "what was recorded until then is kept"
            raise Problem(f"{self.path} cannot be written: {problem.strerror}", hint=hint) from None
        self.size += len(data)
        if not self._is_in_place():
            hint = "two recordings need two files"
            raise Problem(f"{self.path} was replaced or removed while it was recorded", hint=hint)

    def _is_in_place(self) -> bool:
        try:
            return os.path.samestat(self.path.lstat(), os.fstat(self._file))
        except OSError:
            return False


def _create(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, MODE)


def _replacing(path: Path) -> int:
    """A new file in the other's place, which is not written into: it may be open elsewhere.

    Links (/dev/stdout is one), devices and pipes are nothing that a file may take the place of.
    """
    if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
        hint = "a recording is a file; give another name"
        raise InputRejected(f"{path} is no file, and is not replaced", hint=hint)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    file = _create(beside)
    try:
        beside.replace(path)
    except BaseException:
        os.close(file)
        beside.unlink()
        raise
    return file
