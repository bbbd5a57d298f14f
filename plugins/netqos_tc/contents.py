"""Whether the rules of our table are still what they were made as.

A rule is recognised by its comment, which whoever replaces it may keep. Nothing in the kernel changes a rule, but
another one may take its place; so what a rule does, as the kernel tells it, is kept here from when it was first seen,
and one that does something else is nobody's. What we make anew ourselves is forgotten first. Of the rules that all
nodes have it is kept in the state folder too, over restarts; those of workloads would be too many.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Final

from netqos.backend import StateStore
from netqos_tc import classify, nfwire
from netqos_tc.netmsg import Message
from netqos_tc.spec import RuleSpec

_DOCUMENT: Final = "rules"
_Place = tuple[str, str]


class Contents:
    """What rules do, by chain and comment, as far as known."""

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
        for name, content in kept.items() if isinstance(kept, dict) else ():
            chain, _, comment = str(name).partition(" ")
            self._known[chain, comment] = str(content)

    def keep(self, state: StateStore) -> None:
        """Keep what is known of the rules that all nodes have; without any the document goes."""
        own = {
            f"{chain} {comment}": content
            for (chain, comment), content in sorted(self._known.items())
            if chain in classify.CHAIN_NAMES
        }
        if own:
            state.save(_DOCUMENT, own)
        else:
            state.delete(_DOCUMENT)

    def _read(self, message: Message, before: dict[_Place, str]) -> RuleSpec:
        one, content = nfwire.read_rule(message), _digest(nfwire.read_expressions(message))
        place = one.chain, one.comment
        known = self._known.setdefault(place, before.get(place, content))
        return one if content == known else replace(one, comment="")


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()
