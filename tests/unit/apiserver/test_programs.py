"""Which API server the tests take."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.apiserver.gobuild import SOURCE_NAMES, Unavailable, cache_folder, source_digest
from tests.apiserver.programs import SOURCES, OneProgram, TwoPrograms, find_programs


def program(path: Path) -> Path:
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_the_program_that_is_given_comes_first(tmp_path: Path) -> None:
    given = program(tmp_path / "given")
    program(tmp_path / "kube-apiserver")
    program(tmp_path / "etcd")
    env = {"KUBE_APISERVER_TEST_BINARY": str(given), "KUBEBUILDER_ASSETS": str(tmp_path)}
    assert find_programs(env) == OneProgram(given)


def test_released_programs_come_second(tmp_path: Path) -> None:
    server, etcd = program(tmp_path / "kube-apiserver"), program(tmp_path / "etcd")
    env = {"KUBEBUILDER_ASSETS": str(tmp_path), "NETQOS_CACHE": str(tmp_path / "none")}
    assert find_programs(env) == TwoPrograms(server, etcd)


def test_a_given_program_that_is_not_there_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(Unavailable) as told:
        find_programs({"KUBEBUILDER_ASSETS": str(tmp_path)})
    text = str(told.value)
    assert "KUBEBUILDER_ASSETS" in text
    assert str(tmp_path / "kube-apiserver") in text
    assert "\n" not in text


def test_what_was_built_from_these_sources_is_taken_from_the_cache(tmp_path: Path) -> None:
    kept = tmp_path / "apiserver" / source_digest(SOURCES) / "apiserver"
    kept.parent.mkdir(parents=True)
    program(kept)
    assert find_programs({"NETQOS_CACHE": str(tmp_path)}) == OneProgram(kept)


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"NETQOS_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, Path("/a")),
        ({"XDG_CACHE_HOME": "/b"}, Path("/b/netqos")),
        ({}, Path.home() / ".cache" / "netqos"),
    ],
)
def test_the_cache_is_outside_the_checkout(env: dict[str, str], expected: Path) -> None:
    assert cache_folder(env) == expected


@pytest.mark.parametrize("name", SOURCE_NAMES)
def test_each_source_counts(name: str, tmp_path: Path) -> None:
    for each in SOURCE_NAMES:
        shutil.copy(SOURCES / each, tmp_path)
    assert source_digest(tmp_path) == source_digest(SOURCES)
    with (tmp_path / name).open("a", encoding="utf-8") as file:
        file.write("\n")
    assert source_digest(tmp_path) != source_digest(SOURCES)
