"""netqosctl as a whole: every command against the real socket, its exit codes, and what goes wrong on the way."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from netqos.cli.arguments import COMMANDS
from netqos.cli.client import StatusClient, Unreachable
from netqos.cli.commands import top
from netqos.cli.commands.common import Call
from netqos.cli.ctl import main
from netqos.cli.ticks import Ticks
from netqos.errors import Rejected
from netqos.model.health import warning
from tests.unit.cli.daemon import answering, running
from tests.unit.observe.sample import (
    DESIRED,
    EMPTY,
    FAILED,
    HOSTILE,
    PODS,
    WEB,
    SampleAgent,
    composition,
    view,
)

Run = tuple[int, str, str]
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _plain_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NETQOS_SOCKET", "NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def agent() -> SampleAgent:
    return SampleAgent()


@pytest.fixture
def path(agent: SampleAgent) -> Iterator[Path]:
    with running(agent) as found:
        yield found


@pytest.fixture
def ctl(path: Path, capsys: Captured) -> Callable[..., Run]:
    return lambda *words: call(path, capsys, *words)


def call(path: Path, capsys: Captured, *words: str) -> Run:
    code = main(["--socket", str(path), *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


# ------------------------------------------------------------------ answers


@pytest.mark.parametrize(
    ("words", "schema"),
    [
        (("status",), "status"),
        (("pods",), "pods"),
        (("explain", "batch/crunch"), "explain"),
        (("plan",), "plan"),
        (("limits",), "limits"),
        (("limit", "web", "--egress", "10M"), "limit"),
        (("limits", "--delete", "prod/hostile"), "limits-delete"),
        (("reconcile",), "reconcile"),
        (("top", "--count", "1"), "top"),
    ],
)
def test_every_command_has_json_with_a_schema_and_text_without_escapes(
    path: Path, capsys: Captured, words: tuple[str, ...], schema: str
) -> None:
    code, out, err = call(path, capsys, *words, "--json")
    answer = json.loads(out)
    assert (code, err, next(iter(answer)), answer["schema"]) == (0, "", "schema", f"netqosctl.{schema}/v1")
    with running() as other:
        code, out, err = call(other, capsys, *words)
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    assert "\u202e" not in out


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("words", ["pods", "status", "limits", "top --count 1"])
def test_tables_fit_the_terminal(
    ctl: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, columns: int, words: str
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    _, out, _ = ctl(*words.split())
    tables = [line for line in out.splitlines() if re.search(r"  +L[012] |LEVEL", line)]
    assert tables
    assert max(len(line) for line in tables) <= columns


LONG = "the total of this uplink is above what its driver reports, " * 5 + "and that is all"


@pytest.mark.parametrize("columns", ["", "60", "100"])
@pytest.mark.parametrize("words", ["status", "plan", "explain web"])
def test_long_findings_are_broken_not_cut(
    path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch, *, columns: str, words: str
) -> None:
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    answer = json.loads(call(path, capsys, *words.split(), "--json")[1])
    finding = {"severity": "warning", "code": "c", "subject": "up0", "message": LONG, "hint": LONG}
    place = answer["plans"][0] if words == "plan" else answer
    place["findings"] = [finding]
    with answering(sends(json_answer(answer))) as other:
        code, out, _ = call(other, capsys, *words.split())
    shown = out.partition("findings\n")[2]
    assert (code, " ".join(shown.split()).count(LONG)) == (0, 2)
    assert max(len(line) for line in shown.splitlines()) <= int(columns or 80)


def test_status_says_who_is_waited_for_and_how_much_is_rejected(capsys: Captured) -> None:
    findings = (warning("not-allowed", "pod x", "a"), warning("address-conflict", "pod x", "b"))
    pods = (replace(PODS[0], findings=findings), *PODS[1:])
    shown = view(
        ready=False,
        waited_for={"pods": "403: no", "node": "no Node w1 on this server"},
        composition=composition(DESIRED, pods),
    )
    with running(SampleAgent(shown)) as path:
        code, out, _ = call(path, capsys, "status")
    assert (code, out.splitlines()[:4]) == (
        0,
        [
            "worker-1  netqos 0.1.0  not ready, network QoS on, up 10m, 4 pods, 1 override",
            "waits for pods: 403: no",
            "waits for node: no Node w1 on this server",
            "rejected  2 inputs of 1 pod: see `netqosctl pods`, `netqosctl explain POD`",
        ],
    )


def test_a_daemon_that_has_only_started_is_shown(capsys: Captured) -> None:
    with running(SampleAgent(EMPTY)) as path:
        code, out, _ = call(path, capsys, "status")
        assert (code, "not ready" in out, "nothing to steer yet" in out) == (0, True, True)
        assert call(path, capsys, "pods") == (0, "", "netqosctl: there are no such pods on this node\n")


def test_pods_can_be_narrowed_to_a_level_and_to_names(ctl: Callable[..., Run]) -> None:
    assert ctl("pods", "--names") == (0, "batch/crunch\nprod/db\nprod/hostile\nweb\n", "")
    assert ctl("pods", "--names", "--level", "L2")[1] == "batch/crunch\nprod/hostile\n"


def test_limit_says_what_holds_and_for_how_long(ctl: Callable[..., Run], agent: SampleAgent) -> None:
    words = (
        "limit",
        "web",
        "--egress",
        "10M",
        "--ingress",
        "0",
        "--level",
        "l2",
        "--for",
        "1h30m",
        "--reason",
        "why",
    )
    code, out, _ = ctl(*words)
    assert (code, out) == (0, "web: level L2, egress 10 Mbit/s, ingress no limit for 1h30m\n")
    _, request = agent.requests[0]
    assert (request.ttl_s, request.reason) == (5400.0, "why")


def test_limits_are_ended_by_name_or_uid_even_when_the_pod_is_gone(
    ctl: Callable[..., Run], agent: SampleAgent
) -> None:
    assert ctl("limits", "--delete", HOSTILE)[:2] == (0, f"{HOSTILE}: override ended\n")
    assert agent.shown.overrides == ()


def test_reconcile_fails_when_a_backend_failed(ctl: Callable[..., Run], agent: SampleAgent) -> None:
    agent.results = {"tc": FAILED}
    code, out, err = ctl("reconcile")
    assert (code, out) == (1, "tc: failed, 1 change made\n")
    assert err == "netqosctl: tc: change class 4e51:11 on up0: no such class (ENOENT)\n"
    assert ctl("reconcile", "--json")[0] == 1


# ------------------------------------------------------------------ exit codes


def test_an_unknown_pod_is_4(ctl: Callable[..., Run]) -> None:
    for words in (("explain", "x/y"), ("limit", "x/y", "--egress", "1M"), ("limits", "--delete", "x/y")):
        code, out, err = ctl(*words)
        assert (code, out) == (4, "")
        assert "x/y" in err


def test_rejected_input_is_5_with_every_problem(ctl: Callable[..., Run], agent: SampleAgent) -> None:
    code, out, err = ctl("limit", "web", "--egress", "10Mbps", "--level", "l9")
    assert (code, out) == (5, "")
    assert [line.split()[1] for line in err.splitlines() if line.startswith("  - ")] == ["egress:", "level"]
    assert agent.shown.overrides[0].uid == HOSTILE
    assert len(agent.shown.overrides) == 1


def test_a_failing_daemon_is_1(ctl: Callable[..., Run], agent: SampleAgent) -> None:
    agent.failure = ZeroDivisionError()
    code, _, err = ctl("status")
    assert (code, "the daemon's log has the reason" in err) == (1, True)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["nonsense"],
        ["explain"],
        ["status", "extra"],
        ["stat"],
        ["pods", "--level", "l3"],
        ["completion", "tcsh"],
        ["top", "--interval", "0"],
        ["top", "--interval", "x"],
        ["top", "--interval", "nan"],
        ["top", "--interval", "-1"],
        ["top", "--interval", "1e9"],
        ["top", "--count", "0"],
        ["top", "--count", "-1"],
        ["top", "--count", "1.5"],
        ["top", "--count", "1_0"],
        ["top", "--pods", "0"],
        ["top", "--pods", "-1"],
        ["top", "--pods", "9" * 5000],
        ["limit", "web"],
        ["limit", "web", "--reason", "why"],
        ["limit", "web", "--level", "l1", "--for", "0s"],
        ["limit", "web", "--level", "l1", "--for", "0"],
        ["limit", "web", "--level", "l1", "--for", "abc"],
        ["limit", "web", "--level", "l1", "--for", ""],
        ["limit", "web", "--level", "l1", "--for", "-5m"],
        ["limit", "web", "--level", "l1", "--for", "24h1s"],
        ["limit", "", "--level", "l1"],
        ["explain", ""],
        ["explain", " "],
        ["limits", "--delete", ""],
        ["--socket", "", "status"],
        ["doctor", "--config", ""],
    ],
)
def test_wrong_usage_is_2_before_anybody_is_asked(
    words: list[str], capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StatusClient, "_request", lambda *_words: pytest.fail("the daemon was asked"))
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    told = capsys.readouterr().err
    assert "usage: netqosctl" in told
    assert "'-5m'" in told or "-5m" not in words


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90.0), ("1.5", 1.5), ("90s", 90.0), ("1.5h", 5400.0), ("24h", 86_400.0)]
)
def test_a_time_may_be_written_in_every_usual_way(
    ctl: Callable[..., Run], agent: SampleAgent, text: str, seconds: float
) -> None:
    assert ctl("limit", "web", "--egress", "10M", "--for", text)[0] == 0
    assert agent.requests[0][1].ttl_s == seconds


@pytest.mark.parametrize("words", [["--egress", "-5M"], ["--egress=-5M"]])
def test_a_negative_value_is_judged_as_one(ctl: Callable[..., Run], words: list[str]) -> None:
    code, _, told = ctl("limit", "web", *words)
    assert code == 5
    assert '"-5M" is negative; allowed: 1k to 1P, or 0 for no limit' in told


def nothing(_path: Path) -> None:
    pass


def dead_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (nothing, "there is no such socket"),
        (Path.touch, "nobody listens there"),
        (dead_socket, "nobody listens there"),
    ],
)
def test_no_daemon_is_3_and_says_what_to_do(
    tmp_path: Path, capsys: Captured, make: Callable[[Path], object], message: str
) -> None:
    path = tmp_path / "s"
    make(path)
    code, out, err = call(path, capsys, "status")
    assert (code, out) == (3, "")
    assert message in err
    assert str(path) in err
    assert len(err.splitlines()) == 2


def test_a_path_that_no_socket_can_have_is_3(capsys: Captured) -> None:
    assert call(Path("/" + "x" * 200), capsys, "status")[0] == 3


def test_the_socket_comes_from_the_environment_too(
    path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NETQOS_SOCKET", str(path))
    assert main(["plan"]) == 0
    assert "tc: 3 changes" in capsys.readouterr().out


# ------------------------------------------------------------------ what may be at the other end


def sends(data: bytes) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(data)

    return answer


def json_answer(body: object, status: str = "200 OK", length: int | None = None) -> bytes:
    text = json.dumps(body).encode()
    return f"HTTP/1.1 {status}\r\nContent-Length: {length or len(text)}\r\n\r\n".encode() + text


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (b"", 3, "went away"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", 1, "does not speak netqosd's language"),
        (b"\xff\xfe\x00\x00\x00", 1, "does not speak netqosd's language"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", 3, "went away"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{x}", 1, "does not speak netqosd's language"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n\xff\xff", 1, "does not speak netqosd's language"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n", 1, "does not speak netqosd's language"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n", 1, "does not speak netqosd's language"),
        (json_answer([1, 2]), 1, "does not speak netqosd's language"),
        (json_answer("[" * 10), 1, "does not speak netqosd's language"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n" + b"[" * 90_000, 1, "does not speak"),
        (json_answer({}), 1, "unknown shape"),
        (json_answer({"directions": []}), 1, "unknown shape"),
        (json_answer({"error": "no"}, "500 Oops"), 1, "does not speak netqosd's language"),
        (json_answer({"error": {}}, "404 Not Found"), 1, "no reason given"),
        (json_answer({"error": {"code": "no-such-pod", "message": "x\x1b"}}, "404 No"), 4, "x\\x1b"),
        (json_answer({"error": {"message": "m", "problems": 7}}, "422 No"), 5, "netqosctl: m"),
    ],
)
def test_whatever_answers_there_is_one_clear_message(
    capsys: Captured, data: bytes, code: int, message: str
) -> None:
    with answering(sends(data)) as path:
        found, out, err = call(path, capsys, "status")
    assert (found, out) == (code, "")
    assert message in err
    assert "Traceback" not in err


def test_a_daemon_that_does_not_answer_is_3(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netqos.cli.client.ANSWER_S", 0.2)
    with answering(lambda connection: time.sleep(0.6)) as path:
        code, _, err = call(path, capsys, "status")
    assert (code, "did not answer within 0.2 s" in err) == (3, True)


def test_a_daemon_of_another_version_with_more_fields_is_understood(
    capsys: Captured, agent: SampleAgent, path: Path
) -> None:
    _, out, _ = call(path, capsys, "status", "--json")
    answer = {**json.loads(out), "new": 1}
    with answering(sends(json_answer(answer))) as other:
        assert call(other, capsys, "status")[0] == 0


# ------------------------------------------------------------------ pipes, signals, start


CTL = [sys.executable, "-m", "netqos.cli.ctl"]


def test_a_reader_that_leaves_is_no_error(path: Path) -> None:
    command = " ".join([*CTL, "--socket", str(path), "top --count 200 --interval 0.05 --json"])
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | head -c 10 >/dev/null"],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_full_disk_is_said(path: Path) -> None:
    with Path("/dev/full").open("w", encoding="ascii") as full:
        done = subprocess.run(
            [*CTL, "--socket", str(path), "status"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        1,
        "netqosctl: cannot write the answer: No space left on device\n",
    )


def test_ctrl_c_ends_top_quietly_and_other_commands_with_a_word(path: Path) -> None:
    live = subprocess.Popen([*CTL, "--socket", str(path), "top"], stdout=subprocess.PIPE, text=True)
    assert live.stdout is not None
    live.stdout.readline()
    live.send_signal(signal.SIGINT)
    rest, _ = live.communicate(timeout=20)
    assert (live.returncode, "Traceback" in rest) == (0, False)
    with answering(lambda connection: time.sleep(1.5)) as slow:
        waiting = subprocess.Popen([*CTL, "--socket", str(slow), "status"], stderr=subprocess.PIPE, text=True)
        time.sleep(0.8)
        waiting.send_signal(signal.SIGINT)
        _, err = waiting.communicate(timeout=20)
    assert (waiting.returncode, err) == (130, "netqosctl: interrupted\n")


def test_an_ascii_terminal_gets_ascii(path: Path) -> None:
    done = subprocess.run(
        [*CTL, "--socket", str(path), "top", "--count", "1"],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.stdout.isascii()
    assert b"####" in done.stdout


def test_showing_something_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom netqos.cli.ctl import main\n"
        "import netqos.cli.commands.status, netqos.cli.commands.top, netqos.cli.commands.limits\n"
        "main(['--socket', '/nowhere', 'status'])\n"
        "heavy = 'pydantic asyncio structlog prometheus_client pyroute2 kubernetes rich h11 yaml'.split()\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# ------------------------------------------------------------------ top


def reading(at_s: float, sent: int | None, uid: str = WEB) -> top.Reading:
    counters = [] if sent is None else [{"direction": "tx", "sent_bytes": sent}]
    return top.Reading(at_s=at_s, status={}, pods=({"uid": uid, "counters": counters},))


@pytest.mark.parametrize(
    ("before", "now", "rate"),
    [
        (None, reading(1, 100), None),
        (reading(1, 1_000_000), reading(3, 6_000_000), 20_000_000),
        (reading(1, 6_000_000), reading(3, 1_000_000), None),  # the counter went back: another leaf
        (reading(1, 1, "other"), reading(3, 100), None),
        (reading(1, None), reading(3, 100), None),
        (reading(3, 1), reading(3, 100), None),
    ],
)
def test_a_pods_rate_is_the_difference_of_two_readings(
    before: top.Reading | None, now: top.Reading, rate: float | None
) -> None:
    assert top.pod_rates(before, now.pods[0], now.at_s) == {"tx": rate, "rx": None}


@pytest.mark.parametrize(
    ("rate", "guarantee", "total", "text"),
    [
        (0, 0, 0, "." * 24),
        (100, 50, 100, "#" * 12 + "|" + "#" * 11),
        (500, 100, 100, "#" * 23 + "|"),
        (12.5, 30, 100, "###....|................"),
    ],
)
def test_a_bar_shows_the_rate_and_the_guarantee(rate: int, guarantee: int, total: int, text: str) -> None:
    assert top.bar(rate, guarantee, total, shows_blocks=False) == text


def test_top_draws_over_itself_on_a_terminal(path: Path) -> None:
    code = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"
    words = ["--color", "never", "top", "--count", "2", "--interval", "0.1"]
    done = subprocess.run(
        [sys.executable, "-c", code, *CTL, "--socket", str(path), *words],
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"},
        timeout=30,
    )
    assert done.stdout.count("\x1b[H") == 2
    assert done.stdout.startswith("\x1b[?25l")
    assert done.stdout.rstrip().endswith("\x1b[?25h")


def test_top_goes_on_when_the_daemon_comes_back(
    ctl: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it writes to; where it is no terminal each absence is told once, beside the pictures."""
    real, calls = top.read, itertools.count()
    told = "netqosd went away; trying again"

    def read(one: Call, ticks: Ticks) -> top.Reading:
        if next(calls) in {1, 2, 4}:
            raise Unreachable("netqosd went away")
        return real(one, ticks)

    monkeypatch.setattr(top, "read", read)
    code, out, err = ctl("top", "--count", "3", "--interval", "0.05")
    assert (code, out.count("worker-1"), err) == (0, 3, f"netqosctl: {told}\n" * 2)
    calls = itertools.count()
    code, out, err = ctl("top", "--count", "3", "--interval", "0.05", "--json")
    assert (code, len(out.splitlines()), err) == (0, 3, f"netqosctl: {told}\n" * 2)
    monkeypatch.setattr(top, "_is_live", lambda _call: True)
    calls = itertools.count()
    code, out, err = ctl("top", "--count", "3", "--interval", "0.05")
    assert (code, out.count("worker-1"), out.count(told), err) == (0, 3, 3, "")


def test_top_waits_for_no_daemon_that_never_was_there(
    ctl: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(_call: Call, _ticks: Ticks) -> top.Reading:
        raise Unreachable("netqosd is not reachable")

    monkeypatch.setattr(top, "read", read)
    assert ctl("top", "--count", "3")[0] == 3
    monkeypatch.setattr(top, "_is_live", lambda _call: True)
    assert ctl("top", "--count", "3")[0] == 3


# ------------------------------------------------------------------ completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command_and_option(ctl: Callable[..., Run], shell: str) -> None:
    _, script, _ = ctl("completion", shell)
    for command in COMMANDS:
        assert command.name in script
        for one in command.arguments:
            words = [one.name.strip("-")] if one.name.startswith("--") else one.choices
            assert all(word in script for word in words)


def test_bash_completes_with_it(ctl: Callable[..., Run], tmp_path: Path) -> None:
    _, script, _ = ctl("completion", "bash")
    (tmp_path / "netqosctl").write_text("#!/bin/sh\necho prod/db\necho web\n", encoding="ascii")
    (tmp_path / "netqosctl").chmod(0o755)

    def complete(*words: str) -> list[str]:
        line = f"COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}"
        run = f'PATH={tmp_path}:$PATH; {script}\n{line}; _netqosctl; printf "%s\\n" "${{COMPREPLY[@]}}"'
        done = subprocess.run(["bash", "-c", run], capture_output=True, text=True, check=True)
        return done.stdout.split()

    assert complete("netqosctl", "lim") == ["limit", "limits"]
    assert complete("netqosctl", "explain", "pro") == ["prod/db"]
    assert complete("netqosctl", "--json", "pods", "--l") == ["--level"]
    assert complete("netqosctl", "completion", "f") == ["fish"]


# ------------------------------------------------------------------ the agent says no


def test_a_daemon_that_rejects_says_why(ctl: Callable[..., Run], agent: SampleAgent) -> None:
    agent.failure = Rejected("wrong", subject="override of web", hint="do it right")
    agent.view = lambda: agent.shown  # type: ignore[method-assign]
    assert ctl("limit", "web", "--level", "l1") == (
        5,
        "",
        "netqosctl: override of web: wrong\n  do it right\n",
    )
