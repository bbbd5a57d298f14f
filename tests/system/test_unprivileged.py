"""The daemon of an ordinary user, in a user namespace: what the kernel allows there is enough for both directions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.kernel("veth", "htb", "u32", "nft", "nft-fib", "ifb", "clsact")

SCRIPT = """
from netqos.model.levels import Level
from netqos.testing.daemon import Daemon, workload
from netqos.testing.netns import Rig, reexec_in_user_namespace
reexec_in_user_namespace()
with Rig(pods=("web",)) as rig:
    daemon = Daemon(rig, {
        "node": {"bandwidth": {"tx": "60M", "rx": "45M"}},
        "policy": {"enable": True},
        "workloads": [workload(rig, "web", Level.L0)],
    })
    tc = daemon.start()["backends"]["tc"]
    daemon.stop()
    print(tc["enforces"], tc["last_result"]["failures"])
"""


def test_both_directions_without_root() -> None:
    is_root = os.geteuid() == 0 and "4294967295" in Path("/proc/self/uid_map").read_text(encoding="ascii")
    drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if is_root else []
    done = subprocess.run(
        [*drop, sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd="/",
    )
    assert (done.stdout, done.stderr) == ("['tx', 'rx'] []\n", "")
