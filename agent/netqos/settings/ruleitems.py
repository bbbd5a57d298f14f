"""The structure of one rule item: which maps and lists it is made of, before its values mean anything.

An item is `{"matchs": [...], "actions": [...]}`; `matches` is the same. An action is `{"action": NAME, "value": ...}`,
as Koordinator's proposal writes it; `type` for `action` is accepted. An action without a value (null, empty text)
asks for nothing, as in the proposal's own example.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from netqos.model.rules import IpMatch, Match, PortMatch
from netqos.model.texts import listed, shown
from netqos.settings.issues import Code, Issues, Path, check_keys
from netqos.settings.matching import PORT_FORMS, count_parts, parse_networks, parse_ports, parse_protocol

ACTIONS = ("qos-class", "dscp", "bandwidth_min", "bandwidth_max")
_MATCH_KEYS = ("type", "expr", "proto")


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A value and where it stands."""

    path: Path
    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedMap:
    """A map and where it stands."""

    path: Path
    value: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One item as it was written: its matches, and by name those actions that ask for something."""

    path: Path
    matches: tuple[LocatedMap, ...] = ()
    actions: Mapping[str, Located] = field(default_factory=dict)

    @property
    def is_whole_pod_limit(self) -> bool:
        """Whether it matches `ip` and nothing else, every address, and has a maximum."""
        only = self.matches[0].value if len(self.matches) == 1 else {}
        is_everything = only.get("type") == "ip" and _is_empty(only.get("expr"))
        return is_everything and "bandwidth_max" in self.actions

    @property
    def parts(self) -> int:
        """How many addresses and ports it names."""
        return sum(count_parts(match.value.get("expr")) for match in self.matches)


def read_item(tree: object, path: Path, issues: Issues) -> Item:
    """The item, without the parts that have the wrong structure; these become issues."""
    if not isinstance(tree, Mapping):
        issues.add(Code.RULES, path, f"{shown(tree)} is no item; allowed: an object with matchs and actions")
        return Item(path=path)
    check_keys(tree, ("matchs", "matches", "actions"), path, issues)
    spelling = "matches" if "matches" in tree else "matchs"
    if {"matchs", "matches"} <= tree.keys():
        issues.add(Code.RULES, path, "matchs and matches in one item; allowed: one of them", hint="join them")
    matches = _maps(tree.get(spelling), (*path, spelling), _MATCH_KEYS, issues)
    actions = _maps(tree.get("actions"), (*path, "actions"), ("action", "type", "value"), issues)
    return Item(path=path, matches=tuple(matches), actions=_by_name(actions, issues))


def parse_match(match: LocatedMap, issues: Issues) -> Match | None:
    """The match, or None and an issue."""
    match match.value.get("type"):
        case "ip":
            return _ip_match(match, issues)
        case "port":
            return _port_match(match, issues)
        case other:
            issues.add(
                Code.RULES, match.path, f"match type {shown(other)}; allowed: ip, port", hint="set type"
            )
            return None


def _ip_match(match: LocatedMap, issues: Issues) -> Match | None:
    if "proto" in match.value:
        issues.add(
            Code.RULES,
            match.path,
            "proto in an ip match; allowed: in a port match",
            hint="match the port too",
        )
    expression = match.value.get("expr")
    if _is_empty(expression):
        return IpMatch()
    networks = issues.attempt(Code.RULES, (*match.path, "expr"), parse_networks, expression)
    return None if networks is None else IpMatch(networks=networks)


def _port_match(match: LocatedMap, issues: Issues) -> Match | None:
    expression, protocol = match.value.get("expr"), match.value.get("proto")
    if _is_empty(expression):
        issues.add(
            Code.RULES, match.path, f"a port match without expr; allowed: {PORT_FORMS}", hint="add expr"
        )
        return None
    ranges = issues.attempt(Code.RULES, (*match.path, "expr"), parse_ports, expression)
    spoken = (
        None
        if _is_empty(protocol)
        else issues.attempt(Code.RULES, (*match.path, "proto"), parse_protocol, protocol)
    )
    return (
        None
        if ranges is None
        else PortMatch(ranges=ranges, protocol=spoken, expression=str(expression).strip())
    )


def _maps(trees: object, path: Path, keys: tuple[str, ...], issues: Issues) -> list[LocatedMap]:
    """The maps of a list that must not be empty; what is no map is an issue."""
    if not isinstance(trees, list) or not trees:
        issues.add(
            Code.RULES, path, f"{_nothing(trees)}; allowed: a list of at least one object", hint="add one"
        )
        return []
    found = []
    for place, tree in enumerate(trees):
        if isinstance(tree, Mapping):
            check_keys(tree, keys, (*path, place), issues)
            found.append(LocatedMap(path=(*path, place), value=tree))
        else:
            issues.add(Code.RULES, (*path, place), f"{shown(tree)}; allowed: an object with {listed(keys)}")
    return found


def _by_name(actions: list[LocatedMap], issues: Issues) -> dict[str, Located]:
    found: dict[str, Located] = {}
    for action in actions:
        name = action.value.get("action", action.value.get("type"))
        if not isinstance(name, str) or name not in ACTIONS:
            issues.add(
                Code.RULES,
                action.path,
                f"action {shown(name)}; allowed: {listed(ACTIONS)}",
                hint="correct it",
            )
        elif name in found:
            issues.add(
                Code.RULES, action.path, f"a second {name} in one item; allowed: one", hint="remove one"
            )
        elif not _is_empty(action.value.get("value")):
            found[name] = Located(path=(*action.path, "value"), value=action.value["value"])
    return found


def _is_empty(value: object) -> bool:
    return value is None or value == ""


def _nothing(trees: object) -> str:
    return "missing" if trees is None else "an empty list" if trees == [] else shown(trees)
