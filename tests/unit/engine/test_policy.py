"""File and NodeSLO into one policy (contract 1.4)."""

from __future__ import annotations

import pytest

from netqos.engine.policy import chosen_backends, policy_in_force
from netqos.model.inputs import LevelPolicy, NodePolicy, Percent
from netqos.model.levels import Level, PerDirection, PerLevel
from netqos.settings.values import Settings
from tests.unit.engine.given import FILE_OFF, FILE_ON, M, level, policy, slo

ON, OFF, SILENT = LevelPolicy(enabled=True), LevelPolicy(enabled=False), LevelPolicy()


def in_force(file: NodePolicy, asked: NodePolicy | None = None) -> NodePolicy:
    return policy_in_force(Settings(policy=file), asked)


def switches(merged: NodePolicy) -> tuple[object, ...]:
    return (merged.enabled, *(one.enabled for one in merged.levels))


@pytest.mark.parametrize(
    ("file", "asked", "expected"),
    [
        pytest.param(FILE_OFF, None, (False, False, False, False), id="off by default"),
        pytest.param(FILE_ON, None, (True, True, True, True), id="the file's switch"),
        pytest.param(
            NodePolicy(source="file", enabled=True),
            None,
            (True, True, True, True),
            id="a switch and no class",
        ),
        pytest.param(FILE_OFF, slo(), (False, False, False, False), id="a NodeSLO that says nothing"),
        pytest.param(FILE_ON, slo(), (True, True, True, True), id="a NodeSLO that says nothing, file on"),
        pytest.param(
            FILE_OFF,
            slo(l1=ON, enabled=True),
            (True, False, True, False),
            id="one class is on, the others absent",
        ),
        pytest.param(FILE_OFF, slo(l1=ON), (True, False, True, False), id="a class is a switch"),
        pytest.param(FILE_ON, slo(l1=OFF), (False, True, False, True), id="a NodeSLO that only switches off"),
        pytest.param(
            FILE_ON,
            slo(l1=ON, l2=OFF, enabled=True),
            (True, True, True, False),
            id="class by class over the file",
        ),
        pytest.param(
            policy(OFF, OFF, OFF, enabled=False),
            slo(ON, ON, ON, enabled=True),
            (True, True, True, True),
            id="a proposal over a file that is off",
        ),
        pytest.param(
            FILE_ON,
            slo(OFF, OFF, OFF, enabled=False),
            (False, False, False, False),
            id="a proposal that is off",
        ),
        pytest.param(
            FILE_OFF,
            slo(enabled=True, invalid=frozenset({Level.L1})),
            (True, False, False, False),
            id="the only class that is on is invalid",
        ),
    ],
)
def test_what_is_on(file: NodePolicy, asked: NodePolicy | None, expected: tuple[bool, ...]) -> None:
    assert switches(in_force(file, asked)) == expected


@pytest.mark.parametrize(
    ("asked", "last_on", "expected"),
    [
        (slo(invalid=frozenset(Level)), {Level.L1}, True),
        (slo(invalid=frozenset(Level)), set(), False),
        (slo(l2=OFF, invalid=frozenset({Level.L1})), {Level.L1}, True),
        (slo(l2=OFF, invalid=frozenset({Level.L1})), {Level.L2}, False),
        (slo(OFF, OFF, OFF, enabled=False, invalid=frozenset({Level.L1})), {Level.L1}, False),
    ],
)
def test_a_switch_that_was_rejected_stays_as_its_class_was(
    asked: NodePolicy, last_on: set[Level], expected: bool
) -> None:
    merged = policy_in_force(Settings(policy=FILE_OFF), asked, last_on=frozenset(last_on))
    assert merged.enabled is expected


def test_each_field_of_the_nodeslo_beats_the_same_field_of_the_file() -> None:
    file = policy(
        l1=level(guarantee=(Percent(20), Percent(21)), ceiling=(Percent(80), None)),
        l2=level(guarantee=Percent(10)),
        total=PerDirection(tx=500 * M, rx=None),
    )
    asked = slo(
        l1=level(guarantee=(300 * M, None), ceiling=(None, 700 * M)),
        enabled=True,
        total=PerDirection(tx=None, rx=90 * M),
    )
    assert in_force(file, asked) == NodePolicy(
        source="nodeslo",
        enabled=True,
        total=PerDirection(tx=500 * M, rx=90 * M),
        levels=PerLevel(
            ON,
            level(guarantee=(300 * M, Percent(21)), ceiling=(Percent(80), 700 * M)),
            level(guarantee=Percent(10)),
        ),
        backends=("tc",),
    )


def test_a_class_that_the_file_got_wrong_is_right_where_the_nodeslo_speaks() -> None:
    file = policy(invalid=frozenset({Level.L1, Level.L2}))
    assert in_force(file, slo(l1=ON)).invalid == {Level.L2}
    assert in_force(file, slo(l1=ON, invalid=frozenset({Level.L0}))).invalid == {Level.L0, Level.L2}
    assert in_force(file).invalid == {Level.L1, Level.L2}


@pytest.mark.parametrize(
    ("of_slo", "of_shape", "expected"),
    [
        (None, None, ("tc", "terway")),
        (("terway",), None, ("terway",)),
        (None, ("terway",), ("terway",)),
        (("tc",), ("terway",), ("tc",)),
    ],
)
def test_backends_are_the_nodeslos_choice_else_the_files(
    of_slo: tuple[str, ...] | None, of_shape: tuple[str, ...] | None, expected: tuple[str, ...]
) -> None:
    settings = Settings(policy=policy(backends=of_shape), backends=("tc", "terway"))
    assert chosen_backends(settings, slo(backends=of_slo)) == expected
