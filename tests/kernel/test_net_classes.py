"""Workloads on the host's network under cgroup v1: their class in net_cls.classid, on a tree of the test's own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from netqos.testing.processes import run_tool

pytestmark = [pytest.mark.kernel("tool:unshare", "htb", "nft"), pytest.mark.serial]

PROGRAM = r"""
import asyncio
import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from netqos.model.desired import NOTHING
from netqos.model.ids import CgroupPath
from netqos.model.levels import Level
from netqos.testing import states
from netqos.testing.filehosts import MemoryState
from netqos_tc.backend import TcBackend
from tests.kernel.tchost import make_context

root = Path(sys.argv[1])
for command in ("link set lo up", "link add up0 type veth peer name far0", "link set up0 up", "link set far0 up",
                "addr add 198.18.0.2/24 dev up0", "neigh add 198.18.0.1 lladdr 02:00:00:00:00:01 dev up0"):
    subprocess.run(["ip", *command.split()], check=True)
subprocess.run(["mount", "-t", "tmpfs", "none", str(root)], check=True)
(root / "net_cls").mkdir()
mount = ["mount", "-t", "cgroup", "-o", "net_cls", "none", str(root / "net_cls")]
if subprocess.run(mount, check=False).returncode:
    print("null")
    raise SystemExit
tree = root / "net_cls/netqos-test"
ours, foreign, late = (tree / name for name in ("ours", "foreign", "late"))
for folder in (ours / "ctr", foreign, late):
    folder.mkdir(parents=True)
(foreign / "net_cls.classid").write_text("5")

def pod(name, folder):
    path = CgroupPath("/" + str(folder.relative_to(root / "net_cls")))
    return states.pod(f"ns/{name}", Level.L2, host_network=True, cgroup=path)

pods = [pod("ours", ours), pod("foreign", foreign), pod("gone", tree / "gone")]
uplink = states.uplink(index=socket.if_nametoindex("up0"), rx_bps=None)
node = states.node(pods, uplinks=(uplink,), rx=states.direction(None))
more = states.node([*pods, pod("late", late)], uplinks=(uplink,), rx=states.direction(None))
state = MemoryState()

def make():
    return TcBackend(replace(make_context(state), cgroup_root=root))

def read(folder):
    return int((folder / "net_cls.classid").read_text())

def send_from(folder, count, *, moves_late=False):
    if os.fork() == 0:
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM) if moves_late else None
        (folder / "cgroup.procs").write_text("0")
        sender = sender or socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for _ in range(count):
            sender.sendto(b"x", ("198.18.0.1", 9))
        os._exit(0)
    assert os.wait()[1] == 0

def leaves():
    shown = subprocess.run(["tc", "-s", "class", "show", "dev", "up0"], capture_output=True, text=True, check=True)
    lines = shown.stdout.splitlines()
    sent = {line.split()[2]: int(lines[at + 1].split()[3]) for at, line in enumerate(lines) if line[:5] == "class"}
    pods = sorted(count for name, count in sent.items() if int(name.split(":")[1], 16) >= 0x1000)
    return pods, sent["4e51:10f"]

async def bring(backend, desired):
    plan = backend.plan(desired, await backend.observe())
    result = await backend.apply(plan)
    assert result.ok, result
    left = backend.plan(desired, await backend.observe()).operations
    assert not left, left
    return plan

async def main():
    told = {}
    backend = make()
    assert (await backend.probe()).available
    plan = await bring(backend, node)
    told["findings"] = [[one.code, one.subject] for one in plan.findings]
    (ours / "new").mkdir()
    for folder, count in ((ours / "ctr", 3), (ours / "new", 4), (foreign, 11)):
        send_from(folder, count)
    send_from(ours, 5, moves_late=True)
    told["sent"] = leaves()
    number = read(ours)
    await backend.close()
    again = make()
    assert (await again.probe()).available
    told["restart"] = len(again.plan(node, await again.observe()).operations)
    await bring(again, more)
    told["kept"] = read(ours) == number and read(late) not in (0, number)
    told["untouched"] = await again.is_untouched()
    (ours / "net_cls.classid").write_text("0")
    told["touched"] = not await again.is_untouched()
    await bring(again, more)
    told["mended"] = read(ours) == number
    await bring(again, node)
    told["left"] = read(late)
    await bring(again, NOTHING)
    told["cleaned"] = [read(one) for one in (ours, ours / "ctr", ours / "new", foreign)]
    await again.close()
    return told

try:
    print(json.dumps(asyncio.run(main())))
finally:
    for folder in (ours / "ctr", ours / "new", ours, foreign, late, tree):
        if folder.exists():
            folder.rmdir()
    subprocess.run(["umount", str(root / "net_cls")], check=True)
"""


def test_the_class_is_the_folders_number_and_a_number_of_others_stays(tmp_path: Path) -> None:
    """Containers inherit it, a process that moves takes its sockets along, and all of ours is 0 again at the end."""
    done = run_tool(["unshare", "--mount", "--net", sys.executable, "-c", PROGRAM, str(tmp_path)])
    told = json.loads(done.stdout)
    if told is None:
        pytest.skip("net_cls cannot be mounted (CONFIG_CGROUP_NET_CLASSID), or is mounted with others")
    assert told == {
        "findings": [["not-enforced-cgroup", "pod ns/foreign"], ["not-enforced-cgroup", "pod ns/gone"]],
        "sent": [[12], 11],
        "restart": 0,
        "kept": True,
        "untouched": True,
        "touched": True,
        "mended": True,
        "left": 0,
        "cleaned": [0, 0, 0, 5],
    }
