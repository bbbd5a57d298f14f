"""Reading the configuration's files as texts: all of them, or a clear refusal (contract 1.6).

The main file, then conf.d/*.yaml beside it in name order. Nothing here waits: a fifo, a device or a folder in the
place of a file is told, not opened for reading. A set of files that is being replaced meanwhile is read again, until
two readings agree. What the texts mean is `netqos.settings.file`'s business.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from netqos.errors import Rejected
from netqos.model.health import Finding, error
from netqos.sources import refusals
from netqos.sources.refusals import FOLDER, MOST_BYTES

_READINGS = 5

Documents = tuple[tuple[str, str], ...]
"""(name, text) of each file; the name is relative to the main file's folder."""


class Unreadable(Rejected):
    """The files could not be read as a whole; `findings` tells every one of them, `documents` are the others."""

    def __init__(
        self, findings: Iterable[Finding], *, problems: Iterable[str] = (), documents: Documents = ()
    ) -> None:
        """At least one finding; `problems` are their texts where these are not simply the findings' words."""
        self.findings = tuple(findings)
        self.documents = documents
        told = tuple(problems) or tuple(map(_words, self.findings))
        message = "; ".join(f"{one.subject}: {one.message}" for one in self.findings)
        super().__init__(message, hint=self.findings[0].hint, problems=told)


def read_documents(path: Path) -> Documents:
    """All texts, as they were together at one moment; raises `Unreadable`."""
    path = path.absolute()
    before = _read_all(path)
    for _ in range(_READINGS):
        again = _read_all(path)
        if again == before:
            return again
        before = again
    message = f"the files changed during each of {_READINGS} readings"
    raise Unreadable([error("configuration-unsteady", str(path), message, hint="it is read again")])


def watched_folders(path: Path) -> tuple[Path, ...]:
    """The folders in which a change can change the configuration: of the files, and of every link on the way to them.

    A mounted ConfigMap changes by a link in the file's folder that is replaced (`..data`), an administrator's link by
    what it points to. Of a folder that is not there the nearest one above.
    """
    found: dict[Path, None] = {}
    for place in (path, path.parent / FOLDER, path.parent / FOLDER / "any.yaml"):
        for folder in _folders_of(place):
            found.setdefault(folder)
    return tuple(found)


def ignored_files(path: Path) -> tuple[Finding, ...]:
    """Files in conf.d that look as if they were meant, but have names that are not read."""
    names = _names_in(path.absolute().parent / FOLDER, [])
    return tuple(refusals.ignored(place) for place in names if _looks_meant(place) and place.is_file())


def _read_all(path: Path) -> Documents:
    texts: list[tuple[str, str]] = []
    findings: list[Finding] = []
    more = [place for place in _names_in(path.parent / FOLDER, findings) if _is_meant(place)]
    for name, place in [(path.name, path), *((f"{FOLDER}/{place.name}", place) for place in more)]:
        found = _read_text(name, place)
        if isinstance(found, Finding):
            findings.append(found)
        else:
            texts.append((name, found))
    if findings:
        raise Unreadable(findings, documents=tuple(texts))
    return tuple(texts)


def _names_in(folder: Path, findings: list[Finding]) -> list[Path]:
    """What is in conf.d by name; nothing where there is none, nor a folder that it could be in."""
    try:
        return sorted(folder.iterdir(), key=lambda place: place.name)
    except FileNotFoundError:
        return []
    except NotADirectoryError:
        if folder.parent.is_dir():
            findings.append(refusals.no_folder(folder))
    except OSError as problem:
        findings.append(refusals.refused(folder, problem))
    return []


def _is_meant(place: Path) -> bool:
    """Hidden names are those of editors and of mounted volumes."""
    return place.name.endswith(".yaml") and not place.name.startswith(".")


def _looks_meant(place: Path) -> bool:
    is_like = place.suffix.lower() in {".yaml", ".yml", ".json", ".conf"}
    return is_like and not place.name.startswith(".") and not _is_meant(place)


def _read_text(name: str, place: Path) -> str | Finding:
    try:
        content = _read_bytes(place)
    except (OSError, refusals.NotAFile) as problem:
        return refusals.refused(place, problem)
    if len(content) > MOST_BYTES:
        return refusals.too_large(place)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        return refusals.not_text(name, content, problem)
    return refusals.empty(name) if _says_nothing(text) else text


def _read_bytes(path: Path) -> bytes:
    """At most a little more than `MOST_BYTES`; `NotAFile` for what is no regular file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise refusals.NotAFile(mode)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(MOST_BYTES + 1)
    finally:
        os.close(descriptor)


def _words(finding: Finding) -> str:
    text = f"{finding.subject}: {finding.message}"
    return f"{text} ({finding.hint})" if finding.hint else text


def _folders_of(place: Path) -> Iterator[Path]:
    """The folder of every link on the way to a path, and the last folder that is there."""
    way = place.absolute()
    for _ in range(40):  # MAXSYMLINKS of the kernel
        link = next((part for part in reversed([way, *way.parents]) if part.is_symlink()), None)
        if link is None:
            break
        yield link.parent
        try:
            target = link.readlink()
        except OSError:
            break
        way = Path(os.path.normpath(link.parent / target / way.relative_to(link)))
    yield next((folder for folder in way.parents if folder.is_dir()), Path("/"))


def _says_nothing(text: str) -> bool:
    """Whether there is nothing but blank lines, comments and document marks: what is left of a file cut short."""
    lines = (line.strip() for line in text.splitlines())
    return all(not line or line.startswith("#") or line in {"---", "..."} for line in lines)
