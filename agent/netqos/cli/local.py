"""What commands need that work on this host without the daemon: its configuration, its backends, a quiet log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from netqos.backend import Backend
from netqos.backend.registry import installed_names
from netqos.cli.arguments import CONFIG
from netqos.cli.client import InputRejected, Problem
from netqos.errors import NetqosError, Rejected
from netqos.model.health import Finding
from netqos.observe.logs import Logs
from netqos.runtime.backends import build_backends, make_context
from netqos.runtime.judging import parse_and_judge
from netqos.runtime.published import NAME, PublishedFiles
from netqos.runtime.remembered import remembered_documents
from netqos.settings.values import LogSettings, Settings
from netqos.sources.configfiles import Unreadable
from netqos.sources.reading import read_settings


class NoSuchFile(InputRejected):
    """The configuration that was named is not there."""


def load_settings(given: str | None) -> tuple[Settings, str]:
    """The configuration's settings, and a note: where none was named and there is none, the defaults hold.

    Raises `InputRejected` with every problem of a file that is wrong, `NoSuchFile` where a named one is missing.
    """
    path = Path(given or CONFIG)
    try:
        return read_settings(path, parse_and_judge), ""
    except Rejected as problem:
        if _is_absent(path, problem):
            if given is None:
                return Settings(), f"there is no {path}; the defaults hold"
            hint = f"correct --config, or leave it out for {CONFIG}"
            raise NoSuchFile(f"there is no configuration file {path}", hint=hint) from None
        message = f"the configuration {path} is wrong"
        raise InputRejected(
            message, hint=f"correct {path}", problems=problem.problems or (problem.message,)
        ) from None


def load_settings_to_leave(given: str | None) -> tuple[Settings, str]:
    """As `load_settings`, but where that refuses the last good configuration holds, as it does for the daemon.

    What a daemon made is found by the configuration by which it made it.
    """
    try:
        return load_settings(given)
    except InputRejected as problem:
        documents = remembered_documents(Path(given or CONFIG))
        if not documents:
            raise
        told = "; ".join((*problem.problems, problem.message))
        return parse_and_judge(documents), f"{told}: the last good one holds"


def _is_absent(path: Path, problem: Rejected) -> bool:
    """Whether nothing is wrong but that there is no main file; a link that leads nowhere is a file that is wrong."""
    codes = [one.code for one in problem.findings] if isinstance(problem, Unreadable) else []
    return codes == ["configuration-missing"] and not path.is_symlink()


def all_backends(settings: Settings) -> tuple[list[Backend], list[Finding]]:
    """Every installed backend, in use or not, then the one that publishes the node's files; and what cannot be made."""
    backends, findings = build_backends(settings, installed_names())
    published = PublishedFiles(make_context(settings, NAME), settings.paths.net)
    return [*backends, published], findings


@contextmanager
def quiet_log() -> Iterator[None]:
    """Only errors are logged, on stderr: stdout is for the command's answer."""
    logs = Logs(LogSettings(level="error", format="text"))
    logs.install()
    try:
        yield
    finally:
        logs.close()


def as_problem(problem: NetqosError) -> Problem:
    """An error of the agent's own code as a command tells it."""
    text = f"{problem.subject}: {problem.message}" if problem.subject else problem.message
    return Problem(text, hint=problem.hint)
