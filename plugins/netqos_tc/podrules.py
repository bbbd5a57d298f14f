"""Rules inside a workload as nft rules: one chain for each workload and direction that has any. Pure.

The last rule that any packet meets leads it by its class, so by its priority, to the chain of the leaf: that is the
same for every kind of workload and address, and nothing but the workload's own packets have that class. In the chain
the first item that matches gives the packet its code point and its class, and ends it. A packet that meets no item, or
finds no chain, stays in the workload's leaf, which has the workload's limit too.

A rule's comment tells its item, the class that it gives (0: none) and a digest of its text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from netqos.model.levels import Direction
from netqos.model.rules import Rule
from netqos_tc import numbers, rulematch
from netqos_tc.keys import Key, RulesKey, SetKey
from netqos_tc.nfwire import RULES_MAP, TABLE
from netqos_tc.rulematch import Line
from netqos_tc.spec import ChainSpec, RuleSpec, RulesSpec, SetSpec, Spec

_CHAIN: Final = re.compile(r"r([0-9a-f]{1,4})(tx|rx)")
_PLAIN: Final = re.compile(r"[A-Za-z0-9:._/-]+")
_COMMENT: Final = re.compile(r"netqos 1 (\d{1,2}) ([0-9a-f]{1,4}) [0-9a-f]{16}")
_ASTRAY: Final = "to"


def chain_name(key: RulesKey) -> str:
    """The chain of a workload's rules."""
    return f"r{key.minor:x}{key.direction.value}"


def key_of(chain: str) -> RulesKey | None:
    """Whose rules a chain has by its name, None for a chain that has no such name."""
    found = _CHAIN.fullmatch(chain)
    key = RulesKey(Direction(found[2]), int(found[1], 16)) if found else None
    return key if key is not None and chain_name(key) == chain and numbers.is_pod_minor(key.minor) else None


def chains_of(chains: Iterable[ChainSpec]) -> frozenset[ChainSpec]:
    """Those that are workloads'. One under a hook is none, whatever its name."""
    return frozenset(one for one in chains if one.hook < 0 and key_of(one.name) is not None)


def read(
    chains: Iterable[ChainSpec], rules: Iterable[RuleSpec], leads: Iterable[tuple[int, str, str]]
) -> dict[RulesKey, RulesSpec]:
    """Workloads' chains with all rules of the table, and what leads to chains: class, chain and comment.

    A class that has no chain of its name but leads somewhere is a workload's too, with no rules.
    """
    found: dict[str, list[RuleSpec]] = {one.name: [] for one in chains}
    for rule in rules:
        if rule.chain in found:
            found[rule.chain].append(rule)
    owners: dict[RulesKey, str] = {}
    for source, chain, comment in leads:
        way = next((one for one in Direction if numbers.KINDS[one].major == numbers.major_of(source)), None)
        if way is not None:
            led = RulesKey(way, numbers.minor_of(source))
            owners[led] = comment if chain == chain_name(led) else f"{_ASTRAY} {chain}"
    keys = [key for name in found if (key := key_of(name)) is not None]
    return {
        key: _met(owners.get(key, ""), found.get(chain_name(key), ()))
        for key in dict.fromkeys([*keys, *owners])
    }


def _met(owner: str, rules: Sequence[RuleSpec]) -> RulesSpec:
    sets = dict.fromkeys((SetKey(name) for one in rules for name in one.sets), SetSpec())
    return RulesSpec(owner=owner, comments=tuple(one.comment for one in rules), sets=sets)


def classes(spec: RulesSpec) -> Iterator[tuple[int, int]]:
    """Item and minor of each class that rules lead to."""
    for comment in spec.comments:
        found = _COMMENT.fullmatch(comment)
        if found and int(found[2], 16):
            yield int(found[1]), int(found[2], 16)


def can_match(rule: Rule, direction: Direction) -> bool:
    """Whether any packet meets all matches of an item: one with addresses of both versions of IP never does."""
    return bool(_lines(rule, direction, 0))


def is_foreign(comment: str) -> bool:
    """Whether a rule in a chain of ours is somebody else's."""
    return not comment.startswith("netqos ")


def rules_spec(
    direction: Direction, owner: str, items: Sequence[tuple[Rule, int]], *, is_addressed: bool
) -> RulesSpec:
    """The chain of a workload whose items, in their order, lead to the classes with these minors (0: to none).

    One that is known `is_addressed` never sends with an address of the node: such a packet with its class is the outer
    one of a tunnel, to which the inner one's rules were applied already.
    """
    comments, lines = [], list[Line]()
    if direction is Direction.TX and is_addressed:
        comments.append("netqos 1 outer")
        lines.append(Line("fib saddr type local return"))
    for number, (rule, minor) in enumerate(items):
        for line in _lines(rule, direction, minor):
            comments.append(f"netqos 1 {number} {minor:x} {_digest(line.text)}")
            lines.append(line)
    return RulesSpec(
        owner=_plain(owner),
        comments=tuple(comments),
        texts=tuple(one.text for one in lines),
        sets={key: spec for one in lines for key, spec in one.sets},
    )


def sets_of(chains: Iterable[Spec]) -> dict[Key, Spec]:
    """All sets that some workloads' rules look up."""
    return {key: spec for one in chains if isinstance(one, RulesSpec) for key, spec in one.sets.items()}


def change_text(key: RulesKey, before: RulesSpec | None, after: RulesSpec | None) -> str:
    """The commands that bring a chain, and what leads to it, from one state to another."""
    chain, target = chain_name(key), numbers.text(numbers.KINDS[key.direction].class_id(key.minor))
    lines = [f"add chain inet {TABLE} {chain}", f"flush chain inet {TABLE} {chain}"]
    is_led = before is not None and before.owner != ""
    if after is None or (is_led and before is not None and before.owner != after.owner):
        lines += [f"delete element inet {TABLE} {RULES_MAP} {{ {target} }}"] if is_led else []
        is_led = False
    if after is None:
        return "\n".join([*lines, f"delete chain inet {TABLE} {chain}", ""])
    lines += [
        f'add rule inet {TABLE} {chain} {text} comment "{comment}"'
        for comment, text in zip(after.comments, after.texts, strict=True)
    ]
    if not is_led:
        lead = f'{target} comment "{after.owner}" : jump {chain}'
        lines.append(f"add element inet {TABLE} {RULES_MAP} {{ {lead} }}")
    return "\n".join([*lines, ""])


def _plain(owner: str) -> str:
    """An owner as a word that commands may hold: names of others are not to be read as commands."""
    return owner if _PLAIN.fullmatch(owner) else "sha256:" + hashlib.sha256(owner.encode()).hexdigest()


@lru_cache(maxsize=8192)
def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@lru_cache(maxsize=8192)
def _lines(rule: Rule, direction: Direction, minor: int) -> tuple[Line, ...]:
    """The nft rules of one item: where addresses or code points are asked for, one for each version of IP at least."""
    verdict = "return"
    if minor:
        verdict = f"meta priority set {numbers.text(numbers.KINDS[direction].class_id(minor))} return"
    found: list[Line] = []
    for version in rulematch.versions(rule):
        mark = f"{rulematch.ip(version)} dscp set {rule.dscp} " if version and rule.dscp is not None else ""
        found += [one.ending(mark + verdict) for one in rulematch.lines(rule, direction, version)]
    return tuple(found)
