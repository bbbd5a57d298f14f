"""netqosd's command line, as far as it does not serve."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import netqos
from netqos.cli.daemon import main


def test_a_listed_backend_is_said_to_load_not_to_work(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list-backends"]) == 0
    listed = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    home = f"netqos {netqos.__version__}"
    assert [one for one in listed if one[0] in {"tc", "terway"}] == [
        ["tc", home, "loads"],
        ["terway", home, "loads"],
    ]


@pytest.mark.parametrize("mode", ["--check-config", "--dry-run", "--once"])
def test_a_configuration_that_is_missing_is_5(
    mode: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([mode, "--config", str(tmp_path / "none.yaml")]) == 5
    assert "none.yaml: there is no such file" in "".join(capsys.readouterr())


def test_two_modes_are_wrong_usage() -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--once", "--dry-run"])
    assert caught.value.code == 2


def test_a_reader_that_has_had_enough_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "netqos.yaml").write_text("node: {bandwidth: {tx: 1G, rx: 1G}}\n", encoding="utf-8")
    reading, writing = os.pipe()
    os.close(reading)
    words = [
        sys.executable,
        "-m",
        "netqos.cli.daemon",
        "--check-config",
        "--config",
        str(tmp_path / "netqos.yaml"),
    ]
    with os.fdopen(writing, "w") as out:
        done = subprocess.run(words, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
