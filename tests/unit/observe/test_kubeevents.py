from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from netqos.model.composed import AppliedLimit, PodView
from netqos.model.health import Finding, info, warning
from netqos.model.ids import PodUid
from netqos.model.levels import Level, PerDirection
from netqos.observe.kubeevents import BURST, EVERY_S, MOST_TRIES, Bucket, Reporter, event, event_name
from netqos.observe.recorder import REASONS
from netqos.testing.clock import FakeClock

BAD = warning("invalid-annotation", "pod shop/web", "no quantity; allowed: 10M", hint="write 10M")


def view(*findings: Finding, uid: str = "u-1", namespace: str = "shop", name: str = "web") -> PodView:
    nothing = AppliedLimit(bps=None, source="none")
    return PodView(
        uid=PodUid(uid),
        namespace=namespace,
        name=name,
        level=Level.L1,
        level_source="default",
        level_choices=(),
        limits=PerDirection(tx=nothing, rx=nothing),
        addresses=(),
        cgroup=None,
        host_network=False,
        findings=findings,
    )


@dataclass
class Posted:
    sent: list[tuple[str, str, Any]] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)
    problem: Exception | None = None
    news: threading.Event = field(default_factory=threading.Event)

    def post(self, method: str, path: str, body: object, content_type: str) -> None:
        self.sent.append((method, path, body))
        self.news.set()
        if self.problem is not None:
            raise self.problem

    def log(self, event: str, **_values: object) -> None:
        self.logged.append(event)

    def wait(self, count: int) -> None:
        self.wait_for(lambda: len(self.sent) >= count)
        assert len(self.sent) == count

    def wait_for(self, check: Callable[[], bool]) -> None:
        end_s = time.monotonic() + 5
        while not check():
            assert time.monotonic() < end_s
            self.news.wait(0.1)
            self.news.clear()


def rejected(message: str = "no quantity") -> Finding:
    return warning(REASONS[0], "pod shop/web", message, hint="write 10M")


def test_one_event_for_each_rejection_of_a_pod() -> None:
    posted = Posted()
    reporter = Reporter("n1", posted.post, FakeClock(), log=posted.log)
    reporter.start()
    others = (info("pod-cgroup-missing", "x", "y"), warning("address-conflict", "x", "y"))
    first = (view(rejected("a"), rejected("b"), *others),)
    reporter.see(first)
    reporter.see((view(rejected("a")),))
    reporter.see((view(rejected("a"), uid="u-2", name="db"),))
    posted.wait(3)
    reporter.stop()
    assert [(method, path) for method, path, _ in posted.sent] == [
        ("POST", "/apis/events.k8s.io/v1/namespaces/shop/events")
    ] * 3
    assert [body["note"] for _, _, body in posted.sent] == ["a (write 10M)", "b (write 10M)", "a (write 10M)"]
    assert [body["regarding"]["uid"] for _, _, body in posted.sent] == ["u-1", "u-1", "u-2"]


def test_workloads_have_no_events() -> None:
    posted = Posted()
    reporter = Reporter("n1", posted.post, FakeClock(), log=posted.log)
    reporter.see((view(rejected(), uid="workload:web", namespace=""),))
    assert list(reporter._pending()) == []


@dataclass
class Failure:
    code: int


def failed(code: int) -> Exception:
    """An error as the connection raises it."""
    problem = Exception("no")
    problem.failure = Failure(code)  # type: ignore[attr-defined] # as the connection's error has it
    return problem


@pytest.mark.parametrize("code", [0, 429, 500, 503])
def test_what_nobody_took_is_sent_again_in_order(code: int) -> None:
    posted = Posted(problem=failed(code))
    reporter = Reporter("n1", posted.post, FakeClock(), log=posted.log, retry_s=0.001)
    reporter.start()
    reporter.see((view(rejected("a"), rejected("b")),))
    posted.wait_for(lambda: len(posted.sent) >= 3)
    posted.problem = None
    posted.wait_for(lambda: posted.sent[-1][2]["note"].startswith("b"))
    reporter.stop()
    reporter.join(5)
    notes = [body["note"][0] for _, _, body in posted.sent]
    assert notes == ["a"] * (len(notes) - 1) + ["b"]
    assert posted.logged == ["not_told"]


def test_a_server_in_trouble_keeps_no_other_message_for_ever() -> None:
    posted = Posted(problem=failed(500))
    reporter = Reporter("n1", posted.post, FakeClock(), log=posted.log, retry_s=0.0001)
    reporter.start()
    reporter.see((view(rejected("a"), rejected("b")),))
    posted.wait(2 * MOST_TRIES)
    reporter.stop()
    reporter.join(5)
    assert [body["note"][0] for _, _, body in posted.sent] == ["a"] * MOST_TRIES + ["b"] * MOST_TRIES


@pytest.mark.parametrize(("code", "logged"), [(409, []), (403, ["not_told"])])
def test_a_failure_is_logged_once_and_a_repeated_event_is_none(code: int, logged: list[str]) -> None:
    posted = Posted(problem=failed(code))
    reporter = Reporter("n1", posted.post, FakeClock(), log=posted.log)
    reporter.start()
    reporter.see((view(rejected("a"), rejected("b")),))
    posted.wait(2)
    reporter.stop()
    reporter._thread.join(5)
    assert posted.logged == logged


def test_the_event_is_as_the_server_takes_it() -> None:
    pod = view(BAD)
    name = event_name(pod, BAD)
    made = event(pod, BAD, name=name, node="n1", wall_s=1_700_000_000.25)
    assert made == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "shop"},
        "eventTime": "2023-11-14T22:13:20.250000Z",
        "type": "Warning",
        "reason": "InvalidAnnotation",
        "action": "Reject",
        "note": "no quantity; allowed: 10M (write 10M)",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "web", "uid": "u-1"},
        "reportingController": "koordinator.sh/netqosd",
        "reportingInstance": "n1",
    }
    assert json.dumps(made)


def test_names_and_notes_stay_within_the_servers_bounds() -> None:
    long = warning("invalid-annotation", "pod x", "\u00e9" * 5000)
    pod = view(long, name="a" * 250 + ".x")
    assert len(event_name(pod, long)) <= 253
    note = event(pod, long, name="x", node="n" * 300, wall_s=0)["note"]
    assert isinstance(note, str)
    assert len(note.encode()) < 1024
    assert event_name(pod, long) != event_name(view(long, uid="u-9", name=pod.name), long)


def test_the_rate_is_bounded() -> None:
    bucket = Bucket()
    assert [bucket.wait_s(0.0) for _ in range(BURST)] == [0.0] * BURST
    assert bucket.wait_s(0.0) == EVERY_S
    assert bucket.wait_s(EVERY_S) == 0.0
    assert bucket.wait_s(EVERY_S) > 0
    assert bucket.wait_s(10_000.0) == 0.0


def test_the_status_annotation_is_written_when_it_differs() -> None:
    posted = Posted()
    reporter = Reporter("n1", posted.post, FakeClock(), log=posted.log)
    reporter.annotate("{}")
    reporter.annotate("{}")
    reporter.annotate('{"a":1}')
    messages = [(one.method, one.path, one.body) for one in reporter._pending()]
    body = {"metadata": {"annotations": {"netqos.koordinator.sh/status": '{"a":1}'}}}
    assert messages == [("PATCH", "/api/v1/nodes/n1", body)]
