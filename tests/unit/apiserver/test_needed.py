from __future__ import annotations

import pytest

from tests.apiserver.fixtures import needed
from tests.apiserver.gobuild import Unavailable


def test_what_is_there_is_given() -> None:
    assert needed("number to test with", lambda: 7) == 7


def test_what_is_not_there_skips_the_test_and_says_what_and_why() -> None:
    def find() -> int:
        raise Unavailable("packages are not installed: go")

    with pytest.raises(pytest.skip.Exception) as told:
        needed("number to test with", find)
    assert told.value.msg == "no number to test with: packages are not installed: go"
