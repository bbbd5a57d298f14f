"""`backendOptions.terway`."""

from __future__ import annotations

import pytest

from netqos.errors import Rejected
from netqos_terway.options import DEFAULT_FOLDER, Options, parse


def test_defaults() -> None:
    assert parse({}) == Options(folder=DEFAULT_FOLDER)


def test_a_folder() -> None:
    assert parse({"folder": "/host/var/lib/terway/qos/"}) == Options(folder="/host/var/lib/terway/qos")


@pytest.mark.parametrize("folder", ["", "relative/path", "/", "///", "/var/../etc", "/a\0b", None, 7, ["/a"]])
def test_what_is_no_absolute_path(folder: object) -> None:
    with pytest.raises(Rejected, match="allowed: an absolute path"):
        parse({"folder": folder})


def test_every_problem_at_once() -> None:
    with pytest.raises(Rejected) as caught:
        parse({"foldr": "/a", "folder": 7, "settle": 3})
    assert caught.value.subject == "backendOptions.terway"
    assert caught.value.problems == (
        "foldr: unknown option; allowed: folder",
        "settle: unknown option; allowed: folder",
        "folder: 7; allowed: an absolute path such as /var/lib/terway/qos",
    )
    assert all(problem in caught.value.message for problem in caught.value.problems)
