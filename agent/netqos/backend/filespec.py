"""Files as objects of a plan: what one is, and the operations that change it, in words for people."""

from __future__ import annotations

import errno
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import PurePath

from netqos.engine.contents import describe_content, describe_difference
from netqos.errors import NetqosError
from netqos.model.plan import Operation, Verb

FILE_MODE = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSpec:
    """A file as it should be, or is. `edited`: somebody else has written it since this process did."""

    content: bytes
    mode: int = FILE_MODE
    edited: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """The payload of an operation: the content to write, None to remove the file."""

    path: PurePath
    content: bytes | None


def payload(operation: Operation) -> FileChange:
    """The file change that an operation made here carries."""
    assert isinstance(operation.payload, FileChange)
    return operation.payload


def code_of(problem: NetqosError) -> str:
    """The errno name behind an error, else the word for its kind."""
    cause = problem.__cause__
    number = cause.errno if isinstance(cause, OSError) else None
    return errno.errorcode.get(number or 0, type(problem).__name__.lower())


def reason_of(problem: NetqosError) -> str:
    """The whole reason in one line; the subject is the operation's."""
    return f"{problem.message} ({problem.hint})" if problem.hint else problem.message


def write_operation(verb: Verb, path: Hashable, new: FileSpec, old: FileSpec | None = None) -> Operation:
    """Write `new`, which is not what is there now (None: nothing is)."""
    assert isinstance(path, PurePath)
    if old is None:
        detail = describe_content(new.content)
    elif old.content == new.content:
        detail = f"mode {old.mode:04o} -> {new.mode:04o}"
    else:
        detail = describe_difference(old.content, new.content)
    change = FileChange(path=path, content=new.content)
    return Operation(verb=verb, subject=f"file {path}", detail=detail, payload=change)
