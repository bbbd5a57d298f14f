from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from netqos.cli.demo import command, main
from netqos.errors import Unsupported


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--seconds", "3"], "'3' is no number of seconds from 12.5 to 3600"),
        (["--seconds", "nan"], "'nan' is no number of seconds"),
        (["--total", "fast"], "no quantity"),
        (["--svg", "/nowhere/demo.svg"], "'/nowhere/demo.svg' cannot be written"),
        (["--svg", f"/{'x' * 300}/demo.svg"], "cannot be written"),
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
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("netqosctl demo: ")]
    assert [line.split(" ")[2].split(":")[0] for line in lines] == [str(file)] * 2


@pytest.mark.parametrize("kind", ["none", "folder", "fifo", "empty", "binary"])
def test_a_policy_that_cannot_be_read_is_named_with_the_reason_and_a_next_step(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / kind
    make: dict[str, Callable[[], object]] = {
        "none": lambda: None,
        "folder": path.mkdir,
        "fifo": lambda: os.mkfifo(path),
        "empty": path.touch,
        "binary": lambda: path.write_bytes(b"\x7fELF\xff\n"),
    }
    make[kind]()
    assert main(["--policy", str(path)]) == 2
    problem, hint = capsys.readouterr().err.splitlines()
    assert problem.startswith("netqosctl demo: ")
    assert kind in problem
    assert "Errno" not in problem
    assert hint.startswith("  ")


@pytest.mark.parametrize(
    ("problem", "code", "told"),
    [
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 0, ""),
        (
            OSError(errno.ENOSPC, "No space left on device"),
            1,
            (
                "netqosctl demo: cannot go on: No space left on device\n"
                "  see whether there is room where the output goes\n"
            ),
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "/x/demo.svg"),
            1,
            "netqosctl demo: /x/demo.svg: Permission denied\n  name another place, or see who may write there\n",
        ),
        (Unsupported("no iperf3", hint="install it"), 1, "netqosctl demo: no iperf3\n  install it\n"),
        (KeyboardInterrupt(), 130, "netqosctl demo: interrupted; everything is removed again\n"),
    ],
)
def test_what_ends_the_demo_early_is_told_in_words(
    *,
    problem: BaseException,
    code: int,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def fail() -> None:
        raise problem

    monkeypatch.setattr(command, "require_tools", fail)
    monkeypatch.setattr(command, "reader_gone", lambda: 0)
    assert main([]) == code
    assert capfd.readouterr().err == told


@pytest.mark.parametrize("words", [["--total", "-5M"], ["--total=-5M"], ["--seconds", "-20"]])
def test_a_negative_value_is_judged_as_one(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert words[-1].rpartition("=")[2] in capsys.readouterr().err
