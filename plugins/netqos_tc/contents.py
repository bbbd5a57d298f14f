"""Whether the rules of our table are still what they were made as.

A rule is recognised by its comment, which whoever replaces it may keep. Nothing in the kernel changes a rule, but
another one may take its place; so what a rule does, as the kernel tells it, is kept here from when it was first seen,
and in the state folder over restarts. One that does something else is nobody's. What we make anew ourselves is
forgotten first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Final

from netqos.backend import StateStore
from netqos_tc import nfwire
from netqos_tc.netmsg import Message
from netqos_tc.spec import RuleSpec

_DOCUMENT: Final = "rules"
_DIGITS: Final = 8
_Place = tuple[str, str]


class Contents:
    """What rules do, by chain and comment, as far as known; comments and what they do as digests."""

    def __init__(self) -> None:
        """Nothing is known."""
        self._known: dict[_Place, str] = {}

    def read(self, messages: Iterable[Message]) -> list[RuleSpec]:
        """All rules of our table; one that is not what it was has no comment any more."""
        before, self._known = self._known, {}
        return [self._read(message, before) for message in messages]

    def forget(self, chains: Collection[str]) -> None:
        """Take the rules of some chains for what they are when they are seen next: we have made them anew."""
        self._known = {place: content for place, content in self._known.items() if place[0] not in chains}

    def remember(self, state: StateStore) -> None:
        """Know what an earlier daemon has kept; nothing where that is no document of ours."""
        kept = state.load(_DOCUMENT)
        for chain, text in kept.items() if isinstance(kept, dict) else ():
            digests = [str(text)[at : at + _DIGITS] for at in range(0, len(str(text)), _DIGITS)]
            self._known |= {
                (str(chain), comment): content
                for comment, content in zip(digests[::2], digests[1::2], strict=False)
            }

    def keep(self, state: StateStore) -> None:
        """Keep what is known, a text for each chain; without any the document goes."""
        texts: dict[str, str] = {}
        for (chain, comment), content in sorted(self._known.items()):
            texts[chain] = texts.get(chain, "") + comment + content
        if texts:
            state.save(_DOCUMENT, texts)
        else:
            state.delete(_DOCUMENT)

    def _read(self, message: Message, before: dict[_Place, str]) -> RuleSpec:
        one, expressions = nfwire.read_rule(message)
        content = _digest(expressions)
        place = one.chain, _digest(one.comment.encode())
        known = self._known.setdefault(place, before.get(place, content))
        return one if content == known else replace(one, comment="")


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=_DIGITS // 2).hexdigest()
