"""How far a long computation has come: one line on stderr that is drawn over itself, where that is a terminal."""

from __future__ import annotations

import os
import shutil
import time
from types import TracebackType
from typing import Self, TextIO

from netqos.cli.units import cut, safe

PATIENCE_S, AGAIN_S = 0.5, 0.2
"""Nothing is said of what is done so soon; then it is drawn so often."""

BACK, CLEAR_LINE = "\r", "\x1b[K"


class Progress:
    """Used in a `with` statement; the line is gone at its end."""

    def __init__(self, talk: TextIO) -> None:
        """Nothing is said yet."""
        self._talk = talk
        self._can_draw = talk.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._next_s = time.monotonic() + PATIENCE_S
        self._is_drawn = False

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _problem: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Take the line away."""
        if self._is_drawn:
            self._draw("")

    def tell(self, what: str, share: float) -> None:
        """Say what is being done, and that so much of it, up to 1, is done; cheap enough for any loop."""
        if self._can_draw and (now_s := time.monotonic()) >= self._next_s:
            self._next_s = now_s + AGAIN_S
            self._is_drawn = True
            room = shutil.get_terminal_size().columns - len(", 100%") - 1
            self._draw(f"{cut(safe(what), room, '...')}, {share:.0%}")

    def _draw(self, text: str) -> None:
        self._talk.write(f"{BACK}{text}{CLEAR_LINE}")
        self._talk.flush()
