"""Any tree of limits, changed step by step in the safe order, is never wrong in between."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from netqos.engine.reconcile import Difference, Step, diff, safe_order
from netqos.model.plan import Verb

Tree = dict[tuple[int, ...], int]
"""Limits by path: the root is (), its children (0,), (1,), ..., theirs (0, 0), ..."""


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    tree: Tree = {(): draw(st.integers(8, 100))}
    for child in draw(st.sets(st.integers(0, 3))):
        tree[(child,)] = draw(st.integers(2, tree[()] // 4))
        for leaf in draw(st.sets(st.integers(0, 1))):
            tree[(child, leaf)] = draw(st.integers(1, tree[(child,)] // 2))
    return tree


@given(
    st.dictionaries(st.integers(0, 9), st.integers(0, 3)),
    st.dictionaries(st.integers(0, 9), st.integers(0, 3)),
)
def test_applying_the_difference_makes_observed_equal_desired(
    desired: dict[int, int], observed: dict[int, int]
) -> None:
    found = diff(desired, observed)
    changed = {key: value for key, value in observed.items() if key not in found.deletes}
    changed |= {key: change.new for key, change in found.changes.items()} | dict(found.creates)
    assert changed == desired
    assert not diff(desired, changed)
    assert set(found.creates).isdisjoint(observed)


def steps_of(found: Difference[tuple[int, ...], int]) -> list[Step[tuple[Verb, tuple[int, ...], int]]]:
    return [
        *(
            Step(verb=Verb.CREATE, rank=len(key), what=(Verb.CREATE, key, value))
            for key, value in found.creates.items()
        ),
        *(
            Step(
                verb=Verb.CHANGE,
                rank=len(key),
                widens=change.new > change.old,
                what=(Verb.CHANGE, key, change.new),
            )
            for key, change in found.changes.items()
        ),
        *(
            Step(verb=Verb.DELETE, rank=len(key), what=(Verb.DELETE, key, value))
            for key, value in found.deletes.items()
        ),
    ]


@given(trees(), trees(), st.data())
def test_no_lasting_child_passes_its_parent_at_any_moment(old: Tree, new: Tree, data: st.DataObject) -> None:
    steps = data.draw(st.permutations(steps_of(diff(new, old))))
    now = dict(old)
    for verb, key, value in safe_order(steps):
        if verb is Verb.DELETE:
            assert not any(other[: len(key)] == key and other != key for other in now)
            del now[key]
        else:
            assert key == () or now[key[:-1]] >= value
            now[key] = value
        for child, limit in now.items():
            assert child == () or child not in new or limit <= now[child[:-1]]
    assert now == new


@given(trees(), trees())
def test_the_sum_of_lasting_children_stays_within_their_parent(old: Tree, new: Tree) -> None:
    lasting_old = {key: value for key, value in old.items() if key in new}
    lasting_new = {key: value for key, value in new.items() if key in old}
    now = dict(lasting_old)
    for _, key, value in safe_order(steps_of(diff(lasting_new, lasting_old))):
        now[key] = value
        for parent, limit in now.items():
            children = [value for key, value in now.items() if key and key[:-1] == parent]
            assert sum(children) <= limit
