"""Reading the configuration's files as texts: all of them, or a clear refusal (contract 1.6).

The main file, then conf.d/*.yaml beside it in name order. Nothing here waits: a fifo, a device or a folder in the
place of a file is told, not opened for reading. A set of files that is being replaced meanwhile is read again, until
two readings agree. What the texts mean is `netqos.settings.file`'s business.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from netqos.errors import Rejected
from netqos.model.health import Finding, error

MOST_BYTES = 2**20
FOLDER = "conf.d"

_READINGS = 5

Documents = tuple[tuple[str, str], ...]
"""(name, text) of each file; the name is relative to the main file's folder."""


class Unreadable(Rejected):
    """The files could not be read as a whole; `findings` tells every one of them."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        """One finding for each file."""
        self.findings = tuple(findings)
        problems = tuple(f"{one.subject}: {one.message}" for one in self.findings)
        super().__init__("; ".join(problems), hint=self.findings[0].hint, problems=problems)


def read_documents(path: Path) -> Documents:
    """All texts, as they were together at one moment; raises `Unreadable`."""
    before = _read_all(path)
    for _ in range(_READINGS):
        again = _read_all(path)
        if again == before:
            return again
        before = again
    message = f"the files changed during each of {_READINGS} readings"
    raise Unreadable([error("configuration-unsteady", path.name, message, hint="it is read again")])


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


def _read_all(path: Path) -> Documents:
    texts: list[tuple[str, str]] = []
    findings: list[Finding] = []
    for name, place in [(path.name, path), *_more_files(path.parent / FOLDER, findings)]:
        found = _read_text(name, place)
        if isinstance(found, Finding):
            findings.append(found)
        else:
            texts.append((name, found))
    if findings:
        raise Unreadable(findings)
    return tuple(texts)


def _more_files(folder: Path, findings: list[Finding]) -> list[tuple[str, Path]]:
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as problem:
        findings.append(_refused(FOLDER, problem))
        return []
    return [(f"{FOLDER}/{name}", folder / name) for name in names if _is_meant(name)]


def _is_meant(name: str) -> bool:
    """Hidden names are those of editors and of mounted volumes."""
    return name.endswith(".yaml") and not name.startswith(".")


def _read_text(name: str, path: Path) -> str | Finding:
    try:
        content = _read_bytes(path)
    except OSError as problem:
        return _refused(name, problem)
    if len(content) > MOST_BYTES:
        return error(
            "configuration-too-large",
            name,
            f"more than {MOST_BYTES} bytes",
            hint="split it, or see what it is",
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        return error(
            "configuration-not-text",
            f"{name} line {line}",
            f"byte 0x{content[problem.start]:02x} is no UTF-8",
            hint="save the file as UTF-8",
        )
    if not text.strip():
        return error(
            "configuration-empty",
            f"{name} line 1",
            "the file is empty, as a file is that is being written",
            hint="write {} for a file that says nothing, or remove it from conf.d",
        )
    return text


def _read_bytes(path: Path) -> bytes:
    """At most a little more than `MOST_BYTES`; OSError also for what is no regular file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        kind = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(kind):
            raise OSError(errno.EISDIR if stat.S_ISDIR(kind) else errno.EINVAL, "not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(MOST_BYTES + 1)
    finally:
        os.close(descriptor)


def _refused(name: str, problem: OSError) -> Finding:
    match problem.errno:
        case errno.ENOENT | errno.ENOTDIR:
            return error(
                "configuration-missing", name, "there is no such file", hint="create it, or name another"
            )
        case errno.EISDIR | errno.EINVAL | errno.ENXIO | errno.ENODEV:
            return error(
                "configuration-not-a-file", name, "not a regular file", hint="put a file in its place"
            )
        case errno.ELOOP:
            return error(
                "configuration-not-a-file", name, "its links lead in a circle", hint="correct the links"
            )
        case _:
            return error(
                "configuration-unreadable",
                name,
                f"it cannot be read: {problem.strerror}",
                hint="let the user that netqosd runs as read it",
            )


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
