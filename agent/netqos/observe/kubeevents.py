"""Tells the cluster of rejected annotations: one Event for each and pod, and at most a few a minute.

It never blocks who calls it, and what was seen once is not sent again. What nobody answers to is sent until somebody
does, what the server refuses is dropped. The Event's name follows from its content, so that neither a restart nor an
answer that was lost repeats it (the server answers 409 then, which is as good as sent).
"""

from __future__ import annotations

import datetime as dt
import hashlib
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from netqos.host.clock import Clock
from netqos.model.composed import PodView
from netqos.model.health import Finding
from netqos.model.ids import WORKLOAD_PREFIX
from netqos.observe.recorder import REASONS

CONTROLLER = "koordinator.sh/netqosd"
STATUS_KEY = "netqos.koordinator.sh/status"

MOST_WAITING = 200
MOST_REMEMBERED = 5_000
BURST, EVERY_S = 20, 3.0
"""As many at once, and one more each so many seconds."""

RETRY_S, LONGEST_RETRY_S = 1.0, 60.0
"""The first wait before the same is sent again, doubling to the longest."""

MOST_TRIES = 8
"""For a server that answers that it is in trouble: one message must not keep the others for ever."""

_MERGE = "application/merge-patch+json"
_JSON = "application/json"
_LONGEST_NOTE = 1024

TOLD = frozenset(code for code in REASONS if not code.startswith("address-"))
"""What a pod's owner can mend; who has which address is nobody's annotation."""

Post = Callable[[str, str, object, str], None]
"""(method, path, body, content type); raises whatever it wants where it fails."""


@dataclass(frozen=True, slots=True)
class _Message:
    method: str
    path: str
    body: object
    content_type: str


class Bucket:
    """How many may be sent now. Pure but for its own count."""

    def __init__(self, *, burst: int = BURST, every_s: float = EVERY_S) -> None:
        """Full at the start."""
        self._burst = burst
        self._every_s = every_s
        self._left = float(burst)
        self._at_s: float | None = None

    def wait_s(self, now_s: float) -> float:
        """Take one and return 0, or return how long until there is one."""
        if self._at_s is not None:
            self._left = min(self._burst, self._left + (now_s - self._at_s) / self._every_s)
        self._at_s = now_s
        if self._left >= 1:
            self._left -= 1
            return 0.0
        return (1 - self._left) * self._every_s


class Reporter:
    """A thread that sends what it was given, a few at a time."""

    def __init__(
        self, node: str, post: Post, clock: Clock, *, log: Callable[..., None], retry_s: float = RETRY_S
    ) -> None:
        """`log(event, **key_values)` is told once of each kind of failure."""
        self._node = node
        self._post = post
        self._clock = clock
        self._log = log
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._views: tuple[PodView, ...] = ()
        self._waiting: deque[_Message] = deque(maxlen=MOST_WAITING)
        self._status: _Message | None = None
        self._status_text = ""
        self._bucket = Bucket()
        self._retry_s = retry_s
        self._failures: set[str] = set()
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
        for pod in pods:
            for finding in pod.findings:
                if finding.code in TOLD and pod.namespace and not pod.uid.startswith(WORKLOAD_PREFIX):
                    self._tell(pod, finding)

    def annotate(self, text: str) -> None:
        """Write the status annotation of the node, unless it is there; a newer text replaces one that waits."""
        if text == self._status_text:
            return
        self._status_text = text
        body = {"metadata": {"annotations": {STATUS_KEY: text}}}
        self._status = _Message("PATCH", f"/api/v1/nodes/{self._node}", body, _MERGE)
        self._news.set()

    def _tell(self, pod: PodView, finding: Finding) -> None:
        name = event_name(pod, finding)
        if name in self._seen:
            return
        self._seen[name] = None
        while len(self._seen) > MOST_REMEMBERED:
            self._seen.popitem(last=False)
        path = f"/apis/events.k8s.io/v1/namespaces/{pod.namespace}/events"
        body = event(pod, finding, name=name, node=self._node, wall_s=self._clock.wall())
        self._waiting.append(_Message("POST", path, body, _JSON))
        self._news.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._news.wait()
            self._news.clear()
            for message in self._pending():
                wait_s = self._bucket.wait_s(self._clock.monotonic())
                while wait_s and not self._stopped.wait(wait_s):
                    wait_s = self._bucket.wait_s(self._clock.monotonic())
                if self._stopped.is_set():
                    return
                self._deliver(message)

    def _pending(self) -> Iterable[_Message]:
        while self._waiting or self._status is not None:
            if self._status is not None:
                status, self._status = self._status, None
                yield status
            elif self._waiting:
                yield self._waiting.popleft()

    def _deliver(self, message: _Message) -> None:
        """Send it until it is dealt with."""
        wait_s, refused = self._retry_s, 0
        while (code := self._send(message)) is not None:
            refused += code != 0
            if refused >= MOST_TRIES or self._stopped.wait(wait_s):
                return
            wait_s = min(2 * wait_s, LONGEST_RETRY_S)

    def _send(self, message: _Message) -> int | None:
        """None when there is no more to do; else the status with which it failed, 0 where nobody answered."""
        try:
            self._post(message.method, message.path, message.body, message.content_type)
        except Exception as problem:  # noqa: BLE001 - the border of a request: telling must not end what is told of
            failure = getattr(problem, "failure", None)
            code = getattr(failure, "code", None)
            kind = f"{message.method} {code}"
            if code != 409 and kind not in self._failures:
                self._failures.add(kind)
                self._log("not_told", path=message.path, problem=str(problem))
            return code if code in {0, 429} or (code or 0) >= 500 else None
        return None


def event_name(pod: PodView, finding: Finding) -> str:
    """A name that is the same for the same finding of the same pod, within 253 characters."""
    content = "\0".join((pod.uid, finding.code, finding.message))
    return f"{pod.name[:200].rstrip('.-')}.{hashlib.sha256(content.encode()).hexdigest()[:16]}"


def event(pod: PodView, finding: Finding, *, name: str, node: str, wall_s: float) -> dict[str, object]:
    """An events.k8s.io/v1 Event about a pod."""
    moment = dt.datetime.fromtimestamp(wall_s, dt.UTC)
    note = f"{finding.message} ({finding.hint})" if finding.hint else finding.message
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": pod.namespace},
        "eventTime": moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "type": "Warning",
        "reason": "".join(word.capitalize() for word in finding.code.split("-")),
        "action": "Reject",
        "note": _cut(note),
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": pod.namespace,
            "name": pod.name,
            "uid": pod.uid,
        },
        "reportingController": CONTROLLER,
        "reportingInstance": node[:128],
    }


def _cut(note: str) -> str:
    """The server takes fewer than 1024 bytes."""
    return note.encode()[: _LONGEST_NOTE - 4].decode(errors="ignore")
