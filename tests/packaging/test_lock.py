"""requirements.lock pins everything that pyproject.toml asks for, by hash, and names no place to fetch it from."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PIN = re.compile(r"(?P<name>[a-z0-9][a-z0-9-]*)==(?P<version>[^ ;]+)( ; .+)? \\")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")
COMMENT = re.compile(r"    # .*")


def lock_lines() -> list[str]:
    return (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()


def pins() -> dict[str, str]:
    return {pin["name"]: pin["version"] for pin in map(PIN.fullmatch, lock_lines()) if pin}


def declared() -> list[str]:
    document: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = document["project"]
    groups = [
        project["dependencies"],
        *project["optional-dependencies"].values(),
        *document["dependency-groups"].values(),
        document["build-system"]["requires"],
    ]
    return sorted({requirement for group in groups for requirement in group})


def test_holds_nothing_but_pins_hashes_and_comments() -> None:
    odd = [line for line in lock_lines() if not any(shape.fullmatch(line) for shape in (PIN, HASH, COMMENT))]
    assert odd == []


def test_names_no_address() -> None:
    assert [line for line in lock_lines() if "://" in line or "index-url" in line] == []


def test_every_pin_has_a_hash() -> None:
    lines = lock_lines()
    unhashed = [
        line
        for line, following in zip(lines, [*lines[1:], ""], strict=True)
        if PIN.fullmatch(line) and not HASH.fullmatch(following)
    ]
    assert unhashed == []


@pytest.mark.parametrize("requirement", declared())
def test_satisfies_what_the_project_declares(requirement: str) -> None:
    wanted = Requirement(requirement)
    locked = pins().get(canonicalize_name(wanted.name))
    assert locked is not None, f"{wanted.name} is not locked: run ./dev lock"
    assert wanted.specifier.contains(locked), f"{wanted.name} is locked at {locked}: run ./dev lock"
