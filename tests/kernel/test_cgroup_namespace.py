"""What a container sees: a cgroup and a pid namespace of its own, and the host's /sys/fs/cgroup (case E7)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netqos.host.cgrouptree import detect
from netqos.testing.processes import run_tool

pytestmark = [pytest.mark.kernel("tool:unshare", "nft"), pytest.mark.serial]

POD = "netqos-test-kubepods.slice/netqos-test-kubepods-pod12345678_0000_0000_0000_000000000001.slice"
CONTAINER = f"{POD}/cri-containerd-1.scope"
OTHERS = [
    f"netqos-test-kubepods.slice/netqos-test-kubepods-pod12345678_0000_0000_0000_00000000000{number}.slice"
    for number in (2, 3)
]

SERVICE = "netqos-test-kubepods.slice/netqos-test.service"

PROGRAM = r"""
import asyncio
import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from netqos.host.cgroups import Cgroups
from netqos.model.ids import CgroupPath, PodUid
from netqos.model.levels import Level
from netqos.testing import states
from netqos_tc.backend import TcBackend
from tests.kernel.tchost import make_context

for command in ("link set lo up", "link add up0 type veth peer name far0", "link set up0 up", "link set far0 up",
                "addr add 198.18.0.2/24 dev up0", "neigh add 198.18.0.1 lladdr 02:00:00:00:00:01 dev up0"):
    subprocess.run(["ip", *command.split()], check=True)
cgroups = Cgroups()
others = {name: PodUid(f"12345678-0000-0000-0000-00000000000{name}") for name in ("2", "3")}
found = cgroups.pods(dict.fromkeys(others.values()))
service = cgroups.locate(CgroupPath("/" + sys.argv[1]))

def pod(name, one):
    made = states.pod(f"ns/{name}", Level.L2, host_network=True, cgroup=one.path)
    return replace(made, cgroup_id=one.id, inner_cgroups=one.inner)

pods = [*(pod(name, found[uid]) for name, uid in others.items()), pod("service", service)]
uplink = states.uplink(index=socket.if_nametoindex("up0"), rx_bps=None)
node = states.node(pods, uplinks=(uplink,), rx=states.direction(None))
backend = TcBackend(make_context())

async def bring():
    capabilities = await backend.probe()
    plan = backend.plan(node, await backend.observe())
    result = await backend.apply(plan)
    assert result.ok, result
    again = backend.plan(node, await backend.observe())
    await backend.close()
    return capabilities, plan, again

capabilities, plan, again = asyncio.run(bring())

def send_from(path, count):
    if os.fork() == 0:
        (cgroups.hierarchy.tree / path[1:] / "cgroup.procs").write_text("0")
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for _ in range(count):
            sender.sendto(b"x", ("198.18.0.1", 9))
        os._exit(0)
    assert os.wait()[1] == 0

send_from(f"{found[others['2']].path}/ctr", 3)
send_from(f"{found[others['2']].path}/ctr/deeper", 4)
send_from(f"{found[others['3']].path}/ctr", 5)
send_from(service.path, 11)
shown = subprocess.run(["tc", "-s", "class", "show", "dev", "up0"], capture_output=True, text=True, check=True)
lines = shown.stdout.splitlines()
sent = {line.split()[2]: int(lines[at + 1].split()[3]) for at, line in enumerate(lines) if line[:5] == "class"}
print(json.dumps({
    "own": cgroups.own(),
    "critical": [path for path, _ in cgroups.critical()],
    "host": [one.code for one in cgroups.findings()],
    "begins_at": cgroups.hierarchy.begins_at,
    "tc": [one.code for one in capabilities.findings],
    "plan": [[one.code, one.subject] for one in plan.findings],
    "again": len(again.operations),
    "leaves": sorted(count for name, count in sent.items() if int(name.split(":")[1], 16) >= 0x1000),
    "host_leaf": sent["4e51:10f"],
}))
"""


@pytest.fixture
def tree() -> Iterator[Path]:
    """The real tree with a container's cgroup and another pod's."""
    tree = detect(Path("/sys/fs/cgroup")).tree
    if tree is None or not (tree / "cgroup.procs").exists():
        pytest.skip("no cgroup v2 is mounted")
    made = [tree / POD.split("/", maxsplit=1)[0], tree / POD, tree / CONTAINER, tree / SERVICE]
    for other in OTHERS:
        made += [tree / other, tree / other / "ctr", tree / other / "ctr/deeper"]
    try:
        for folder in made:
            folder.mkdir(exist_ok=True)
    except OSError as problem:
        pytest.skip(f"no cgroup may be made: {problem}")
    yield tree
    for folder in reversed(made):
        folder.rmdir()


def look(tree: Path, *namespaces: str) -> dict[str, Any]:
    """What the program sees from inside the container's cgroup."""
    enter = f'echo $$ >{tree / CONTAINER}/cgroup.procs && exec unshare --net {" ".join(namespaces)} "$@"'
    done = run_tool(["sh", "-c", enter, "sh", sys.executable, "-c", PROGRAM, SERVICE])
    return dict(json.loads(done.stdout))


def test_from_a_container_whatever_is_as_deep_is_told_apart(tree: Path) -> None:
    """Pods by their containers, also those of other pods; a unit of systemd, which is less deep, is the host's."""
    seen = look(tree, "--cgroup", "--pid", "--fork", "--mount-proc")
    assert seen["own"] == f"/{POD}"
    assert f"/{POD}" in seen["critical"]
    assert (seen["host"], seen["begins_at"], seen["again"]) == ([], 3, 0)
    if seen["tc"] != ["cgroup-namespace"]:
        assert (seen["leaves"], seen["host_leaf"]) == (
            [5, 7, 11],
            0,
        )  # levels count from the root before 6.11
        return
    assert (seen["leaves"], seen["host_leaf"]) == ([5, 7], 11)
    assert seen["plan"] == [["not-enforced-cgroup", "pod ns/service"]]


def test_in_the_hosts_cgroup_namespace_all_are_told_apart(tree: Path) -> None:
    seen = look(tree, "--pid", "--fork", "--mount-proc")
    assert seen["own"] == f"/{CONTAINER}"
    assert (seen["begins_at"], seen["tc"], seen["plan"], seen["again"]) == (0, [], [], 0)
    assert (seen["leaves"], seen["host_leaf"]) == ([5, 7, 11], 0)
