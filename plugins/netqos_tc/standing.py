"""What of ours stands in the kernel while a plan is applied: what an operation needs and the plan does not make.

HTB takes a class whose parent is not there without a word and makes it a root class, beside the total and all levels;
an element of a map may name a class that is not there. So the writer asks here first. Read only when asked, each once.
"""

from __future__ import annotations

from typing import Final

from netqos_tc import describe, podrules
from netqos_tc.keys import (
    ClassKey,
    ElementKey,
    FilterKey,
    Key,
    LinkKey,
    QueueKey,
    RedirectKey,
    RootKey,
    RulesKey,
    SetKey,
    TableKey,
)
from netqos_tc.reader import Reader

_MOST_ASKED: Final = 16
"""Classes that are asked for one by one; whoever asks for more has all of a tree read."""


class Standing:
    """Our objects as they are found while a plan is applied."""

    def __init__(self, reader: Reader) -> None:
        """`reader` stays the caller's."""
        self._reader = reader
        self._minors: dict[int, frozenset[int] | None] = {}
        self._asked: dict[ClassKey, bool] = {}
        self._has_table: bool | None = None
        self._sets: frozenset[SetKey] | None = None

    def has(self, key: Key) -> bool:
        """Whether an object that others stand on is there."""
        match key:
            case RootKey(ifindex):
                return self._classes(ifindex) is not None
            case ClassKey():
                return self._has_class(key)
            case TableKey():
                if self._has_table is None:
                    self._has_table = self._reader.table.has_table()
                return self._has_table
            case LinkKey(ifindex):
                return self._reader.own_link(has_tree=self._classes(ifindex) is not None) is not None
            case SetKey():
                if self._sets is None:
                    self._sets = self._reader.table.sets()
                return key in self._sets
            case QueueKey() | FilterKey() | ElementKey() | RulesKey() | RedirectKey():
                raise TypeError(f"nothing stands on {key}")

    def leads_to(self, key: ElementKey | RulesKey, minor: int) -> bool:
        """Whether an element, or a rule of a workload, still leads to a class."""
        if isinstance(key, RulesKey):
            rules = self._reader.table.rules().get(key)
            return rules is not None and minor in {one for _item, one in podrules.classes(rules)}
        element = self._reader.table.elements(key.map).get(key)
        return element is not None and element.minor == minor

    def name(self, key: Key) -> str:
        """An object for people."""
        if isinstance(key, TableKey | ElementKey | SetKey | RulesKey):
            return describe.subject(key, describe.Names())
        link = self._reader.link(key.ifindex)
        names = describe.Names(devices={} if link is None else {key.ifindex: link.name})
        return describe.subject(key, names)

    def _has_class(self, key: ClassKey) -> bool:
        """Whether a class of our tree is there."""
        if key.ifindex in self._minors or len(self._asked) >= _MOST_ASKED:
            return key.minor in (self._classes(key.ifindex) or ())
        if key not in self._asked:
            has_root = self._reader.has_our_root(key.ifindex)
            self._asked[key] = has_root and self._reader.our_class(key.ifindex, key.minor) is not None
        return self._asked[key]

    def _classes(self, ifindex: int) -> frozenset[int] | None:
        """The minors of our classes on a device, None where our root is not there."""
        if ifindex not in self._minors:
            found = None
            if self._reader.has_our_root(ifindex):
                found = frozenset(one.minor for one in self._reader.classes(ifindex))
            self._minors[ifindex] = found
        return self._minors[ifindex]
