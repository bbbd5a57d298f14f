"""netqosctl record, replay, history: files that are whole whatever happens, and what is said of those that are not."""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from netqos.cli.ctl import main
from netqos.cli.progress import Progress
from netqos.engine.recording import head_line
from netqos.observe.view import Numbered, Round
from tests.unit.cli.daemon import answering, running
from tests.unit.engine.rounds import HEAD, busy_course, read, written
from tests.unit.observe.sample import SampleAgent

Run = tuple[int, str, str]
Captured = pytest.CaptureFixture[str]
COURSE = busy_course()
OTHER = "policy: {enable: true, levels: {l1: {txMin: 30%}, l2: {txMin: 40%}}}"


@pytest.fixture(autouse=True)
def _plain_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("NETQOS_SOCKET", "NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def agent() -> SampleAgent:
    agent = SampleAgent()
    for number, taken in enumerate(COURSE):
        agent.taken.put_nowait(Numbered(number, Round("tc", taken)))
    return agent


@pytest.fixture
def path(agent: SampleAgent) -> Iterator[Path]:
    with running(agent) as found:
        yield found


@pytest.fixture
def ctl(capsys: Captured) -> Callable[..., Run]:
    def call(*words: str) -> Run:
        code = main(list(words))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def entries(file: str) -> list[Any]:
    return read(Path(file).read_text(encoding="ascii").splitlines())


def put(name: str, lines: list[str]) -> None:
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def head(**changed: object) -> bytes:
    return json.dumps({**json.loads(head_line(HEAD)), **changed}).encode() + b"\n"


# ------------------------------------------------------------------ record


def test_a_recording_has_every_round_and_is_the_owners_alone(path: Path, ctl: Callable[..., Run]) -> None:
    code, out, err = ctl("--socket", str(path), "record", "loop", "--for", "0.5", "--json")
    told = json.loads(out)
    assert (code, err) == (0, "")
    assert stat.S_IMODE(Path("loop").stat().st_mode) == 0o600
    assert Path("loop").read_text(encoding="ascii").splitlines()[1:] == written(COURSE)[1:]
    assert told == {
        "schema": "netqosctl.record/v1",
        "file": "loop",
        "bytes": Path("loop").stat().st_size,
        "seconds": told["seconds"],
        "rounds": len(COURSE),
        "gaps": 0,
        "ended": "time",
    }


def test_a_file_that_is_there_is_kept_unless_it_is_forced(path: Path, ctl: Callable[..., Run]) -> None:
    Path("loop").write_text("precious\n", encoding="ascii")
    Path("loop").chmod(0o644)
    Path("link").symlink_to("loop")
    words = ["--socket", str(path), "record", "--for", "0.3"]
    assert ctl(*words, "loop")[0] == 5
    code, _, err = ctl(*words, "link")
    assert (code, "--force replaces it" in err) == (5, True)
    assert Path("loop").read_text(encoding="ascii") == "precious\n"
    os.mkfifo("pipe")
    Path("nowhere").symlink_to("missing")
    for name in ("link", "pipe", "nowhere", "."):
        code, _, err = ctl(*words, name, "--force")
        assert (code, err.splitlines()[0]) == (5, f"netqosctl: {name} is no file, and is not replaced")
    assert Path("loop").read_text(encoding="ascii") == "precious\n"
    assert ctl(*words, "loop", "--force")[0] == 0
    assert stat.S_IMODE(Path("loop").stat().st_mode) == 0o600
    assert sorted(one.name for one in Path().iterdir()) == ["link", "loop", "nowhere", "pipe"]


@pytest.mark.parametrize("change", [Path.unlink, lambda file: Path("other").replace(file)])
def test_a_recording_whose_file_is_gone_ends_and_says_so(
    path: Path, ctl: Callable[..., Run], change: Callable[[Path], object]
) -> None:
    Path("other").write_text("precious\n", encoding="ascii")
    file = Path("loop")

    def change_it() -> None:
        until_s = time.monotonic() + 20
        while not file.exists() and time.monotonic() < until_s:
            time.sleep(0.01)
        change(file)

    changing = Thread(target=change_it)
    changing.start()
    code, out, err = ctl("--socket", str(path), "record", "loop", "--for", "2s")
    changing.join()
    assert (code, out, "loop was replaced or removed while it was recorded" in err) == (1, "", True)
    assert not file.exists() or file.read_text(encoding="ascii") == "precious\n"


def test_without_a_daemon_no_file_is_made(ctl: Callable[..., Run]) -> None:
    assert ctl("--socket", "/nowhere", "record", "loop")[0] == 3
    assert not Path("loop").exists()


def test_a_folder_that_is_not_there_is_said(path: Path, ctl: Callable[..., Run]) -> None:
    code, _, err = ctl("--socket", str(path), "record", "nowhere/loop")
    assert (code, err.splitlines()[0]) == (
        5,
        "netqosctl: nowhere/loop cannot be written: No such file or directory",
    )


def test_a_recording_ends_at_its_size_with_a_whole_line(
    path: Path, ctl: Callable[..., Run], agent: SampleAgent
) -> None:
    for number, taken in enumerate(COURSE * 10, len(COURSE)):
        agent.taken.put_nowait(Numbered(number, Round("tc", taken)))
    code, out, _ = ctl("--socket", str(path), "record", "loop", "--for", "30", "--most", "100k")
    assert (code, "ended at its size" in out) == (0, True)
    assert 90_000 < Path("loop").stat().st_size <= 100_000
    assert len(entries("loop")) > 200


def test_ctrl_c_ends_a_recording_well(path: Path) -> None:
    words = [sys.executable, "-m", "netqos.cli.ctl", "--socket", str(path), "record", "loop", "--for", "1h"]
    recording = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    until_s = time.monotonic() + 20
    while not (Path("loop").exists() and Path("loop").stat().st_size > 20_000) and time.monotonic() < until_s:
        time.sleep(0.02)
    recording.send_signal(signal.SIGINT)
    out, _ = recording.communicate(timeout=20)
    assert (recording.returncode, "ended by Ctrl-C" in out) == (0, True)
    assert f"loop: {len(entries('loop')) - 1} rounds in " in out


def test_a_daemon_that_comes_back_leaves_a_gap(ctl: Callable[..., Run]) -> None:
    rounds = [f"{line}\n".encode() for line in written(COURSE[:5])]
    served = iter([rounds, rounds[:3], rounds])

    def answer(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(b"HTTP/1.1 200 \r\nConnection: close\r\n\r\n")
        lines = next(served)
        connection.sendall(b"".join(lines)[: -7 if len(lines) == 3 else None])

    with answering(answer) as socket_path:
        code, out, err = ctl("--socket", str(socket_path), "record", "loop", "--for", "1.3s")
    assert (code, err, out.count("10 rounds"), "3 gaps" in out) == (0, "", 1, True)
    kinds = [type(one).__name__ for one in entries("loop")]
    assert kinds == [
        *["Head", *["RecordedRound"] * 5, "Gap"],
        *["Head", "Gap"],
        *["Head", *["RecordedRound"] * 5, "Gap"],
    ]
    assert ctl("replay", "loop")[0] == 0


def test_another_version_that_comes_back_ends_the_recording(ctl: Callable[..., Run]) -> None:
    rounds = [f"{line}\n".encode() for line in written(COURSE[:5])]
    served = iter([rounds, [rounds[0].replace(b'"hold_s: float"', b'"hold_s: int"'), *rounds[1:]]])

    def answer(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(b"HTTP/1.1 200 \r\n\r\n" + b"".join(next(served)))

    with answering(answer) as socket_path:
        code, out, _ = ctl("--socket", str(socket_path), "record", "loop", "--for", "20s")
    assert (code, "another version of" in out) == (0, True)
    assert ctl("replay", "loop")[0] == 0


def test_a_disk_that_is_full_keeps_whole_lines(path: Path, ctl: Callable[..., Run]) -> None:
    import resource  # noqa: PLC0415

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
        code, _, err = ctl("--socket", str(path), "record", "loop", "--for", "5")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert (code, "loop cannot be written: File too large" in err) == (1, True)
    assert Path("loop").read_bytes().count(b"\n") == len(Path("loop").read_bytes().splitlines())


def test_what_answers_garbage_is_no_daemon(ctl: Callable[..., Run]) -> None:
    def answer(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(b"SSH-2.0-OpenSSH\r\n\r\n")

    with answering(answer) as socket_path:
        code, _, err = ctl("--socket", str(socket_path), "record", "loop")
    assert (code, "does not speak netqosd's language" in err, Path("loop").exists()) == (1, True, False)


def test_too_many_streams_are_refused_as_the_daemon_says(
    path: Path, ctl: Callable[..., Run], agent: SampleAgent
) -> None:
    held = []
    for _ in range(16):
        one = socket.socket(socket.AF_UNIX)
        one.connect(str(path))
        one.sendall(b"GET /v1/stream HTTP/1.1\r\nHost: n\r\n\r\n")
        one.recv(10)
        held.append(one)
    until_s = time.monotonic() + 10
    while agent.readers < 16 and time.monotonic() < until_s:
        time.sleep(0.01)
    code, _, err = ctl("--socket", str(path), "record", "loop")
    assert (code, err.splitlines()) == (
        1,
        ["netqosctl: 16 streams are being read already", "  close one first"],
    )
    for one in held:
        one.close()


# ------------------------------------------------------------------ replay


def test_a_replay_needs_no_daemon_and_finds_the_same(ctl: Callable[..., Run]) -> None:
    put("loop", written(COURSE, skips=(40, 41)))
    code, out, err = ctl("replay", "loop")
    assert (code, err) == (0, "")
    assert "every decision is the recorded one again" in out
    code, out, _ = ctl("replay", "loop", "--json")
    found = json.loads(out)
    assert (code, found["schema"], found["equal"], found["rounds"]) == (0, "netqosctl.replay/v1", True, 98)
    assert found["gaps"] == [{"why": "the reader was too slow for 2 rounds", "rounds": 2}]
    assert (found["node"], found["units"][0]["other"], found["differing_ticks"]) == (HEAD.node, None, None)


def test_another_policy_is_shown_beside_the_recorded_one(ctl: Callable[..., Run]) -> None:
    put("loop", written(COURSE))
    Path("other.yaml").write_text(OTHER, encoding="ascii")
    code, out, _ = ctl("replay", "loop", "--policy", "other.yaml")
    assert (code, "The traffic is the recorded one" in out) == (0, True)
    code, out, _ = ctl("replay", "loop", "--policy", "other.yaml", "--json")
    (unit,) = json.loads(out)["units"]
    lowest = [unit[which]["levels"]["L0"]["lowest_ceiling_bps"] for which in ("recorded", "other")]
    assert (code, lowest) == (0, [800_000_000, 600_000_000])
    differences = json.loads(out)["differences"]
    assert any("L2 keeps its guarantee of 400M" in one["other"]["reason_text"] for one in differences)


def test_a_recording_without_a_decision_proves_nothing(ctl: Callable[..., Run]) -> None:
    Path("loop").write_bytes(head())
    Path("other.yaml").write_text(OTHER, encoding="ascii")
    for words in ([], ["--policy", "other.yaml"]):
        code, out, _ = ctl("replay", "loop", *words)
        told = "nothing was decided in this time, so nothing is run again"
        assert (code, out.splitlines()[2:]) == (0, [told])


def test_a_changed_recording_fails_and_says_where(ctl: Callable[..., Run]) -> None:
    lines = written(COURSE)
    lines[30] = lines[30].replace("800000000,800000000,1000000000", "700000000,800000000,1000000000")
    put("loop", lines)
    code, out, _ = ctl("replay", "loop")
    assert (
        code,
        "1 decision came out otherwise than recorded" in out,
        "line 31: recorded L0 700M" in out,
    ) == (
        1,
        True,
        True,
    )


def test_a_recording_that_was_killed_is_replayed_up_to_its_last_whole_line(ctl: Callable[..., Run]) -> None:
    put("loop", written(COURSE))
    whole = Path("loop").read_bytes()
    Path("loop").write_bytes(whole[:-30])
    code, out, err = ctl("replay", "loop", "--json")
    assert (code, json.loads(out)["rounds"]) == (0, len(COURSE) - 1)
    assert err == f"netqosctl: loop line {len(COURSE) + 3} is cut off; what stands before it is replayed\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "loop is empty: no recording"),
        (b"\x7fELF\x00\xff\xfe\n", "loop line 1: this is no text"),
        (b"hello\n", 'loop line 1: "hello" is no JSON'),
        (b"no end", 'loop line 1: "no end" is no JSON'),
        (b'{"a": 1}\n', "loop line 1: this is no recording of netqos"),
        (b'{"recording":9,"netqos":"9.9"}\n', "loop line 1: a recording of version 9; version 1 can be read"),
        (b'{"recording":1,"netqos":"0.0.1","forms":{"Unit":[]}}\n', "loop line 1: another netqos made this recording"),
        (b"\n\n", 'loop line 1: "" is no JSON'),
        (head(unix_s=1e300), "loop line 1: the head's times are 1000.25 and 1e+300, which no clock"),
        (head(unix_s=math.nan), "loop line 1: the head's times are 1000.25 and nan"),
        (head(at_s=math.inf), "loop line 1: the head's times are inf and"),
        (head() + head(node="worker-2"), 'loop line 2: here begins one of "worker-2", after one of "worker-1"'),
        (b"[" * (5 << 20), "loop line 1: longer than 4 MiB"),
    ],
    ids=["empty", "binary", "text", "no line", "foreign", "newer", "other form", "blank", "late", "no time", "no clock",
         "two nodes", "huge line"],
)  # fmt: skip
def test_what_is_no_recording_is_5_with_its_line(
    ctl: Callable[..., Run], content: bytes, message: str
) -> None:
    Path("loop").write_bytes(content)
    code, out, err = ctl("replay", "loop")
    assert (code, out, message in err) == (5, "", True), err
    assert len(err) < 1000


def test_paths_that_are_no_file_are_said(ctl: Callable[..., Run]) -> None:
    os.mkfifo("pipe")
    told = {name: ctl("replay", name)[::2] for name in ("nobody", ".", "pipe")}
    assert {name: (code, err.splitlines()[0]) for name, (code, err) in told.items()} == {
        "nobody": (5, "netqosctl: nobody cannot be read: No such file or directory"),
        ".": (5, "netqosctl: . is no file"),
        "pipe": (5, "netqosctl: pipe is no file"),
    }


@pytest.mark.parametrize(
    ("policy", "part"),
    [
        (
            b"policy: {enable: true, levels: {l1: {txMin: 90%}, l2: {txMin: 20%}}}",
            "l1 and l2 are guaranteed 110% together",
        ),
        (b"policy: {enable: true, levels: {l1: {txMin: 900M}, l2: {txMin: 200M}}}", "under the total of 1G"),
        (b"policy: {enable: false}", "network QoS is off"),
        (b"policy: {enabel: true}", "other.yaml:1"),
        (b"policy: [", "other.yaml:"),
        (b"\xff\xfe", "is no text"),
        (b"# " + b"x" * (1 << 20), "longer than 1 MiB"),
    ],
)
def test_an_impossible_policy_is_5_with_its_problems(
    ctl: Callable[..., Run], policy: bytes, part: str
) -> None:
    put("loop", written(COURSE[:3]))
    Path("other.yaml").write_bytes(policy)
    code, out, err = ctl("replay", "loop", "--policy", "other.yaml")
    assert (code, out, part in err) == (5, "", True), err


def test_a_policy_that_is_not_there_is_said(ctl: Callable[..., Run]) -> None:
    put("loop", written(COURSE[:3]))
    assert ctl("replay", "loop", "--policy", "nowhere.yaml")[0] == 5


def test_a_large_recording_is_replayed_line_by_line(ctl: Callable[..., Run]) -> None:
    import tracemalloc  # noqa: PLC0415

    put("loop", written(COURSE))
    ctl("replay", "loop")
    put("loop", written(COURSE * 30))
    size = Path("loop").stat().st_size
    tracemalloc.start()
    code, _, _ = ctl("replay", "loop")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (code, peak < size / 2) == (0, True)


def test_a_large_recording_tells_how_much_of_it_is_replayed(
    ctl: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, float]] = []
    monkeypatch.setattr(Progress, "tell", lambda _self, *now: told.append(now))
    put("loop", written(COURSE * 3))
    assert ctl("replay", "loop")[0] == 0
    assert {what for what, _ in told} == {"loop"}
    shares = [share for _, share in told]
    assert (shares, shares[0] < 0.05, shares[-1]) == (sorted(shares), True, 1.0)


# ------------------------------------------------------------------ history


def test_history_shows_changes_with_their_reasons(path: Path, ctl: Callable[..., Run]) -> None:
    code, out, _ = ctl("--socket", str(path), "history", "--direction", "egress")
    assert (code, out.splitlines()) == (
        0,
        [
            "22:13:19.900  egress up0  L0 612M of 600M waits, L1 201.5M of 800M, L2 98M of 1G",
            "    waits",
            "    contention for 2.5s: 911.5M of 1G used, 91.1%, from 90% on as packets of L0",
            "    and L2 wait; L0 may use 600M: L1 is left 200M and L2 keeps its guarantee of",
            "    200M",
        ],
    )


def test_history_has_the_steps_of_totals_in_order_of_time(path: Path, ctl: Callable[..., Run]) -> None:
    code, out, _ = ctl("--socket", str(path), "history", "--direction", "ingress")
    lines = [line for line in out.splitlines() if not line.startswith(" ")]
    assert (code, lines) == (
        0,
        [
            "22:12:28.100  ingress netqos-ifb  total 600M -> 470M",
            "22:12:30.000  ingress netqos-ifb  total 470M stays",
            "22:13:19.900  ingress netqos-ifb  L0 203M of 210M, L1 177M of 450M waits, L2 60M",
        ],
    )


def test_history_can_be_narrowed_and_says_when_there_is_none(path: Path, ctl: Callable[..., Run]) -> None:
    words = ["--socket", str(path), "history", "--json"]
    devices = {
        query: [one["device"] for one in json.loads(ctl(*words, *query.split())[1])["decisions"]]
        for query in (
            "--all",
            "--all --direction ingress",
            "--all --unit up0",
            "--all --since 1s",
            "--unit nobody",
        )
    }
    assert devices == {
        "--all": ["up0", "up0", "netqos-ifb"],
        "--all --direction ingress": ["netqos-ifb"],
        "--all --unit up0": ["up0", "up0"],
        "--all --since 1s": ["up0", "netqos-ifb"],
        "--unit nobody": [],
    }
    code, out, err = ctl("--socket", str(path), "history", "--unit", "nobody")
    assert (code, out) == (0, "")
    assert err.splitlines()[0] == "netqosctl: nothing was changed in the last 2m"


@pytest.mark.parametrize(
    "words",
    [
        ("record",),
        ("record", "loop", "--for", "0"),
        ("record", "loop", "--for", "25h"),
        ("record", "loop", "--most", "10"),
        ("record", "loop", "--most", "-1M"),
        ("record", "loop", "--most", "1Q"),
        ("replay",),
        ("replay", "loop", "--most", "0"),
        ("history", "--since", "soon"),
        ("history", "--direction", "up"),
    ],
)
def test_wrong_usage_is_2(ctl: Callable[..., Run], words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        ctl(*words)
    assert ended.value.code == 2
