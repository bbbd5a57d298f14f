"""Hints that something in a folder changed, by inotify through watchdog.

Only hints: several changes may come as one, some not at all. Where the kernel gives no watches (their number is
limited, for the whole user) the reader is told why, and looks by itself more often.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver, ObservedWatch

# Not FileOpenedEvent and FileClosedNoWriteEvent: our own reading would wake us.
_CHANGES: list[type[FileSystemEvent]] = [
    *(DirCreatedEvent, DirDeletedEvent, DirMovedEvent),
    *(FileCreatedEvent, FileDeletedEvent, FileMovedEvent, FileModifiedEvent, FileClosedEvent),
]

_Place = tuple[str, int]


class Watch(Protocol):
    """What tells of changes."""

    def follow(self, folders: Iterable[Path]) -> str:
        """Watch exactly these folders; why not all of them can be watched, empty when they are."""
        ...

    def close(self) -> None:
        """Stop watching."""
        ...


class _Handler(FileSystemEventHandler):
    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change

    def on_any_event(self, event: FileSystemEvent) -> None:  # noqa: ARG002 - whatever it was, the reader looks
        self._on_change()


class FolderWatch:
    """Watches folders, not what is below them; each by its inode, so that a new folder of the same name is noticed.

    `on_change` is called from a thread of its own. Not for several threads at once.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        """Nothing is watched yet."""
        self._handler = _Handler(on_change)
        self._observer: BaseObserver | None = None
        self._watches: dict[_Place, ObservedWatch] = {}

    def follow(self, folders: Iterable[Path]) -> str:
        """Watch exactly these folders; why not all of them can be watched, empty when they are."""
        wanted = {place for folder in folders if (place := _place(folder)) is not None}
        try:
            self._follow(wanted)
        except (OSError, KeyError) as problem:
            return str(problem)
        return ""

    def close(self) -> None:
        """Stop watching."""
        if self._observer is not None:
            self._observer.stop()
            self._observer.join(timeout=5)

    def _follow(self, wanted: set[_Place]) -> None:
        if self._observer is None:
            observer = Observer()
            observer.start()
            self._observer = observer
        for place in [place for place in self._watches if place not in wanted]:
            self._observer.unschedule(self._watches.pop(place))
        for place in sorted(wanted - self._watches.keys()):
            self._watches[place] = self._observer.schedule(self._handler, place[0], event_filter=_CHANGES)


def _place(folder: Path) -> _Place | None:
    try:
        real = folder.resolve(strict=True)
        # watchdog takes a refusal by permission for success.
        return (str(real), real.stat().st_ino) if os.access(real, os.R_OK) else None
    except (OSError, RuntimeError):
        return None
