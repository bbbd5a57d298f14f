"""The daemon looks at the kernel's counters by itself: what it tells of them, and what `explain` shows of a path."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from netqos.model.levels import Level
from netqos.testing.daemon import Daemon, workload
from netqos.testing.netns import Rig
from netqos.testing.traffic import Datagrams, Traffic

pytestmark = pytest.mark.kernel("veth", "htb", "nft", "nft-fib", "nft-egress", "ifb", "clsact")

M = 1_000_000


def told(status: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["code"], one["subject"]) for one in status["backends"]["tc"]["findings"]]


def send_past_every_class(device: str) -> None:
    """Frames with the root's own handle as their priority: HTB sends them at once."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 0x4E510000)
        sender.bind((device, 0x0800))
        for _ in range(20):
            sender.send(b"\xff" * 6 + bytes(6) + b"\x08\x00" + bytes(100))


def test_a_class_that_somebody_takes_away_is_told_and_a_path_says_what_moved() -> None:
    with Rig(pods=("web", "batch")) as rig:
        document = {
            "node": {"bandwidth": {"tx": "200M", "rx": "150M"}},
            "policy": {"enable": True},
            "workloads": [workload(rig, "web", Level.L0), workload(rig, "batch", Level.L2)],
        }
        daemon = Daemon(rig, document)
        daemon.start()
        traffic = Traffic(rig)
        try:
            address, device = rig.pod("web").address, rig.pod("web").link
            out, into = daemon.client.get("/v1/explain/workload:web")["paths"]
            assert (out["used"], into["used"], out["moved"]) == (False, False, None)
            assert out["steps"][:3] == ["workload", device, "nft tx4 | tx6"]
            assert into["steps"][2] == f"redirect at {device}"
            assert f"tx4 {address}" in out["claims"]
            traffic.udp("web", Datagrams(rate_bps=2 * M, payload=500, segments=1)).start()
            daemon.client.wait_until(
                "/v1/explain/workload:web",
                lambda found: found["paths"][0]["moved"]["sent_packets"] > 10,
                timeout_s=10,
            )
            assert told(daemon.client.get("/v1/status")) == []
            rig.node.run(
                ["nft", "-f", "-"],
                text="add table inet other\n"
                "add chain inet other late { type filter hook postrouting priority 50; }\n"
                "add rule inet other late meta priority set 0:0\n",
            )
            status = daemon.client.wait_until("/v1/status", lambda found: bool(told(found)), timeout_s=20)
            assert told(status) == [("claimed-unclassed", "pod web")]
            rig.node.call(send_past_every_class, rig.uplink)
            daemon.client.wait_until(
                "/v1/status", lambda found: ("direct-packets", rig.uplink) in told(found), timeout_s=10
            )
        finally:
            traffic.stop()
            daemon.stop()
        assert "netqos_watch" not in rig.node.run(["nft", "list", "tables"]).stdout
