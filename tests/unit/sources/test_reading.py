"""One look at the files: everything that is wrong with all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from netqos.settings.file import parse_documents
from netqos.sources.configfiles import Unreadable
from netqos.sources.reading import Reader


@pytest.fixture
def main(tmp_path: Path) -> Path:
    path = tmp_path / "netqos.yaml"
    path.write_text("onExit: restore\n")
    (tmp_path / "conf.d").mkdir()
    return path


def test_a_file_that_cannot_be_read_hides_no_problem_of_another(main: Path) -> None:
    main.write_text("foo: 1\n")
    (main.parent / "conf.d/10-a.yaml").mkdir()
    (main.parent / "conf.d/20-b.yaml").write_text("log:\n  level: loud\n")
    found = Reader(main, parse_documents).read()
    assert found.settings is None
    assert isinstance(found.problem, Unreadable)
    assert [one.subject for one in found.problem.findings] == [
        str(main.parent / "conf.d/10-a.yaml"),
        "netqos.yaml line 1",
        "conf.d/20-b.yaml line 2",
    ]
    assert [one.partition(": ")[0] for one in found.problem.problems] == [
        str(main.parent / "conf.d/10-a.yaml"),
        "netqos.yaml:1:1",
        "conf.d/20-b.yaml:2:10",
    ]


def test_where_the_others_are_right_only_that_file_is_told(main: Path) -> None:
    (main.parent / "conf.d/10-a.yaml").mkdir()
    found = Reader(main, parse_documents).read()
    assert found.settings is None
    assert isinstance(found.problem, Unreadable)
    assert len(found.problem.findings) == 1


def test_texts_are_parsed_again_only_when_they_differ(main: Path) -> None:
    parsed: list[int] = []

    def parse(documents: object) -> object:
        parsed.append(1)
        return parse_documents(documents)  # type: ignore[arg-type]

    reader = Reader(main, parse)  # type: ignore[arg-type]
    assert reader.read() == reader.read()
    (main.parent / "conf.d/10-a.yaml").write_text("")
    assert reader.read().settings is None
    assert len(parsed) == 1
    (main.parent / "conf.d/10-a.yaml").write_text("onExit: keep\n")
    assert reader.read().documents[1] == ("conf.d/10-a.yaml", "onExit: keep\n")
    assert len(parsed) == 2


def test_a_file_that_is_not_read_is_told_beside_what_is(main: Path) -> None:
    (main.parent / "conf.d/10-a.yml").write_text("onExit: keep\n")
    found = Reader(main, parse_documents).read()
    assert found.settings == parse_documents([("netqos.yaml", "onExit: restore\n")])
    assert [one.code for one in found.findings] == ["configuration-ignored"]
