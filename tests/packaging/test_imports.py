"""What must start small does: the heavy dependencies are loaded by those who use them, when they do."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("kubernetes", "prometheus_client", "pyroute2")
PRINT_LOADED = f"\nimport sys; print(*[name for name in {HEAVY} if name in sys.modules])"
ASK_VERSION = """
import sys
sys.argv = ["netqosd", "--version"]
from netqos.cli.daemon import main
try:
    code = main()
except SystemExit as exit:
    code = exit.code
assert not code, code
"""


def run(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert run("import netqos" + PRINT_LOADED) == [""]


def test_asking_the_version_loads_nothing_heavy() -> None:
    version, loaded = run(ASK_VERSION + PRINT_LOADED)
    assert "0.1.0" in version
    assert loaded == ""


def test_a_daemon_without_kubernetes_loads_nothing_of_it() -> None:
    parts = ("kubernetes", "urllib3", "netqos.sources.kube", "netqos.runtime.kube")
    shown = f"import sys; print(*[name for name in {parts} if name in sys.modules])"
    assert run(f"import netqos.runtime.supervisor\n{shown}") == [""]
