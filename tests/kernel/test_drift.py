"""Anything of ours that somebody changes or removes is noticed by the audit, and only that is put right."""

from __future__ import annotations

import re
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from netqos.model.levels import Level
from netqos.testing import states
from netqos.testing.daemon import Daemon, workload
from netqos.testing.harness import converge
from netqos.testing.linkstorm import storm
from netqos.testing.netns import Rig
from netqos.testing.probes import start_echo
from netqos.testing.states import M
from netqos_tc import classify
from netqos_tc.keys import ElementKey, ElementMap, TableKey
from netqos_tc.observed import TcObserved
from netqos_tc.spec import ElementSpec, TableSpec
from tests.kernel.harms import TX_HARMS
from tests.kernel.tchost import UPLINK, UplinkHost
from tests.kernel.tcnode import connect

SO_RCVBUFFORCE = 33

pytestmark = pytest.mark.kernel("veth", "htb", "u32", "nft", "nft-fib", "nft-socket")

POD = "10.88.0.10"
DESIRED = states.node(
    (
        states.pod("prod/web", Level.L0, addresses=(POD, "fd00:88::10"), tx_bps=80 * M, cgroup=None),
        states.pod("prod/db", Level.L1, addresses=("10.88.0.11",), cgroup=None),
        states.pod("batch/crunch", Level.L2, addresses=("10.88.0.12",), cgroup=None),
    ),
    uplinks=(UPLINK,),
)


@pytest.fixture(scope="module")
def host() -> Iterator[UplinkHost]:
    made = UplinkHost()
    yield made
    made.close()


@pytest.mark.parametrize("name", TX_HARMS)
async def test_each_harm_is_noticed_and_only_what_it_did_is_put_right(host: UplinkHost, name: str) -> None:
    backend = host.backend()
    await converge(backend, DESIRED)
    before = (await backend.observe()).ours
    element = before[ElementKey(ElementMap.TX4, POD)]
    assert isinstance(element, ElementSpec)
    names = {"up": UPLINK.name, "leaf": f"{element.minor:x}", "pod": POD}
    assert await backend.is_untouched()
    harm = TX_HARMS[name]
    for line in harm.lines(**names):
        host.namespace.run(line)
    assert not await backend.is_untouched()
    plan = await converge(backend, DESIRED)
    allowed = [pattern.format(**names) for pattern in harm.repairs]
    strange = [
        one.subject
        for one in plan.operations
        if not any(re.fullmatch(pattern, one.subject) for pattern in allowed)
    ]
    assert strange == []
    assert host.comparable((await backend.observe()).ours) == host.comparable(before)
    assert not backend.plan(DESIRED, await backend.observe())
    await backend.close()


async def test_what_an_earlier_run_could_tell_apart_and_this_one_cannot_is_taken_away(
    host: UplinkHost,
) -> None:
    """A daemon on the host, and then one in a container, which sees no cgroup of others, and back."""
    backend = host.backend()
    facilities = backend._facilities
    service = replace(states.pod("prod/host", Level.L1, cgroup="/a.slice", host_network=True), cgroup_id=4711)
    desired = states.node((*DESIRED.pods, service), uplinks=(UPLINK,))
    await converge(backend, desired)
    element = ElementKey(ElementMap.CG1, 4711)
    assert element in (await backend.observe()).ours
    for cgroups in (False, True):
        backend._facilities = replace(facilities, cgroups=cgroups)
        await converge(backend, desired)
        met = await backend.observe()
        assert not backend.plan(desired, met)
        assert (element in met.ours, classify.has_cgroups(table_of(met))) == (cgroups, cgroups)
    await backend.close()


def table_of(met: TcObserved) -> TableSpec:
    found = met.specs[TableKey()]
    assert isinstance(found, TableSpec)
    return found


async def test_a_storm_of_events_changes_nothing_and_lost_ones_make_everything_be_read_anew(
    host: UplinkHost,
) -> None:
    backend = host.backend()
    await converge(backend, DESIRED)
    await backend.observe()
    host.namespace.call(storm, "wire0", seconds=0.1)
    assert await backend.is_untouched()
    assert backend._kernel is not None
    events = backend._kernel.surroundings._socket
    room = (
        events.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2
    )  # the kernel tells, and sets, the double
    events.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    host.namespace.call(storm, "wire0", seconds=0.1)
    assert not await backend.is_untouched()
    events.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, room)  # what is read of a qdisc is told there too
    assert not await converge(backend, DESIRED)
    assert await backend.is_untouched()
    await backend.close()


@pytest.mark.serial
def test_a_daemon_mends_them_all_one_after_the_other_within_a_second_each() -> None:
    """All by one daemon; each harm is another object's, so none is held back."""
    with Rig(pods=("web", "batch")) as rig:
        web = workload(rig, "web", Level.L0, limits={"egress": "30M"})
        document = {
            "node": {"bandwidth": {"tx": "200M", "rx": "150M"}},
            "policy": {"enable": True},
            "workloads": [web, workload(rig, "batch", Level.L2)],
        }
        daemon = Daemon(rig, document)
        daemon.start()
        took = [_mended(rig, daemon, name) for name in ("level changed", "leaf deleted", "element deleted")]
        took += [_mended(rig, daemon, name) for name in ("filter deleted", "chain emptied", "queue replaced")]
        daemon.stop()
    assert max(took) < 2, "the audit runs every 0.6 s; the rest is for a busy machine"
    assert sorted(took)[len(took) // 2] < 1


def test_a_ceiling_of_somebody_else_that_the_loop_might_have_written_does_not_stay() -> None:
    """No audit can tell it from the loop's own; on an idle node the loop would not write for hours."""
    with Rig(pods=("web",)) as rig:
        document = {"node": {"bandwidth": {"tx": "200M", "rx": "150M"}}, "policy": {"enable": True}}
        daemon = Daemon(rig, document)
        daemon.start()
        before = _level_l0(rig)
        harm = f"tc class change dev {rig.uplink} parent 4e51:1 classid 4e51:10 htb rate 80mbit ceil 160mbit"
        rig.node.run([*harm.split(), "burst", "50000b", "cburst", "100000b"])
        began_s = time.monotonic()
        while _level_l0(rig) != before and time.monotonic() - began_s < 5:
            time.sleep(0.03)
        assert _level_l0(rig) == before
        assert "class 4e51:10" in daemon.log_end()
        daemon.stop()


def _level_l0(rig: Rig) -> str:
    classes = rig.node.run(["tc", "class", "show", "dev", rig.uplink]).stdout
    return next(line for line in classes.splitlines() if line.startswith("class htb 4e51:10 "))


def _mended(rig: Rig, daemon: Daemon, name: str) -> float:
    """How long it takes until everything is as before."""
    before = _listed(rig)
    elements = rig.node.run(["nft", "list", "map", "inet", "netqos", "tx4"]).stdout
    address = rig.pod("web").address
    (leaf,) = re.findall(rf"{re.escape(address)} .*?: 4e51:(\w+)", elements)
    for line in TX_HARMS[name].lines(up=rig.uplink, leaf=leaf, pod=address):
        rig.node.run(line)
    began_s = time.monotonic()
    while _listed(rig) != before and time.monotonic() - began_s < 5:
        time.sleep(0.03)
    daemon.check()
    return time.monotonic() - began_s


def _listed(rig: Rig) -> list[str]:
    classes = rig.node.run(["tc", "class", "show", "dev", rig.uplink]).stdout
    others = rig.node.run(["tc", "filter", "show", "dev", rig.uplink, "parent", "4e51:"]).stdout
    queues = rig.node.run(["tc", "qdisc", "show", "dev", rig.uplink]).stdout
    table = rig.node.run(["nft", "-s", "list", "table", "inet", "netqos"]).stdout
    kept = [line for line in classes.splitlines() if not line.startswith("class htb 4e51:10 ")]
    lines = [re.sub(r"(bfifo|leaf) \w+:", r"\1", line) for line in (*kept, *queues.splitlines())]
    filters = [re.sub(r"fh \S+|key ht \S+", "", line) for line in others.splitlines()]
    return sorted([*lines, *filters, *table.splitlines()])


def test_a_strangled_host_leaf_owes_nothing_once_it_is_mended() -> None:
    """HTB keeps what a class owes, up to a minute: the node would stay cut off long after the repair."""
    with Rig(pods=("web",)) as rig:
        document = {"node": {"bandwidth": {"tx": "200M", "rx": "150M"}}, "policy": {"enable": True}}
        daemon = Daemon(rig, document)
        daemon.start()
        harm = f"tc class change dev {rig.uplink} parent 4e51:10 classid 4e51:10f htb rate 8kbit"
        before = _listed(rig)
        for _ in range(3):
            sink = rig.wire.fork(_take, rig.wire.address)
            rig.node.call(_send, rig.wire.address, harm.split())
            sink.kill()
            began_s = time.monotonic()
            while _listed(rig) != before and time.monotonic() - began_s < 5:
                time.sleep(0.03)
        echo = start_echo(rig.node, rig.wire.address, count=20)
        assert echo.result().lost == 0
        daemon.stop()


def _send(address: str, harm: list[str]) -> None:
    """A connection that is there already sends its first flight, 14 KB at once, through the strangled class."""
    with connect(address, 9) as sender:
        subprocess.run(harm, check=True)
        sender.setblocking(False)
        sender.send(bytes(100_000))


def _take(address: str) -> None:
    with socket.create_server((address, 9)) as server:
        server.accept()
        time.sleep(20)
