"""The demo from end to end: the real daemon, real traffic, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

pytestmark = pytest.mark.kernel("veth", "htb", "nft", "tool:iperf3")

DEMO = [sys.executable, "-m", "netqos.cli.ctl", "demo"]
SHORT = ["--seconds", "12.5", "--total", "100M"]
SVG = "{http://www.w3.org/2000/svg}"


def as_nobody() -> list[str]:
    """How to start a program without any right, where this process can lay its rights down."""
    is_real_root = os.geteuid() == 0 and "4294967295" in Path("/proc/self/uid_map").read_text(
        encoding="ascii"
    )
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if is_real_root else []


def left_by(pid: int) -> list[str]:
    """Namespaces and folders of a process's rig; others may have rigs at the same time."""
    folders = [folder for folder in (Path("/run/netns"), Path(tempfile.gettempdir())) if folder.is_dir()]
    names = [path.name for folder in folders for path in folder.iterdir()]
    return [name for name in names if name.startswith("nq-") and f"-{pid}-" in name]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder for everybody; every start of pytest closes the one above `tmp_path` again."""
    with tempfile.TemporaryDirectory(prefix="demo-") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@pytest.mark.serial
@pytest.mark.slow
def test_an_ordinary_user_sees_promises_kept(open_folder: Path) -> None:
    picture = open_folder / "demo.svg"
    command = [*as_nobody(), *DEMO, *SHORT, "--json", "--svg", str(picture)]
    demo = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/")
    answer, talk = demo.communicate(timeout=55)
    assert demo.returncode in {0, 1}, talk
    assert answer, talk
    result = json.loads(answer)
    assert result["kept"] is (demo.returncode == 0), talk
    assert [phase["title"] for phase in result["phases"]][:3] == [
        "L2 alone fills the link",
        "L1 joins",
        "L0 joins",
    ]
    told = [
        (phase["title"], way, level, one)
        for phase in result["phases"]
        for way, side in phase["directions"].items()
        for level, one in side["levels"].items()
    ]
    for way in ("tx", "rx"):
        levels = [level for _, of, level, _ in told if of == way]
        assert levels == ["L2", "L1", "L2", "L0", "L1", "L2", "L1", "L2", "L1", "L2"]
    assert [result["directions"][way]["total_bps"] for way in ("tx", "rx")] == [100_000_000, 75_000_000]
    # What is guaranteed the levels got on average, whatever else the machine does. How much of what is lent TCP takes
    # in a second and a half is its own doing; a direction with the other's total would be over its ceiling.
    too_little = [
        one
        for one in told
        if one[3]["mean_bps"] < max(0.9 * one[3]["guaranteed_bps"], 0.5 * one[3]["share_bps"])
    ]
    too_much = [one for one in told if one[3]["mean_bps"] > 1.05 * one[3]["ceiling_bps"]]
    assert (too_little, too_much) == ([], [])
    assert "netqosd" in talk
    assert len(list(ET.fromstring(picture.read_text(encoding="utf-8")).iter(f"{SVG}polyline"))) == 6
    assert left_by(demo.pid) == []


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    demo = subprocess.Popen([*DEMO, *SHORT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert demo.stdout is not None
    assert demo.stderr is not None
    with demo.stdout, demo.stderr:
        for line in demo.stdout:
            if "L2 alone" in line:
                break
        demo.send_signal(signal.SIGINT)
        assert demo.wait(timeout=20) == 130
        assert "interrupted" in demo.stderr.read()
    assert left_by(demo.pid) == []


def test_a_reader_that_leaves_is_no_error() -> None:
    demo = subprocess.Popen([*DEMO, *SHORT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert demo.stdout is not None
    assert demo.stderr is not None
    demo.stdout.readline()
    demo.stdout.close()
    with demo.stderr:
        assert (demo.wait(timeout=30), demo.stderr.read()) == (0, "")
    assert left_by(demo.pid) == []


INTERRUPTED_AT_EXEC = """
import os, signal, sys
from netqos.cli.ctl import main
from netqos.testing import usernamespace
real = usernamespace.run_tool
def run_tool(argv, **options):
    if argv[0] == "unshare":
        os.kill(os.getpid(), signal.SIGINT)
    return real(argv, **options)
usernamespace.run_tool = run_tool
if usernamespace._REEXECUTED not in os.environ:
    usernamespace.can_make_namespaces = lambda: False
sys.exit(main(["demo"]))
"""


def test_ctrl_c_on_the_way_into_a_user_namespace_is_taken_up_there() -> None:
    surroundings = {name: value for name, value in os.environ.items() if name != "NETQOS_IN_USER_NAMESPACE"}
    command = [*as_nobody(), sys.executable, "-c", INTERRUPTED_AT_EXEC]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=40, cwd="/", env=surroundings
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "netqosctl: interrupted\n")
