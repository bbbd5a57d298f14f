"""A NodeSLO, in either shape, -> `NodePolicy` in normal form (contract 1.4).

What needs the total (guarantee <= ceiling <= total, sums) is checked by the engine, which also keeps the last good
values of the levels named in `invalid`. This module sees texts only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from netqos.model.health import Finding
from netqos.model.inputs import NO_LIMITS, LevelPolicy, NodePolicy
from netqos.model.levels import Direction, Level, PerLevel
from netqos.model.texts import shown
from netqos.settings.issues import Code, Issues, Path
from netqos.settings.proposal import parse_proposal
from netqos.settings.trees import Shape, Tree, section
from netqos.settings.upstream import has_upstream, parse_backend, parse_upstream, parse_upstream_total

SOURCE = "nodeslo"


def parse_node_slo(obj: object, *, subject: str) -> tuple[NodePolicy, tuple[Finding, ...]]:
    """The policy of a whole NodeSLO object, decoded; never raises. Each finding is about `subject`."""
    issues = Issues()
    tree = obj if isinstance(obj, Mapping) else {}
    if obj is not None and obj is not tree:
        issues.add(Code.POLICY, (), f"{shown(obj)} is no object; allowed: a NodeSLO")
    spec = section(tree, "spec", (), issues)
    if issues:
        rejected = NodePolicy(source=SOURCE, invalid=frozenset(Level), invalid_total=frozenset(Direction))
        return rejected, _findings(issues, subject)
    shape = parse_spec(spec, ("spec",), issues)
    backends = parse_backend(spec, ("spec",), issues)
    return node_policy(shape, source=SOURCE, backends=backends), _findings(issues, subject)


def parse_spec(spec: Tree, path: Path, issues: Issues, *, strict: bool = False) -> Shape:
    """The shape that counts. Both in one object: the upstream one wins whole, and an issue says so."""
    has_proposal = spec.get("networkQOSStrategy") is not None
    upstream = parse_upstream(spec, path, issues, strict=strict)
    total = parse_upstream_total(spec, path, issues)
    if has_proposal and not has_upstream(spec):
        shape = parse_proposal(spec, path, issues, strict=strict)
        has_total = shape.total != NO_LIMITS or shape.invalid_total
        return shape if has_total else _with_total(shape, total)
    if has_proposal:
        issues.add(
            Code.TWO_SHAPES,
            (*path, "networkQOSStrategy"),
            "not used, since resourceQOSStrategy has networkQOS too; allowed: one of the two shapes",
            hint="remove one of them",
        )
    return _with_total(upstream, total)


def _with_total(shape: Shape, total: Shape) -> Shape:
    return replace(shape, total=total.total, invalid_total=total.invalid_total)


def node_policy(shape: Shape, *, source: str, backends: tuple[str, ...] | None = None) -> NodePolicy:
    """A shape in normal form. An invalid level says nothing, so that nobody takes half of it."""
    said = {level: policy for level, policy in shape.levels.items() if level not in shape.invalid}
    levels = [said.get(level, LevelPolicy()) for level in Level]
    return NodePolicy(
        source=source,
        enabled=shape.enabled,
        total=shape.total,
        levels=PerLevel(*levels),
        invalid=shape.invalid,
        invalid_total=shape.invalid_total,
        backends=backends,
    )


def _findings(issues: Issues, subject: str) -> tuple[Finding, ...]:
    return tuple(issue.finding(subject) for issue in issues.found())
