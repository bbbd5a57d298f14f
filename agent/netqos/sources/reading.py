"""One look at the configuration's files: what they mean, or everything that is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from netqos.errors import Rejected
from netqos.model.health import Finding, error
from netqos.settings.problems import InvalidConfiguration
from netqos.settings.values import Settings
from netqos.sources.configfiles import Documents, Unreadable, ignored_files, read_documents

Parse = Callable[[Sequence[tuple[str, str]]], Settings]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One reading of the files: their texts and settings, or `problem`. `findings` are about the reading itself."""

    documents: Documents = ()
    settings: Settings | None = None
    problem: Rejected | None = None
    findings: tuple[Finding, ...] = ()


class Reader:
    """Reads the files of one configuration again and again; texts that are as before are not parsed again."""

    def __init__(self, path: Path, parse: Parse) -> None:
        """`path` is the main file's."""
        self._path = path.absolute()
        self._parse = parse
        self._last = Reading()

    def read(self) -> Reading:
        """Never raises `Rejected`. Where some files cannot be read, what is wrong in the others is told with it."""
        findings = ignored_files(self._path)
        try:
            return replace(self._parsed(read_documents(self._path)), findings=findings)
        except Unreadable as problem:
            others = self._parsed(problem.documents).problem if problem.documents else None
            return Reading(problem=_together(problem, others), findings=findings)

    def _parsed(self, documents: Documents) -> Reading:
        if documents != self._last.documents:
            try:
                self._last = Reading(documents=documents, settings=self._parse(documents))
            except Rejected as problem:
                self._last = Reading(documents=documents, problem=problem)
        return self._last


def read_settings(path: Path, parse: Parse) -> Settings:
    """The settings of the files; `Rejected` with everything that is wrong with them."""
    reading = Reader(path, parse).read()
    if reading.settings is None:
        raise reading.problem or Rejected("the configuration was not read")
    return reading.settings


def findings_of(problem: Rejected) -> tuple[Finding, ...]:
    """Every problem of a refused reading as a finding with its place."""
    match problem:
        case Unreadable():
            return problem.findings
        case InvalidConfiguration():
            return tuple(
                error(
                    "configuration-invalid",
                    f"{one.file} line {one.line}",
                    f"{one.path}: {one.message}" if one.path else one.message,
                    hint=one.hint,
                )
                for one in problem.located
            )
        case _:
            return (error("configuration-invalid", problem.subject, problem.message, hint=problem.hint),)


def _together(unreadable: Unreadable, others: Rejected | None) -> Unreadable:
    if others is None:
        return unreadable
    return Unreadable(
        (*unreadable.findings, *findings_of(others)),
        problems=(*unreadable.problems, *(others.problems or (str(others),))),
        documents=unreadable.documents,
    )
