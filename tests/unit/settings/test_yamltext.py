"""YAML as configuration: plain values, places, and no text that costs anything."""

from __future__ import annotations

import pytest
import yaml

from netqos.settings import yamltext
from netqos.settings.nodes import Mark, Node
from netqos.settings.yamltext import read_yaml

BOMB = (
    "a: &a ["
    + ",".join("x" * 10)
    + "]\n"
    + "".join(
        f"{after}: &{after} [{','.join([f'*{before}'] * 10)}]\n"
        for before, after in zip("abcdefgh", "bcdefghi", strict=True)
    )
)


@pytest.fixture(params=["CSafeLoader", "SafeLoader"])
def _loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both parsers of PyYAML, as it may have been built without libyaml."""
    monkeypatch.setattr(yamltext, "_LOADER", getattr(yaml, request.param))


def plain(text: str) -> object:
    root, problems = read_yaml(text, "f")
    assert problems == ()
    assert root is not None
    return root.plain()


def complaint(text: str) -> str:
    _, (problem,) = read_yaml(text, "f")
    return f"{problem.line}:{problem.column} {problem.message}"


@pytest.mark.usefixtures("_loader")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10M", "10M"),
        ("10", 10),
        ("-5", -5),
        ("0", 0),
        ("1_000", "1_000"),
        ("010", "010"),
        ("0o10", "0o10"),
        ("0x10", "0x10"),
        ("+5", "+5"),
        ("-0", "-0"),
        ("10:20", "10:20"),
        ("190:20:30", "190:20:30"),
        ("1.5", "1.5"),
        ("1e9", "1e9"),
        (".inf", ".inf"),
        ("2001-01-01", "2001-01-01"),
        ("12345678901234567890", "12345678901234567890"),
        ("no", "no"),
        ("on", "on"),
        ("y", "y"),
        ("true", True),
        ("False", False),
        ("", None),
        ("~", None),
        ("null", None),
        ("'10'", "10"),
        ('"true"', "true"),
        ("'~'", "~"),
        ("!!str 10", "10"),
        ("! 10", "10"),
        ("|\n  x\n", "x\n"),
        ("[1, a, [~]]", [1, "a", [None]]),
        ("{b: {c: 1}}", {"b": {"c": 1}}),
        ("<", "<"),
    ],
)
def test_a_value_is_what_is_written(text: str, value: object) -> None:
    assert plain(f"a: {text}") == {"a": value}


@pytest.mark.usefixtures("_loader")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb: 2\na: 3\n", '3:1 key "a" again; it stands in line 1 already'),
        ("a: {b: 1, c: 2,\n  b: 3}", '2:3 key "b" again; it stands in line 1 already'),
        ("a: !!int '3'", '1:4 tag "tag:yaml.org,2002:int"; allowed: no tags'),
        (
            "a: !!python/object:os.system {}",
            '1:4 tag "tag:yaml.org,2002:python/object:os.system"; allowed: no tags',
        ),
        ("a: &x {b: 1}\nc: {<<: *x}", "2:5 merge key <<; allowed: aliases of whole values"),
        ("a: &a [*a]", "1:8 alias *a without an anchor before it"),
        ("a: *b", "1:4 alias *b without an anchor before it"),
        ("a: &b c\n*b : d", "2:1 an alias as a key"),
        ("? [a]\n: b", "1:3 a list or map as a key; allowed: texts"),
        ("a: 1\n---\nb: 2", "2:1 a second document; allowed: one a file"),
        (f"a: {'[' * 30}{']' * 30}", "1:27 more than 24 levels of nesting"),
        ("a: 1\nb: \ud800", "2:1 text that is no Unicode"),
        ("#" * ((1 << 20) + 1), "1:1 1048577 bytes; allowed: 1048576"),
        (f"[{'a,' * 50_000}]", "1:1 more than 50000 values"),
        (BOMB, "5:4 more than 50000 values"),
    ],
    ids=lambda text: ascii(text[:30]),
)
def test_what_yaml_could_do_and_a_configuration_should_not(text: str, expected: str) -> None:
    assert complaint(text) == expected


@pytest.mark.usefixtures("_loader")
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 'x", 1),
        ("a: [1,\n", 2),
        ("a:\n\t- b", 2),
        ("a: b: c", 1),
        ("a: 1\n\n%", 3),
        ("a: 1\nb: \x07", 2),
        ("&a " * 9, 1),
        ("[" * 200_000, 1),
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_text_that_is_no_yaml_is_one_problem_near_its_line(text: str, line: int) -> None:
    root, (problem,) = read_yaml(text, "f")
    assert root is None
    assert abs(problem.line - line) <= 1
    assert problem.hint


def test_a_value_is_repeated_by_an_alias() -> None:
    assert plain("a: &x [1, 2]\nb: *x\nc: [*x]") == {"a": [1, 2], "b": [1, 2], "c": [[1, 2]]}


def test_every_value_knows_its_place() -> None:
    root, _ = read_yaml("a:\n  - b: x\n    c: [1,\n        2]\n", "f")
    assert isinstance(root, Node)
    assert root.locate(("a",)) == Mark("f", 1, 1)
    assert root.locate(("a", 0)) == Mark("f", 2, 5)
    assert root.locate(("a", 0, "b")) == Mark("f", 2, 8)
    assert root.locate(("a", 0, "b"), at_key=True) == Mark("f", 2, 5)
    assert root.locate(("a", 0, "c", 1)) == Mark("f", 4, 9)
    assert root.locate(("a", 0, "missing", "below")) == Mark("f", 2, 5)
    assert root.locate(("nowhere",)) == Mark("f", 1, 1)
