"""Which number each class of a workload has. Pure.

Names are owners (`owners`), their groups and their rules (`ruletree`). A number is read back from what names it in the
kernel: the elements of the nft maps for an owner, the chain of its rules for a rule, the class above its leaf for a
group. So it survives everything but the removal of the table; a new one starts at a hash of the name.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from netqos.model.levels import Direction
from netqos_tc import podrules
from netqos_tc.keys import ClassKey, Key, RulesKey
from netqos_tc.numbers import FIRST_POD, LAST_POD, is_pod_minor, minor_of
from netqos_tc.observed import TcObserved
from netqos_tc.spec import ClassSpec, ElementSpec, RulesSpec, Spec

_GROUP: Final = "group"


class Register:
    """Gives out minors, to one set of names after the other."""

    def __init__(self, observed: TcObserved, *, keep: bool) -> None:
        """With `keep` a name has its number even where that cannot be right (a plan that may only add)."""
        self._known = observed.once(_Known)
        self._keep = keep
        self._met = observed.specs
        self._taken = set[int]()

    def assign(self, wanted: Mapping[str, int]) -> dict[str, int]:
        """A minor for each name; `wanted` has the minor of the class under which it belongs.

        A name keeps its number unless its class stands under another parent, since HTB cannot move a class. A new
        number is never one that is still in use in the kernel.
        """
        known, assigned, taken = self._known, dict[str, int](), self._taken
        for name in sorted(wanted):
            for minor in known.candidates(name):
                if minor not in taken and (self._keep or known.stands_under(minor, wanted[name])):
                    assigned[name] = minor
                    taken.add(minor)
                    break
        used = known.used | taken
        for name in sorted(wanted):
            if name not in assigned:
                minor = _fresh(name, used)
                assigned[name] = minor
                used.add(minor)
        taken.update(assigned.values())
        return assigned

    def stands_under(self, minor: int, parent_minor: int) -> bool:
        """Whether a class, on every device where it is, has this parent."""
        return self._known.stands_under(minor, parent_minor)

    def may_write(self, chains: Iterable[tuple[RulesKey, RulesSpec]]) -> bool:
        """Whether chains may become so: a plan that may only add changes none that is there."""
        return not self._keep or all(self._met.get(key, spec) == spec for key, spec in chains)


def group_name(owner: str) -> str:
    """The name under which the class has its number that holds a workload and its rules together."""
    return f"{owner} {_GROUP}"


def rule_name(owner: str, direction: Direction, item: int) -> str:
    """The name under which a rule's class has its number."""
    return f"{owner} {direction.value} {item}"


def owner_in(name: str) -> str:
    """Whose a name is."""
    return name.partition(" ")[0]


def item_in(name: str) -> int | None:
    """The rule that a name is about, None for an owner's own."""
    item = name.rpartition(" ")[2]
    return int(item) if item != name and item.isdecimal() else None


def names_of(specs: Mapping[Key, Spec]) -> dict[str, int]:
    """The minors of leaves by their names: a workload's by its elements, a rule's by its workload's chain."""
    found = {spec.owner: spec.minor for spec in specs.values() if isinstance(spec, ElementSpec)}
    owners = {minor: owner for owner, minor in found.items()}
    for key, spec in specs.items():
        if isinstance(spec, RulesSpec) and isinstance(key, RulesKey) and key.minor in owners:
            for item, minor in podrules.classes(spec):
                found[rule_name(owners[key.minor], key.direction, item)] = minor
    return found


class _Known:
    """The numbers in use in the kernel."""

    def __init__(self, observed: TcObserved) -> None:
        self._parents: dict[int, set[int]] = {}
        self._owners: dict[int, set[str]] = {}
        self._remembered = observed.remembered
        self._minors: dict[str, set[int]] = {}
        self._candidates: dict[str, Sequence[int]] = {}
        self.used = set[int]()
        chains: list[tuple[RulesKey, RulesSpec]] = []
        for key, spec in observed.specs.items():
            if isinstance(spec, ClassSpec) and isinstance(key, ClassKey):
                self._parents.setdefault(key.minor, set()).add(minor_of(spec.parent))
            elif isinstance(spec, ElementSpec):
                self._add(spec.owner, spec.minor)
            elif isinstance(spec, RulesSpec) and isinstance(key, RulesKey):
                chains.append((key, spec))
        for chain, rules in chains:
            self._add_rules(chain, rules)
        self.used |= {*self._parents, *self._owners}

    def _add_rules(self, chain: RulesKey, rules: RulesSpec) -> None:
        """A chain is that of the leaf in its name, whatever leads to it."""
        self.used.add(chain.minor)
        owners = [name for name in self._owners.get(chain.minor, ()) if " " not in name]
        for item, minor in podrules.classes(rules):
            self.used.add(minor)
            for owner in owners:
                self._add(rule_name(owner, chain.direction, item), minor)

    def _add(self, name: str, minor: int) -> None:
        self._owners.setdefault(minor, set()).add(name)
        self._minors.setdefault(name, set()).add(minor)

    def candidates(self, name: str) -> Sequence[int]:
        """The numbers that a name has or had: as is written in the kernel, else as remembered and nobody else's now.

        A group's is that of the class under which its workload's leaf stands.
        """
        if name not in self._candidates:
            self._candidates[name] = self._look_up(name)
        return self._candidates[name]

    def _look_up(self, name: str) -> Sequence[int]:
        owner, _, part = name.partition(" ")
        if part == _GROUP:
            above = [self._parents.get(leaf, ()) for leaf in self.candidates(owner)]
            return sorted({minor for minors in above for minor in minors if is_pod_minor(minor)})
        found = [minor for minor in sorted(self._minors.get(name, ())) if is_pod_minor(minor)]
        remembered = self._remembered.get(name)
        if remembered is not None and self._owners.get(remembered, {name}) == {name}:
            found.append(remembered)
        return found

    def stands_under(self, minor: int, parent_minor: int) -> bool:
        """Whether the leaf, on every device where it is, has this parent."""
        return self._parents.get(minor, {parent_minor}) == {parent_minor}


def _fresh(owner: str, used: set[int]) -> int:
    count = LAST_POD - FIRST_POD + 1
    start = zlib.crc32(owner.encode())
    for step in range(count):
        minor = FIRST_POD + (start + step) % count
        if minor not in used:
            return minor
    raise ValueError(f"no free class number: {count} leaves on one node")
