"""The lines of a recording's file, one at a time, however large it is."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from netqos.cli.client import InputRejected
from netqos.engine.recording import LONGEST_LINE
from netqos.errors import Rejected

HINT = "name a file that netqosctl record made"


class RecordedLines:
    """Numbered lines. One without its end, the last of a recording that was killed, is left out: `cut_off` is its
    number, 0 where there is none.
    """

    def __init__(self, path: Path) -> None:
        """`InputRejected` for what is no file that can be read."""
        self.cut_off = 0
        try:
            found = path.stat()
            if not stat.S_ISREG(found.st_mode):
                raise InputRejected(f"{path} is no file", hint=HINT)
            self._size = found.st_size
            self._file = path.open("rb")
        except OSError as problem:
            raise InputRejected(f"{path} cannot be read: {problem.strerror}", hint=HINT) from None

    def __enter__(self) -> RecordedLines:
        """The lines themselves."""
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _problem: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self._file.close()

    @property
    def share(self) -> float:
        """How much of the file has been read, of 1."""
        return min(1.0, self._file.tell() / max(1, self._size))

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Each line with its number, from 1 on."""
        number = 0
        while raw := self._file.readline(LONGEST_LINE + 2):
            number += 1
            if not raw.endswith(b"\n") and len(raw) <= LONGEST_LINE and number > 1:
                self.cut_off = number
                return
            try:
                yield number, raw.decode("ascii").rstrip("\n")
            except UnicodeDecodeError:
                raise Rejected("this is no text", subject=f"line {number}", hint=HINT) from None
