from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netqos.backend import StateStore
from netqos.host.state import StateFolder
from netqos.host.stateform import LARGEST

DOCUMENT = {"qdisc": "fq_codel", "handles": [1, 2], "none": None}


def _codes(folder: StateFolder) -> list[str]:
    return [finding.code for finding in folder.findings]


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_a_document_comes_back_as_it_was(tmp_path: Path) -> None:
    store: StateStore = StateFolder(tmp_path / "state")
    assert store.load("before") is None
    store.save("before", DOCUMENT)
    assert StateFolder(tmp_path / "state").load("before") == DOCUMENT
    store.delete("before")
    assert store.load("before") is None
    store.delete("before")


@settings(max_examples=20)  # each is written to the disk for good
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(0, LARGEST) | st.floats(0, float(LARGEST)) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_document_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, document: object
) -> None:
    folder = StateFolder(tmp_path_factory.mktemp("state"))
    folder.save("any", document)
    assert folder.load("any") == document
    assert folder.findings == ()


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_folder_and_documents_are_private_under_any_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        StateFolder(tmp_path / "netqos" / "backends").save("before", DOCUMENT)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "netqos").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "netqos/backends").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "netqos/backends/before.json").stat().st_mode) == 0o600


def test_items_one_by_one_are_the_list_of_them(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    for items in ([], [1], [{"b": [1, "\u00e9"], "a": None}, "x", []]):
        folder.save("whole", items)
        folder.save_each("each", iter(items))
        assert (tmp_path / "each.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
        assert folder.load("each") == items
    assert (folder.has("each"), folder.has("none")) == (True, False)


def test_equal_content_is_not_written_again(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    folder.save("before", {"a": 1, "b": 2})
    first = (tmp_path / "before.json").stat()
    folder.save("before", {"b": 2, "a": 1})
    assert (tmp_path / "before.json").stat().st_ino == first.st_ino
    folder.save("before", {"b": 3, "a": 1})
    assert (tmp_path / "before.json").stat().st_ino != first.st_ino
    assert _names(tmp_path) == ["before.json"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not JSON"),
        (b'{"version": 1, "docum', "not JSON"),
        (b"\xff\x00", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "no 'document'"),
        (b'{"version": 1}', "no 'document'"),
        (b'{"document": {}}', "version is null; this daemon reads version 1"),
        (b'{"version": 2, "document": {}}', "version is 2; this daemon reads version 1"),
        *(
            (b'{"version": 1, "document": {"x": [%s]}}' % number, "allowed are 0 to 9007199254740992")
            for number in (
                *(
                    b"NaN",
                    b"Infinity",
                    b"-Infinity",
                    b"-1",
                    b"-0.5",
                    b"1e999",
                    b"9007199254740993",
                    b"9.1e15",
                ),
                *(b"1" * 401, b"-" + b"1" * 401, b"1" * 5000),
            )
        ),
    ],
)
def test_what_cannot_be_understood_is_moved_aside(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "before.json").write_bytes(content)
    folder = StateFolder(tmp_path)
    assert folder.load("before") is None
    assert _codes(folder) == ["state-set-aside"]
    assert reason in folder.findings[0].message
    assert (tmp_path / "before.json.set-aside").read_bytes() == content
    assert folder.load("before") is None
    folder.save("before", DOCUMENT)
    assert folder.findings == ()
    assert folder.load("before") == DOCUMENT


def _make_directory(path: Path) -> None:
    path.mkdir()


def _make_link(path: Path) -> None:
    other = path.with_name("other")
    other.write_text(json.dumps({"version": 1, "document": "theirs"}))
    path.symlink_to(other)


@pytest.mark.parametrize("make", [_make_directory, os.mkfifo, _make_link])
def test_what_is_no_file_of_ours_is_moved_aside_and_never_waited_for(tmp_path: Path, make: Any) -> None:
    make(tmp_path / "before.json")
    folder = StateFolder(tmp_path)
    assert folder.load("before") is None
    assert "not a regular file" in folder.findings[0].message
    folder.save("before", DOCUMENT)
    assert folder.load("before") == DOCUMENT


def test_a_file_of_somebody_else_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    StateFolder(tmp_path).save("overrides", DOCUMENT)
    if os.geteuid() == 0:
        os.chown(tmp_path / "overrides.json", 4242, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 4343)
    folder = StateFolder(tmp_path)
    assert folder.load("overrides") is None
    assert "it belongs to user" in folder.findings[0].message


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "before.json").open("wb") as file:
        file.truncate(17 * 2**20)
    folder = StateFolder(tmp_path)
    assert folder.load("before") is None
    assert "at most 16777216" in folder.findings[0].message


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (10**400, "allowed are 0 to"),
        ({"x": [float("nan")]}, "not JSON compliant"),
        ({"x": -1}, "allowed are 0 to"),
        (["\x01" * 3 * 2**20], "at most 16777216 are read"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(tmp_path: Path, document: Any, reason: str) -> None:
    folder = StateFolder(tmp_path)
    folder.save("before", [DOCUMENT])
    for save in (folder.save, folder.save_each):
        save("before", document if isinstance(document, list) else [document])
        assert _codes(folder) == ["state-not-kept"]
        assert reason in folder.findings[0].message
        assert folder.load("before") == [DOCUMENT]
    folder.save("before", DOCUMENT)
    assert folder.findings == ()


def test_a_killed_writer_leaves_the_old_document(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    folder.save("before", DOCUMENT)
    (tmp_path / ".before.json.new").write_bytes(b'{"version": 1, "do')
    assert folder.load("before") == DOCUMENT
    folder.save("before", {"qdisc": "fq"})
    assert folder.load("before") == {"qdisc": "fq"}
    assert _names(tmp_path) == ["before.json"]


def test_without_a_usable_folder_the_daemon_goes_on_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file, not a folder")
    events: list[str] = []
    folder = StateFolder(tmp_path / "state", log=lambda event, **values: events.append(event))
    assert folder.load("before") is None
    folder.save("before", DOCUMENT)
    folder.save("before", DOCUMENT)
    assert _codes(folder) == ["state-not-kept"]
    assert folder.findings[0].subject == str(tmp_path / "state/before.json")
    assert events == ["state-not-kept"]
    (tmp_path / "state").unlink()
    folder.save("before", DOCUMENT)
    assert folder.findings == ()
    folder.delete("before")


def test_a_full_disk_keeps_the_old_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = StateFolder(tmp_path)
    folder.save("before", DOCUMENT)

    def refuse(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refuse)
        folder.save("before", {"qdisc": "fq"})
    assert "No space left on device" in folder.findings[0].message
    assert folder.load("before") == DOCUMENT
    assert _names(tmp_path) == ["before.json"]


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "UPPER", "a" * 101, "x\n"])
def test_a_name_never_leaves_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="a document's name"):
        StateFolder(tmp_path).save(name, {})


def test_descriptors_do_not_leak(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    (tmp_path / "bad.json").mkdir()
    before = len(_names(Path("/proc/self/fd")))
    for number in range(30):
        folder.save("before", number)
        folder.load("before")
        folder.load("bad")
    assert len(_names(Path("/proc/self/fd"))) == before
