"""Opening the folder of a shared file without being led elsewhere.

The path is walked part by part from the root, each opened relative to the one before. A symbolic link on the way is
followed only when root or we ourselves own it (/var/run -> /run is such a one); the folder itself may be none.
"""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from netqos.errors import Rejected

FOLDER_MODE = 0o755
MOST_LINKS = 40  # as the kernel's MAXSYMLINKS

_WALK = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Folder:
    """An opened folder; `path` is the name it was asked for by."""

    path: Path
    descriptor: int

    def close(self) -> None:
        """Let go of it."""
        os.close(self.descriptor)


def open_folder(path: Path, *, create: bool) -> Folder | None:
    """Open the folder at an absolute path; None when it is not there and must not be made.

    Folders that are made are 0755. One that is there keeps its mode, save 0000, which known programs make by mistake
    and which no reader can pass. Raises `Rejected` for what is no folder or a foreign link, OSError for the rest.
    """
    parts = list(path.parts[1:])
    links = 0
    with ExitStack() as stack:
        here = _push(stack, os.open("/", _WALK))
        while len(parts) > 1:
            part = parts.pop(0)
            target = _link_at(here, part, path)
            if target is not None:
                links += 1
                if links > MOST_LINKS:
                    raise Rejected("has too many symbolic links on its way", subject=str(path))
                parts = [*target.parts[1 if target.is_absolute() else 0 :], *parts]
                here = _push(stack, os.open("/", _WALK)) if target.is_absolute() else here
                continue
            following = _enter(here, part, path, flags=_WALK, create=create)
            if following is None:
                return None
            here = _push(stack, following)
        last = _enter(here, parts[0] if parts else ".", path, flags=_OPEN, create=create)
        return Folder(path, last) if last is not None else None


def _push(stack: ExitStack, descriptor: int) -> int:
    stack.callback(os.close, descriptor)
    return descriptor


def _link_at(here: int, part: str, path: Path) -> Path | None:
    """The target of a trustworthy link, None where there is no link."""
    try:
        status = os.stat(part, dir_fd=here, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISLNK(status.st_mode):
        return None
    if status.st_uid not in _trusted_owners():
        raise Rejected(
            f"passes the symbolic link {part!r} of user {status.st_uid}, who could lead it anywhere",
            subject=str(path),
            hint="give the link to root, or configure the path that it points to",
        )
    return Path(os.readlink(part, dir_fd=here))


def _trusted_owners() -> set[int]:
    """Root, ourselves, and the owner of `/`: in a user namespace the host's root has no number but this."""
    return {0, os.geteuid(), os.stat("/").st_uid}  # noqa: PTH116 - beside its siblings


def _enter(here: int, part: str, path: Path, *, flags: int, create: bool) -> int | None:
    _refuse_other(here, part, path)
    if not create:
        with suppress(FileNotFoundError):
            return os.open(part, flags, dir_fd=here)
        return None
    _ensure(here, part)
    return os.open(part, flags, dir_fd=here)


def _refuse_other(here: int, part: str, path: Path) -> None:
    try:
        mode = os.stat(part, dir_fd=here, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(mode):
        kind = "a symbolic link" if stat.S_ISLNK(mode) else "no folder"
        raise Rejected(
            f"{part!r} is {kind}", subject=str(path), hint="remove it, or configure another folder"
        )


def _ensure(here: int, part: str) -> None:
    """Make the folder, or give one of mode 0000 the usual one."""
    try:
        is_usable = stat.S_IMODE(os.stat(part, dir_fd=here).st_mode) != 0
    except FileNotFoundError:
        try:
            os.mkdir(part, FOLDER_MODE, dir_fd=here)
            is_usable = False  # the umask took something away
        except FileExistsError:  # somebody was faster; it is theirs
            is_usable = True
    if not is_usable:
        _set_mode(here, part)


def _set_mode(here: int, part: str) -> None:
    """Change the mode of exactly this folder: a descriptor of O_PATH follows nothing, and /proc leads to it."""
    descriptor = os.open(part, _WALK, dir_fd=here)
    try:
        os.chmod(f"/proc/self/fd/{descriptor}", FOLDER_MODE)  # noqa: PTH101 - no path of the file system
    finally:
        os.close(descriptor)
