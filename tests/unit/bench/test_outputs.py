from __future__ import annotations

from pathlib import Path

import pytest

from netqos.errors import NetqosError, Rejected
from tests.bench.outputs import require_writable, save, write


def test_a_file_is_written_whole_and_nothing_stays_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("earlier")
    write(path, "new")
    assert (path.read_text(), list(tmp_path.iterdir())) == ("new", [path])


@pytest.mark.parametrize("target", ["/dev/null", "file"])
def test_a_link_is_written_through_and_stays_what_it_is(tmp_path: Path, target: str) -> None:
    link, file = tmp_path / "stdout", tmp_path / "file"
    file.touch()
    link.symlink_to(target)
    require_writable((link, None))
    write(link, "text")
    assert (str(link.readlink()), sorted(tmp_path.iterdir())) == (target, [file, link])
    assert file.read_text() == ("text" if target == "file" else "")


@pytest.mark.parametrize("name", [".", "nowhere/r.json", "file/r.json", "round/r.json", "x" * 300])
def test_where_no_file_can_be_it_is_said(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(Rejected, match="cannot be written there"):
        require_writable((None, tmp_path / name))
    with pytest.raises(NetqosError, match="cannot be written: "):
        write(tmp_path / name, "text")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "round"]


def test_a_folder_that_may_not_be_looked_into_takes_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "stat", refuse)  # root may look everywhere
    with pytest.raises(Rejected, match="cannot be written there"):
        require_writable((tmp_path / "r.json",))


def test_one_that_cannot_be_written_keeps_no_other_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "r.md"
    assert not save([(Path("/dev/full"), lambda: "text"), (None, lambda: "text"), (path, lambda: "page")])
    assert capsys.readouterr().err == "bench: /dev/full: cannot be written: No space left on device\n"
    assert path.read_text() == "page"
    assert save([(path, lambda: "again")])
