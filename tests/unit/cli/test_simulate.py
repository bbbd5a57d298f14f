"""netqosctl simulate: a file or stdin in, a table or JSON out, every problem told.

`python -m tests.unit.cli.test_simulate` writes what the examples of docs/loop.md print into it.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import tempfile
from pathlib import Path

import pytest

from netqos.cli.ctl import main
from tests.unit.cli.test_docs import Shell, rewritten

LOOP = Path(__file__).parents[3] / "docs" / "loop.md"
FILES = re.compile(r"^```yaml\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

SCENARIO = """
node: {bandwidth: {tx: 1G}}
policy: {enable: true, levels: {l1: {txMin: 30%, txMax: 80%}, l2: {txMin: 20%}}}
length: 1s
workloads:
  - {name: web, level: l0, egress: [greedy]}
  - {name: batch, level: l2, count: 3, egress: [greedy]}
  - {name: slow, level: l2, limits: {egress: 40M}, egress: [udp 50M]}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def test_a_table(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", str(scenario)]) == 0
    shown = capsys.readouterr().out
    assert "egress under a total of 1 Gbit/s" in shown
    assert "batch-1 to batch-3, each" in shown
    assert "L0 may use 800M: L1 uses nothing and L2 keeps its guarantee of 200M" in shown


def test_json_has_every_figure(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", "simulate", str(scenario)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["schema"] == "netqosctl.simulate/v1"
    found = answer["directions"]["tx"]
    assert found["levels"]["L1"] == {
        "enabled": True,
        "guarantee_bps": 300_000_000,
        "ceiling_bps": 800_000_000,
    }
    (phase,) = found["phases"]
    assert (phase["start_s"], phase["end_s"], phase["contention"]) == (0.0, 1.0, True)
    assert phase["levels"]["L0"]["rate_bps"] == pytest.approx(800_000_000, rel=0.01)
    assert phase["levels"]["L0"]["current_ceiling_bps"] == 800_000_000
    assert phase["workloads"]["slow"]["rate_bps"] == pytest.approx(40_000_000, rel=0.02)
    assert phase["workloads"]["slow"]["dropped_bps"] > 0
    assert found["series"]["at_s"] == [pytest.approx(0.1 * place) for place in range(1, 11)]
    assert len(found["series"]["levels"]["L2"]["rate_bps"]) == 10


def test_stdin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(SCENARIO.encode())))
    assert main(["simulate", "-"]) == 0
    assert "from 0s to 1s" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "node.bandwidth"),
        (b"\xff\xfe", "is no text"),
        (b"- 1", "no map"),
        (b"x" * ((1 << 20) + 1), "longer than 1 MiB"),
        (SCENARIO.replace("greedy", "greddy").encode(), "is no demand"),
    ],
)
def test_what_is_wrong_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, words: str
) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes(content)
    assert main(["simulate", str(path)]) == 5
    told = capsys.readouterr()
    assert told.out == ""
    assert words in told.err or "workloads" in told.err
    assert "Traceback" not in told.err


@pytest.mark.parametrize("name", ["missing.yaml", "."])
def test_no_such_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["simulate", str(tmp_path / name)]) == 5
    assert "cannot be read" in capsys.readouterr().err


def with_examples_run(folder: Path) -> str:
    """docs/loop.md with what its commands print, its scenarios being in the folder."""
    text = LOOP.read_text(encoding="utf-8")
    for name, content in FILES.findall(text):
        (folder / name).write_text(content, encoding="utf-8")
    with contextlib.chdir(folder):
        return rewritten(text, Shell(folder / "no-daemon"))


def test_the_examples_print_what_the_document_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "110")
    assert with_examples_run(tmp_path) == LOOP.read_text(encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        LOOP.write_text(with_examples_run(Path(made)), encoding="utf-8")
