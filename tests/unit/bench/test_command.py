from __future__ import annotations

from pathlib import Path

import pytest

from netqos.errors import Rejected
from netqos.model.levels import Direction
from tests.bench import __main__ as bench
from tests.bench.compare import command
from tests.bench.compare.measures import evaluate
from tests.bench.compare.results import Contestant, Result, as_text, policy_json
from tests.bench.compare.runner import turns
from tests.bench.compare.script import Times
from tests.bench.compare.surface import Enforcer, load, usual_policy
from tests.unit.bench.runs import POLICY, recording

ADAPTER = """
from tests.bench.compare.surface import KernelOnly

class Adapter(KernelOnly):
    name = {name!r}
    how = "nothing at all"

    def apply(self, policy):
        pass
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(text)
    return path


def test_an_adapter_is_the_class_of_a_file(tmp_path: Path) -> None:
    made = load(written(tmp_path, ADAPTER.format(name="mine")))
    assert (made.name, made.how) == ("mine", "nothing at all")
    assert isinstance(made(), Enforcer)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = ", "SyntaxError"),
        ("raise ValueError('no')", "ValueError: no"),
        ("", "AttributeError: .*Adapter"),
        ("class Adapter: pass", "lacks name, how, start, apply, pid, reading, stop"),
        (ADAPTER.format(name=""), "lacks name [(]docs"),
    ],
)
def test_a_file_that_is_no_adapter_says_why(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(Rejected, match=said):
        load(written(tmp_path, text))


def test_a_process_that_runs_only_once_it_is_started_may_be_asked_for_its_pid_then(tmp_path: Path) -> None:
    pid = """
    @property
    def pid(self):
        return self.process.pid
"""
    assert load(written(tmp_path, ADAPTER.format(name="mine") + pid)).name == "mine"


@pytest.mark.parametrize("name", ["none.py", ".", f"{'x' * 300}.py"])
def test_a_file_that_is_not_there_says_so(tmp_path: Path, name: str) -> None:
    with pytest.raises(Rejected, match="is no Python file"):
        load(tmp_path / name)


def test_every_built_in_one_is_an_enforcer() -> None:
    assert list(command.BUILT_IN) == [
        *("nothing", "static HTB", "naive HTB", "CNI limits", "1 s stepper", "netqos"),
    ]
    for made in command.BUILT_IN.values():
        assert isinstance(made(), Enforcer)
        assert made.how


def test_the_whole_comparison_takes_under_ten_minutes() -> None:
    times = Times()
    a_run_s = times.greedy_s + times.short_s * 9 / 8 + 3  # building, starting, stopping
    assert len(command.BUILT_IN) * 5 * a_run_s < 600
    assert times.scaled(0.5) == Times(
        before_s=0.5, join_s=2.25, gone_s=0.5, back_s=0.6, node_s=0.6, short_s=0.8
    )


def test_each_round_begins_with_another_one() -> None:
    assert list(turns(("a", "b", "c"), 4)) == [
        *((1, "a"), (1, "b"), (1, "c"), (2, "b"), (2, "c"), (2, "a")),
        *((3, "c"), (3, "a"), (3, "b"), (4, "a"), (4, "b"), (4, "c")),
    ]


def test_guarantees_fill_each_total() -> None:
    policy = usual_policy()
    for way in Direction:
        assert sum(band.guarantee_bps for band in policy.bands[way]) == policy.totals_bps[way]
    assert policy.totals_bps.tx != policy.totals_bps.rx


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--enforcer", "nobody"], "unknown: nobody"),
        (["--adapter", "none.py"], "none.py: is no Python file"),
        (["--json", "/nowhere/result.json"], "/nowhere/result.json: cannot be written there"),
        (["--svg", "/"], "/: cannot be written there"),
    ],
)
def test_a_wrong_command_line_is_told_before_anything_runs(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.main(["compare", *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("command", [["guarantee", "--json"], ["show", "r.json", "--svg"]])
def test_every_command_tells_before_it_begins_that_a_file_cannot_be_written(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.main([*command, "/nowhere/file"]) == 2
    assert "/nowhere/file: cannot be written there" in capsys.readouterr().err


def test_an_adapter_may_not_take_a_name_that_is_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, ADAPTER.format(name="netqos"))
    assert bench.main(["compare", "--adapter", str(path)]) == 2
    assert "the name 'netqos' is taken" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["0.01", "1e9", "x", "nan"])
def test_a_scale_has_bounds(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench.main(["compare", "--scale", word])
    assert "is no number from 0.05 to 100" in capsys.readouterr().err


def test_diff_of_files_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["diff", str(tmp_path / "a"), str(tmp_path / "b")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_an_earlier_result_is_shown_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, svg, page = (tmp_path / name for name in ("r.json", "r.svg", "r.md"))
    result = Result(
        policy=policy_json(POLICY),
        contestants=(Contestant(name="mine", how="", runs=(evaluate(recording(), POLICY),)),),
    )
    path.write_text(as_text(result))
    assert bench.main(["show", str(path), "--svg", str(svg), "--markdown", str(page)]) == 0
    assert "mine" in capsys.readouterr().out
    assert svg.read_text().startswith("<svg")
    assert "| mine |" in page.read_text()
    assert bench.main(["show", str(svg)]) == 2
    assert bench.main(["show", str(path), "--svg", "/dev/full", "--markdown", str(page)]) == 1
    captured = capsys.readouterr()
    assert ("mine" in captured.out, captured.err.splitlines()[-1]) == (
        True,
        "bench: /dev/full: cannot be written: No space left on device",
    )


@pytest.mark.parametrize(
    ("argv", "chosen"),
    [
        ([], "compare"),
        (["--runs", "2"], "compare"),
        (["compare", "--runs", "2"], "compare"),
        (["--runs", "2", "guarantee"], "measure"),
        (["all"], "measure"),
        (["guarante"], "measure"),
        (["diff", "a", "b"], "diff"),
    ],
)
def test_without_a_name_it_is_the_comparison(
    argv: list[str], chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []

    def say(word: str) -> int:
        called.append(word)
        return 0

    monkeypatch.setattr(bench, "measure", lambda _argv: say("measure"))
    monkeypatch.setattr(
        bench, "COMMANDS", {"compare": lambda _argv: say("compare"), "diff": lambda _argv: say("diff")}
    )
    assert bench.main(argv) == 0
    assert called == [chosen]
