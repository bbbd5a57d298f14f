from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from netqos.observe.kubereporter import KNOWN_S, Reporter
from netqos.observe.kubeturns import BURST, EVERY_S
from netqos.testing.clock import FakeClock
from tests.unit.observe.podviews import rejected, view

EVENTS = "/apis/events.k8s.io/v1/namespaces/shop/events"


@dataclass
class Failure:
    code: int
    retry_after_s: float | None = None


def failed(code: int, retry_after_s: float | None = None) -> Exception:
    """An error as the connection raises it."""
    problem = Exception(f"answer {code}")
    problem.failure = Failure(code, retry_after_s)  # type: ignore[attr-defined] # as the connection's error has it
    return problem


@dataclass
class Server:
    """Takes what it is sent, unless `problem` says otherwise."""

    problem: Exception | None = None
    asked: int = 0
    taken: list[tuple[str, str, Any]] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)
    clock: FakeClock = field(default_factory=FakeClock)

    def __post_init__(self) -> None:
        self.reporter = Reporter("n1", self.post, self.clock, log=self.log, chance=lambda: 1.0)

    def post(self, method: str, path: str, body: object, _content_type: str) -> None:
        self.asked += 1
        if self.problem is not None:
            raise self.problem
        self.taken.append((method, path, body))

    def log(self, event: str, **_values: object) -> None:
        self.logged.append(event)

    def run(self, most_s: float = 0.0) -> float | None:
        """As the thread does, for so long; what it would wait for next."""
        end_s = self.clock.monotonic() + most_s
        for _ in range(10_000):
            wait_s = self.reporter.step()
            if wait_s is None or self.clock.monotonic() + wait_s > end_s:
                return wait_s
            self.clock.advance(wait_s)
        raise AssertionError("it never rests")

    def codes(self) -> list[str]:
        return [one.code for one in self.reporter.findings()]


@pytest.fixture
def server() -> Server:
    return Server()


def test_one_event_for_each_rejection_of_a_pod(server: Server) -> None:
    server.reporter.see((view(rejected("a"), rejected("b")), view(rejected("a"), uid="u-2", name="db")))
    assert server.run() is None
    server.reporter.see((view(rejected("a")),))
    assert server.run() is None
    assert [(method, path) for method, path, _ in server.taken] == [("POST", EVENTS)] * 3
    assert sorted((body["regarding"]["uid"], body["note"]) for _, _, body in server.taken) == [
        ("u-1", "a (write 10M)"),
        ("u-1", "b (write 10M)"),
        ("u-2", "a (write 10M)"),
    ]


@pytest.mark.parametrize("code", [0, 403, 404, 429, 500, 503])
def test_what_was_not_taken_is_sent_until_it_is(server: Server, code: int) -> None:
    server.problem = failed(code)
    server.reporter.see(tuple(view(rejected(), uid=f"u-{number}") for number in range(45)))
    assert server.run(40.0) is not None
    assert 2 < server.asked < 45
    assert server.codes() == (["events-not-sent"] if code in {403, 404} else [])
    server.problem = None
    server.run(600.0)
    assert len({body["regarding"]["uid"] for _, _, body in server.taken}) == len(server.taken) == 45
    assert server.codes() == []


def test_the_servers_retry_after_is_respected(server: Server) -> None:
    server.problem = failed(429, 30.0)
    server.reporter.see((view(rejected()),))
    assert server.run() == 30.0


def test_what_is_never_taken_is_told_in_the_log_and_left(server: Server) -> None:
    server.problem = failed(422)
    server.reporter.see((view(rejected()),))
    assert (server.run(), server.asked, server.logged) == (None, 1, ["not_told"])


def test_a_bug_is_told_in_the_log_and_left(server: Server) -> None:
    server.problem = RuntimeError("no")
    server.reporter.see((view(rejected()),))
    assert (server.run(), server.asked, server.logged) == (None, 1, ["not_told"])


def test_what_the_server_knows_costs_nothing_of_what_may_be_sent(server: Server) -> None:
    known = tuple(view(rejected(), uid=f"u-{number}") for number in range(200))
    server.problem = failed(409)
    server.reporter.see(known)
    assert server.run(200 * KNOWN_S + 1) is None
    assert server.asked == 200
    server.problem = None
    server.reporter.see((*known, *(view(rejected(), uid=f"new-{number}") for number in range(BURST))))
    assert server.run() is None
    assert len(server.taken) == BURST


def test_a_pod_that_changes_all_the_time_keeps_no_other_waiting(server: Server) -> None:
    victim = view(rejected(), uid="victim", namespace="calm")
    for number in range(260):
        server.reporter.see((view(rejected(str(number))),))
        server.run()
    server.reporter.see((view(rejected("last")), victim))
    server.run(EVERY_S)
    assert server.taken[-1][2]["regarding"]["uid"] == "victim"


def test_the_status_annotation_is_written_when_it_differs(server: Server) -> None:
    server.reporter.annotate("{}")
    server.reporter.annotate('{"a":1}')
    assert server.run() is None
    server.reporter.annotate('{"a":1}')
    assert server.run() is None
    body = {"metadata": {"annotations": {"netqos.koordinator.sh/status": '{"a":1}'}}}
    assert server.taken == [("PATCH", "/api/v1/nodes/n1", body)]


@pytest.mark.parametrize(("code", "codes"), [(0, []), (403, ["status-not-published"]), (500, [])])
def test_the_status_annotation_is_written_until_it_was_taken(
    server: Server, code: int, codes: list[str]
) -> None:
    server.problem = failed(code)
    server.reporter.annotate("{}")
    server.run(100.0)
    assert 4 < server.asked < 12
    assert server.codes() == codes
    server.problem = None
    server.run(300.0)
    assert (len(server.taken), server.codes()) == (1, [])


def test_a_refused_status_keeps_no_event_waiting(server: Server) -> None:
    def post(method: str, path: str, body: object, _content_type: str) -> None:
        if method == "PATCH":
            raise failed(403)
        server.taken.append((method, path, body))

    server.reporter._post = post
    server.reporter.annotate("{}")
    server.reporter.see((view(rejected()),))
    server.run()
    assert [method for method, _, _ in server.taken] == ["POST"]
