"""Rules inside a workload under the running daemon: from the configuration to the counters that explain shows."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest

from netqos.testing.daemon import Daemon
from netqos.testing.netns import Rig

pytestmark = pytest.mark.kernel("htb", "nft", "ifb", "clsact")

EGRESS = [
    {
        "matchs": [{"type": "port", "expr": "=5001", "proto": "udp"}],
        "actions": [{"action": "bandwidth_max", "value": "5M"}, {"action": "qos-class", "value": "l0"}],
    },
    {"matchs": [{"type": "ip"}], "actions": [{"action": "dscp", "value": "af11"}]},
]
INGRESS = [
    {
        "matchs": [{"type": "port", "expr": "=5002"}],
        "actions": [{"action": "qos-class", "value": "l2"}],
    }
]


def configuration(rig: Rig, rules: dict[str, Any]) -> dict[str, Any]:
    """The only workload has an egress limit, so that its first rule may not have another level."""
    web = {
        "name": "web",
        "match": {"addresses": [rig.pod("web").address]},
        "level": "l1",
        "limits": {"egress": "20M"},
        "rules": rules,
    }
    return {
        "node": {"bandwidth": {"tx": "200M", "rx": "150M"}},
        "policy": {"enable": True},
        "workloads": [web],
    }


def send(address: str, port: int, own_port: int, count: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind(("0.0.0.0", own_port))
        for _ in range(count):
            sender.sendto(bytes(200), (address, port))
            time.sleep(0.001)


def explained(daemon: Daemon) -> dict[str, Any]:
    answer: dict[str, Any] = daemon.client.get("/v1/explain/workload:web")
    return answer


def counted(answer: dict[str, Any]) -> dict[tuple[str, int | None], int]:
    return {(one["direction"], one["rule"]): one["sent_packets"] for one in answer["pod"]["counters"]}


def test_rules_are_enforced_counted_and_explained() -> None:
    with Rig(pods=("web",)) as rig:
        daemon = Daemon(rig, configuration(rig, {"egress": EGRESS, "ingress": INGRESS}))
        daemon.start()
        try:
            pod, wire = rig.pod("web"), rig.wire
            pod.call(send, wire.address, 5001, 0, 10)
            pod.call(send, wire.address, 5003, 0, 20)
            wire.call(send, pod.address, 9, 5002, 30)
            wire.call(send, pod.address, 9, 5003, 40)
            answer = explained(daemon)
            found = counted(answer)
            assert (found.pop(("tx", 0)), found.pop(("rx", 0))) == (10, 30)
            assert found.keys() == {("tx", None), ("rx", None)}
            assert found["tx", None] >= 20  # and some that say that nobody takes what came
            assert found["rx", None] >= 40
            told = [(one["direction"], one["number"], one["not_enforced"]) for one in answer["rules"]]
            assert told == [
                ("egress", 0, "its level: the pod has a limit, which no rule may leave"),
                ("egress", 1, ""),
                ("ingress", 0, ""),
            ]
            assert {one["what"]: one["enforced"] for one in answer["enforcement"]} == {
                "level": True,
                "limit": True,
                "rules": True,
            }
            assert [one["code"] for one in answer["findings"]] == ["not-enforced"]
        finally:
            daemon.stop()
