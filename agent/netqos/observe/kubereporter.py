"""Tells the cluster: an Event for each rejected annotation and pod, and where it is wanted the Node's annotation.

It never blocks who calls it. What is done is what was answered: a request that failed is made again, paced; a name that
the server knows already (409) is as good as sent, and costs nothing of what may be sent.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from enum import Enum

from netqos.host.clock import Clock
from netqos.model.composed import PodView
from netqos.model.health import Finding, warning
from netqos.observe.kubeevents import Rejection, event, event_name
from netqos.observe.kubeturns import BackOff, Bucket, Turns

STATUS_KEY = "netqos.koordinator.sh/status"

KNOWN_S = 0.05
"""The time between two Events that turn out to be known already."""

_MERGE = "application/merge-patch+json"
_JSON = "application/json"
_NEVER = frozenset({400, 413, 422})
"""Codes of what will not be taken however often it is sent."""

Post = Callable[[str, str, object, str], None]
"""(method, path, body, content type); raises whatever it wants where it fails, with a `failure` that has a code."""


class _Outcome(Enum):
    SENT = "sent"
    KNOWN = "known"
    NEVER = "never"
    REFUSED = "refused"
    AWAY = "away"


class Reporter:
    """A thread that tells what was not told yet, a little at a time."""

    def __init__(
        self,
        node: str,
        post: Post,
        clock: Clock,
        *,
        log: Callable[..., None],
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`log(event, **key_values)` is told of what the server will never take; `chance()` is in [0, 1)."""
        self._node = node
        self._post = post
        self._clock = clock
        self._log = log
        self._views: tuple[PodView, ...] = ()
        self._wanted = self._published = ""
        self._bucket = Bucket()
        self._turns = Turns(chance)
        self._away = BackOff(chance)
        self._status_away = BackOff(chance)
        self._problems: dict[str, Finding] = {}
        self._failure: tuple[str, float | None] = ("", None)
        self._news = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kube-events", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; what waits is dropped."""
        self._stopped.set()
        self._news.set()

    def join(self, timeout_s: float) -> None:
        """Wait for the end."""
        self._thread.join(timeout_s)

    def see(self, pods: tuple[PodView, ...]) -> None:
        """Every pod with its findings of now; costs nothing where they are the same as before."""
        if pods is self._views:
            return
        self._views = pods
        if any(pod.findings for pod in pods):
            self._news.set()

    def annotate(self, text: str) -> None:
        """The text that the status annotation of the node should have; a newer one replaces one that waits."""
        if text != self._wanted:
            self._wanted = text
            self._news.set()

    def findings(self) -> tuple[Finding, ...]:
        """What is refused to us."""
        return tuple(self._problems.values())

    def step(self) -> float | None:
        """Send what may be sent now, one of each; seconds until something may be, None: with the next news."""
        now_s = self._clock.monotonic()
        waits = [one for one in (self._step_status(now_s), self._step_event(now_s)) if one is not None]
        return min(waits, default=None)

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._news.wait(self.step())
            self._news.clear()

    def _step_status(self, now_s: float) -> float | None:
        text, away = self._wanted, self._status_away
        if text == self._published:
            return None
        if now_s < away.until_s:
            return away.until_s - now_s
        body = {"metadata": {"annotations": {STATUS_KEY: text}}}
        outcome = self._send("PATCH", f"/api/v1/nodes/{self._node}", body, _MERGE)
        if outcome is _Outcome.SENT:
            self._published = text
            away.works()
            self._problems.pop("status", None)
        else:
            away.failed(now_s, asked_s=self._failure[1])
            self._refused("status", _status_not_published(self._node, self._failure[0]), outcome)
        return 0.0

    def _step_event(self, now_s: float) -> float | None:
        rejection, wait_s = self._turns.next(self._views, now_s)
        if rejection is None:
            if wait_s is None:
                self._problems.pop("events", None)
            return wait_s
        wait_s = max(self._away.until_s - now_s, 0.0) or self._bucket.wait_s(now_s)
        return wait_s or self._tell(rejection, now_s)

    def _tell(self, rejection: Rejection, now_s: float) -> float:
        pod, finding = rejection
        path = f"/apis/events.k8s.io/v1/namespaces/{pod.namespace}/events"
        name = event_name(pod, finding)
        body = event(pod, finding, name=name, node=self._node, wall_s=self._clock.wall())
        outcome = self._send("POST", path, body, _JSON)
        match outcome:
            case _Outcome.SENT | _Outcome.KNOWN:
                self._turns.told(rejection)
                self._away.works()
                self._problems.pop("events", None)
            case _Outcome.NEVER:
                self._turns.told(rejection)
                self._log("not_told", path=path, problem=self._failure[0])
            case _Outcome.REFUSED:
                self._turns.failed(rejection, now_s, asked_s=self._failure[1])
                self._refused("events", _events_refused(path, self._failure[0]), outcome)
            case _Outcome.AWAY:
                self._away.failed(now_s, asked_s=self._failure[1])
        if outcome is _Outcome.KNOWN:
            self._bucket.give_back()
            return KNOWN_S
        return 0.0

    def _send(self, method: str, path: str, body: object, content_type: str) -> _Outcome:
        try:
            self._post(method, path, body, content_type)
        except Exception as problem:  # noqa: BLE001 - the border of a request: telling must not end what is told of
            failure = getattr(problem, "failure", None)
            self._failure = (str(problem), getattr(failure, "retry_after_s", None))
            return _outcome(getattr(failure, "code", None))
        return _Outcome.SENT

    def _refused(self, what: str, finding: Finding, outcome: _Outcome) -> None:
        """A finding where somebody has to do something; a server that is away is the sources' finding."""
        if outcome is not _Outcome.AWAY:
            self._problems[what] = finding


def _outcome(code: int | None) -> _Outcome:
    """By a failure's status, 0 where nobody answered; None: it is none of the connection's."""
    if code == 409:
        return _Outcome.KNOWN
    if code is None or code in _NEVER:
        return _Outcome.NEVER
    return _Outcome.AWAY if code in {0, 429} or code >= 500 else _Outcome.REFUSED


def _status_not_published(node: str, detail: str) -> Finding:
    return warning(
        "status-not-published",
        f"node {node}",
        f"the annotation {STATUS_KEY} was not written: {detail}; it is tried again",
        hint="give the service account the right to patch nodes (daemonset/components/publish-status)",
    )


def _events_refused(path: str, detail: str) -> Finding:
    return warning(
        "events-not-sent",
        "rejected annotations",
        f"an Event was refused: {detail}; it is tried again",
        hint=f"give the service account the right to create events ({path.partition('/namespaces')[0]})",
    )
