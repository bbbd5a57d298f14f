"""The file of a recording while it is written: whole lines only, readable by its owner alone, never over another."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from netqos.cli.client import InputRejected, Problem

MODE = 0o600


class RecordFile:
    """A new file. Whatever happens while it is written, what stays ends with a whole line."""

    def __init__(self, path: Path, *, replaces: bool) -> None:
        """`replaces`: another file (or link) of this name gives way; else it is an `InputRejected`."""
        self.path = path
        self.size = 0
        try:
            self._file = _replacing(path) if replaces else _create(path)
        except FileExistsError:
            hint = "--force replaces it, or give another name"
            raise InputRejected(f"{path} is there already", hint=hint) from None
        except OSError as problem:
            raise InputRejected(
                f"{path} cannot be written: {problem.strerror}", hint="give another name"
            ) from None

    def __enter__(self) -> RecordFile:
        """The file itself."""
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _problem: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Leave whole lines."""
        try:
            os.ftruncate(self._file, self.size)
            os.fsync(self._file)
        finally:
            os.close(self._file)

    def write(self, lines: Iterable[bytes]) -> None:
        """Append whole lines; `Problem` where the disk takes no more, with what was there before kept."""
        data = b"".join(lines)
        done = 0
        try:
            while done < len(data):
                done += os.write(self._file, data[done:])
        except OSError as problem:
            hint = "what was recorded until then is kept"
            raise Problem(f"{self.path} cannot be written: {problem.strerror}", hint=hint) from None
        self.size += len(data)


def _create(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, MODE)


def _replacing(path: Path) -> int:
    """A new file in the other's place: one that is open elsewhere, or a link, is not written into."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    file = _create(beside)
    try:
        beside.replace(path)
    except BaseException:
        os.close(file)
        beside.unlink()
        raise
    return file
