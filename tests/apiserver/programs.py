"""Which kube-apiserver the tests start: one that is given, else one that is built here once and kept.

In this order: $KUBE_APISERVER_TEST_BINARY, the program of this folder built already; $KUBEBUILDER_ASSETS, a folder
with kube-apiserver and etcd; the cache; a build with the machine's Go where it is new enough; a build with `./dev go`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

SOURCES = Path(__file__).parent
ROOT = SOURCES.parents[1]
SOURCE_NAMES = ("main.go", "go.mod", "go.sum")
OLDEST_GO = (1, 26)
KUBERNETES_VERSION = re.compile(r"^\tk8s\.io/kubernetes (v\S+)$", re.MULTILINE)
VERSION_PACKAGE = "k8s.io/component-base/version"
# A cold build takes 200 s of two idle cores; a machine that is busy otherwise may take much longer.
BUILD_TIMEOUT_S = 1500


class Unavailable(Exception):
    """There is no API server to test against; the message is one line that says what to do."""


@dataclass(frozen=True, slots=True)
class OneProgram:
    """The program of this folder: kube-apiserver with etcd inside."""

    path: Path


@dataclass(frozen=True, slots=True)
class TwoPrograms:
    """A kube-apiserver and an etcd as they are released."""

    apiserver: Path
    etcd: Path


Programs: TypeAlias = OneProgram | TwoPrograms


def find_programs(env: Mapping[str, str] = os.environ) -> Programs:
    """The programs to start, built where need be. `Unavailable` where there are none and none can be built."""
    if given := env.get("KUBE_APISERVER_TEST_BINARY"):
        return OneProgram(_existing(Path(given), "KUBE_APISERVER_TEST_BINARY"))
    if assets := env.get("KUBEBUILDER_ASSETS"):
        folder = Path(assets)
        return TwoPrograms(
            _existing(folder / "kube-apiserver", "KUBEBUILDER_ASSETS"),
            _existing(folder / "etcd", "KUBEBUILDER_ASSETS"),
        )
    return OneProgram(_cached(cache_folder(env)))


def cache_folder(env: Mapping[str, str] = os.environ) -> Path:
    """Where built programs are kept: $NETQOS_CACHE, else `netqos` in the user's cache folder."""
    if own := env.get("NETQOS_CACHE"):
        return Path(own) / "apiserver"
    users = env.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(users) / "netqos" / "apiserver"


def source_digest(folder: Path = SOURCES) -> str:
    """Sixteen hex digits that change with the sources."""
    whole = hashlib.sha256()
    for name in SOURCE_NAMES:
        content = (folder / name).read_bytes()
        whole.update(f"{name} {len(content)}\n".encode() + content)
    return whole.hexdigest()[:16]


def _existing(path: Path, variable: str) -> Path:
    if not os.access(path, os.X_OK):
        raise Unavailable(f"no API server: {variable} says {path}, which is no program that can be started")
    return path


def _cached(cache: Path) -> Path:
    """The built program; of several processes that ask at once, one builds and the others wait for it."""
    program = cache / source_digest() / "testapi"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        with (cache / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not program.exists():
                _build(program)
    return program


def _build(program: Path) -> None:
    fresh = program.with_suffix(".new")
    options = ["-trimpath", "-buildvcs=false", "-ldflags", _linker_flags(), "-o", str(fresh)]
    command = [*_go(), "build", "-C", str(SOURCES), *options, "."]
    env = {**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0"}
    try:
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, check=False, timeout=BUILD_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"no API server: its build took more than {BUILD_TIMEOUT_S} s") from None
    if done.returncode != 0:
        said = (done.stderr.strip() or "it said nothing").splitlines()[-1]
        raise Unavailable(f"no API server: its build failed ({said}); see tests/apiserver/README.md")
    fresh.rename(program)


def _go() -> list[str]:
    """The command line of a Go that is new enough."""
    if _is_new_enough(shutil.which("go")):
        return ["go"]
    if not os.access(ROOT / "dev", os.X_OK):
        raise Unavailable(
            f"no API server: it is built with Go {OLDEST_GO[0]}.{OLDEST_GO[1]} or newer, not found here"
        )
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


def _linker_flags() -> str:
    """Strip symbols, and set the version that the server tells: without it, it says v0.0.0."""
    version = KUBERNETES_VERSION.search((SOURCES / "go.mod").read_text(encoding="utf-8"))
    assert version is not None
    told = {"gitVersion": version[1], "gitCommit": "tests", "gitTreeState": "clean"}
    return "-s -w " + " ".join(f"-X {VERSION_PACKAGE}.{name}={value}" for name, value in told.items())
