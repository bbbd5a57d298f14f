"""Why a file of the configuration is not read, and which files beside it are not meant: findings with a next step."""

from __future__ import annotations

import errno
import stat
from pathlib import Path

from netqos.model.health import Finding, error, info

MOST_BYTES = 2**20
FOLDER = "conf.d"

_ALLOWED = "allowed: a regular file, or a link to one"


class NotAFile(Exception):
    """What was opened is no regular file; `kind` says what it is."""

    def __init__(self, mode: int) -> None:
        """`mode` is that of `stat`."""
        super().__init__()
        self.kind = _kind(mode)


def refused(place: Path, problem: OSError | NotAFile) -> Finding:
    """Why a file cannot be opened or read."""
    if isinstance(problem, NotAFile):
        return _not_a_file(place, problem.kind)
    match problem.errno:
        case errno.ENOENT | errno.ENOTDIR:
            missing = "what it links to is not there" if place.is_symlink() else "there is no such file"
            return error("configuration-missing", str(place), f"{missing}; {_ALLOWED}", hint=_create(place))
        case errno.ENXIO | errno.ENODEV:
            return _not_a_file(place, "a socket, or a device that is not there")
        case errno.ELOOP:
            message = f"its links lead in a circle; {_ALLOWED}"
            hint = "let the link point to the file itself (see namei -l)"
            return error("configuration-not-a-file", str(place), message, hint=hint)
        case _:
            return unreadable(place, problem)


def unreadable(place: Path, problem: OSError) -> Finding:
    """A file or folder that is there, but not for us."""
    return error(
        "configuration-unreadable",
        str(place),
        f"it cannot be read: {problem.strerror}",
        hint="let the user that netqosd runs as read it",
    )


def no_folder(folder: Path) -> Finding:
    """Something else in the place of conf.d."""
    return error(
        "configuration-not-a-folder",
        str(folder),
        "is no folder; allowed: a folder of *.yaml files, or nothing",
        hint="rename it, make a folder of that name, and put it there as 10-local.yaml",
    )


def too_large(place: Path) -> Finding:
    """More than a configuration can be."""
    message = f"it has more than {MOST_BYTES} bytes; allowed: up to that"
    return error("configuration-too-large", str(place), message, hint="split it, or see what it is")


def not_text(name: str, content: bytes, problem: UnicodeDecodeError) -> Finding:
    """Bytes that are no UTF-8, at their line."""
    line = content.count(b"\n", 0, problem.start) + 1
    return error(
        "configuration-not-text",
        f"{name} line {line}",
        f"byte 0x{content[problem.start]:02x} is no UTF-8",
        hint="save the file as UTF-8",
    )


def empty(name: str) -> Finding:
    """Nothing but comments, which is more likely a file that is being written than one that says nothing."""
    return error(
        "configuration-empty",
        f"{name} line 1",
        "the file is empty, or comments only, as a file is that is being written",
        hint="write {} for a file that says nothing, or remove it from conf.d",
    )


def ignored(place: Path) -> Finding:
    """A file in conf.d whose name looks as if it was meant to be read."""
    return info(
        "configuration-ignored",
        str(place),
        "it is not read; only names that end in .yaml and do not begin with a dot are",
        hint=f"rename it to {place.stem}.yaml, or to {place.name}.off where it is not meant",
    )


def _not_a_file(place: Path, kind: str) -> Finding:
    return error("configuration-not-a-file", str(place), f"is {kind}; {_ALLOWED}", hint=_create(place))


def _create(place: Path) -> str:
    if place.parent.name == FOLDER:
        return f"put a file in its place, or remove it from {place.parent}"
    return "put a file there, or name another: --config FILE"


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFCHR: "a character device",
        stat.S_IFBLK: "a block device",
    }
    return kinds.get(stat.S_IFMT(mode), "no file")
