"""netqosctl cleanup over backends that behave, fail, hang and never end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from netqos.backend import Backend
from netqos.cli.commands import cleanup
from netqos.cli.ctl import main
from netqos.errors import Fatal, Retryable
from netqos.host.memory import AgentMemory
from netqos.host.state import StateFolder
from netqos.model.desired import DesiredState
from netqos.model.health import error
from netqos.model.plan import ApplyResult, Failure, ObservedState, Operation, Plan, Verb
from netqos.observe.listen import UnixListener
from netqos.runtime.remembered import remember_owner
from netqos.testing import states
from netqos.testing.fakes import FakeBackend
from tests.unit.cli.daemon import running

Cleanup = Callable[..., tuple[int, str, str]]


class Failing(FakeBackend):
    """Every operation is refused."""

    async def apply(self, plan: Plan) -> ApplyResult:
        failures = tuple(
            Failure(operation=one, code="EPERM", message="not permitted") for one in plan.operations
        )
        return ApplyResult(failures=failures)


class Endless(FakeBackend):
    """Has always one more thing to remove."""

    def plan(self, desired: DesiredState, observed: ObservedState) -> Plan:
        return Plan(backend=self.name, operations=(Operation(verb=Verb.DELETE, subject="the hydra's head"),))

    async def apply(self, plan: Plan) -> ApplyResult:
        return ApplyResult(applied=1)


class Broken(FakeBackend):
    """Cannot be asked."""

    async def observe(self) -> ObservedState:
        raise Retryable("the kernel is busy", subject="netlink")


class Crashing(FakeBackend):
    """A plugin with a fault."""

    async def observe(self) -> ObservedState:
        raise ZeroDivisionError("its own fault")


def filled(backend: FakeBackend) -> FakeBackend:
    """The backend after a node was shaped."""
    plain = FakeBackend(backend.kernel, name=backend.name)

    async def fill() -> None:
        plan = plain.plan(states.node(), await plain.observe())
        assert (await plain.apply(plan)).ok

    asyncio.run(fill())
    return backend


@pytest.fixture
def sweep(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Cleanup:
    """Run the command over the given backends, with the configuration in `tmp_path`."""
    monkeypatch.setattr(cleanup, "_need_rights", lambda: None)
    config = tmp_path / "netqos.yaml"
    paths = {"socket": str(tmp_path / "s"), "state": str(tmp_path / "state")}
    config.write_text(json.dumps({"paths": paths}), encoding="utf-8")

    def run(backends: list[Backend], *words: str) -> tuple[int, str, str]:
        found = error("backend-broken", "backend x", "cannot be loaded")
        monkeypatch.setattr(cleanup, "all_backends", lambda _settings: (backends, [found]))
        code = main(["--socket", str(tmp_path / "other"), "cleanup", "--config", str(config), *words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_everything_goes_and_a_second_run_finds_nothing(sweep: Cleanup) -> None:
    one = filled(FakeBackend(name="one"))
    code, out, err = sweep([one, FakeBackend(name="two")])
    assert code == 0
    assert out.splitlines()[0].startswith("one: ")
    assert out.splitlines()[-1] == "two: nothing of ours is there"
    assert "cannot be loaded" in err
    assert one.is_closed
    assert sweep([FakeBackend(one.kernel, name="one")])[1] == "one: nothing of ours is there\n"


def test_a_dry_run_changes_nothing(sweep: Cleanup) -> None:
    one = filled(FakeBackend(name="one"))
    before = asyncio.run(one.observe())
    code, out, _ = sweep([one], "--dry-run", "--json")
    answer = json.loads(out)
    assert (code, answer["dry_run"], answer["ok"]) == (0, True, True)
    assert {operation["verb"] for operation in answer["backends"][0]["operations"]} == {"delete"}
    assert asyncio.run(FakeBackend(one.kernel).observe()) == before


def test_what_was_kept_is_forgotten_and_files_of_others_stay(sweep: Cleanup, tmp_path: Path) -> None:
    folder = tmp_path / "state"
    state, tc = StateFolder(folder), StateFolder(folder / "backends" / "tc")
    state.save("heard", {"a": 1})
    state.save("pods", [])
    state.set_aside("pods", "makes no sense")
    tc.save("root", {"handle": 1})
    (folder / "notes.json").write_text('{"kept": "by somebody"}', encoding="utf-8")
    (folder / "heard.txt").touch()
    _, out, _ = sweep([], "--dry-run")
    assert (out.splitlines()[0], len(list(folder.rglob("*.*")))) == ("state: 3 changes would be made", 5)
    assert sweep([])[0] == 0
    assert sorted(one.name for one in folder.rglob("*")) == ["heard.txt", "notes.json"]


def test_what_was_kept_stays_while_something_is_left(sweep: Cleanup, tmp_path: Path) -> None:
    state = StateFolder(tmp_path / "state")
    state.save("heard", {"a": 1})
    assert sweep([filled(Failing(name="bad"))])[0] == 1
    assert state.load("heard") == {"a": 1}


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (Failing, "changes failed"),
        (Endless, "failed: something is left after 3 rounds"),
        (Broken, "failed: netlink: the kernel is busy"),
        (Crashing, "failed: ZeroDivisionError: its own fault"),
    ],
)
def test_one_that_fails_is_told_and_the_others_are_swept(
    sweep: Cleanup, kind: type[FakeBackend], told: str
) -> None:
    other = filled(FakeBackend(name="other"))
    code, out, err = sweep([filled(kind(name="bad")), other])
    assert (code, "Traceback" in err) == (1, False)
    assert told in out
    assert sweep([FakeBackend(other.kernel, name="other")])[1] == "other: nothing of ours is there\n"


def test_one_that_hangs_is_given_up(sweep: Cleanup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleanup, "DEADLINE_S", 0.05)
    code, out, _ = sweep([filled(FakeBackend(name="slow", delay_s=5))])
    assert (code, "no end within 0.05 s" in out) == (1, True)


def test_it_refuses_beside_a_daemon(sweep: Cleanup, tmp_path: Path) -> None:
    one = filled(FakeBackend(name="one"))
    before = asyncio.run(one.observe())
    with running() as path:
        (tmp_path / "s").symlink_to(path)
        code, out, err = sweep([one])
        assert (code, out) == (1, "")
        assert "stop it first" in err
        assert sweep([one], "--dry-run")[0] == 1
    assert asyncio.run(one.observe()) == before


def test_beside_the_daemon_of_a_pod_it_says_what_to_do_in_a_cluster(
    sweep: Cleanup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    with running() as path:
        (tmp_path / "s").symlink_to(path)
        _, _, err = sweep([])
    assert "helm uninstall" in err
    assert "systemctl" not in err


@pytest.mark.parametrize("broken", ["backends: 7\n", None])
def test_where_the_configuration_broke_the_last_good_one_is_taken(
    sweep: Cleanup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str | None
) -> None:
    config, state = tmp_path / "netqos.yaml", StateFolder(tmp_path / "state")
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    AgentMemory(state).configuration.save(((str(config), config.read_text(encoding="utf-8")),))
    remember_owner(state, config)
    config.unlink() if broken is None else config.write_text(broken, encoding="utf-8")
    one = filled(FakeBackend(name="one"))
    code, out, err = sweep([one])
    assert (code, "one: " in out) == (0, True)
    assert (
        "backends" in err or "there is no configuration file" in err,
        "the last good one holds" in err,
    ) == (
        True,
        True,
    )


def test_no_daemon_can_start_meanwhile(sweep: Cleanup, tmp_path: Path) -> None:
    refused = []

    class Curious(FakeBackend):
        async def observe(self) -> ObservedState:
            with pytest.raises(Fatal) as caught:
                UnixListener(tmp_path / "s")
            refused.append(caught.value.message)
            return await super().observe()

    assert sweep([Curious(name="one")])[0] == 0
    assert refused == ["another daemon answers on this socket"]
    assert not (tmp_path / "s").exists()


def test_a_wrong_configuration_is_5_and_touches_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cleanup, "_need_rights", lambda: None)
    (tmp_path / "c.yaml").write_text("nod: 1\nbackends: 7\n", encoding="utf-8")
    code = main(["cleanup", "--config", str(tmp_path / "c.yaml")])
    err = capsys.readouterr().err
    assert (code, err.count("c.yaml:1:1"), err.count("c.yaml:2:")) == (5, 1, 1)
