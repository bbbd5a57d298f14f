"""What is wrong with configuration files, each problem at its line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from netqos.errors import Rejected


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem of one file. `line` and `column` count from 1; `path` is the key (`loop.interval`), may be empty."""

    file: str
    line: int
    column: int
    path: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        """`netqos.yaml:12:9: loop.interval: "50" is no duration; allowed: ... (write 50ms)`."""
        place = f"{self.file}:{self.line}:{self.column}"
        text = ": ".join(filter(None, (place, self.path, self.message)))
        return f"{text} ({self.hint})" if self.hint else text


class InvalidConfiguration(Rejected):
    """The configuration files are wrong; nothing of them was applied.

    `located` holds every problem in the order of files and lines, `problems` the same as texts.
    """

    def __init__(self, problems: Iterable[Problem], *, order: Iterable[str] = ()) -> None:
        """`order` is that of the files."""
        places = {name: place for place, name in enumerate(order)}
        self.located = tuple(
            sorted(dict.fromkeys(problems), key=lambda one: (places.get(one.file, 0), one.line, one.column))
        )
        first = str(self.located[0]) if self.located else ""
        more = f", and {len(self.located) - 1} more" if len(self.located) > 1 else ""
        super().__init__(
            f"the configuration is wrong: {first}{more}",
            hint="correct the file; the last good configuration stays until then",
            problems=tuple(str(problem) for problem in self.located),
        )
