"""Configuration files -> `Settings` (contract 1.6).

Files are texts with a name, in their order: the main file, then those of conf.d by name. Maps merge key by key, the
lists of workloads join, anything else of a later file replaces the earlier value. Every problem of all files is
reported at once, with its line; then nothing of them is applied. What only others can judge (the options of backends,
amounts under a total) comes in as a `Check`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import islice, takewhile

from pydantic import ValidationError

from netqos.settings.assemble import assemble, foreign_shape
from netqos.settings.crosschecks import check_tree, check_values
from netqos.settings.issues import Issue, Issues
from netqos.settings.nodes import Mark, Node, merge
from netqos.settings.places import amount_places
from netqos.settings.problems import InvalidConfiguration, Problem
from netqos.settings.rules import parse_rules
from netqos.settings.schema import Config
from netqos.settings.schemaerrors import WRONG_KEY, issues_of
from netqos.settings.values import Settings
from netqos.settings.yamltext import read_yaml

MOST_PROBLEMS = 100
"""More of one kind are not shown: such a file is another kind of file."""

Check = Callable[[Settings], Iterable[Issue]]
"""Finds what is wrong with settings whose texts are right; the path of each issue is that of a key of the file, as in
`("backendOptions", "tc", "zap")` or `("backends", 1)`. A path that the files do not have is told at what is around it.
"""


def parse_documents(documents: Sequence[tuple[str, str]], *, check: Check | None = None) -> Settings:
    """The settings of (name, text) pairs; none at all, and empty texts, give the defaults.

    Raises `InvalidConfiguration` with every problem of every file. `check` is asked even when something is wrong
    already, about the part that is right with defaults for the rest, so that its problems are told in one go; of a key
    that has a problem already they are not told.
    """
    names = [name for name, _ in documents]
    root, problems = _read(documents)
    settings, issues = settings_of(root, check=check)
    problems += [root.problem(issue) for issue in islice(issues, MOST_PROBLEMS)]
    if problems:
        raise InvalidConfiguration(problems, order=names)
    return settings


def settings_of(root: Node, *, check: Check | None = None) -> tuple[Settings, list[Issue]]:
    """The settings of one tree, with defaults in the place of what is wrong in it, and all that is wrong."""
    valid, issues = _validate(root)
    issues += [*check_tree(root), *check_values(valid), *_check_trees(root)]
    settings = replace(assemble(valid), places=amount_places(root))
    if check is not None:
        told = {issue.path for issue in issues}
        issues += [issue for issue in check(settings) if issue.path not in told]
    return settings, issues


def _read(documents: Sequence[tuple[str, str]]) -> tuple[Node, list[Problem]]:
    """All files as one tree; a file that cannot be read has problems and no part in it."""
    trees: list[Node] = []
    problems: list[Problem] = []
    for name, text in documents:
        node, found = read_yaml(text, name)
        problems += islice(found, MOST_PROBLEMS)
        if node is None or node.value is None:
            continue
        if isinstance(node.value, dict):
            trees.append(node)
        else:
            problems.append(_no_map(node.mark))
    start = documents[0][0] if documents else ""
    return reduce(merge, trees, Node(mark=Mark(start, 1, 1), value={})), problems


def _validate(root: Node) -> tuple[Config, list[Issue]]:
    """What is right of a tree, with defaults in the place of what is wrong, and what is wrong with it."""
    tree = root.plain()
    assert isinstance(tree, dict)
    try:
        return Config.model_validate(tree), []
    except ValidationError as error:
        issues = list(islice(issues_of(error, Config), MOST_PROBLEMS))
        return _right_part(tree, error), issues


def _right_part(tree: dict[str, object], error: ValidationError) -> Config:
    """The configuration without the values that are wrong; of lists nothing is left when one item is wrong."""
    for detail in error.errors(include_url=False):
        steps = takewhile(lambda step: isinstance(step, str) and step != WRONG_KEY, detail["loc"])
        *above, last = map(str, steps)
        inner: dict[str, object] = tree
        for step in above:
            below = inner.get(step)
            if not isinstance(below, dict):  # a text that stands for a map
                last = step
                break
            inner = below
        inner.pop(last, None)
    return Config.model_validate(tree)


def _check_trees(root: Node) -> Iterator[Issue]:
    """What is wrong in the parts that have parsers of their own: foreign shapes of the policy, and rules."""
    issues = Issues()
    policy = root.get("policy")
    spec = policy.plain() if policy is not None else {}
    if isinstance(spec, dict):
        foreign_shape(spec, issues)
    yield from issues.found()
    for place, workload in enumerate(root.items_at(("workloads",))):
        rules = workload.get("rules")
        tree = rules.plain() if rules is not None else {}
        if isinstance(tree, dict):
            for issue in parse_rules(tree).issues:
                yield replace(issue, path=("workloads", place, "rules", *issue.path))


def _no_map(mark: Mark) -> Problem:
    return Problem(
        file=mark.file,
        line=mark.line,
        column=mark.column,
        path="",
        message="no map; allowed: keys such as node: and policy:",
        hint="start with a key and a colon",
    )
