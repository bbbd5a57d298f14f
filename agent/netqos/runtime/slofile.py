"""A NodeSLO for many nodes, from a file: read by the daemon's own parsers and judged by its own rules beforehand.

The file has what netqos reads and nothing else, so that an apply owns no field of another feature, and a key with a
typing error is no silent default. What needs a total that the file does not give is left to each node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice

from netqos.engine.policycheck import policy_problems
from netqos.engine.totals import SMALLEST_TOTAL_BPS
from netqos.errors import Rejected
from netqos.model.inputs import NodePolicy
from netqos.model.levels import Direction
from netqos.model.texts import shown
from netqos.settings.file import MOST_PROBLEMS
from netqos.settings.issues import Code, Issue, Issues, Path, check_keys
from netqos.settings.nodes import Node
from netqos.settings.policy import SOURCE, node_policy, parse_spec
from netqos.settings.trees import section
from netqos.settings.upstream import CLASSES, parse_backend
from netqos.settings.values import Settings
from netqos.settings.yamltext import read_yaml

API_VERSION, KIND = "slo.koordinator.sh/v1alpha1", "NodeSLO"

_HEAD = {"apiVersion": API_VERSION, "kind": KIND}
_INSIDE: Mapping[Path, tuple[str, ...]] = {
    ("spec",): ("resourceQOSStrategy", "systemStrategy", "networkQOSStrategy"),
    ("spec", "systemStrategy"): ("totalNetworkBandwidth",),
    ("spec", "resourceQOSStrategy"): ("policies", *(name for names in CLASSES.values() for name in names)),
    ("spec", "resourceQOSStrategy", "policies"): ("netQOSPolicy",),
    **{
        ("spec", "resourceQOSStrategy", name): ("networkQOS",) for names in CLASSES.values() for name in names
    },
}


def read_slo(text: str, name: str) -> Mapping[str, object]:
    """The spec that a file (YAML or JSON) gives; `Rejected` names every problem of it with its line."""
    root, problems = read_yaml(text, name)
    found = [*problems]
    if root is not None:
        found += [root.problem(issue) for issue in _issues(root)]
    spec = root.get("spec") if root is not None else None
    plain = spec.plain() if spec is not None else None
    if found or not isinstance(plain, dict):
        told = tuple(str(one) for one in islice(dict.fromkeys(found), MOST_PROBLEMS))
        raise Rejected(f"{name} is no NodeSLO that a node would take", problems=told)
    return plain


def _issues(root: Node) -> Iterator[Issue]:
    tree, issues = root.plain(), Issues()
    if not isinstance(tree, dict):
        yield Issue(code=Code.POLICY, path=(), message="this is no map; allowed: a NodeSLO with its spec")
        return
    _check_head(tree, issues)
    before = len(issues)
    spec = section(tree, "spec", (), issues)
    if not spec and len(issues) == before:
        issues.add(Code.POLICY, ("spec",), "there is nothing in it", hint="see docs/kubernetes.md")
    for path, known in _INSIDE.items():
        inner = root.get(*path)
        values = inner.plain() if inner is not None else None
        if isinstance(values, dict):
            check_keys(values, known, path, issues)
    shape = parse_spec(spec, ("spec",), issues, strict=True)
    backends = parse_backend(spec, ("spec",), issues)
    yield from dict.fromkeys(issues.found())
    yield from _judged(node_policy(shape, source=SOURCE, backends=backends))


def _check_head(tree: Mapping[str, object], issues: Issues) -> None:
    for key, wanted in _HEAD.items():
        if tree.get(key) != wanted:
            issues.add(
                Code.POLICY, (key,), f"{shown(tree.get(key))} is not {wanted}", hint=f"write {key}: {wanted}"
            )
    if "metadata" in tree:
        hint = "remove it; --nodes says for which"
        issues.add(
            Code.UNKNOWN_KEY, ("metadata",), "each object has the name of its node, and no more", hint=hint
        )
    check_keys({key: tree[key] for key in tree if key != "metadata"}, (*_HEAD, "spec"), (), issues)


def _judged(policy: NodePolicy) -> Iterator[Issue]:
    """What the engine would not take of it on any node; totals that are too small for most."""
    small = [one for one in Direction if 0 < (policy.total[one] or 0) < SMALLEST_TOTAL_BPS]
    if small:
        yield Issue(
            code=Code.TOTAL,
            path=("spec",),
            message=f"the total is under {SMALLEST_TOTAL_BPS // 10**6}M, which nodes refuse",
            hint="totals are bits per second, 10G is ten gigabits",
        )
    settings = replace(Settings(policy=policy), bandwidth=policy.total)
    for one in policy_problems(settings):
        place = f"{one.problem.level.name} {one.direction.value}"
        message = f"{place}: {one.problem.message}"
        yield Issue(code=Code.POLICY, path=("spec",), message=message, hint=one.problem.hint)
