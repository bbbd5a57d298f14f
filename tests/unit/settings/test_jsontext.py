"""JSON in annotations: what is wrong with a text is told in words and with the place."""

from __future__ import annotations

import pytest

from netqos.errors import Rejected
from netqos.model.texts import LONGEST_TEXT
from netqos.settings.jsontext import REPEATED, load_json


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a" 1}', "no JSON (Expecting ':' delimiter, character 6)"),
        ("", "no JSON (Expecting value, character 1)"),
        ('{"a": 1,, }', "no JSON (Expecting property name enclosed in double quotes, character 9)"),
        ('{"a": NaN}', "no JSON: NaN is no number"),
        ('{"a": -Infinity,}', "no JSON: -Infinity is no number"),
        ("[" * LONGEST_TEXT, "no usable JSON: nested too deeply"),
        ("1" * 5_000, "no usable JSON: an integer is too long"),
        ('"' + "a" * LONGEST_TEXT, "longer than 64 KiB, and not read"),
    ],
    ids=lambda text: ascii(text[:24]),
)
def test_what_is_no_json(text: str, message: str) -> None:
    with pytest.raises(Rejected) as refused:
        load_json(text)
    assert refused.value.message == message


def test_the_longest_text_is_read() -> None:
    assert load_json('"' + "a" * (LONGEST_TEXT - 2) + '"') == "a" * (LONGEST_TEXT - 2)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, 2, ], }', {"a": [1, 2]}),
        ('{"a": "1,]",}', {"a": "1,]"}),
        ('{"a": "\\",}",}', {"a": '",}'}),
        ("[1\n,\n]", [1]),
    ],
    ids=ascii,
)
def test_a_comma_may_stand_before_a_closing_bracket(text: str, value: object) -> None:
    assert load_json(text) == value


def test_a_repeated_key_has_no_value() -> None:
    assert load_json('{"a": 1, "b": 2, "a": 1}') == {"a": REPEATED, "b": 2}
    assert load_json('{"a": 1, "a": 2, "a": 3}') == {"a": REPEATED}
