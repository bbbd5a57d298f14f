"""Go programs of the tests, built once and kept under a hash of their sources, outside the checkout."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE_NAMES = ("main.go", "go.mod", "go.sum")
OLDEST_GO = (1, 26)
# The API server's cold build takes 200 s of two idle cores; a machine that is busy otherwise may take much longer.
TIMEOUT_S = 1500


class Unavailable(Exception):
    """A program is not there and cannot be built; the message is one line that says why."""


def built(folder: Path, *, linker_flags: str = "-s -w", env: Mapping[str, str] = os.environ) -> Path:
    """The program of a folder's main.go. Of several processes that ask at once, one builds and the others wait."""
    program = cache_folder(env) / folder.name / source_digest(folder) / folder.name
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        with (program.parents[1] / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not program.exists():
                _build(folder, program, linker_flags)
    return program


def cache_folder(env: Mapping[str, str] = os.environ) -> Path:
    """Where built programs are kept: $NETQOS_CACHE, else `netqos` in the user's cache folder."""
    if own := env.get("NETQOS_CACHE"):
        return Path(own)
    users = env.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(users) / "netqos"


def source_digest(folder: Path) -> str:
    """Sixteen hex digits that change with the sources."""
    whole = hashlib.sha256()
    for name in SOURCE_NAMES:
        content = (folder / name).read_bytes()
        whole.update(f"{name} {len(content)}\n".encode() + content)
    return whole.hexdigest()[:16]


def _build(folder: Path, program: Path, linker_flags: str) -> None:
    fresh = program.with_suffix(".new")
    options = ["-trimpath", "-buildvcs=false", "-ldflags", linker_flags, "-o", str(fresh)]
    command = [*_go(), "build", "-C", str(folder), *options, "."]
    env = {**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0"}
    try:
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"the build of {folder.name} took more than {TIMEOUT_S} s") from None
    if done.returncode != 0:
        said = (done.stderr.strip() or "it said nothing").splitlines()[-1]
        raise Unavailable(f"the build of {folder.name} failed: {said}")
    fresh.rename(program)


def _go() -> list[str]:
    """The command line of a Go that is new enough: the machine's, else the locked one."""
    if _is_new_enough(shutil.which("go")):
        return ["go"]
    if not os.access(ROOT / "dev", os.X_OK):
        raise Unavailable(f"Go {OLDEST_GO[0]}.{OLDEST_GO[1]} or newer is not installed here")
    return [str(ROOT / "dev"), "go"]


def _is_new_enough(go: str | None) -> bool:
    if go is None:
        return False
    env = {**os.environ, "GOTOOLCHAIN": "local"}
    said = subprocess.run(
        [go, "env", "GOVERSION"], env=env, capture_output=True, text=True, check=False
    ).stdout
    found = re.match(r"go(\d+)\.(\d+)", said)
    return found is not None and (int(found[1]), int(found[2])) >= OLDEST_GO
