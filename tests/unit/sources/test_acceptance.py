from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from netqos.errors import Rejected
from netqos.model.health import error
from netqos.model.inputs import Freshness, SourceState
from netqos.settings.file import parse_documents
from netqos.settings.problems import InvalidConfiguration
from netqos.settings.values import KubernetesSettings, PathSettings, Settings, Toggle
from netqos.sources.acceptance import Acceptance, Configuration, keep_started
from netqos.sources.base import Snapshot
from netqos.sources.configfiles import Documents, Unreadable
from netqos.sources.reading import Reading, findings_of

GOOD: Documents = (("netqos.yaml", "onExit: restore\n"),)
OTHER: Documents = (("netqos.yaml", "onExit: keep\n"),)
MISSING = Unreadable([error("configuration-missing", "netqos.yaml", "there is no such file")])


def reading(documents: Documents) -> Reading:
    try:
        return Reading(documents=documents, settings=parse_documents(documents))
    except Rejected as problem:
        return Reading(documents=documents, problem=problem)


def acceptance(remembered: Documents = ()) -> Acceptance:
    return Acceptance("netqos.yaml", parse=parse_documents, remembered=remembered)


def configuration(documents: Documents) -> Configuration:
    return Configuration(settings=parse_documents(documents), documents=documents)


def fresh(since_s: float) -> SourceState:
    return SourceState(freshness=Freshness.FRESH, since_s=since_s)


def stale(since_s: float | None) -> SourceState:
    return SourceState(
        freshness=Freshness.STALE, since_s=since_s, detail="the last good configuration is in force"
    )


def test_a_right_reading_is_accepted_and_equal_readings_are_one() -> None:
    judge = acceptance()
    assert judge.state == SourceState(freshness=Freshness.WAITING)
    first = judge.judge(reading(GOOD), now_s=10.0)
    assert first == Snapshot(value=configuration(GOOD), state=fresh(10.0))
    assert judge.judge(reading(GOOD), now_s=20.0) == first
    assert judge.state == fresh(20.0)
    assert judge.judge(reading(OTHER), now_s=30.0) == Snapshot(value=configuration(OTHER), state=fresh(30.0))


def test_a_wrong_reading_leaves_the_last_good_one_and_tells_each_line() -> None:
    judge = acceptance()
    judge.judge(reading(GOOD), now_s=10.0)
    broken = reading((("netqos.yaml", "onExit: keep\nonexit: keep\nlog:\n  level: loud\n"),))
    found = judge.judge(broken, now_s=20.0)
    assert found.value == configuration(GOOD)
    assert found.state == stale(10.0)
    assert [(one.code, one.subject) for one in found.findings] == [
        ("configuration-invalid", "netqos.yaml line 2"),
        ("configuration-invalid", "netqos.yaml line 4"),
    ]
    assert judge.judge(broken, now_s=21.0) == found
    again = judge.judge(reading(GOOD), now_s=30.0)
    assert (again.state, again.findings) == (fresh(30.0), ())


def test_without_anything_right_the_problem_comes_out() -> None:
    with pytest.raises(Unreadable, match="no such file"):
        acceptance().judge(Reading(problem=MISSING), now_s=1.0)
    with pytest.raises(InvalidConfiguration):
        acceptance().judge(reading((("netqos.yaml", "nonsense: 1\n"),)), now_s=1.0)


def test_what_was_accepted_before_the_restart_stands_in_for_broken_files() -> None:
    judge = acceptance(remembered=GOOD)
    found = judge.judge(Reading(problem=MISSING), now_s=1.0)
    assert found.value == configuration(GOOD)
    assert found.state == stale(None)
    assert [one.code for one in found.findings] == ["configuration-missing", "configuration-remembered"]
    assert judge.judge(Reading(problem=MISSING), now_s=2.0) == found
    repaired = judge.judge(reading(OTHER), now_s=3.0)
    assert repaired == Snapshot(value=configuration(OTHER), state=fresh(3.0))
    later = judge.judge(Reading(problem=MISSING), now_s=4.0)
    assert [one.code for one in later.findings] == ["configuration-missing"]


def test_what_was_accepted_before_may_be_wrong_for_this_daemon() -> None:
    judge = acceptance(remembered=(("netqos.yaml", "aKeyOfOld: 1\n"),))
    with pytest.raises(Unreadable):
        judge.judge(Reading(problem=MISSING), now_s=1.0)


def test_right_files_win_over_what_was_accepted_before() -> None:
    assert acceptance(remembered=GOOD).judge(reading(OTHER), now_s=1.0).value == configuration(OTHER)


STARTED = Settings(
    node_name="worker-1",
    paths=PathSettings(socket=PurePosixPath("/run/a.sock")),
    metrics_listen="127.0.0.1:1",
    kubernetes=KubernetesSettings(enable=Toggle.OFF),
)


@pytest.mark.parametrize(
    ("newer", "changed"),
    [
        (replace(STARTED, node_name="worker-2"), ("node.name",)),
        (replace(STARTED, paths=PathSettings(socket=PurePosixPath("/run/b.sock"))), ("paths",)),
        (replace(STARTED, metrics_listen=None), ("metrics.listen",)),
        (replace(STARTED, kubernetes=KubernetesSettings(enable=Toggle.ON)), ("kubernetes",)),
        (
            replace(STARTED, kubernetes=KubernetesSettings(enable=Toggle.OFF, kubeconfig="/k")),
            ("kubernetes",),
        ),
    ],
)
def test_what_needs_a_restart_stays(newer: Settings, changed: tuple[str, ...]) -> None:
    assert keep_started(STARTED, newer) == (STARTED, changed)


def test_the_rest_is_taken_at_once() -> None:
    newer = replace(
        STARTED, backends=("terway",), kubernetes=KubernetesSettings(enable=Toggle.OFF, annotations=False)
    )
    assert keep_started(STARTED, newer) == (newer, ())


def test_a_needed_restart_is_told_until_it_is_changed_back() -> None:
    judge = acceptance()
    judge.judge(reading((("n", "metrics: {listen: '127.0.0.1:1'}\n"),)), now_s=1.0)
    found = judge.judge(reading((("n", "metrics: {listen: '127.0.0.1:2'}\nonExit: restore\n"),)), now_s=2.0)
    assert found.value.settings.metrics_listen == "127.0.0.1:1"
    assert found.value.settings.on_exit.value == "restore"
    assert [(one.code, "metrics.listen" in one.message) for one in found.findings] == [
        ("restart-needed", True)
    ]
    back = judge.judge(reading((("n", "metrics: {listen: '127.0.0.1:1'}\n"),)), now_s=3.0)
    assert back.findings == ()


def test_findings_of_another_refusal() -> None:
    problem = Rejected("no", subject="x", hint="do")
    assert findings_of(problem) == (error("configuration-invalid", "x", "no", hint="do"),)
