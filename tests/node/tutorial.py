"""The commands of a tutorial, in order, and what each must print. Pure.

A block of `sh` is run. Comments of the form `<!-- expect: REGULAR EXPRESSION -->` behind it say what its output must
have; such a block is run again until it has, so it must be one that may be repeated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_BLOCK = re.compile(
    r"^```sh\n(?P<command>.*?)^```\n(?P<after>(?:<!-- expect: [^\n]* -->\n)*)", re.MULTILINE | re.DOTALL
)
_EXPECT = re.compile(r"^<!-- expect: (.*) -->$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Step:
    """A block's command, and the expressions that its output must match, each somewhere."""

    command: str
    expects: tuple[str, ...] = ()

    def missing(self, output: str) -> list[str]:
        """The expressions that do not match."""
        return [one for one in self.expects if re.search(one, output) is None]


def steps(text: str) -> list[Step]:
    """All steps of a page."""
    return [Step(found["command"], tuple(_EXPECT.findall(found["after"]))) for found in _BLOCK.finditer(text)]
