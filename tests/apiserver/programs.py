"""Which kube-apiserver the tests start: one that is given, else one that is built here once and kept.

In this order: $KUBE_APISERVER_TEST_BINARY, the program of this folder built already; $KUBEBUILDER_ASSETS, a folder
with kube-apiserver and etcd; what was built before; a build.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tests.apiserver.gobuild import Unavailable, built

SOURCES = Path(__file__).parent
KUBERNETES_VERSION = re.compile(r"^\tk8s\.io/kubernetes (v\S+)$", re.MULTILINE)
VERSION_PACKAGE = "k8s.io/component-base/version"


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
    return OneProgram(built(SOURCES, linker_flags=linker_flags(SOURCES), env=env))


def _existing(path: Path, variable: str) -> Path:
    if not os.access(path, os.X_OK):
        raise Unavailable(f"{variable} says {path}, which is no program that can be started")
    return path


def linker_flags(sources: Path) -> str:
    """Strip symbols, and set the version that a program of Kubernetes tells: without it, it says v0.0.0."""
    version = KUBERNETES_VERSION.search((sources / "go.mod").read_text(encoding="utf-8"))
    assert version is not None
    told = {"gitVersion": version[1], "gitCommit": "tests", "gitTreeState": "clean"}
    return "-s -w " + " ".join(f"-X {VERSION_PACKAGE}.{name}={value}" for name, value in told.items())
