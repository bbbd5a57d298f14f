"""The commands of a tutorial, in order, and what each must print. Pure.

A block of `sh` is run. Comments of the form `<!-- expect: REGULAR EXPRESSION -->` behind it say what its output must
have. Where the text tells the reader to look again until it has, they say for how long at most: `<!-- expect within
10 s: REGULAR EXPRESSION -->`; every other block is run once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_BLOCK = re.compile(
    r"^```sh\n(?P<command>.*?)^```\n(?P<after>(?:<!-- expect[^\n]* -->\n)*)", re.MULTILINE | re.DOTALL
)
_EXPECT = re.compile(r"^<!-- expect(?: within (\d+) s)?: (.*) -->$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Step:
    """A block's command, and the expressions that its output must match, each somewhere, after `within_s` at most."""

    command: str
    expects: tuple[str, ...] = ()
    within_s: int = 0

    def missing(self, output: str) -> list[str]:
        """The expressions that do not match."""
        return [one for one in self.expects if re.search(one, output) is None]


def steps(text: str) -> list[Step]:
    """All steps of a page."""
    return [_step(found["command"], _EXPECT.findall(found["after"])) for found in _BLOCK.finditer(text)]


def _step(command: str, expected: Sequence[tuple[str, str]]) -> Step:
    within_s = max((int(seconds or 0) for seconds, _ in expected), default=0)
    return Step(command, tuple(one for _, one in expected), within_s)
