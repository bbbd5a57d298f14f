"""Rules inside a pod: `koordinator.sh/qos-config` and `rules` of a workload -> `Rule` (contract 1.3).

What a rule may use in its namespace, and whether it can be enforced, is decided by the engine. A direction with a
wrong item is rejected as a whole, since leaving out one item would hand its traffic to the items behind it. The
whole-pod limit (an item that only matches `ip` without `expr` and has `bandwidth_max`) is taken out first: it is no
rule, shadows none, and stands or falls alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from netqos.model.levels import PerDirection
from netqos.model.quantities import parse_limit
from netqos.model.rules import Rule
from netqos.model.texts import listed, shown
from netqos.settings.issues import Code, Issue, Issues, Path, check_keys
from netqos.settings.matching import parse_dscp, parse_level
from netqos.settings.ruleform import normal_form
from netqos.settings.ruleitems import Item, Located, parse_match, read_item

__all__ = ["ParsedRules", "WholePodLimit", "normal_form", "parse_rules"]

MOST_ITEMS = 16
MOST_PARTS = 64

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class WholePodLimit:
    """The limit that was written as an item. `bps` 0: no limit; None: rejected, and `issue` says why."""

    bps: int | None
    text: str
    issue: Issue | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedRules:
    """Both directions. `rules` None: that direction was rejected. `issues` are all of them, in their order."""

    rules: PerDirection[tuple[Rule, ...] | None]
    limits: PerDirection[WholePodLimit | None]
    issues: tuple[Issue, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _ParsedItems:
    rules: tuple[Rule, ...] | None = ()
    limit: WholePodLimit | None = None
    issues: tuple[Issue, ...] = field(default=())


def parse_rules(tree: object) -> ParsedRules:
    """A decoded `{"ingress": [...], "egress": [...]}`; a missing or null direction has no rules."""
    issues = Issues()
    if not isinstance(tree, Mapping):
        issues.add(
            Code.RULES, (), f"{shown(tree)} is no set of rules; allowed: an object with ingress and egress"
        )
        return _both(_ParsedItems(rules=None), _ParsedItems(rules=None), issues)
    check_keys(tree, ("ingress", "egress"), (), issues)
    tx, rx = _parse_items(tree.get("egress"), ("egress",)), _parse_items(tree.get("ingress"), ("ingress",))
    return _both(tx, rx, issues)


def _both(tx: _ParsedItems, rx: _ParsedItems, issues: Issues) -> ParsedRules:
    return ParsedRules(
        rules=PerDirection(tx=tx.rules, rx=rx.rules),
        limits=PerDirection(tx=tx.limit, rx=rx.limit),
        issues=(*issues.found(), *rx.issues, *tx.issues),
    )


def _parse_items(trees: object, path: Path) -> _ParsedItems:
    errors, notes = Issues(), Issues()
    rules: list[Rule] = []
    limit: WholePodLimit | None = None
    for place, tree in enumerate(_items(trees, path, errors)):
        found = Issues()
        item = read_item(tree, (*path, place), found)
        if item.is_whole_pod_limit:
            limit = _whole_pod_limit(item, found, before=limit)
            notes.extend(found)
        else:
            rules.append(_rule(item, found))
            errors.extend(found)
    return _ParsedItems(
        rules=None if errors else tuple(rules), limit=limit, issues=(*errors.found(), *notes.found())
    )


def _items(trees: object, path: Path, issues: Issues) -> list[object]:
    if trees is None:
        return []
    if not isinstance(trees, list):
        issues.add(Code.RULES, path, f"{shown(trees)} is no list; allowed: a list of items")
        return []
    if len(trees) > MOST_ITEMS:
        issues.add(
            Code.RULES, path, f"{len(trees)} items; allowed: {MOST_ITEMS}", hint="join or remove items"
        )
        return []
    return trees


def _whole_pod_limit(item: Item, issues: Issues, *, before: WholePodLimit | None) -> WholePodLimit:
    """The limit of an item, or the one `before` it, since the first one counts."""
    if before is not None:
        issues.add(Code.RULES, item.path, "a second whole-pod limit; the first one counts", hint="remove one")
        return before
    others = [name for name in item.actions if name != "bandwidth_max"]
    if others:
        issues.add(
            Code.NOT_ENFORCED,
            item.path,
            f"{listed(others)} beside a whole-pod limit is not used; allowed there: bandwidth_max alone",
            hint="put the other actions into an item of their own",
        )
    own = Issues()
    maximum = item.actions["bandwidth_max"]
    bps = own.attempt(Code.LIMIT, maximum.path, parse_limit, maximum.value)
    issues.extend(own)
    text = maximum.value if isinstance(maximum.value, str) else shown(maximum.value)
    return WholePodLimit(bps=bps, text=text, issue=next(iter(own.found()), None))


def _rule(item: Item, issues: Issues) -> Rule:
    """The rule of an item; what is wrong in it is left out and becomes an issue."""
    if item.parts > MOST_PARTS:
        issues.add(
            Code.RULES,
            item.path,
            f"{item.parts} addresses and ports; allowed: {MOST_PARTS}",
            hint="use networks",
        )
        return Rule(matches=())
    matches = [parse_match(match, issues) for match in item.matches]
    minimum_bps = _asked(item, "bandwidth_min", parse_limit, issues) or None
    maximum_bps = _asked(item, "bandwidth_max", parse_limit, issues) or None
    if minimum_bps and maximum_bps and minimum_bps > maximum_bps:
        issues.add(Code.RULES, item.path, "bandwidth_min is over bandwidth_max", hint="lower the minimum")
    return Rule(
        matches=tuple(dict.fromkeys(match for match in matches if match is not None)),
        level=_asked(item, "qos-class", parse_level, issues),
        dscp=_asked(item, "dscp", parse_dscp, issues),
        minimum_bps=minimum_bps,
        maximum_bps=maximum_bps,
    )


def _asked(item: Item, name: str, parse: Callable[[object], T], issues: Issues) -> T | None:
    action: Located | None = item.actions.get(name)
    return None if action is None else issues.attempt(Code.RULES, action.path, parse, action.value)
