"""Uplinks that come, go and change under the running daemon: what is shaped is always where the traffic leaves."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from netqos.model.levels import Level
from netqos.testing.daemon import Daemon, workload
from netqos.testing.namespaces import Namespace
from netqos.testing.netns import Rig
from netqos.testing.networks import NETWORKS, NODE, OUTSIDE, SECOND_WIRE, WIRE

pytestmark = pytest.mark.kernel("htb", "nft", "bridge")

FIRST, SECOND = WIRE.host(OUTSIDE, 4), SECOND_WIRE.host(OUTSIDE, 4)
WITHIN_S = 3.0
"""A change is seen at once by its event; the rest is patience with a loaded machine."""


@pytest.fixture
def rig() -> Iterator[Rig]:
    with Rig(pods=("web",), network=NETWORKS["second-uplink"]) as rig:
        rig.node.run(["ip", "-6", "route", "del", "default"])
        yield rig


@pytest.fixture
def start(rig: Rig) -> Iterator[Callable[..., Daemon]]:
    started: list[Daemon] = []

    def run(uplinks: list[Any] | None) -> Daemon:
        node = {"bandwidth": {"tx": "200M", "rx": "150M"}, "uplinks": uplinks}
        daemon = Daemon(
            rig, {"node": node, "policy": {"enable": True}, "workloads": [workload(rig, "web", Level.L0)]}
        )
        started.append(daemon)
        daemon.start()
        return daemon

    yield run
    for daemon in started:
        daemon.stop()


def ip(rig: Rig, *commands: str) -> None:
    for command in commands:
        rig.node.run(["ip", *command.split()])


def trees(rig: Rig) -> dict[str, str]:
    """The total's ceiling on each device that has an egress tree."""
    found = {}
    for line in rig.node.run(["tc", "qdisc", "show"]).stdout.splitlines():
        if line.startswith("qdisc htb 4e51: dev "):
            device = line.split()[4]
            shown = rig.node.run(
                ["tc", "class", "show", "dev", device, "classid", "4e51:1"], check=False
            ).stdout
            found[device] = shown.split("ceil ")[1].split()[0] if "ceil " in shown else "?"
    return found


def comes(check: Callable[[], object], expected: object) -> bool:
    """Whether it becomes so in time, and what it was instead is in the assertion."""
    end_s = time.monotonic() + WITHIN_S
    while time.monotonic() < end_s:
        if check() == expected:
            return True
        time.sleep(0.02)
    assert check() == expected
    return True


def findings(daemon: Daemon) -> set[str]:
    return {one["code"] for one in daemon.client.get("/v1/status")["findings"]}


def devices(daemon: Daemon) -> list[str]:
    return list(daemon.client.get("/v1/status")["directions"]["tx"]["devices"])


def test_a_default_route_that_moves_takes_the_tree_along(rig: Rig, start: Callable[..., Daemon]) -> None:
    """Never are both counted; with two routes of one metric both are, and share the total."""
    daemon = start(None)
    assert trees(rig) == {"up0": "200Mbit"}
    ip(rig, f"route replace default via {SECOND}")
    seen = []
    end_s = time.monotonic() + WITHIN_S
    while trees(rig) != {"up1": "200Mbit"} and time.monotonic() < end_s:
        seen.append(devices(daemon))
    assert trees(rig) == {"up1": "200Mbit"}
    assert comes(lambda: devices(daemon), ["up1"])
    assert [one for one in seen if len(one) > 1] == []
    ip(rig, f"route replace default nexthop via {FIRST} nexthop via {SECOND}")
    assert comes(lambda: trees(rig), {"up0": "100Mbit", "up1": "100Mbit"})
    assert "uplinks-share-total" in findings(daemon)
    ip(rig, f"route replace default via {FIRST} metric 0")
    assert comes(lambda: trees(rig), {"up0": "200Mbit"})


def test_without_a_default_route_what_is_there_stays(rig: Rig, start: Callable[..., Daemon]) -> None:
    """It says so, and guesses nothing; the next route decides."""
    daemon = start(None)
    ip(rig, "route del default")
    assert comes(lambda: "no-uplink" in findings(daemon), expected=True)
    assert trees(rig) == {"up0": "200Mbit"}
    ip(rig, f"route add default via {SECOND}")
    assert comes(lambda: trees(rig), {"up1": "200Mbit"})
    assert "no-uplink" not in findings(daemon)


def test_a_link_that_is_down_keeps_its_tree(rig: Rig, start: Callable[..., Daemon]) -> None:
    daemon = start(["up0"])
    rig.wire.run(["ip", "link", "set", "wire0", "down"])
    assert comes(lambda: "uplink-down" in findings(daemon), expected=True)
    assert trees(rig) == {"up0": "200Mbit"}
    rig.wire.run(["ip", "link", "set", "wire0", "up"])
    assert comes(lambda: "uplink-down" in findings(daemon), expected=False)
    assert trees(rig) == {"up0": "200Mbit"}
    assert daemon.client.get("/v1/status")["backends"]["tc"]["repairs"] == 0


def test_another_mtu_changes_the_classes_in_place(rig: Rig, start: Callable[..., Daemon]) -> None:
    start(["up0"])
    handle = rig.node.run(["tc", "qdisc", "show", "dev", "up0", "root"]).stdout

    def quanta() -> set[str]:
        shown = rig.node.run(["tc", "-d", "class", "show", "dev", "up0"]).stdout
        return {line.split("quantum ")[1].split()[0] for line in shown.splitlines() if "quantum " in line}

    before = quanta()
    ip(rig, "link set up0 mtu 30000")
    assert comes(lambda: quanta() != before, expected=True)
    assert rig.node.run(["tc", "qdisc", "show", "dev", "up0", "root"]).stdout == handle


def test_a_renamed_uplink_is_followed_by_route_and_missed_by_name(
    rig: Rig, start: Callable[..., Daemon]
) -> None:
    daemon = start(None)
    rename = ("link set up0 down", "link set up0 name wan0", "link set wan0 up")
    ip(
        rig,
        *rename,
        f"addr replace {WIRE.with_length(NODE, 4)} dev wan0",
        f"route replace default via {FIRST}",
    )
    assert comes(lambda: devices(daemon), ["wan0"])
    assert comes(lambda: trees(rig), {"wan0": "200Mbit"})
    daemon.stop()
    named = start(["up0"])
    assert "uplink-missing" in findings(named)
    assert comes(lambda: trees(rig), {})
    ip(rig, "link set wan0 down", "link set wan0 name up0", "link set up0 up")
    assert comes(lambda: trees(rig), {"up0": "200Mbit"})
    assert comes(lambda: "uplink-missing" in findings(named), expected=False)


def test_an_uplink_that_is_made_anew_or_was_away_is_shaped_again(
    rig: Rig, start: Callable[..., Daemon]
) -> None:
    """The same name with another number; then the same device out of another namespace."""
    daemon = start(["up1"])
    assert trees(rig) == {"up1": "200Mbit"}
    ip(rig, "link del up1", "link add up1 type veth peer name far1", "link set up1 up", "link set far1 up")
    assert comes(lambda: trees(rig), {"up1": "200Mbit"})
    away = Namespace("away")
    try:
        ip(rig, f"link set up1 netns {away.name}")
        assert comes(lambda: "uplink-missing" in findings(daemon), expected=True)
        assert trees(rig) == {}
        away.run(["ip", "link", "set", "up1", "netns", rig.node.name])
        ip(rig, "link set up1 up")
        assert comes(lambda: trees(rig), {"up1": "200Mbit"})
        assert comes(lambda: "uplink-missing" in findings(daemon), expected=False)
    finally:
        away.remove()


def test_an_uplink_taken_out_of_the_configuration_is_left_as_it_was(
    rig: Rig, start: Callable[..., Daemon]
) -> None:
    daemon = start([{"name": "up0", "bandwidth": {"tx": "80M", "rx": "70M"}}, "up1"])
    assert comes(lambda: trees(rig), {"up0": "80Mbit", "up1": "120Mbit"})
    daemon.configure(
        {
            "node": {"bandwidth": {"tx": "200M", "rx": "150M"}, "uplinks": ["up1"]},
            "policy": {"enable": True},
            "workloads": [workload(rig, "web", Level.L0)],
        }
    )
    assert comes(lambda: trees(rig), {"up1": "200Mbit"})
    assert "noqueue" in rig.node.run(["tc", "qdisc", "show", "dev", "up0", "root"]).stdout


def test_an_uplink_that_another_name_replaced_is_left_as_it_was_before_that_one_is_there(
    rig: Rig, start: Callable[..., Daemon]
) -> None:
    daemon = start(["up0"])
    assert comes(lambda: trees(rig), {"up0": "200Mbit"})
    daemon.configure(
        {
            "node": {"bandwidth": {"tx": "200M", "rx": "150M"}, "uplinks": ["wan0"]},
            "policy": {"enable": True},
            "workloads": [workload(rig, "web", Level.L0)],
        }
    )
    assert comes(lambda: "uplink-missing" in findings(daemon), expected=True)
    assert comes(lambda: left_of_us(rig), "")
    assert "noqueue" in rig.node.run(["tc", "qdisc", "show", "dev", "up0", "root"]).stdout
    ip(rig, "link set up1 down", "link set up1 name wan0", "link set wan0 up")
    assert comes(lambda: trees(rig), {"wan0": "200Mbit"})
    assert "netqos-ifb" in left_of_us(rig)


def left_of_us(rig: Rig) -> str:
    """Everything in the node's kernel that bears our name or handle."""
    shown = [
        rig.node.run(command.split()).stdout
        for command in ("tc qdisc show", "nft list tables", "ip -br link show")
    ]
    lines = "".join(shown).splitlines()
    return "\n".join(line for line in lines if any(ours in line for ours in ("4e51:", "4e52:", "netqos")))
