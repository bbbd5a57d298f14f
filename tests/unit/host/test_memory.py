from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.host.memory import AgentMemory
from netqos.host.state import StateFolder
from netqos.model.composed import EMPTY_LAST_GOOD, LastGood
from netqos.model.desired import Band
from netqos.model.ids import PodUid
from netqos.model.inputs import LevelPolicy, NodePolicy, Override, Percent
from netqos.model.levels import Direction, Level, PerDirection, PerLevel
from netqos.model.rules import IpMatch, PortMatch, PortRange, Protocol, Rule

bps = st.integers(0, 10**15)
uids = st.text(min_size=1).map(PodUid)
percents = st.builds(
    Percent, st.integers(0, 100) | st.fractions(0, 100).filter(lambda share: share.denominator > 1)
)
amounts = st.none() | bps | percents
ports = st.builds(PortRange, low=st.integers(0, 65535), high=st.integers(0, 65535))
matches = st.builds(IpMatch, networks=st.lists(st.text()).map(tuple)) | st.builds(
    PortMatch,
    ranges=st.lists(ports).map(tuple),
    protocol=st.none() | st.sampled_from(Protocol),
    expression=st.text(),
)
rules = st.builds(
    Rule,
    matches=st.lists(matches, max_size=3).map(tuple),
    level=st.none() | st.sampled_from(Level),
    dscp=st.none() | st.integers(0, 63),
    minimum_bps=st.none() | bps,
    maximum_bps=st.none() | bps,
)


def both(kind: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(PerDirection, tx=kind, rx=kind)


def each(kind: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(PerLevel, kind, kind, kind)


policies = st.builds(
    NodePolicy,
    source=st.text(),
    enabled=st.none() | st.booleans(),
    total=both(st.none() | bps),
    levels=each(
        st.builds(
            LevelPolicy, enabled=st.none() | st.booleans(), guarantee=both(amounts), ceiling=both(amounts)
        )
    ),
    invalid=st.frozensets(st.sampled_from(Level)),
    backends=st.none() | st.lists(st.text()).map(tuple),
)
bands = st.builds(Band, guarantee_bps=bps, ceiling_bps=bps, enabled=st.booleans())
last_goods = st.builds(
    LastGood,
    limits=st.dictionaries(uids, both(st.none() | st.tuples(bps, st.text())), max_size=3),
    rules=st.dictionaries(uids, both(st.lists(rules, max_size=2).map(tuple)), max_size=2),
    policy=st.none() | policies,
    bands=st.dictionaries(st.sampled_from(Direction), each(st.none() | bands)),
    totals=both(st.none() | st.tuples(bps, st.text())),
)
times = st.floats(allow_nan=False, allow_infinity=False)
overrides = st.builds(
    Override,
    uid=uids,
    limits=both(st.none() | bps),
    level=st.none() | st.sampled_from(Level),
    expires_wall_s=times,
    expires_boot_s=times,
    boot_id=st.text(),
    reason=st.text(),
    author_uid=st.integers(0, 2**32),
)


class JsonStore:
    """Documents as JSON keeps them, without a disk."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def load(self, name: str) -> object | None:
        return json.loads(self.texts[name]) if name in self.texts else None

    def save(self, name: str, document: object) -> None:
        self.texts[name] = json.dumps(document)

    def delete(self, name: str) -> None:
        self.texts.pop(name, None)

    def set_aside(self, name: str, reason: str) -> None:
        raise AssertionError(f"{name}: {reason}")


def exact(value: object) -> object:
    """The value with the type of each part: equality alone takes 1, 1.0, True and Fraction(1) for the same."""
    if isinstance(value, dict):
        return sorted((repr(key), exact(one)) for key, one in value.items())
    if isinstance(value, frozenset):
        return sorted(map(repr, value))
    if isinstance(value, tuple):
        return [exact(one) for one in value]
    if dataclasses.is_dataclass(value):
        return type(value), [exact(getattr(value, one.name)) for one in dataclasses.fields(value)]
    return type(value), value


def _memory(folder: Path) -> AgentMemory:
    return AgentMemory(StateFolder(folder))


@given(last_goods)
def test_last_good_comes_back_exactly(value: LastGood) -> None:
    store = JsonStore()
    AgentMemory(store).last_good.save(value)
    found = AgentMemory(store).last_good.load()
    assert found == value
    assert exact(found) == exact(value)


@given(st.lists(overrides).map(tuple))
def test_overrides_come_back_exactly(value: tuple[Override, ...]) -> None:
    store = JsonStore()
    AgentMemory(store).overrides.save(value)
    found = AgentMemory(store).overrides.load()
    assert found == value
    assert exact(found) == exact(value)


@given(st.lists(st.tuples(st.text(), st.text())).map(tuple))
def test_configuration_texts_come_back_exactly(value: tuple[tuple[str, str], ...]) -> None:
    store = JsonStore()
    AgentMemory(store).configuration.save(value)
    assert AgentMemory(store).configuration.load() == value


def test_nothing_remembered_is_empty_and_writes_nothing(tmp_path: Path) -> None:
    memory = _memory(tmp_path)
    assert memory.last_good.load() == EMPTY_LAST_GOOD
    assert memory.overrides.load() == ()
    assert memory.configuration.load() == ()
    memory.last_good.save(EMPTY_LAST_GOOD)
    assert list(tmp_path.iterdir()) == []


def test_an_equal_value_is_not_written_again_though_its_set_has_another_order(tmp_path: Path) -> None:
    path = tmp_path / "last-good.json"
    value = LastGood(policy=NodePolicy(source="file", invalid=frozenset(Level)))
    _memory(tmp_path).last_good.save(value)
    document = json.loads(path.read_bytes())
    document["document"]["policy"]["invalid"].reverse()
    path.write_text(json.dumps(document))
    inode = path.stat().st_ino
    _memory(tmp_path).last_good.save(value)
    assert path.stat().st_ino == inode


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ([], "dictionary"),
        ({"limits": {"u": {"tx": [1]}}}, "limits.u.tx"),
        ({"totals": {"tx": None}}, "totals.rx"),
        ({"bands": {"up": {"l0": None, "l1": None, "l2": None}}}, "bands.up"),
    ],
)
def test_a_document_of_another_shape_is_set_aside(tmp_path: Path, document: object, reason: str) -> None:
    folder = StateFolder(tmp_path)
    folder.save("last-good", document)
    assert AgentMemory(folder).last_good.load() == EMPTY_LAST_GOOD
    assert [finding.code for finding in folder.findings] == ["state-set-aside"]
    assert reason in folder.findings[0].message


@pytest.mark.parametrize("end", ["NaN", "Infinity"])
def test_an_override_that_never_ends_is_not_taken(tmp_path: Path, end: str) -> None:
    memory = _memory(tmp_path)
    memory.overrides.save(
        (Override(uid=PodUid("u"), expires_wall_s=12.5, expires_boot_s=77.25, boot_id="b"),)
    )
    path = tmp_path / "overrides.json"
    path.write_text(path.read_text().replace("12.5", end))
    assert memory.overrides.load() == ()


def test_a_share_keeps_its_exact_value(tmp_path: Path) -> None:
    third = LevelPolicy(guarantee=PerDirection(tx=Percent(Fraction(100, 3)), rx=Percent(30)))
    value = LastGood(policy=NodePolicy(source="nodeslo", levels=PerLevel(third, LevelPolicy(), third)))
    _memory(tmp_path).last_good.save(value)
    assert _memory(tmp_path).last_good.load() == value
