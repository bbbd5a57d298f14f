from __future__ import annotations

import pytest

from netqos.model.addresses import plain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.88.0.10", "10.88.0.10"),
        ("::ffff:10.88.0.10", "10.88.0.10"),
        ("FD00:0088:0:0::10", "fd00:88::10"),
        ("10.88.0.010", "10.88.0.010"),
        ("node", "node"),
        ("", ""),
    ],
)
def test_equal_addresses_are_equal_texts_and_others_stay_as_they_are(text: str, expected: str) -> None:
    assert plain(text) == expected
