"""The whole comparison once, with every column and the adapter of the docs, so short that its figures mean nothing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.bench.compare.command import BUILT_IN
from tests.bench.compare.rows import MEASURES

pytestmark = pytest.mark.kernel("veth", "htb", "nft", "nft-fib", "ifb", "clsact", "tbf", "tool:iperf3")

ROOT = Path(__file__).parents[2]


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    """The example of docs/comparison.md as a file."""
    text = (ROOT / "docs/comparison.md").read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert found
    path = tmp_path / "strict.py"
    path.write_text(found[1], encoding="utf-8")
    return path


def bench(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.bench", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def test_every_column_is_measured_and_written(tmp_path: Path, adapter: Path) -> None:
    paths = {kind: tmp_path / f"result.{kind}" for kind in ("json", "svg", "markdown")}
    options = [word for kind, path in paths.items() for word in (f"--{kind}", path)]
    done = bench("compare", "--runs", "1", "--scale", "0.05", "--adapter", adapter, *options)
    assert done.returncode == 0, done.stderr
    document = json.loads(paths["json"].read_text())
    rows = {one["name"]: one["runs"] for one in document["enforcers"]}
    assert list(rows) == [*BUILT_IN, "strict priority"]
    assert {name: len(runs) for name, runs in rows.items()} == dict.fromkeys(rows, 1)
    agent = {key for key in MEASURES if key.startswith("agent.")}
    assert set(rows["netqos"][0]) == set(MEASURES)
    assert set(MEASURES) - set(rows["1 s stepper"][0]) == {"agent.late"}
    assert set(MEASURES) - set(rows["strict priority"][0]) == agent - {"agent.writes"}
    assert any(runs[0]["tx.used"] > 0 and runs[0]["rx.used"] > 0 for runs in rows.values())
    assert len(ET.fromstring(paths["svg"].read_text())) > 0
    assert "| median of the runs | unit | nothing |" in paths["markdown"].read_text()
    same = bench("diff", paths["json"], paths["json"])
    told = [line for line in same.stdout.splitlines() if line and not line.startswith("note: ")]
    assert (same.returncode, told[0].split()[0]) == (0, "0")
