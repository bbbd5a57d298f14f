"""Finding backends by their entry points, and making the ones asked for, each isolated from the others.

Names come from the installed distributions' metadata alone; a backend's code is imported only when that backend is
asked for. A plugin that cannot be imported, raises, speaks another version of the plugin surface or lacks a method
becomes a finding, and the other backends are made all the same.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from netqos.backend.api import API_VERSION, Backend, BackendContext
from netqos.errors import NetqosError, Rejected, Unsupported
from netqos.model.health import Finding, error, warning

GROUP = "netqos.backends"
API_ATTRIBUTE = "NETQOS_API"
"""A plugin's module says with this int which version of the plugin surface it was written for; 1 where it says none."""

HOME = "netqos"
"""The distribution whose entry points win where another one declares the same name."""

ASYNC_METHODS = ("probe", "observe", "apply", "is_untouched", "counters", "close")
PLAIN_METHODS = ("plan", "fast_path")

MakeContext = Callable[[str], BackendContext]
OnFailure = Callable[[str, BaseException], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendInfo:
    """One installed backend; both names are empty when unknown.

    `state` is `loads`, or what keeps it from being loaded. Whether it can work on this node only its probe tells.
    """

    name: str
    distribution: str
    version: str
    state: str


class _Unusable(Exception):
    """A plugin that was imported but cannot be used: the finding's code and what is wrong."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


def installed_names() -> tuple[str, ...]:
    """The names of all installed backends in alphabetical order; nothing is imported."""
    return tuple(dict.fromkeys(candidate.name for candidate in _candidates()))


def load(
    names: Iterable[str], make_context: MakeContext, *, on_failure: OnFailure = lambda _name, _problem: None
) -> tuple[list[Backend], list[Finding]]:
    """Make the backends of these names, in this order.

    A name that cannot be made gives an ERROR finding instead. `on_failure(name, exception)` is called once for each
    plugin that failed in a way it should not, so that the caller can log the traceback.
    """
    candidates = _candidates()
    backends: list[Backend] = []
    findings: list[Finding] = []
    for name in dict.fromkeys(names):
        found = [candidate for candidate in candidates if candidate.name == name]
        if not found:
            findings.append(_missing(name, candidates))
            continue
        if len(found) > 1:
            findings.append(_ambiguous(name, found))
        made = _make(found[0], make_context, on_failure)
        if isinstance(made, Finding):
            findings.append(made)
        else:
            backends.append(made)
    return backends, findings


def refused_options(names: Collection[str], make_context: MakeContext) -> dict[str, Rejected]:
    """The backends of these names that refuse their options, each with its refusal; other faults are not looked at."""
    refused: dict[str, Rejected] = {}
    for candidate in _candidates():
        if candidate.name not in names or candidate.name in refused:
            continue
        try:
            _factory(candidate)(make_context(candidate.name))
        except Rejected as problem:
            refused[candidate.name] = problem
        except (Exception, SystemExit):  # noqa: BLE001, S112 - a plugin's border; `load` tells of it
            continue
    return refused


def list_backends() -> tuple[BackendInfo, ...]:
    """Every installed backend in alphabetical order; each is imported to find out its state, none is made."""
    return tuple(_describe(candidate) for candidate in _candidates())


def _candidates() -> list[EntryPoint]:
    """Entry points by name; of one name those of our own distribution first, then by the distribution's name."""
    return sorted(
        entry_points(group=GROUP),
        key=lambda one: (one.name, _distribution(one) != HOME, _distribution(one), one.value),
    )


def _distribution(candidate: EntryPoint) -> str:
    return candidate.dist.name if candidate.dist is not None else ""


def _describe(candidate: EntryPoint) -> BackendInfo:
    try:
        _factory(candidate)
        state = "loads"
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - a plugin's border: its code ran
        state = f"broken: {_say(problem)}"
    version = candidate.dist.version if candidate.dist is not None else ""
    return BackendInfo(
        name=candidate.name, distribution=_distribution(candidate), version=version, state=state
    )


def _make(candidate: EntryPoint, make_context: MakeContext, on_failure: OnFailure) -> Backend | Finding:
    context = make_context(candidate.name)
    try:
        backend = _factory(candidate)(context)
        _check(backend, candidate)
    except _Unusable as problem:
        return _finding(candidate, problem.code, problem.message, problem.hint)
    except Rejected as problem:
        place = problem.subject or f"backendOptions.{candidate.name}"
        return error("backend-options", place, problem.message, hint=problem.hint)
    except NetqosError as problem:
        code = "backend-unsupported" if isinstance(problem, Unsupported) else "backend-failed"
        return _finding(candidate, code, problem.message, problem.hint)
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - a plugin's border: whatever it raises stays here
        on_failure(candidate.name, problem)
        hint = f"its traceback is in the log; repair or remove {_origin(candidate)}"
        return _finding(candidate, "backend-broken", f"cannot be loaded: {_say(problem)}", hint)
    return backend


def _factory(candidate: EntryPoint) -> Callable[[BackendContext], Backend]:
    """Import the plugin and give its factory, if it was written for this version of the surface."""
    version = getattr(importlib.import_module(candidate.module), API_ATTRIBUTE, 1)
    if version != API_VERSION:
        raise _Unusable(
            "backend-api-version",
            f"is written for version {version!r} of the plugin surface, this netqos has version {API_VERSION}",
            f"install a release of {_origin(candidate)} for version {API_VERSION}",
        )
    factory = candidate.load()
    if not callable(factory):
        raise _Unusable(
            "backend-broken",
            f"its entry point {candidate.value!r} is no factory",
            "see docs/writing-a-backend.md",
        )
    return factory  # type: ignore[no-any-return] # what it makes is checked


def _check(backend: Backend, candidate: EntryPoint) -> None:
    methods = (*ASYNC_METHODS, *PLAIN_METHODS)
    lacking = [name for name in methods if not callable(getattr(backend, name, None))]
    not_async = [
        name
        for name in ASYNC_METHODS
        if name not in lacking and not inspect.iscoroutinefunction(getattr(backend, name))
    ]
    problems = [f"has no method {name}" for name in lacking] + [f"{name} is not async" for name in not_async]
    if getattr(backend, "name", None) != candidate.name:
        problems.append(
            f"calls itself {getattr(backend, 'name', None)!r}, its entry point {candidate.name!r}"
        )
    if problems:
        raise _Unusable("backend-incomplete", "; ".join(problems), "see docs/writing-a-backend.md")


def _finding(candidate: EntryPoint, code: str, message: str, hint: str) -> Finding:
    return error(code, f"backend {candidate.name}", message, hint=hint)


def _missing(name: str, candidates: list[EntryPoint]) -> Finding:
    have = ", ".join(dict.fromkeys(candidate.name for candidate in candidates)) or "none"
    return error(
        "backend-missing",
        f"backend {name}",
        f"is asked for but not installed; installed are: {have}",
        hint="correct `backends` (or the NodeSLO's netQOSPolicy), or install the package that has it",
    )


def _ambiguous(name: str, found: list[EntryPoint]) -> Finding:
    first, *others = (_origin(candidate) for candidate in found)
    return warning(
        "backend-ambiguous",
        f"backend {name}",
        f"is declared by {first} and by {', '.join(others)}; that of {first} is used",
        hint="remove the packages that are not meant",
    )


def _origin(candidate: EntryPoint) -> str:
    if candidate.dist is None:
        return candidate.value
    return f"{candidate.dist.name} {candidate.dist.version}"


def _say(problem: BaseException) -> str:
    """An exception in one line, for people."""
    if isinstance(problem, _Unusable):
        return problem.message
    first = next(iter(str(problem).splitlines()), "")
    return f"{type(problem).__name__}: {first}" if first else type(problem).__name__
