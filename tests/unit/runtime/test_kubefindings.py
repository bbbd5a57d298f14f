from __future__ import annotations

from netqos.model.inputs import Freshness, SourceState
from netqos.runtime.kubefindings import away, good_until, node_unknown, undelivered, with_memory
from netqos.sources.kube.kubelet import NOT_ASKED
from netqos.sources.kube.listwatch import NOT_YET

FRESH = SourceState(freshness=Freshness.FRESH, since_s=90.0)
LOST = SourceState(freshness=Freshness.STALE, since_s=80.0, detail="refused")
NEVER = SourceState(freshness=Freshness.WAITING, detail="403: no")
STATES = {
    "pods": FRESH,
    "nodeslo": LOST,
    "node": NEVER,
    "kubelet": SourceState(freshness=Freshness.WAITING, detail=NOT_ASKED),
}


def test_what_is_remembered_has_its_age_and_what_has_delivered_keeps_its_own() -> None:
    found = with_memory(STATES, {"node": -7.0, "nodeslo": 1.0})
    assert found["node"] == SourceState(
        freshness=Freshness.STALE, since_s=-7.0, detail="403: no; remembered from before the restart"
    )
    assert {name: found[name] for name in ("pods", "nodeslo", "kubelet")} == {
        name: STATES[name] for name in ("pods", "nodeslo", "kubelet")
    }


def test_who_has_not_delivered_is_waited_for_and_the_kubelet_never() -> None:
    assert undelivered(STATES) == {"node": "403: no"}


def test_the_time_that_counts_is_the_last_at_which_all_was_well() -> None:
    assert good_until(STATES, 100.0) == {"pods": 100.0, "nodeslo": 80.0}


def test_a_source_that_failed_is_a_finding_that_says_what_holds_meanwhile() -> None:
    starting = {"pods": SourceState(freshness=Freshness.WAITING, detail=NOT_YET)}
    assert away({**STATES, **starting}, {}) == away({"nodeslo": LOST, "node": NEVER}, {})
    told = [(one.subject, one.message) for one in away(STATES, {})]
    assert told == [
        ("source nodeslo", "refused; the last known state stays"),
        ("source node", "403: no; nothing is removed until it answers"),
    ]
    (remembered,) = away({"node": NEVER}, {"node": 1.0})
    assert remembered.message == "403: no; the last known state stays"
    (kubelet,) = away({"kubelet": LOST}, {})
    assert "nodes/pods" in kubelet.hint


def test_a_near_name_is_the_next_step() -> None:
    assert "it knows w1, w1.x: set node.name" in node_unknown("W1", ("w1", "w1.x")).hint
    assert node_unknown("W1", ()).hint.startswith("set node.name")
