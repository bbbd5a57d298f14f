"""Which namespace may use what (contract 1.7): levels, minima and code points, alike in annotation, label and rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache

from netqos.model.health import Finding, warning
from netqos.model.inputs import NamespaceRule
from netqos.model.levels import Level
from netqos.model.rules import Rule
from netqos.model.texts import listed

NOT_ALLOWED = "not-allowed"
DSCP_FOR_ALL = ((0, 39),)
DSCP_FOR_SYSTEM = ((0, 63),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What one namespace, or one workload by its name, may use."""

    place: str
    rule: NamespaceRule

    def refuse_level(self, level: Level) -> str:
        """Why the level may not be used, empty when it may."""
        if level in self.rule.levels:
            return ""
        names = listed([allowed.name.lower() for allowed in Level if allowed in self.rule.levels]) or "none"
        return f"{level.name.lower()} is not allowed in {self.place}; allowed: {names}"

    def may_mark(self, dscp: int) -> bool:
        """Whether the code point may be used."""
        return any(low <= dscp <= high for low, high in self.rule.dscp)


@lru_cache(maxsize=1024)
def access_of(
    name: str, rules: tuple[NamespaceRule, ...] | None, system_namespaces: tuple[str, ...]
) -> Access:
    """The access of a namespace or workload: the first rule with a glob that matches, else the default.

    The default allows every level everywhere; minima and code points of 40 and more in system namespaces only.
    """
    place = f"namespace {name}"
    for rule in rules or ():
        if any(fnmatchcase(name, glob) for glob in rule.match):
            return Access(place=place, rule=rule)
    is_system = name in system_namespaces
    dscp = DSCP_FOR_SYSTEM if is_system else DSCP_FOR_ALL
    return Access(place=place, rule=NamespaceRule(match=(name,), minimum=is_system, dscp=dscp))


def allowed_rules(
    rules: tuple[Rule, ...], access: Access, *, subject: str, where: str
) -> tuple[tuple[Rule, ...], tuple[Finding, ...]]:
    """The rules without the actions that may not be used; a rule without any action left is no rule."""
    kept: list[Rule] = []
    findings: list[Finding] = []
    for place, rule in enumerate(rules):
        refused = dict(_refused(rule, access))
        if not refused:
            kept.append(rule)
            continue
        findings += [_finding(subject, f"{where}[{place}]", why) for why in refused.values()]
        rest = replace(
            rule,
            level=None if "level" in refused else rule.level,
            dscp=None if "dscp" in refused else rule.dscp,
            minimum_bps=None if "minimum" in refused else rule.minimum_bps,
        )
        if (rest.level, rest.dscp, rest.minimum_bps, rest.maximum_bps) != (None, None, None, None):
            kept.append(rest)
    return tuple(kept), tuple(findings)


def _refused(rule: Rule, access: Access) -> Iterator[tuple[str, str]]:
    """Pairs of an action and the reason."""
    why = "" if rule.level is None else access.refuse_level(rule.level)
    if why:
        yield "level", f"qos-class {why}"
    if rule.dscp is not None and not access.may_mark(rule.dscp):
        ranges = listed([f"{low}-{high}" for low, high in access.rule.dscp]) or "none"
        yield "dscp", f"dscp {rule.dscp} is not allowed in {access.place}; allowed: {ranges}"
    if rule.minimum_bps is not None and not access.rule.minimum:
        yield "minimum", f"bandwidth_min is not allowed in {access.place}"


def _finding(subject: str, where: str, why: str) -> Finding:
    hint = "use what is allowed, or allow it in policy.namespaces"
    return warning(NOT_ALLOWED, subject, f"{where}: {why}", hint=hint)
