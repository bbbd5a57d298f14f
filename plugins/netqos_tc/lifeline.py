"""Which repairs cannot wait: those of what may cut the node itself off. Pure.

Whoever changes what is ours again and again is waited for, and what they made stays meanwhile (contract 7). But the
node must stay reachable (contract 8): a verdict in our table, or a class that the node's own packets need, is put
right each time. See docs/decisions/0012.
"""

from __future__ import annotations

from typing import Final

from netqos.model.levels import Level
from netqos_tc import numbers, podrules, strangers
from netqos_tc.keys import ClassKey, FilterKey, Key, LinkKey, QueueKey, RedirectKey, RootKey, RulesKey
from netqos_tc.spec import FilterSpec, LinkSpec, RedirectSpec, RootSpec, RulesSpec, Spec, TableSpec

NODES_LEAVES: Final = frozenset(
    {numbers.CONTROL, numbers.CRITICAL, numbers.HOST, numbers.UNKNOWN, numbers.LOCAL}
)
"""Of the host and its probes of workloads (`LOCAL`), and where its packets run when something else is missing."""

NODES_CLASSES: Final = frozenset({numbers.TOTAL, numbers.L0, numbers.LEVELS[Level.L1], *NODES_LEAVES})


def is_vital(key: Key, before: Spec | None, after: Spec | None) -> bool:
    """Whether an object, as it was met, may keep packets from the node, or the node's own packets from leaving.

    A redirect to a device that is gone or down drops all that workloads receive, the node's probes of them too, and so
    does one to an IFB without its tree: making that is vital, with all on it. A redirect that is missing never drops,
    nor a class of the uplink: its packets find the default class, which is the unknown leaf. A root that is
    made anew as it was met is that of a tree which cannot be mended (`debt`).
    """
    match key, before, after:
        case RootKey(), RootSpec(), RootSpec():
            return before == after
        case _, TableSpec() as met, TableSpec() as wanted:
            return not met.chains <= wanted.chains or not set(met.rules) <= set(wanted.rules)
        case RulesKey(), RulesSpec() as met, _:
            return any(map(podrules.is_foreign, met.comments))
        case FilterKey(), FilterSpec() as met, _:
            return after is not None or strangers.is_strange(key, met)
        case (LinkKey(), _, LinkSpec()) | (RedirectKey(), RedirectSpec(), RedirectSpec()):
            return True
        case ClassKey(minor=minor), _, _:
            return None not in (before, after) and minor in NODES_CLASSES
        case QueueKey(minor=minor), _, _:
            return None not in (before, after) and minor in NODES_LEAVES
        case _:
            return False
