"""A fault of our own ends the daemon, and its log says where it was."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from netqos.testing.namespaces import Namespace

PROGRAM = """
import sys
import netqos.runtime.reconciler as reconciler

def compose(**_inputs):
    raise ZeroDivisionError("of the test's own")

reconciler.compose = compose
from netqos.cli.daemon import main
sys.exit(main(["--config", sys.argv[1]]))
"""


def test_what_ends_the_daemon_is_the_last_but_one_line_of_its_log(tmp_path: Path) -> None:
    paths = {"net": str(tmp_path / "net"), "socket": str(tmp_path / "s"), "state": str(tmp_path / "state")}
    config = tmp_path / "netqos.yaml"
    settings = {"kubernetes": {"enable": False}, "metrics": {"listen": None}, "paths": paths}
    config.write_text(json.dumps(settings), encoding="utf-8")
    namespace = Namespace("crash")
    try:
        done = namespace.run([sys.executable, "-c", PROGRAM, str(config)], check=False)
    finally:
        namespace.remove()
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert (done.returncode, [one["event"] for one in lines]) == (1, ["started", "failed", "stopped"])
    assert "ZeroDivisionError: of the test's own" in lines[1]["exception"]
