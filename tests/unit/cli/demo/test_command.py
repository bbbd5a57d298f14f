from __future__ import annotations

from pathlib import Path

import pytest

from netqos.cli.demo import main


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--seconds", "3"], "'3' is no number of seconds from 12.5 to 3600"),
        (["--seconds", "nan"], "'nan' is no number of seconds"),
        (["--total", "fast"], "no quantity"),
        (["--svg", "/nowhere/demo.svg"], "'/nowhere/demo.svg' cannot be written"),
        (["--loud"], "unrecognized arguments: --loud"),
    ],
)
def test_wrong_usage_is_told_before_anything_runs(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_a_wrong_policy_file_shows_each_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("policy: {enable: true, levels: {l1: {txMin: 10x}, l2: {txMax: 5Q}}}", encoding="utf-8")
    assert main(["--policy", str(file)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" ")[2].split(":")[0] for line in lines] == [str(file)] * 2


def test_a_missing_policy_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--policy", str(tmp_path / "none.yaml")]) == 2
    assert "none.yaml" in capsys.readouterr().err
