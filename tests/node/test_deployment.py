"""netqos from its own image by its own manifests: its rights, its probes, and packets while it is replaced."""

from __future__ import annotations

import base64
import json
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from netqos.model.levels import Direction
from netqos.testing.numbered import Lost, numbered_packets
from tests.kube.manifests import helm, is_hook, kustomize
from tests.node.cluster import DAEMONSET, NAMESPACE, Cluster
from tests.node.load import Load
from tests.node.pods import Pods
from tests.node.realnode import wait_until

NET_ADMIN = 1 << 12
"""include/uapi/linux/capability.h"""

ACCOUNT = "/run/secrets/kubernetes.io/serviceaccount"
LEVELS = {"quiet": "L1", "bulk": "L2"}
NO_LOSS = {Direction.TX: 0, Direction.RX: 0}


def status_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_it_has_the_capability_that_it_names_and_no_way_to_more(deployed: Cluster) -> None:
    status = status_of(deployed.pid())
    sets = {int(status[name], 16) for name in ("CapEff", "CapPrm", "CapBnd")}
    assert sets == {NET_ADMIN}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


def test_it_writes_to_its_three_folders_alone(deployed: Cluster) -> None:
    lines = Path(f"/proc/{deployed.pid()}/mountinfo").read_text(encoding="utf-8").splitlines()
    mounts = {words[4]: (words[5].split(",")[0], rest.split()[0]) for words, rest in map(split_mount, lines)}
    assert (mounts["/"][0], mounts["/sys/fs/cgroup"][0]) == ("ro", "ro")
    writable = {place for place, (mode, kind) in mounts.items() if mode == "rw" and kind not in OF_THE_KERNEL}
    assert writable == {"/run/koordinator/net", "/run/netqos", "/var/lib/netqos", *OF_THE_KUBELET}


OF_THE_KUBELET = ("/etc/hosts", "/dev/termination-log")
OF_THE_KERNEL = {"proc", "sysfs", "tmpfs", "devpts", "mqueue", "cgroup", "cgroup2"}
"""Of version 1 each hierarchy is a mount below /sys/fs/cgroup, which a read-only mount of that leaves as it is."""


def split_mount(line: str) -> tuple[list[str], str]:
    words, _, rest = line.partition(" - ")
    return words.split(), rest


def test_it_speaks_as_its_account_with_a_token_that_ends(deployed: Cluster) -> None:
    token = Path(f"/proc/{deployed.pid()}/root{ACCOUNT}/token").read_text(encoding="ascii")
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["sub"] == f"system:serviceaccount:{NAMESPACE}:netqos"
    assert claims["kubernetes.io"]["pod"]["name"] == deployed.pod()["metadata"]["name"]
    assert claims["exp"] > claims["iat"]
    sources = deployed.client.get("/v1/status")["sources"]
    assert {sources[name]["state"] for name in ("pods", "nodeslo", "node")} == {"fresh"}


def test_its_probes_pass_and_prometheus_is_answered_on_the_nodes_address(deployed: Cluster) -> None:
    (status,) = deployed.pod()["status"]["containerStatuses"]
    assert (status["ready"], status["started"], status["restartCount"]) == (True, True, 0)
    ask = ["busybox", "wget", "-q", "-O", "-", f"http://{deployed.node.node.address}:9469/metrics"]
    assert "netqos_source_state" in deployed.node.machine.run(ask).stdout


def test_what_it_sends_itself_is_of_the_highest_level(deployed: Cluster) -> None:
    meta = deployed.pod()["metadata"]
    assert deployed.ask("explain", f"{meta['namespace']}/{meta['name']}")["pod"]["level"] == "L0"


def test_what_helm_renders_changes_nothing(deployed: Cluster, renderer: Path) -> None:
    def wanted() -> list[Any]:
        """What is asked for; its version counts what becomes of it too."""
        meta = deployed.node.api.get(DAEMONSET)["metadata"]
        return [meta.get(key) for key in ("uid", "generation", "labels", "annotations")]

    before = wanted()
    deployed.apply(one for one in helm(renderer, NAMESPACE) if not is_hook(one))
    assert wanted() == before


def test_a_limit_is_set_from_within_the_container(deployed: Cluster, pods: Pods) -> None:
    quiet = pods["quiet"].full_name
    deployed.ctl("limit", quiet, "--egress", "10M", "--for", "10m", "--reason", "test")
    explained = deployed.ask("explain", quiet)
    assert explained["pod"]["limits"]["egress"]["bps"] == 10_000_000
    deployed.ctl("limits", "--delete", quiet)


def lost_while_replaced(deployed: Cluster, pods: Pods, *command: str) -> Lost:
    """What is lost of the quiet pod's packets while kubectl has the daemon replaced."""
    old = deployed.container()
    with numbered_packets(pods["quiet"].inside, pods.wire) as lost:
        deployed.kubectl(*command)
        deployed.wait_rolled_out()
        time.sleep(1)
    assert deployed.container() != old
    return lost


def test_a_rollout_restart_loses_no_packet_and_keeps_every_class(deployed: Cluster, pods: Pods) -> None:
    before = deployed.classes()
    lost = lost_while_replaced(deployed, pods, "rollout", "restart", "daemonset/netqos")
    assert (lost.lost, deployed.classes()) == (NO_LOSS, before)


def test_an_update_from_the_previous_image_loses_no_packet(
    deployed: Cluster, pods: Pods, previous_archive: Path
) -> None:
    deployed.node.containerd.import_image(previous_archive)
    update = ("set", "image", "daemonset/netqos")
    lost_while_replaced(deployed, pods, *update, "netqosd=netqos:previous")
    lost = lost_while_replaced(deployed, pods, *update, "netqosd=netqos:0.1.0")
    assert lost.lost == NO_LOSS
    assert {
        one["name"]: one["level"] for one in deployed.ask("pods")["pods"] if one["name"] in LEVELS
    } == LEVELS


def in_kernel(deployed: Cluster) -> list[str]:
    """What decides over packets of pods: qdiscs, classes, and which address is of which class."""
    node = deployed.node
    commands = [["tc", "class", "show", "dev", one] for one in (node.uplink, "netqos-ifb")]
    classes = "".join(node.node.run(one).stdout for one in commands)
    qdiscs = node.node.run(["tc", "qdisc", "show"]).stdout
    found = re.findall(
        r"^(?:qdisc htb|class htb) \S+ (?:dev \S+ )?(?:root|parent \S+)", qdiscs + classes, re.MULTILINE
    )
    return [*found, *node.node.run(["nft", "list", "map", "inet", "netqos", "tx4"]).stdout.splitlines()]


@contextmanager
def without_daemonset(deployed: Cluster, renderer: Path) -> Iterator[None]:
    """As after `kubectl delete daemonset netqos` alone; then it is applied again."""
    deployed.delete_daemonset()
    try:
        yield
    finally:
        deployed.deploy(kustomize(renderer, "plain"))


@pytest.mark.timeout(180)
def test_the_daemonset_is_deleted_alone_and_what_it_enforced_stays(
    deployed: Cluster, pods: Pods, renderer: Path
) -> None:
    held = {("held", Direction.TX): 12_000_000.0}
    with Load(pods) as load, numbered_packets(pods["quiet"].inside, pods.wire) as lost:
        limit = {"koordinator.sh/egress-bandwidth": "12M"}
        pods.start("held", annotations=limit, command=load.hear("held", 5301))
        load.expect(held, seconds=1)
        classes, before = deployed.classes(), in_kernel(deployed)
        with without_daemonset(deployed, renderer):
            load.expect(held, seconds=1, tries=3)
            assert in_kernel(deployed) == before
        load.expect(held, seconds=1, tries=3)
    assert (lost.lost, deployed.classes()) == (NO_LOSS, classes)


@pytest.mark.timeout(180)
def test_after_the_daemonset_was_deleted_alone_cleanup_removes_all(deployed: Cluster, renderer: Path) -> None:
    with without_daemonset(deployed, renderer):
        assert ours(deployed) != []
        deployed.node.machine.run([sys.executable, "-m", "netqos.cli.ctl", "cleanup"])
        assert ours(deployed) == []


def ours(deployed: Cluster) -> list[str]:
    """What the node's network has of netqos."""
    commands = (["tc", "qdisc", "show"], ["nft", "list", "tables"], ["ip", "-brief", "link"])
    lines = [line for one in commands for line in deployed.node.node.run(one).stdout.splitlines()]
    return [line for line in lines if "4e5" in line or "netqos" in line]


@pytest.mark.timeout(240)
def test_with_kustomize_it_is_removed_as_documented(deployed: Cluster, renderer: Path) -> None:
    plain = kustomize(renderer, "plain")
    (settings,) = (one for one in kustomize(renderer, "plain") if one["kind"] == "ConfigMap")
    settings["data"]["netqos.yaml"] += "\nonExit: restore\n"
    deployed.apply([settings])
    wait_until(lambda: "restore" in deployed.run("cat", "/etc/netqos/netqos.yaml"), "the pod has it", 120)
    time.sleep(2)
    assert ours(deployed) != []
    try:
        deployed.remove(plain)
        assert ours(deployed) == []
    finally:
        deployed.deploy(plain)
