"""What happens to netqos on a node: killed for its memory, kubelet and runtime restarted, the API server away."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from netqos.model.levels import Direction
from netqos.testing.numbered import numbered_packets
from tests.apiserver.client import Document
from tests.kube.manifests import kustomize, with_component
from tests.node.branches import hierarchies
from tests.node.cluster import Cluster
from tests.node.podimage import NAME
from tests.node.pods import Pods
from tests.node.realnode import wait_until

NO_LOSS = {Direction.TX: 0, Direction.RX: 0}
MANIFEST = "/etc/kubernetes/manifests/static.json"

_HOG = """
import sys
with open(sys.argv[2] + "/cgroup.procs", "w") as file:
    file.write("0")
b"x" * int(sys.argv[1])
"""


def memory_cgroup(pid: int) -> Path:
    """The folder whose limit holds for the memory of a process."""
    lines = [
        line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines()
    ]
    places = {one.options: one.path for one in hierarchies()}
    for controllers in ("memory", ""):
        for _, named, path in lines:
            if named == controllers and controllers in places:
                return Path(f"{places[controllers]}{path}")
    raise LookupError(f"no memory cgroup of process {pid}")


def starve(pid: int) -> None:
    """Take so much of a pod's memory that the kernel must kill its container, and give it back."""
    folder = memory_cgroup(pid)
    limit = next(path for name in ("memory.limit_in_bytes", "memory.max") if (path := folder / name).exists())
    amount = int(limit.read_text(encoding="ascii")) - (32 << 20)
    Path(f"/proc/{pid}/oom_score_adj").write_text("1000", encoding="ascii")  # before the one that takes it
    subprocess.run([sys.executable, "-c", _HOG, str(amount), str(folder)], check=False, timeout=30)


@pytest.mark.timeout(180)
def test_killed_for_its_memory_it_comes_back_and_no_packet_is_lost(deployed: Cluster, pods: Pods) -> None:
    before, old = deployed.classes(), deployed.container()
    with numbered_packets(pods["quiet"].inside, pods.wire) as lost:
        starve(deployed.pid())
        wait_until(lambda: deployed.container() != old and deployed.is_ready(), "it is back", 60)
    (status,) = deployed.pod()["status"]["containerStatuses"]
    assert status["lastState"]["terminated"]["exitCode"] == 128 + signal.SIGKILL
    assert (lost.lost, deployed.classes()) == (NO_LOSS, before)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("service", ["kubelet", "containerd"])
def test_beside_a_restart_of_the_node_s_services_it_goes_on(
    deployed: Cluster, pods: Pods, service: str
) -> None:
    before, old = deployed.classes(), deployed.pid()
    with numbered_packets(pods["quiet"].inside, pods.wire) as lost:
        getattr(deployed.node, service).restart()
        time.sleep(2)
    assert (lost.lost, deployed.classes(), deployed.pid()) == (NO_LOSS, before, old)
    pods.start("later", annotations={"koordinator.sh/egress-bandwidth": "12M"})
    wait_until(
        lambda: limit_of(deployed, pods["later"].full_name) == 12_000_000, "the new pod is limited", 20
    )


def limit_of(deployed: Cluster, pod: str) -> int:
    """The egress limit of a pod in bits per second, 0 for none."""
    found = {f"{one['namespace']}/{one['name']}": one for one in deployed.client.get("/v1/pods")["pods"]}
    limit = found.get(pod, {}).get("limits", {}).get("egress")
    return int(limit["bps"]) if limit else 0


def drops_of(deployed: Cluster, pod: str) -> dict[Direction, int]:
    """What a pod's own queues have dropped."""
    counters = deployed.ask("explain", pod)["pod"]["counters"]
    return {way: sum(one["drops"] for one in counters if one["direction"] == way.value) for way in Direction}


def static_pod(name: str, limit: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "annotations": {"koordinator.sh/egress-bandwidth": limit},
        },
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {"name": "main", "image": NAME, "imagePullPolicy": "Never", "command": ["sleep", "1000000"]}
            ],
        },
    }


@pytest.fixture
def asking_the_kubelet(deployed: Cluster, renderer: Path, tmp_path: Path) -> Iterator[Cluster]:
    """With components/kubelet."""
    deployed.deploy(with_component(renderer, "plain", "kubelet", tmp_path))
    yield deployed
    deployed.deploy(kustomize(renderer, "plain"))


@pytest.mark.timeout(180)
def test_a_pod_that_starts_while_the_api_server_is_away_is_limited(
    asking_the_kubelet: Cluster, pods: Pods
) -> None:
    deployed = asking_the_kubelet
    before, quiet = deployed.classes(), pods["quiet"].full_name
    dropped = drops_of(deployed, quiet)
    manifest = deployed.node.machine.path(MANIFEST)
    deployed.node.server.stop()
    try:
        with numbered_packets(pods["quiet"].inside, pods.wire) as lost:
            manifest.parent.mkdir(parents=True, exist_ok=True)
            manifest.write_text(json.dumps(static_pod("static", "13M")), encoding="utf-8")
            name = f"default/static-{deployed.node.name}"
            wait_until(lambda: limit_of(deployed, name) == 13_000_000, "the static pod is limited", 45)
            assert deployed.client.get("/v1/status")["sources"]["pods"]["state"] == "stale"
    finally:
        manifest.unlink(missing_ok=True)
        deployed.node.server.start()
    wait_until(deployed.is_ready, "its sources are fresh again", 60)
    wait_until(lambda: deployed.classes() == before, "the static pod is gone", 60)
    in_queue = {way: count - dropped[way] for way, count in drops_of(deployed, quiet).items()}
    # A processor that stands still for a tenth of a second fills the pod's own queue: two are busy with a pod's start.
    assert {way: lost.lost[way] - in_queue[way] for way in Direction} == NO_LOSS
