"""Many pods, huge pods, and many changes at once: memory is bounded, and what counts in the end is the truth."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from netqos.testing.daemon import Daemon
from tests.apiserver.kube import Kube
from tests.bench.kubefaults import outage, recovery
from tests.bench.kubenode import KubeNode
from tests.kube.kubenode import EGRESS, Node, fresh
from tests.waiting import wait_until

pytestmark = [pytest.mark.kernel("htb", "nft"), pytest.mark.slow]

M = 1_000_000


def peak_mib(daemon: Daemon) -> float:
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{daemon.pid}/status").read_text(encoding="ascii"))
    assert found is not None
    return int(found[1]) / 1024


@pytest.mark.timeout(240, func_only=True)
def test_a_thousand_pods_of_100_kib(node: Node, kube: Kube) -> None:
    kube.create_pods(1000, annotations={EGRESS: "10M", "example.org/padding": "x" * 100_000})
    node.daemon.start(timeout_s=30)
    wait_until(lambda: fresh(node), 60)
    wait_until(lambda: node.classes().count("ceil 10Mbit") == 1000, 60)
    assert peak_mib(node.daemon) < 96


@pytest.mark.timeout(180, func_only=True)
def test_five_hundred_pods_come_and_go(node: Node, kube: Kube) -> None:
    kube.create_pod("stays", ips=["10.88.99.1"], annotations={EGRESS: "11M"})
    node.daemon.start()
    wait_until(lambda: fresh(node) and "ceil 11Mbit" in node.classes())
    names = [pod["metadata"]["name"] for pod in kube.create_pods(500, annotations={EGRESS: "10M"})]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(kube.remove_pod, names))
    wait_until(lambda: list(node.pods()) == ["stays"], 20)
    wait_until(lambda: "ceil 10Mbit" not in node.classes(), 20)
    assert "ceil 11Mbit" in node.classes()
    assert node.status()["backends"]["tc"]["state"] == "ok"


@pytest.mark.serial
@pytest.mark.timeout(180, func_only=True)
def test_an_outage_with_two_hundred_changes(node: Node, kube: Kube) -> None:
    """As `./dev bench kube-outage` has it, shorter."""
    kube.create_pods(150, annotations={EGRESS: "10M"})
    node.daemon.start()
    shaped = KubeNode(kube=kube, rig=node.rig, proxy=node.proxy, daemon=node.daemon)
    wait_until(lambda: list(shaped.limits().values()) == ["10Mbit"] * 150, 30)
    before = shaped.limits()
    node.proxy.refuse()
    node.proxy.reset()
    wait_until(lambda: node.sources()["pods"] == "stale")
    after, wrong, samples = outage(shaped, before, 5)
    assert samples >= 200
    assert wrong == 0
    node.proxy.restore()
    converged_s, wrong, _ = recovery(shaped, before, after, settled_s=2)
    assert converged_s < 5
    assert wrong == 0
