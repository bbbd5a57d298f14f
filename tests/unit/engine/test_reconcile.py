from __future__ import annotations

from netqos.engine.reconcile import Change, Difference, Step, diff, safe_order
from netqos.model.plan import Verb


def test_difference_keeps_the_order_of_both_sides() -> None:
    desired = {"d": 1, "b": 2, "a": 3, "e": 9}
    observed = {"z": 0, "a": 4, "b": 2, "c": 5, "e": 8}
    found = diff(desired, observed)
    assert found == Difference(
        creates={"d": 1}, changes={"a": Change(4, 3), "e": Change(8, 9)}, deletes={"z": 0, "c": 5}
    )
    assert (list(found.changes), list(found.deletes)) == (["a", "e"], ["z", "c"])


def test_equal_states_have_no_difference() -> None:
    assert not diff({1: "x"}, {1: "x"})
    assert diff({1: "x"}, {})
    assert diff({}, {1: "x"})


def test_what_counts_as_the_same_can_be_said() -> None:
    assert not diff({1: 100}, {1: 101}, same=lambda wanted, there: abs(wanted - there) <= 1)


def test_shrink_then_widen_and_create_then_delete() -> None:
    steps = [
        Step(verb=Verb.DELETE, rank=1, what="delete parent"),
        Step(verb=Verb.CREATE, rank=2, what="create child"),
        Step(verb=Verb.CHANGE, rank=2, widens=True, what="widen child"),
        Step(verb=Verb.CHANGE, rank=1, widens=False, what="shrink parent"),
        Step(verb=Verb.DELETE, rank=2, what="delete child"),
        Step(verb=Verb.CHANGE, rank=2, widens=False, what="shrink child"),
        Step(verb=Verb.CHANGE, rank=1, widens=True, what="widen parent"),
        Step(verb=Verb.CREATE, rank=1, what="create parent"),
    ]
    assert safe_order(steps) == (
        "shrink child",
        "shrink parent",
        "widen parent",
        "create parent",
        "create child",
        "widen child",
        "delete child",
        "delete parent",
    )
