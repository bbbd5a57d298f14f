"""Rules back as text for other programs: `qos-config` of the pods file, in normal form (contract 1.3, 2).

Keys are those of Koordinator's proposal of 2023-12-08, bandwidths are JSON integers in bytes per second, and a
whole-pod limit is the last item of its direction, since as the first it would shadow the rules.
"""

from __future__ import annotations

from netqos.model.levels import Direction, PerDirection
from netqos.model.quantities import bytes_per_s
from netqos.model.rules import IpMatch, Match, PortMatch, Rule


def normal_form(
    rules: PerDirection[tuple[Rule, ...]], limits_bps: PerDirection[int | None]
) -> dict[str, list[dict[str, object]]]:
    """The object `qos-config`: always both directions, ingress first. A limit of None or 0 is no item."""
    form: dict[str, list[dict[str, object]]] = {}
    for direction in (Direction.RX, Direction.TX):
        items = [_item(rule) for rule in rules[direction]]
        limit_bps = limits_bps[direction]
        if limit_bps:
            items.append(_item(Rule(matches=(IpMatch(),), maximum_bps=limit_bps)))
        form[direction.pod_word] = items
    return form


def _item(rule: Rule) -> dict[str, object]:
    return {"matchs": [_match(match) for match in rule.matches], "actions": _actions(rule)}


def _match(match: Match) -> dict[str, object]:
    if isinstance(match, PortMatch):
        form: dict[str, object] = {"type": "port", "expr": match.expression or _ports(match)}
        return form if match.protocol is None else {**form, "proto": match.protocol.value}
    return {"type": "ip", "expr": ",".join(match.networks)} if match.networks else {"type": "ip"}


def _ports(match: PortMatch) -> str:
    return ",".join(str(one.low) if one.low == one.high else f"{one.low}-{one.high}" for one in match.ranges)


def _actions(rule: Rule) -> list[dict[str, object]]:
    values: dict[str, object] = {}
    if rule.level is not None:
        values["qos-class"] = rule.level.name.lower()
    if rule.dscp is not None:
        values["dscp"] = rule.dscp
    if rule.minimum_bps is not None:
        values["bandwidth_min"] = bytes_per_s(rule.minimum_bps)
    if rule.maximum_bps is not None:
        values["bandwidth_max"] = bytes_per_s(rule.maximum_bps)
    return [{"action": name, "value": value} for name, value in values.items()]
