"""The repository's top level is a fixed set, and its scripts can be started."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOP_LEVEL = {
    "agent",
    "bpf",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "daemonset",
    "dev",
    "docs",
    "LICENSE",
    "plugins",
    "pyproject.toml",
    "README.md",
    "requirements.lock",
    "systemd",
    "tests",
}


def tracked_files() -> list[str]:
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return listed.split("\0")[:-1]


def test_top_level_is_the_fixed_set() -> None:
    names = {name.split("/", 1)[0] for name in tracked_files()}
    assert {name for name in names if not name.startswith(".")} <= TOP_LEVEL


def test_no_machine_made_file_is_tracked() -> None:
    made = (".pyc", ".so", ".egg-info", "uv.lock", ".orig", ".rej")
    assert [name for name in tracked_files() if name.endswith(made)] == []


@pytest.mark.parametrize("name", ["dev", ".ci/run"])
def test_scripts_are_executable_and_parse(name: str) -> None:
    assert os.access(ROOT / name, os.X_OK)
    subprocess.run(["bash", "-n", str(ROOT / name)], check=True)
