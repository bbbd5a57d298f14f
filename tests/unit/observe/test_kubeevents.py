from __future__ import annotations

import json

from netqos.model.health import info, warning
from netqos.observe.kubeevents import event, event_name, rejections
from tests.unit.observe.podviews import rejected, view

BAD = warning("invalid-annotation", "pod shop/web", "no quantity; allowed: 10M", hint="write 10M")


def test_what_an_owner_can_mend_is_told_and_nothing_else() -> None:
    others = (info("pod-cgroup-missing", "x", "y"), warning("address-conflict", "x", "y"))
    web, workload = (
        view(rejected("a"), *others, rejected("b")),
        view(rejected(), uid="workload:w", namespace=""),
    )
    assert list(rejections((web, workload))) == [(web, rejected("a")), (web, rejected("b"))]


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
