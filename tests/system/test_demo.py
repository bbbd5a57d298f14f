"""The demo from end to end: the real daemon, real traffic, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
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


@pytest.mark.slow
def test_an_ordinary_user_sees_promises_kept(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    for folder in list(tmp_path.parents)[:2]:
        folder.chmod(0o755)
    picture = tmp_path / "demo.svg"
    command = [*as_nobody(), *DEMO, *SHORT, "--json", "--svg", str(picture)]
    demo = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/")
    answer, talk = demo.communicate(timeout=55)
    assert demo.returncode in {0, 1}, talk
    assert answer, talk
    result = json.loads(answer)
    assert result["kept"] is (demo.returncode == 0)
    assert [phase["title"] for phase in result["phases"]][:3] == [
        "L2 alone fills the link",
        "L1 joins",
        "L0 joins",
    ]
    shares = [
        {level: round(told["mean_bps"] / told["share_bps"], 1) for level, told in phase["levels"].items()}
        for phase in result["phases"]
    ]
    # A shared machine may disturb a second of it; what the levels got on average is the daemon's doing.
    everybody = {"L0": 1.0, "L1": 1.0, "L2": 1.0}
    assert shares == [
        {"L2": 1.0},
        {"L1": 1.0, "L2": 1.0},
        everybody,
        {"L1": 1.0, "L2": 1.0},
        {"L1": 1.0, "L2": 1.0},
    ]
    assert "netqosd" in talk
    assert len(list(ET.fromstring(picture.read_text(encoding="utf-8")).iter(f"{SVG}polyline"))) == 3
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
