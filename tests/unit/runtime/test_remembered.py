from __future__ import annotations

from pathlib import Path

import pytest

from netqos.errors import Rejected
from netqos.host.memory import AgentMemory
from netqos.host.state import StateFolder
from netqos.runtime.remembered import remember_owner, remembered_documents, with_places_searched

GOOD = "policy: {enable: true}\n"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = StateFolder(tmp_path / "state")
    AgentMemory(folder).configuration.save((("netqos.yaml", GOOD),))
    remember_owner(folder, tmp_path / "netqos.yaml")
    return tmp_path / "state"


@pytest.mark.parametrize(
    "broken",
    [
        "paths: {{state: {state}}}\nnods: 1\n",
        "paths:\n  state: '{state}'\npolicy: [\n",
        '{{"paths": {{"state": "{state}"}}, "policy": perhaps}}',
    ],
)
def test_broken_files_lead_to_the_state_that_they_name(tmp_path: Path, state: Path, broken: str) -> None:
    config = tmp_path / "netqos.yaml"
    config.write_text(broken.format(state=state))
    assert remembered_documents(config, {}) == (("netqos.yaml", GOOD),)


def test_systemd_names_the_state_where_the_files_say_nothing(tmp_path: Path, state: Path) -> None:
    config = tmp_path / "netqos.yaml"
    config.write_text("\x00garbage")
    assert remembered_documents(config, {"STATE_DIRECTORY": str(state)}) == (("netqos.yaml", GOOD),)


def test_what_another_file_left_is_not_taken(tmp_path: Path, state: Path) -> None:
    config = tmp_path / "other.yaml"
    config.write_text(f"paths: {{state: {state}}}\nnods: 1\n")
    assert remembered_documents(config, {}) == ()


def test_right_files_need_no_memory(tmp_path: Path, state: Path) -> None:
    config = tmp_path / "netqos.yaml"
    config.write_text(f"paths: {{state: {state}}}\n")
    assert remembered_documents(config, {}) == ()


def test_nothing_remembered_is_nothing(tmp_path: Path) -> None:
    config = tmp_path / "netqos.yaml"
    config.write_text(f"paths: {{state: {tmp_path / 'none'}}}\nnods: 1\n")
    assert remembered_documents(config, {}) == ()


def test_the_refusal_names_the_places_that_remember_nothing(tmp_path: Path) -> None:
    config = tmp_path / "netqos.yaml"
    config.write_text(f"paths: {{state: {tmp_path / 'none'}}}\nnods: 1\n")
    told = with_places_searched(Rejected("wrong", problems=("nods: unknown",)), config, {})
    assert told.problems[0] == "nods: unknown"
    assert str(tmp_path / "none") in told.problems[1]
    config.write_text("nods: 1\n")
    assert "/var/lib/netqos" in with_places_searched(Rejected("wrong"), config, {}).problems[1]
