from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from netqos.model.health import Severity
from netqos.sources import configfiles
from netqos.sources.configfiles import Unreadable, ignored_files, read_documents, watched_folders
from netqos.sources.refusals import MOST_BYTES


@pytest.fixture
def main(tmp_path: Path) -> Path:
    path = tmp_path / "etc" / "netqos.yaml"
    path.parent.mkdir()
    path.write_text("onExit: keep\n")
    return path


def refusals(main: Path) -> list[tuple[str, str]]:
    with pytest.raises(Unreadable) as caught:
        read_documents(main)
    assert len(caught.value.problems) == len(caught.value.findings)
    assert all(one.hint for one in caught.value.findings)
    return [(one.code, one.subject) for one in caught.value.findings]


def test_the_main_file_then_the_others_by_name(main: Path) -> None:
    folder = main.parent / "conf.d"
    folder.mkdir()
    for name in ("20-b.yaml", "10-a.yaml", "README", "x.yml", ".hidden.yaml", ".#10-a.yaml", "10-a.yaml~"):
        (folder / name).write_text(f"# {name}\n{{}}\n")
    (folder / "..data").mkdir()
    assert read_documents(main) == (
        ("netqos.yaml", "onExit: keep\n"),
        ("conf.d/10-a.yaml", "# 10-a.yaml\n{}\n"),
        ("conf.d/20-b.yaml", "# 20-b.yaml\n{}\n"),
    )


def test_a_byte_order_mark_is_no_text(main: Path) -> None:
    main.write_bytes(b"\xef\xbb\xbfonExit: keep\n")
    assert read_documents(main) == (("netqos.yaml", "onExit: keep\n"),)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/null")


def _socket(path: Path) -> None:
    path.unlink()
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def _circle(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def _dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def _garbage(path: Path) -> None:
    path.write_bytes(b"a: 1\nb: \xff\n")


def _huge(path: Path) -> None:
    path.write_text("#" * (MOST_BYTES + 1))


def _comments(path: Path) -> None:
    path.write_text("# an example\n---\n\n  # cut short\n")


def _empty(path: Path) -> None:
    path.write_text(" \n\n")


@pytest.mark.parametrize(
    ("break_it", "code", "place"),
    [
        (_dangling, "configuration-missing", ""),
        (_folder, "configuration-not-a-file", ""),
        (_fifo, "configuration-not-a-file", ""),
        (_device, "configuration-not-a-file", ""),
        (_circle, "configuration-not-a-file", ""),
        (_garbage, "configuration-not-text", " line 2"),
        (_huge, "configuration-too-large", ""),
        (_empty, "configuration-empty", " line 1"),
        (_comments, "configuration-empty", " line 1"),
    ],
)
def test_what_is_no_text_file_is_told_at_once(
    main: Path, break_it: Callable[[Path], None], code: str, place: str
) -> None:
    other = main.parent / "conf.d" / "10-a.yaml"
    other.parent.mkdir()
    other.write_text("{}\n")
    break_it(other)
    where = f"conf.d/10-a.yaml{place}" if place else str(other)
    assert refusals(main) == [(code, where)]
    break_it(main)
    assert refusals(main) == [(code, f"netqos.yaml{place}" if place else str(main)), (code, where)]


@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (_folder, "is a folder; allowed: a regular file, or a link to one"),
        (_fifo, "is a named pipe; allowed: a regular file"),
        (_device, "is a character device; allowed: a regular file"),
        (_socket, "is a socket, or a device that is not there; allowed: a regular file"),
        (_circle, "its links lead in a circle; allowed: a regular file"),
        (_dangling, "what it links to is not there; allowed: a regular file"),
        (Path.unlink, "there is no such file; allowed: a regular file"),
    ],
)
def test_a_refusal_says_what_is_there_what_is_allowed_and_what_to_do(
    main: Path, break_it: Callable[[Path], None], words: str
) -> None:
    break_it(main)
    with pytest.raises(Unreadable) as caught:
        read_documents(main)
    [told] = caught.value.problems
    assert told.startswith(f"{main}: {words}")
    assert "(" in told


def test_an_empty_path_is_the_folder_that_one_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert refusals(Path()) == [("configuration-not-a-file", str(tmp_path))]


def test_the_files_that_can_be_read_are_kept(main: Path) -> None:
    folder = main.parent / "conf.d"
    (folder / "10-a.yaml").mkdir(parents=True)
    (folder / "20-b.yaml").write_text("log: {level: loud}\n")
    with pytest.raises(Unreadable) as caught:
        read_documents(main)
    assert [name for name, _ in caught.value.documents] == ["netqos.yaml", "conf.d/20-b.yaml"]


def test_files_that_look_meant_are_told(main: Path) -> None:
    folder = main.parent / "conf.d"
    assert ignored_files(main) == ()
    folder.mkdir()
    quiet = (
        "10-a.yaml",
        ".hid.yaml",
        ".hid.yml",
        "README",
        "10-a.yaml~",
        "10-a.yaml.off",
        "10-a.yaml.rpmsave",
    )
    for name in (*quiet, "x.yml", "y.YAML", "z.json"):
        (folder / name).write_text("{}\n")
    (folder / "folder.yml").mkdir()
    found = ignored_files(main)
    assert [(one.code, one.severity, one.subject) for one in found] == [
        ("configuration-ignored", Severity.INFO, str(folder / name)) for name in ("x.yml", "y.YAML", "z.json")
    ]
    assert "rename it to x.yaml" in found[0].hint


def test_the_main_file_must_be_there_the_others_need_not(main: Path) -> None:
    (main.parent / "conf.d").mkdir()
    (main.parent / "conf.d/10-a.yaml").write_text("{}\n")
    main.unlink()
    assert refusals(main) == [("configuration-missing", str(main))]


def test_permission_denied_is_told(main: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, flags: int) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    assert refusals(main) == [("configuration-unreadable", str(main))]


def test_a_file_in_the_place_of_the_folder(main: Path) -> None:
    (main.parent / "conf.d").write_text("")
    assert refusals(main) == [("configuration-not-a-folder", str(main.parent / "conf.d"))]


def test_a_set_that_is_being_replaced_is_read_again(main: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([(("a", "1"), ("b", "1")), (("a", "1"), ("b", "2")), (("a", "2"), ("b", "2"))])
    last = (("a", "2"), ("b", "2"))
    monkeypatch.setattr(configfiles, "_read_all", lambda path: next(readings, last))
    assert read_documents(main) == last


def test_a_set_that_never_holds_still_is_told(main: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = iter(range(100))
    monkeypatch.setattr(configfiles, "_read_all", lambda path: (("a", str(next(count))),))
    assert refusals(main) == [("configuration-unsteady", str(main))]


def test_a_path_through_a_file_is_one_problem(main: Path) -> None:
    assert refusals(main / "netqos.yaml") == [("configuration-missing", str(main / "netqos.yaml"))]


def test_descriptors_do_not_leak(main: Path) -> None:
    (main.parent / "conf.d").mkdir()
    _fifo(_touched(main.parent / "conf.d/a.yaml"))
    (main.parent / "conf.d/b.yaml").mkdir()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        refusals(main)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def _touched(path: Path) -> Path:
    path.touch()
    return path


def test_the_folders_of_a_plain_file(main: Path) -> None:
    assert watched_folders(main) == (main.parent,)
    (main.parent / "conf.d").mkdir()
    assert watched_folders(main) == (main.parent, main.parent / "conf.d")


def test_the_folders_of_a_mounted_configmap(tmp_path: Path) -> None:
    (tmp_path / "..2024").mkdir()
    (tmp_path / "..2024/netqos.yaml").write_text("{}")
    (tmp_path / "..data").symlink_to("..2024")
    (tmp_path / "netqos.yaml").symlink_to("..data/netqos.yaml")
    assert set(watched_folders(tmp_path / "netqos.yaml")) == {tmp_path, tmp_path / "..2024"}


def test_the_folders_of_links_to_elsewhere(main: Path, tmp_path: Path) -> None:
    (tmp_path / "opt/real").mkdir(parents=True)
    (tmp_path / "opt/real/n.yaml").write_text("{}")
    (tmp_path / "opt/current").symlink_to("real")
    main.unlink()
    main.symlink_to(tmp_path / "opt/current/n.yaml")
    assert set(watched_folders(main)) == {main.parent, tmp_path / "opt", tmp_path / "opt/real"}


def test_of_a_folder_that_is_not_there_the_nearest_one(tmp_path: Path) -> None:
    assert watched_folders(tmp_path / "a/b/netqos.yaml") == (tmp_path,)


def test_a_circle_of_links_ends(main: Path) -> None:
    _circle(main)
    assert main.parent in watched_folders(main)
