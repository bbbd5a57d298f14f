"""A daemon in surroundings of its own: code that Python runs before anything else of it, in its own mount namespace."""

from __future__ import annotations

from pathlib import Path

from netqos.testing.processes import tool_environment

BIND = 4096

_MOUNT = """
import ctypes

libc = ctypes.CDLL(None, use_errno=True)

def mount(source, target, kind=None, flags=0):
    if libc.mount(source.encode(), target.encode(), kind and kind.encode(), flags, None):
        raise OSError(ctypes.get_errno(), "mount " + target)
"""


def site(folder: Path, code: str) -> dict[str, str]:
    """The environment in which a process runs `code` first; `mount` is known there.

    Whoever starts netqosd by `Daemon` has it in a mount namespace of its own already.
    """
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(_MOUNT + code, encoding="utf-8")
    paths = [str(folder), *filter(None, [tool_environment().get("PYTHONPATH")])]
    return {"PYTHONPATH": ":".join(paths)}
