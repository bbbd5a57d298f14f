"""One wheel holds the daemon and its backends, typed, with commands and entry points."""

from __future__ import annotations

import configparser
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("netqos", "netqos_tc", "netqos_terway")

LOAD_ENTRY_POINTS = """
import importlib.metadata, sys
for point in importlib.metadata.distribution("netqos").entry_points:
    point.load()
    print(sys.modules[point.module].__file__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return zipfile.Path(built)


def test_holds_both_source_roots_and_nothing_else(wheel: zipfile.Path) -> None:
    names = {entry.name for entry in wheel.iterdir()}
    assert names == {*PACKAGES, "netqos-0.1.0.dist-info"}


def test_every_entry_point_loads_from_the_wheel(wheel: zipfile.Path, tmp_path: Path) -> None:
    # Not by `wheel.root`: once its folders were listed, it names some that the archive does not hold.
    with zipfile.ZipFile(str(wheel.root.filename)) as archive:
        archive.extractall(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", LOAD_ENTRY_POINTS],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    files = done.stdout.split()
    assert len(files) == 4
    assert [file for file in files if not file.startswith(str(tmp_path))] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_are_typed(wheel: zipfile.Path, package: str) -> None:
    assert (wheel / package / "__init__.py").is_file()
    assert (wheel / package / "py.typed").is_file()


def test_declares_commands_and_backends(wheel: zipfile.Path) -> None:
    declared = configparser.ConfigParser()
    declared.read_string((wheel / "netqos-0.1.0.dist-info" / "entry_points.txt").read_text())
    assert dict(declared["console_scripts"]) == {
        "netqosctl": "netqos.cli.ctl:main",
        "netqosd": "netqos.cli.daemon:main",
    }
    assert dict(declared["netqos.backends"]) == {"tc": "netqos_tc:create", "terway": "netqos_terway:create"}


def test_carries_the_license(wheel: zipfile.Path) -> None:
    assert (wheel / "netqos-0.1.0.dist-info" / "licenses" / "LICENSE").is_file()
