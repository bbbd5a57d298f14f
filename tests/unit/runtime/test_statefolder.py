"""Whatever stands in the state folder, every reader of it starts with what it can use, and never fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netqos.host.memory import AgentMemory
from netqos.host.state import StateFolder
from netqos.model.composed import EMPTY_LAST_GOOD
from netqos.model.inputs import Freshness, SourceState
from netqos.runtime.fleet import USED, _remembered
from netqos.runtime.kubefindings import with_memory
from netqos.runtime.kubememory import HEARD, PODS, KubeMemory
from netqos.runtime.overrides import OverrideBook
from netqos.testing.clock import FakeClock
from netqos_tc.kept import document_name
from netqos_tc.root import from_document as root_from
from netqos_terway.memo import DOCUMENT
from netqos_terway.memo import from_document as memo_from

NUMBERS = st.integers() | st.floats() | st.sampled_from([10**400, -(10**400), 1e300, 2**53, 0, -1])
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(st.characters(), max_size=8)
KEYS = st.sampled_from(
    [
        "limits",
        "rules",
        "policy",
        "bands",
        "totals",
        "speeds",
        "uid",
        "level",
        "tx",
        "rx",
        "u",
        "pods",
        "node",
    ]
)
ANY = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
STATE = SourceState(freshness=Freshness.WAITING)
NAMES = ("last-good", "configuration", "overrides", PODS, HEARD, USED, document_name("up0"), DOCUMENT)

HEARD_ENTRIES = st.fixed_dictionaries(
    {"wall_s": SCALARS, "boot_s": SCALARS, "boot_id": st.sampled_from(["boot-1", "x", 7])}
)
OVERRIDES = st.fixed_dictionaries(
    {
        "uid": st.just("u"),
        "limits": st.fixed_dictionaries({"tx": SCALARS, "rx": SCALARS}),
        "expires_wall_s": SCALARS,
        "expires_boot_s": SCALARS,
        "boot_id": st.just("boot-1"),
    }
)
ROOTS = st.fixed_dictionaries(
    {"kind": SCALARS, "handle": SCALARS, "options": SCALARS, "children": st.lists(ANY, max_size=2)}
)
DOCUMENTS = (
    ANY | st.dictionaries(st.sampled_from(["pods", "node"]), HEARD_ENTRIES) | st.lists(OVERRIDES) | ROOTS
)


def read_all(folder: Path) -> StateFolder:
    """As the daemon does when it starts, down to what it makes of the numbers."""
    state, clock = StateFolder(folder), FakeClock()
    agent = AgentMemory(state)
    agent.last_good.load()
    agent.configuration.load()
    OverrideBook(agent.overrides.load(), clock).next_end_s()
    memory = KubeMemory(state, clock)
    memory.pods()
    heard = memory.heard()
    assert all(0 <= clock.monotonic() - at_s <= 2**53 for at_s in heard.values())
    with_memory(dict.fromkeys(heard, STATE), heard)
    memory.save((), {"pods": clock.monotonic()}, at_end=True)
    assert memory.heard()["pods"] == clock.monotonic()
    _remembered(state.load(USED))
    root_from(state.load(document_name("up0")))
    memo_from(state.load(DOCUMENT))
    for finding in state.findings:
        assert f"{finding.subject}{finding.message}".isprintable()
    return state


@settings(max_examples=60, deadline=None)  # each is written to the disk for good
@given(DOCUMENTS)
def test_any_document_is_read_or_put_aside(
    tmp_path_factory: pytest.TempPathFactory, document: object
) -> None:
    folder = tmp_path_factory.mktemp("state")
    for name in NAMES:
        text = json.dumps({"version": 1, "document": document})
        (folder / f"{name}.json").write_text(text, encoding="ascii")
    read_all(folder)


@settings(max_examples=20, deadline=None)
@given(st.binary(max_size=40))
def test_any_bytes_are_put_aside(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("state")
    for name in NAMES:
        (folder / f"{name}.json").write_bytes(content)
    codes = [finding.code for finding in read_all(folder).findings]
    assert set(codes) == {"state-set-aside"}


@pytest.mark.parametrize(
    "number", ["1" + "0" * 400, "-1" + "0" * 400, "NaN", "-Infinity", "1e999", "1" * 5000]
)
@pytest.mark.parametrize("key", ["boot_s", "wall_s"])
@pytest.mark.parametrize("boot_id", ["boot-1", "another"])
def test_a_time_that_is_none_is_no_memory(tmp_path: Path, number: str, key: str, boot_id: str) -> None:
    entry = json.dumps({"wall_s": 1, "boot_s": 1, key: "N", "boot_id": boot_id}).replace('"N"', number)
    (tmp_path / "heard.json").write_text(
        f'{{"version": 1, "document": {{"pods": {entry}}}}}', encoding="ascii"
    )
    state = StateFolder(tmp_path)
    assert KubeMemory(state, FakeClock()).heard() == {}
    assert [finding.code for finding in state.findings] == ["state-set-aside"]


@pytest.mark.parametrize(
    "share", ["1e999999999", "1/0", "0/0", "-1/3", "301/3", "nan", "1" * 5000, "\u0663", 101, 0.5, "50 ", ""]
)
def test_a_share_that_is_none_is_no_memory(tmp_path: Path, share: object) -> None:
    state = StateFolder(tmp_path)
    for one, codes in (("100/3", []), (share, ["state-set-aside"])):
        level = {"guarantee": {"tx": {"value": one}, "rx": None}}
        state.save("last-good", {"policy": {"source": "x", "levels": {"l0": level, "l1": {}, "l2": {}}}})
        assert (AgentMemory(state).last_good.load() == EMPTY_LAST_GOOD) == bool(codes)
        assert [finding.code for finding in state.findings] == codes
