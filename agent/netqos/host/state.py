"""The state folder: small JSON documents that survive a restart (contract 1.8).

Every document stands in a file of its own, replaced atomically and durably, with the version of its form. What cannot
be read is moved aside and told as a finding: the daemon starts without it. A folder that cannot be written costs the
memory of a restart, never the daemon. What a document means is `netqos.host.memory`'s business.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from netqos.host.stateform import MOST_BYTES, unwrapped, wrapped, wrapped_each
from netqos.model.health import Finding, error, warning

ASIDE = ".set-aside"
BACKENDS = "backends"
"""The folder in which each backend has one of its own."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,99}")
_OURS = re.compile(rf"\.?{_NAME.pattern}\.json(\.new|{re.escape(ASIDE)})?")
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR})


class StateFolder:
    """Implements `netqos.backend.StateStore` in one folder, which it makes (0700) when it first saves.

    Safe to call from several threads. `log(event, **key_values)` is told what went wrong, once for each cause.
    """

    def __init__(self, folder: Path, *, log: Callable[..., None] = lambda *_args, **_values: None) -> None:
        """Nothing is read or written yet."""
        self._folder = folder
        self._log = log
        self._lock = threading.Lock()
        self._findings: dict[tuple[str, str], Finding] = {}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was lost or cannot be kept at this moment; the next success of the same document ends it."""
        with self._lock:
            return tuple(self._findings[key] for key in sorted(self._findings))

    def load(self, name: str) -> object | None:
        """The document, None when there is none; one that cannot be understood is moved aside and reported."""
        path = self._path(name)
        with self._lock:
            try:
                content = _read(path)
            except OSError as problem:
                self._report(_cannot("read", path, problem), name)
                return None
            except ValueError as problem:
                self._move_aside(name, str(problem))
                return None
            return None if content is None else self._unwrap(name, content)

    def save(self, name: str, document: object) -> None:
        """Replace the document; equal content is not written again. A failure is a finding, not an error.

        So is what could not be read back: it is not written.
        """
        self._save(name, lambda: wrapped(document))

    def save_each(self, name: str, items: Iterable[object]) -> None:
        """As `save` of a list, of which only one item at a time is in memory."""
        self._save(name, lambda: wrapped_each(items))

    def has(self, name: str) -> bool:
        """Whether the document is there, readable or not."""
        return self._path(name).exists()

    def _save(self, name: str, content: Callable[[], bytes]) -> None:
        path = self._path(name)
        with self._lock:
            try:
                _replace(path, content())
            except OSError as problem:
                self._report(_cannot("write", path, problem), name)
            except (ValueError, RecursionError) as problem:
                self._report(_unreadable(path, str(problem)), name)
            else:
                self._end_findings(name)

    def delete(self, name: str) -> None:
        """Forget the document; no error when there is none."""
        path = self._path(name)
        with self._lock:
            try:
                path.unlink(missing_ok=True)
            except OSError as problem:
                if problem.errno not in _GONE:
                    self._report(_cannot("delete", path, problem), name)
                    return
            self._end_findings(name)

    def set_aside(self, name: str, reason: str) -> None:
        """Move a document out of the way that was readable but makes no sense to its reader."""
        self._path(name)
        with self._lock:
            self._move_aside(name, reason)

    def _path(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise ValueError(f"a document's name is like 'last-good', not {name!r}")
        return self._folder / f"{name}.json"

    def _unwrap(self, name: str, content: bytes) -> object | None:
        try:
            return unwrapped(content)
        except ValueError as problem:
            self._move_aside(name, str(problem))
            return None

    def _move_aside(self, name: str, reason: str) -> None:
        path = self._path(name)
        aside = path.with_name(path.name + ASIDE)
        try:
            path.rename(aside)
            where = f"moved to {aside.name}"
        except OSError as problem:
            where = f"it stays in the way: {problem.strerror}"
        finding = warning(
            "state-set-aside",
            str(path),
            f"the remembered document was not used: {reason}; {where}",
            hint="nothing needs to be done; the next change writes a new one",
        )
        self._report(finding, name)

    def _report(self, finding: Finding, name: str) -> None:
        if self._findings.get((name, finding.code)) != finding:
            self._findings[name, finding.code] = finding
            self._log(finding.code, subject=finding.subject, message=finding.message)

    def _end_findings(self, name: str) -> None:
        for key in [key for key in self._findings if key[0] == name]:
            del self._findings[key]


def documents_in(folder: Path) -> tuple[Path, ...]:
    """Every document of a state folder and of the backends' below it; what has not our form is somebody else's."""
    found = [one for place in (folder, *folder.glob(f"{BACKENDS}/*")) for one in place.glob("*")]
    return tuple(sorted(one for one in found if _OURS.fullmatch(one.name) and _is_document(one)))


def forget(folder: Path) -> None:
    """Remove all of them, and the folders that are empty then. OSError where it cannot be done."""
    for one in documents_in(folder):
        one.unlink(missing_ok=True)
    for place in (*folder.glob(f"{BACKENDS}/*"), folder / BACKENDS, folder):
        with contextlib.suppress(OSError):  # it is not there or not empty, or something is mounted there
            place.rmdir()


def _is_document(path: Path) -> bool:
    if path.suffix != ".json":
        return path.is_file()
    try:
        unwrapped(_read(path) or b"")
    except (OSError, ValueError, RecursionError):
        return False
    return True


def _cannot(verb: str, path: Path, problem: OSError) -> Finding:
    return error(
        "state-not-kept",
        str(path),
        f"cannot {verb} the state: {problem.strerror or problem}; a restart will not remember it",
        hint=f"make {path.parent} a folder that the daemon can write, or set paths.state",
    )


def _unreadable(path: Path, reason: str) -> Finding:
    return error(
        "state-not-kept",
        str(path),
        f"what should be kept could not be read back: {reason}; what was kept before stays",
        hint="report this as a bug of netqos, with what stands in this message",
    )


def _read(path: Path) -> bytes | None:
    """The content, None without a file. ValueError: this is no file that we wrote."""
    try:
        # Without O_NONBLOCK the open of a fifo waits for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as problem:
        if problem.errno in _GONE:
            return None
        if problem.errno in {errno.ELOOP, errno.ENXIO}:
            raise ValueError("it is not a regular file") from problem
        raise
    try:
        _refuse_strange(os.fstat(descriptor))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(MOST_BYTES + 1)
    finally:
        os.close(descriptor)


def _refuse_strange(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("it is not a regular file")
    if found.st_uid not in {0, os.geteuid()}:
        raise ValueError(f"it belongs to user {found.st_uid}")
    if found.st_size > MOST_BYTES:
        raise ValueError(f"it has {found.st_size} bytes; at most {MOST_BYTES} are read")


def _replace(path: Path, content: bytes) -> None:
    with contextlib.suppress(OSError, ValueError):
        if _read(path) == content:
            return
    _make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.new")
    # A daemon that was killed may have left one; there is only one daemon at a time.
    temporary.unlink(missing_ok=True)
    try:
        _write_durably(temporary, content)
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        if not folder.parent.is_dir():
            _make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _write_durably(path: Path, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
