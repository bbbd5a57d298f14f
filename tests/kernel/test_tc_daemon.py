"""The daemon over the tc backend: repairs that are held back leave a whole tree or none; foreign objects go."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator

import pytest

from netqos.model.levels import Level
from netqos.testing.daemon import Daemon, workload
from netqos.testing.netns import Rig
from netqos.testing.probes import start_echo
from netqos_tc.numbers import IFB_NAME as IFB

pytestmark = pytest.mark.kernel("htb", "nft", "u32", "nft-fib", "nft-socket")


@pytest.fixture
def rig() -> Iterator[Rig]:
    with Rig(pods=("web", "batch")) as rig:
        yield rig


@pytest.fixture
def daemon(rig: Rig) -> Iterator[Daemon]:
    daemon = Daemon(
        rig,
        {
            "node": {"bandwidth": {"tx": "200M", "rx": "150M"}},
            "policy": {"enable": True},
            "workloads": [workload(rig, "web", Level.L0), workload(rig, "batch", Level.L2)],
        },
    )
    daemon.start()
    yield daemon
    daemon.stop()


def tc(rig: Rig, command: str) -> str:
    return rig.node.run(["tc", *command.split()]).stdout


def parents(rig: Rig) -> dict[str, str]:
    """The classes of the uplink with their parents."""
    words = [line.split() for line in tc(rig, f"class show dev {rig.uplink}").splitlines()]
    return {one[2]: one[4] if one[3] == "parent" else "root" for one in words}


def eventually(check: Callable[[], bool], timeout_s: float = 5.0) -> bool:
    end_s = time.monotonic() + timeout_s
    while time.monotonic() < end_s:
        if check():
            return True
        time.sleep(0.05)
    return check()


def findings(daemon: Daemon) -> dict[str, str]:
    """Code and severity of everything that is to say of the node and of the backend."""
    status = daemon.client.get("/v1/status")
    found = [*status["findings"], *status["backends"]["tc"]["findings"]]
    return {one["code"]: one["severity"] for one in found}


def repairs(daemon: Daemon) -> int:
    return int(daemon.client.get("/v1/status")["backends"]["tc"]["repairs"])


def test_losses_that_come_with_the_root_never_leave_a_part_of_the_tree(rig: Rig, daemon: Daemon) -> None:
    """A changed level and two lost roots within a minute; then a third root, whose repair waits, as a whole."""
    before = parents(rig)
    tc(rig, "class change dev up0 parent 4e51:1 classid 4e51:12 htb rate 1mbit ceil 1mbit")
    assert eventually(lambda: repairs(daemon) == 1)
    for _ in range(2):
        tc(rig, "qdisc del dev up0 root")
        assert eventually(lambda: parents(rig) == before)
    assert repairs(daemon) == 3
    tc(rig, "qdisc del dev up0 root")
    assert eventually(lambda: "repair-backoff" in findings(daemon))
    assert parents(rig) == {}


def test_what_others_put_into_the_tree_is_gone_again(rig: Rig, daemon: Daemon) -> None:
    before = parents(rig)
    tc(rig, "class add dev up0 parent 4e51: classid 4e51:99 htb rate 1gbit")
    tc(rig, "filter add dev up0 parent 4e51: protocol ip prio 50 u32 match u32 0 0 classid 4e51:99")
    assert eventually(lambda: parents(rig) == before)
    assert "4e51:99" not in tc(rig, "filter show dev up0 parent 4e51:")


def test_nobody_is_warned_of_what_nobody_asked_for(rig: Rig, daemon: Daemon) -> None:
    assert findings(daemon) == {}


def test_a_verdict_in_our_table_never_stays_however_often_somebody_puts_it_there(
    rig: Rig, daemon: Daemon
) -> None:
    """Contract 8 before the back-off of contract 7; a rule that is only missing waits."""

    def table() -> list[str]:
        """In any order: a chain that is made anew is the last."""
        return sorted(rig.node.run(["nft", "-s", "list", "table", "inet", "netqos"]).stdout.splitlines())

    before = table()

    def is_whole() -> bool:
        return table() == before

    for command in (
        "insert rule inet netqos output drop",
        "add chain inet netqos forward { policy drop; }",
        "add chain inet netqos x { type filter hook input priority 0; policy drop; }",
        "insert rule inet netqos forward meta l4proto tcp drop",
    ):
        rig.node.run(["nft", command])
        assert eventually(is_whole, 2), command
    assert "repair-backoff" in findings(daemon)
    rig.node.run(["nft", "flush chain inet netqos output"])
    time.sleep(1)
    assert not is_whole()


@pytest.mark.kernel("ifb", "clsact")
def test_the_ifb_is_back_whatever_befalls_it_and_however_often(rig: Rig, daemon: Daemon) -> None:
    """What leads to it drops everything meanwhile, where no program can tell that it is gone."""
    pod = rig.pod("web")

    def leads_to_a_tree() -> bool:
        device = rig.node.run(["ip", "-o", "link", "show", IFB], check=False).stdout
        tree = rig.node.run(["tc", "class", "show", "dev", IFB], check=False).stdout
        return ",UP" in device and "4e52:1 " in tree and IFB in tc(rig, f"filter show dev {pod.link} egress")

    assert eventually(leads_to_a_tree)
    for command in ("del", "del", "set down", "del", "del"):
        verb, *words = command.split()
        rig.node.run(["ip", "link", verb, IFB, *words])
        assert eventually(leads_to_a_tree, 2), command
    assert not start_echo(rig.wire, pod.address, count=10).result().lost_at_s


def test_the_earlier_root_survives_generations_of_daemons_and_a_lost_state_folder(rig: Rig) -> None:
    tbf = "qdisc add dev up0 root handle 77: tbf rate 123mbit burst 17kb latency 33ms"
    tc(rig, tbf)
    before = tc(rig, "qdisc show dev up0")
    document = {
        "node": {"bandwidth": {"tx": "200M", "rx": "150M"}},
        "policy": {"enable": True},
        "backendOptions": {"tc": {"takeover": ["tbf"]}},
        "onExit": "restore",
    }
    daemon = Daemon(rig, document)
    daemon.start()
    (kept,) = daemon.paths.state.rglob("root-up0.json")
    content = kept.read_bytes()
    shutil.rmtree(daemon.paths.state)
    assert eventually(kept.exists)
    assert kept.read_bytes() == content
    daemon.kill()
    daemon.start()
    daemon.kill()
    daemon.start()
    daemon.stop()
    assert tc(rig, "qdisc show dev up0") == before
    assert not kept.exists()
