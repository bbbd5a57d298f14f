"""Whether the rules of our table are still what they were made as.

A rule is recognised by its comment, which whoever replaces it may keep. Nothing in the kernel changes a rule, but
another one may take its place; so what a rule does, as the kernel tells it, is kept here from when it was first seen,
and one that does something else is nobody's. What we make anew ourselves is forgotten first. The rules that all nodes
have are compared at the start too: made once more for a moment, in a table that is dormant.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Final

from netqos.backend import NftRunner
from netqos.errors import NetqosError
from netqos_tc import classify, nfwire
from netqos_tc.netlink import Channel, RequestRefused
from netqos_tc.netmsg import Message
from netqos_tc.spec import RuleSpec, TableSpec

_TABLE: Final = "netqos_contents"
_Place = tuple[str, str]


class Contents:
    """What rules do, by chain and comment, as far as known."""

    def __init__(self) -> None:
        """Nothing is known."""
        self._known: dict[_Place, int] = {}

    def read(self, messages: Iterable[Message]) -> list[RuleSpec]:
        """All rules of our table; one that is not what it was has no comment any more."""
        before, self._known = self._known, {}
        return [self._read(message, before) for message in messages]

    def forget(self, chains: Collection[str]) -> None:
        """Take the rules of some chains for what they are when they are seen next: we have made them anew."""
        self._known = {place: content for place, content in self._known.items() if place[0] not in chains}

    def learn(self, spec: TableSpec, nft: Callable[[], NftRunner], netfilter: Channel) -> None:
        """Learn what the rules of a table do that is made of this text; nothing where the kernel takes none aside."""
        text = classify.text_of(spec, table=_TABLE).partition("\n")[
            2
        ]  # without the line that makes the table
        end = f"delete table inet {_TABLE}\n"
        begin = f"add table inet {_TABLE}\n{end}add table inet {_TABLE} {{ flags dormant; }}\n"
        try:
            nft().run(begin + text)
            try:
                messages = netfilter.dump(nfwire.dump_rules(_TABLE))
            finally:
                nft().run(end)
        except (NetqosError, RequestRefused):
            return
        for message in messages:
            one = nfwire.read_rule(message)
            self._known[one.chain, one.comment] = hash(nfwire.read_expressions(message))

    def _read(self, message: Message, before: dict[_Place, int]) -> RuleSpec:
        one, content = nfwire.read_rule(message), hash(nfwire.read_expressions(message))
        place = one.chain, one.comment
        known = self._known.setdefault(place, before.get(place, content))
        return one if content == known else replace(one, comment="")
