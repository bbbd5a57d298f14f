"""What others judge of the settings: told with the file's own problems, each at the line of its key."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from netqos.settings.file import Check, parse_documents
from netqos.settings.issues import Code, Issue, path_of, path_text
from netqos.settings.problems import InvalidConfiguration
from netqos.settings.values import Settings

MAIN = """\
node: {bandwidth: {tx: 1G, rx: 2G}}
backends:
  - tc
  - zap
backendOptions:
  tc:
    queue: {target: 5ms}
    zap: 1
"""
MORE = """\
# levels
policy:
  levels:
    l1:
      txMin: 700M
"""


def _complaining(*paths: str) -> Check:
    def check(settings: Settings) -> Iterator[Issue]:
        assert isinstance(settings, Settings)
        for path in paths:
            yield Issue(code=Code.BACKEND, path=path_of(path), message="no", hint="yes")

    return check


def _refused(*documents: tuple[str, str], check: Check) -> list[str]:
    with pytest.raises(InvalidConfiguration) as caught:
        parse_documents(documents, check=check)
    return list(caught.value.problems)


def test_a_check_that_finds_nothing_changes_nothing() -> None:
    documents = [("netqos.yaml", MAIN)]
    assert parse_documents(documents, check=lambda _: ()) == parse_documents(documents)


def test_its_problems_are_told_at_their_keys_in_whatever_file_these_are() -> None:
    found = _refused(
        ("netqos.yaml", MAIN),
        ("conf.d/levels.yaml", MORE),
        check=_complaining(
            "policy.levels.l1.txMin", "backends[1]", "backendOptions.tc.zap", "backendOptions.tc.queue.target"
        ),
    )
    assert found == [
        "netqos.yaml:4:5: backends[1]: no (yes)",
        "netqos.yaml:7:21: backendOptions.tc.queue.target: no (yes)",
        "netqos.yaml:8:10: backendOptions.tc.zap: no (yes)",
        "conf.d/levels.yaml:5:14: policy.levels.l1.txMin: no (yes)",
    ]


def test_a_key_that_is_not_there_is_told_at_what_is_around_it() -> None:
    found = _refused(
        ("netqos.yaml", MAIN), check=_complaining("backendOptions.tc.other[3]", "policy.levels.l2.rxMax")
    )
    assert found == [
        "netqos.yaml:1:1: policy.levels.l2.rxMax: no (yes)",
        "netqos.yaml:6:3: backendOptions.tc.other[3]: no (yes)",
    ]


def test_its_problems_stand_beside_those_of_the_texts() -> None:
    found = _refused(("netqos.yaml", f"foo: 1\n{MAIN}"), check=_complaining("backends[1]"))
    assert [one.split(": ")[0] for one in found] == ["netqos.yaml:1:1", "netqos.yaml:5:5"]


@pytest.mark.parametrize(
    "text",
    [
        "loop: {interval: x}",
        "backends: [tc, 5, tc]",
        "backendOptions: {tc: 5}",
        "backendOptions: 7",
        "workloads: [{name: a, match: {}, rules: {egress: 5}}]",
        "policy: {levels: {l1: {txMin: 5}}, networkQOSStrategy: 7}",
        "a: [",
        "- b",
    ],
)
def test_a_check_gets_settings_whatever_else_is_wrong(text: str) -> None:
    assert any("backends[0]: no" in one for one in _refused(("f", text), check=_complaining("backends[0]")))


@pytest.mark.parametrize(
    "path", [(), ("backends", 1), ("policy", "levels", "l1", "txMin"), ("a", 0, 1, "b-c")]
)
def test_a_path_is_that_of_its_text(path: tuple[str | int, ...]) -> None:
    assert path_of(path_text(path)) == path
