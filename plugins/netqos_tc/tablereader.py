"""Reads our nft table as the kernel has it: chains, rules, sets, elements. Decides nothing."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Set
from typing import Final

from netqos_tc import classify, nfwire, podrules, rulematch
from netqos_tc.contents import Contents
from netqos_tc.keys import ElementKey, ElementMap, Key, RulesKey, SetKey, TableKey
from netqos_tc.netlink import Channel, RequestRefused
from netqos_tc.netmsg import Message, Request
from netqos_tc.spec import ChainSpec, ElementSpec, RuleSpec, RulesSpec, SetSpec, Spec, TableSpec


class TableReader:
    """Reads through a channel of one namespace; `contents` are what the rules were when they were first read."""

    def __init__(self, netfilter: Channel) -> None:
        """The channel stays the caller's."""
        self._netfilter = netfilter
        self.contents: Final = Contents()

    def has_table(self) -> bool:
        """Whether our nft table is there with its maps."""
        return bool(self._dump_table(nfwire.dump_maps()))

    def sets(self) -> frozenset[SetKey]:
        """The sets of our table that rules look up."""
        return _sets(map(nfwire.read_map_name, self._dump_table(nfwire.dump_maps())))

    def chains(self) -> frozenset[ChainSpec]:
        """The chains of our table."""
        found = map(nfwire.read_chain, self._dump_table(nfwire.dump_chains()))
        return frozenset(one for one in found if one is not None)

    def is_dormant(self) -> bool:
        """Whether our table is there but switched off."""
        try:
            return nfwire.is_dormant(self._netfilter.get(nfwire.get_table()))
        except RequestRefused:
            return False

    def elements(self, which: ElementMap) -> dict[ElementKey, ElementSpec]:
        """The elements of one map, empty where it is not there."""
        found: dict[ElementKey, ElementSpec] = {}
        for message in self._dump_table(nfwire.dump_elements(which)):
            found.update(nfwire.read_elements(message))
        return found

    def messages(self) -> list[Message]:
        """The raw messages of our table and its elements, empty where it is not there."""
        elements = map(nfwire.dump_elements, classify.maps(cgroups=True))
        requests = [nfwire.dump_rules(), nfwire.dump_leads(), *elements]
        return [message for request in requests for message in self._dump_table(request)]

    def frame(self) -> TableSpec | None:
        """The table without what is in it of workloads, None where it is not there; rules by their comments alone."""
        maps = {nfwire.read_map_name(one) for one in self._dump_table(nfwire.dump_maps())}
        chains = self.chains()
        requests = map(nfwire.dump_rules, classify.CHAIN_NAMES)
        rules = [nfwire.read_rule(one)[0] for request in requests for one in self._dump_table(request)]
        return self._frame(maps, chains, rules) if maps or chains else None

    def specs(self) -> dict[Key, Spec]:
        """Our table, with its elements and the rules of workloads; nothing where it is not there."""
        found: dict[Key, Spec] = {}
        maps = {nfwire.read_map_name(one) for one in self._dump_table(nfwire.dump_maps())}
        chains = self.chains()
        if not maps and not chains:
            self.contents.read([])
            return found
        rules = self.contents.read(self._dump_table(nfwire.dump_rules()))
        found[TableKey()] = self._frame(maps, chains, rules)
        found.update(dict.fromkeys(_sets(maps), SetSpec()))
        found.update(podrules.read(podrules.chains_of(chains), rules, self._leads()).items())
        for which in _known(maps):
            found.update(self.elements(which).items())
        return found

    def rules(self) -> dict[RulesKey, RulesSpec]:
        """The rules of every workload."""
        rules = self.contents.read(self._dump_table(nfwire.dump_rules()))
        return podrules.read(podrules.chains_of(self.chains()), rules, self._leads())

    def _frame(self, maps: Set[str], chains: frozenset[ChainSpec], rules: Iterable[RuleSpec]) -> TableSpec:
        return TableSpec(
            maps=frozenset({*(one.value for one in _known(maps)), *(maps & {nfwire.RULES_MAP})}),
            chains=chains - podrules.chains_of(chains),
            rules=_in_order(rules),
            dormant=self.is_dormant(),
        )

    def _leads(self) -> list[tuple[int, str, str]]:
        return [
            one for message in self._dump_table(nfwire.dump_leads()) for one in nfwire.read_leads(message)
        ]

    def _dump_table(self, request: Request) -> list[Message]:
        """A dump of something in our table, empty where that is not there."""
        try:
            return self._netfilter.dump(request)
        except RequestRefused as problem:
            if problem.refused.code != errno.ENOENT:
                raise
            return []


def _known(names: Set[str]) -> list[ElementMap]:
    return [one for one in classify.maps(cgroups=True) if one.value in names]


def _sets(names: Iterable[str]) -> frozenset[SetKey]:
    return frozenset(SetKey(name) for name in names if rulematch.is_set(name))


def _in_order(rules: Iterable[RuleSpec]) -> tuple[RuleSpec, ...]:
    """The rules of our chains, chain by chain, as `classify.table_spec` lists them."""
    by_chain: dict[str, list[RuleSpec]] = {name: [] for name in classify.CHAIN_NAMES}
    for rule in rules:
        if rule.chain in by_chain:
            by_chain[rule.chain].append(rule)
    return tuple(rule for name in classify.CHAIN_NAMES for rule in by_chain[name])
