"""What commands need that work on this host without the daemon: its configuration, its backends, a quiet log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from netqos.backend import Backend
from netqos.backend.registry import installed_names
from netqos.cli.client import InputRejected, Problem
from netqos.errors import NetqosError, Rejected
from netqos.model.health import Finding
from netqos.observe.logs import Logs
from netqos.runtime.backends import build_backends, make_context
from netqos.runtime.published import NAME, PublishedFiles
from netqos.settings.file import parse_documents
from netqos.settings.values import LogSettings, Settings
from netqos.sources.configfiles import read_documents


def load_settings(path: Path) -> tuple[Settings, str]:
    """The configuration's settings, and a note: where there is no file, the defaults hold.

    Raises `InputRejected` with every problem of a file that is wrong.
    """
    if not path.exists():
        return Settings(), f"there is no {path}; the defaults hold"
    try:
        return parse_documents(read_documents(path)), ""
    except Rejected as problem:
        message = f"the configuration {path} is wrong"
        raise InputRejected(
            message, hint=problem.hint, problems=problem.problems or (problem.message,)
        ) from None


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
