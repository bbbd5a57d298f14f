"""The example of docs/writing-a-backend.md, built, installed and run as a stranger's package would be."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

from netqos.backend import Backend, BackendContext

PAGE = Path(__file__).parents[2] / "docs" / "writing-a-backend.md"
FENCE = re.compile(r"^```\w+ (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the page shows, each in the place that its fence names."""
    folder = tmp_path_factory.mktemp("ferry")
    shown = dict(FENCE.findall(PAGE.read_text(encoding="utf-8")))
    assert set(shown) == {"pyproject.toml", "src/netqos_ferry/__init__.py", "tests/test_contract.py"}
    for name, text in shown.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def installed(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the built wheel unpacked in it, which is how a wheel of Python alone is installed."""
    dist, target = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("target")
    run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(dist)],
        cwd=source,
    )
    (wheel,) = dist.glob("netqos_ferry-0.3-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def run(command: list[str], *, cwd: Path, target: Path | None = None) -> str:
    environment = {**os.environ, "PYTHONPATH": str(target) if target else "", "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("NETQOS_TALLY", None)  # the tests inside are not tests of this run
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_discovered_with_its_distribution_and_version(installed: Path) -> None:
    script = """
        import dataclasses, json, sys
        from netqos.backend.registry import installed_names, list_backends
        names = installed_names()
        assert "netqos_ferry" not in sys.modules, "names must be known without an import"
        print(json.dumps([names, [dataclasses.asdict(info) for info in list_backends()]]))
    """
    names, backends = json.loads(
        run([sys.executable, "-c", textwrap.dedent(script)], cwd=installed, target=installed)
    )
    assert "ferry" in names
    assert {"name": "ferry", "distribution": "netqos-ferry", "version": "0.3", "state": "loads"} in backends


def test_it_keeps_the_contract(source: Path, installed: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "tests"]
    assert " passed" in run(command, cwd=source, target=installed)


def test_it_keeps_the_contract_without_pytest(source: Path, installed: Path) -> None:
    script = "from test_contract import TestFerry; print(*TestFerry().check_all(), sep='\\n')"
    names = run([sys.executable, "-c", script], cwd=source / "tests", target=installed).split()
    assert len(names) >= 11


def test_wrong_options_are_a_finding_and_take_nobody_else_along(installed: Path) -> None:
    script = """
        import json
        from netqos.backend.registry import load
        from netqos.host.files import AtomicFiles
        from netqos.testing.filehosts import FolderHarness
        import netqos_ferry
        host = FolderHarness("ferry", netqos_ferry.create, AtomicFiles(), lambda folder: {"folder": "etc", "x": 1})
        backends, findings = load(["ferry"], lambda name: host.context())
        host.close()
        print(json.dumps([len(backends), findings[0].code, findings[0].subject, findings[0].message]))
    """
    assert json.loads(
        run([sys.executable, "-c", textwrap.dedent(script)], cwd=installed, target=installed)
    ) == [
        0,
        "backend-options",
        "backendOptions.ferry",
        "x: unknown option; allowed: folder; folder: 'etc'; allowed: an absolute path",
    ]


def test_the_page_names_every_method_and_field_of_the_surface() -> None:
    text = PAGE.read_text(encoding="utf-8")
    methods = [
        name for name, member in vars(Backend).items() if inspect.isfunction(member) and name[0] != "_"
    ]
    assert len(methods) == 8
    for name in methods:
        assert f"{name}(" in text, name
    for field in BackendContext.__dataclass_fields__:
        assert f"`{field}" in text, field
