"""What kustomize and helm make of daemonset/, by the program of tests/apiserver/render."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml

from tests.apiserver.client import Document
from tests.apiserver.gobuild import ROOT

DAEMONSET = ROOT / "daemonset"
CHART = DAEMONSET / "chart"


class RenderFailed(Exception):
    """kustomize or helm refused; the message is what they said."""


def kustomize(program: Path, overlay: str) -> list[Document]:
    """The objects of an overlay."""
    return _documents(_run(program, "kustomize", str(DAEMONSET / "overlays" / overlay)))


def with_component(program: Path, overlay: str, component: str, folder: Path) -> list[Document]:
    """The objects of an overlay with a component, by a kustomization that is written to `folder`."""
    text = {
        "resources": [_relative(DAEMONSET / "overlays" / overlay, folder)],
        "components": [_relative(DAEMONSET / "components" / component, folder)],
    }
    (folder / "kustomization.yaml").write_text(json.dumps(text), encoding="utf-8")
    return _documents(_run(program, "kustomize", str(folder)))


def helm(program: Path, namespace: str, values: Mapping[str, object] | None = None) -> list[Document]:
    """The objects of the chart, its CRDs included."""
    return _documents(_run(program, "helm", str(CHART), namespace, json.dumps(values or {})))


def by_name(documents: Iterable[Document]) -> dict[tuple[str, str], Document]:
    """Objects by kind and name."""
    return {(one["kind"], one["metadata"]["name"]): one for one in documents}


def is_hook(document: Document) -> bool:
    """Whether Helm makes an object for a moment only."""
    return "helm.sh/hook" in document["metadata"].get("annotations", {})


def _relative(path: Path, start: Path) -> str:
    """kustomize refuses absolute paths."""
    return os.path.relpath(path, start)


def _run(program: Path, *arguments: str) -> str:
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False, timeout=30)
    if done.returncode != 0:
        raise RenderFailed(done.stderr.strip())
    return done.stdout


def _documents(text: str) -> list[Document]:
    return [one for one in yaml.safe_load_all(text) if one]
