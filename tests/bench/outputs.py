"""Files that a benchmark writes: a path that takes none is told before anything is measured, and costs no other."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from netqos.errors import NetqosError, Rejected

Output = tuple[Path | None, Callable[[], str]]


def require_writable(paths: Iterable[Path | None]) -> None:
    """`Rejected` for the first path to which no file can be written; None is no path."""
    for path in paths:
        if path is not None and not _takes_a_file(path):
            hint = "name a file in a folder that is there and may be written to"
            raise Rejected("cannot be written there", subject=str(path), hint=hint)


def save(outputs: Iterable[Output]) -> bool:
    """Write each; what cannot be written is told on stderr and keeps nothing else back. Whether all were."""
    lost = [path for path, text in outputs if path is not None and not _is_saved(path, text())]
    return not lost


def write(path: Path, text: str) -> None:
    """A file whole or not at all; `NetqosError` where that cannot be.

    What is something else is written into as it is, since /dev/stdout is a link, perhaps to a file.
    """
    try:
        if _is_new_or_a_file(path):
            _replace(path, text)
        else:
            path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise NetqosError(f"cannot be written: {problem.strerror}", subject=str(path)) from problem


def _takes_a_file(path: Path) -> bool:
    try:
        if _is_new_or_a_file(path):
            return path.parent.is_dir() and os.access(path.parent, os.W_OK)
        return not path.is_dir() and os.access(path, os.W_OK)
    except OSError:  # a folder that may not be looked into
        return False


def _is_new_or_a_file(path: Path) -> bool:
    return not path.is_symlink() and (path.is_file() or not path.exists())


def _is_saved(path: Path, text: str) -> bool:
    try:
        write(path, text)
    except NetqosError as problem:
        print(f"bench: {problem}", file=sys.stderr)
        return False
    return True


def _replace(path: Path, text: str) -> None:
    fresh = path.with_name(f"{path.name}.new")
    try:
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
