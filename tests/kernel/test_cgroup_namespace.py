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
OTHER = "netqos-test-kubepods.slice/netqos-test-kubepods-pod12345678_0000_0000_0000_000000000002.slice"

PROGRAM = r"""
import json
import os
import socket
import subprocess
import sys
from netqos.host.cgroups import Cgroups
from netqos.host.nftables import Nftables
from netqos.model.ids import PodUid
from netqos_tc.cgroupspace import begins_below
from netqos_tc.probe import _try_nft, mountinfo

subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
cgroups, nft = Cgroups(), Nftables()
works, findings = _try_nft(lambda: nft, is_below=begins_below(mountinfo()))
other = cgroups.pod(PodUid("12345678-0000-0000-0000-000000000002"))
path = f"{cgroups.hierarchy.prefix}{other}".lstrip("/")
nft.run(f'''add table inet t
add chain inet t o {{ type filter hook output priority 0; }}
add rule inet t o socket cgroupv2 level 2 "{path}" counter
''')
if os.fork() == 0:
    (cgroups.hierarchy.tree / other[1:] / "cgroup.procs").write_text("0")
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9))
    os._exit(0)
assert os.wait()[1] == 0
(rule,) = [one["rule"] for one in nft.query("list table inet t")["nftables"] if "rule" in one]
print(json.dumps({
    "own": cgroups.own(),
    "pod": other,
    "critical": [path for path, _ in cgroups.critical()],
    "host": [one.code for one in cgroups.findings()],
    "below": begins_below(mountinfo()),
    "matched": rule["expr"][-1]["counter"]["packets"] == 1,
    "cgroups": works,
    "tc": [one.code for one in findings],
}))
"""


@pytest.fixture
def tree() -> Iterator[Path]:
    """The real tree with a container's cgroup and another pod's."""
    tree = detect(Path("/sys/fs/cgroup")).tree
    if tree is None or not (tree / "cgroup.procs").exists():
        pytest.skip("no cgroup v2 is mounted")
    made = [tree / POD.split("/", maxsplit=1)[0], tree / POD, tree / CONTAINER, tree / OTHER]
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
    done = run_tool(["sh", "-c", enter, "sh", sys.executable, "-c", PROGRAM])
    return dict(json.loads(done.stdout))


def test_a_container_finds_itself_and_says_what_it_cannot_match(tree: Path) -> None:
    seen = look(tree, "--cgroup", "--pid", "--fork", "--mount-proc")
    assert seen["own"] == f"/{POD}"
    assert f"/{POD}" in seen["critical"]
    assert seen["pod"] == f"/{OTHER}"
    assert seen["host"] == []
    assert seen["below"] is True
    assert seen["cgroups"] is seen["matched"]
    assert seen["tc"] == ([] if seen["matched"] else ["cgroup-namespace"])


def test_in_the_hosts_cgroup_namespace_cgroups_are_matched(tree: Path) -> None:
    seen = look(tree, "--pid", "--fork", "--mount-proc")
    assert (seen["below"], seen["matched"], seen["cgroups"], seen["tc"]) == (False, True, True, [])
    assert seen["own"] == f"/{CONTAINER}"
