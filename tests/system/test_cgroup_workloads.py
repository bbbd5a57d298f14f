"""Services of the host under the running daemon: by unit or cgroup, nested, made anew, too deep, not their own."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from netqos.testing import daemon as daemons
from netqos.testing.daemon import Daemon
from netqos.testing.hostpod import cgroup_tree, remove_cgroup
from netqos.testing.netns import Rig

pytestmark = [pytest.mark.kernel("htb", "nft", "nft-socket"), pytest.mark.serial]

WITHIN_S = 1.0
"""What is promised; a loaded machine gets as much again."""

SLICE = f"netqostest{os.getpid()}.slice"
UNIT = f"netqos-test-{os.getpid()}.service"
DEEP = "/".join("abcdef")


@pytest.fixture
def rig() -> Iterator[Rig]:
    with Rig() as rig:
        yield rig


@pytest.fixture
def tree() -> Iterator[Path]:
    """A private slice in the real tree, gone with all in it afterwards."""
    top = cgroup_tree() / SLICE
    try:
        top.mkdir()
    except OSError as problem:
        pytest.skip(f"no cgroup may be made: {problem}")
    yield top
    for folder in sorted(top.rglob("*"), key=lambda one: -len(one.parts)):
        if folder.is_dir():
            remove_cgroup(folder)
    remove_cgroup(top)


def running(rig: Rig, workloads: list[dict[str, Any]]) -> AbstractContextManager[Daemon]:
    return daemons.running(rig, daemons.document(rig, {}, workloads=workloads))


def leaves(rig: Rig) -> dict[str, int]:
    """Packets of each workload's leaf and of the host's, by class."""
    lines = rig.node.run(["tc", "-s", "class", "show", "dev", "up0"]).stdout.splitlines()
    sent = {
        line.split()[2].split(":")[1]: int(lines[place + 1].split()[3])
        for place, line in enumerate(lines)
        if line.startswith("class htb")
    }
    return {minor: count for minor, count in sent.items() if len(minor) == 4 or minor == "10f"}


def send(address: str, cgroup: Path, *, moves_late: bool) -> None:
    """Ten datagrams from a process in a cgroup; `moves_late`: it opened its socket before it came there."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM) if moves_late else None
    (cgroup / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
    with sender or socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        for _ in range(10):
            opened.sendto(b"x", (address, 9))


def sent_from(rig: Rig, cgroup: Path, *, moves_late: bool = False) -> set[str]:
    """By which leaf ten datagrams from a cgroup left; the node says a word of its own now and then, in any of them."""
    before = leaves(rig)
    rig.node.call(send, rig.wire.address, cgroup, moves_late=moves_late)
    return {minor for minor, count in leaves(rig).items() if 10 <= count - before.get(minor, 0) < 20}


def is_sent_by(rig: Rig, cgroup: Path, leaf: str) -> bool:
    return sent_from(rig, cgroup) == {leaf}


def elements(rig: Rig) -> str:
    return rig.node.run(["nft", "-n", "list", "map", "inet", "netqos", "cg2"]).stdout


def when(check: Callable[[], bool]) -> float:
    """Seconds until it becomes true."""
    began_s = time.monotonic()
    while not check():
        assert time.monotonic() - began_s < 2 * WITHIN_S
        time.sleep(0.02)
    return time.monotonic() - began_s


def test_a_unit_is_known_by_its_name_wherever_in_the_slices_it_runs(rig: Rig, tree: Path) -> None:
    """From the moment it runs, with all that is below it; made anew it is known anew within a second."""
    with running(rig, [{"name": "web", "match": {"unit": UNIT}, "level": "l2"}]) as daemon:
        pod = daemon.client.get("/v1/explain/workload:web")
        assert "workload-pending" in str(pod)
        service = tree / UNIT
        for _ in range(3):
            service.mkdir()
            when(lambda: "workload:web" in elements(rig))
            number = service.stat().st_ino
            (leaf,) = sent_from(rig, service)
            assert len(leaf) == 4
            nested = service / "init.scope/deeper"
            nested.mkdir(parents=True)
            assert sent_from(rig, nested) == {leaf}
            for folder in (nested, nested.parent, service):
                remove_cgroup(folder)
            service.mkdir()
            assert service.stat().st_ino != number
            when(partial(is_sent_by, rig, service, leaf))
            remove_cgroup(service)
            when(lambda: "workload:web" not in elements(rig))


def test_what_a_packet_counts_for_is_where_its_socket_was_opened(rig: Rig, tree: Path) -> None:
    """The kernel keeps a socket's cgroup, whoever moves its process: docs/operating.md says so."""
    service = tree / UNIT
    service.mkdir()
    match = {"cgroup": f"/{SLICE}/{UNIT}"}
    with running(rig, [{"name": "web", "match": match, "level": "l2"}]):
        assert sent_from(rig, service, moves_late=True) == {"10f"}
        assert sent_from(rig, service) != {"10f"}


def test_a_cgroup_that_is_too_deep_is_told_and_its_traffic_is_the_hosts(rig: Rig, tree: Path) -> None:
    deep = tree / DEEP
    deep.mkdir(parents=True)
    with running(rig, [{"name": "web", "match": {"cgroup": f"/{SLICE}/{DEEP}"}, "level": "l2"}]) as daemon:
        explained = daemon.client.get("/v1/explain/workload:web")
        assert "is 7 deep; allowed: 1 to 6" in str(explained)
        assert sent_from(rig, deep) == {"10f"}


def test_ingress_of_a_service_of_the_host_is_told_as_not_enforced(rig: Rig, tree: Path) -> None:
    (tree / UNIT).mkdir()
    limits = {"egress": "50M", "ingress": "20M"}
    with running(rig, [{"name": "web", "match": {"unit": UNIT}, "level": "l2", "limits": limits}]) as daemon:
        told = daemon.client.get("/v1/explain/workload:web")["enforcement"]
        limits_held = {one["direction"]: one["by"] for one in told if one["what"] == "limit"}
        assert limits_held == {"egress": ["tc"], "ingress": []}
