"""What only the running parts can judge of settings: their backends and these' options, and amounts under the total.

A reading that fails here is refused like one whose text is wrong, so that a mistake never switches a backend off. A
plugin that is broken in itself is no mistake of the file: it becomes a finding, and the others go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from netqos.backend.registry import installed_names, refused_options
from netqos.engine.policycheck import policy_problems
from netqos.errors import Rejected
from netqos.model.health import Finding, warning
from netqos.model.texts import listed, shown
from netqos.runtime.backends import make_context
from netqos.runtime.cluster import decided, is_in_cluster
from netqos.runtime.environment import metrics_listen
from netqos.settings.file import parse_documents
from netqos.settings.issues import Code, Issue, path_of, path_text
from netqos.settings.places import own_path
from netqos.settings.values import Bound, Settings, Toggle


def judge(settings: Settings) -> Iterator[Issue]:
    """Everything that keeps settings from being in force as they are asked for, as far as this host's files tell."""
    yield from judge_policy(decided(settings, in_cluster=is_in_cluster()))
    yield from judge_backends(settings)
    yield from judge_environment(settings)


def judge_environment(settings: Settings) -> Iterator[Issue]:
    """What a variable of the environment says in the place of a key, and cannot."""
    try:
        metrics_listen(settings.metrics_listen)
    except Rejected as problem:
        path = ("metrics", "listen")
        yield Issue(code=Code.POLICY, path=path, message=problem.message, hint=problem.hint)


def doubts(settings: Settings) -> Iterator[Finding]:
    """What would be wrong if the total of the file counted, on a node where others come before it."""
    node = decided(settings, in_cluster=is_in_cluster())
    if node.kubernetes.enable is not Toggle.ON:
        return
    alone = replace(node, kubernetes=replace(node.kubernetes, enable=Toggle.OFF))
    known = set(judge_policy(node))
    for issue in judge_policy(alone):
        if issue not in known:
            place = next((str(one) for one in settings.places.values() if one.path == issue.path), "policy")
            under = "under node.bandwidth, which the link's speed comes before"
            message = f"{path_text(issue.path)}: {under}: {issue.message}"
            yield warning(issue.code.value, place, message, hint=issue.hint)


def judge_policy(settings: Settings) -> Iterator[Issue]:
    """What the engine would not take of the policy."""
    for one in policy_problems(settings):
        level, bound = one.problem.level, one.problem.bound or Bound.GUARANTEE
        place = settings.places.get((level, one.direction, bound))
        path = own_path(level, one.direction, bound) if place is None else place.path
        yield Issue(code=Code.POLICY, path=path, message=one.problem.message, hint=one.problem.hint)


def judge_backends(settings: Settings) -> Iterator[Issue]:
    """Every backend that is named but not installed, and every option that an installed one refuses."""
    installed = installed_names()
    if not settings.backends:
        yield Issue(
            code=Code.BACKEND,
            path=("backends",),
            message=f"the list is empty, so nothing would be enforced; allowed: one or more of {listed(installed)}",
            hint="to switch network QoS off write policy.enable: false",
        )
    for place, name in enumerate(settings.backends):
        if name not in installed:
            yield _missing(("backends", place), name, installed)
    for name in settings.backend_options:
        if name not in installed:
            yield _missing(("backendOptions", name), name, installed)
    named = [name for name in settings.backend_options if name in installed]
    for name, refusal in refused_options(named, lambda one: make_context(settings, one)).items():
        for problem in refusal.problems or (refusal.message,):
            key, separator, message = problem.partition(": ")
            inside, told = (path_of(key), message) if separator and " " not in key else ((), problem)
            yield Issue(
                code=Code.BACKEND, path=("backendOptions", name, *inside), message=told, hint=refusal.hint
            )


def _missing(path: tuple[str | int, ...], name: str, installed: Sequence[str]) -> Issue:
    return Issue(
        code=Code.BACKEND,
        path=path,
        message=f"{shown(name)} is not installed; installed: {listed(installed)}",
        hint="correct the name, or install the package that has this backend",
    )


parse_and_judge: Final = partial(parse_documents, check=judge)
"""`parse_documents`, judged: how every mode of the daemon reads its files."""
