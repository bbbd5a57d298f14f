from __future__ import annotations

import pytest

from netqos.sources.kube.nearnames import near


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("W1", ("w1", "w1.example.org", "w1.other.org")),
        ("w1.example.org", ("w1",)),
        ("w1.Other.org", ("w1", "w1.other.org")),
        ("w2", ()),
        ("w", ()),
    ],
)
def test_near_is_what_differs_in_case_or_in_having_a_domain(name: str, found: tuple[str, ...]) -> None:
    assert near(name, ["w1", "w1.example.org", "w1.other.org", "w10", "x"]) == found
