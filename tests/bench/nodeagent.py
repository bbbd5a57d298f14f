"""node-agent: what netqos costs on a real Kubernetes node, from its own image: memory, CPU, its start, its size."""

from __future__ import annotations

import json
import os
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.apiserver.gobuild import built
from tests.apiserver.kube import Kube
from tests.apiserver.programs import SOURCES
from tests.bench.figures import Figure, Target, at_most
from tests.bench.options import Options, say
from tests.kube.manifests import kustomize
from tests.node.cluster import Cluster
from tests.node.image import built_image
from tests.node.managers import find_controllers
from tests.node.pods import Pods
from tests.node.programs import find_node_programs
from tests.node.realnode import RealNode, wait_until

PODS = 40
IDLE_S = 20.0
_MIB = 1 << 20
_SETTLED_S = 10.0


def node_agent(options: Options) -> list[Figure]:
    """The daemon's container with forty pods on the node, and its start."""
    archive = built_image()
    figures = [_figure("image over its base", "MiB", (added_bytes(archive) / _MIB,), at_most(120))]
    with _deployed(archive) as cluster:
        say(f"node-agent: {options.runs} starts")
        starts = tuple(_start(cluster) for _ in range(options.runs))
        figures.append(_figure("container's start until ready", "s", starts, at_most(2)))
        with _pods(cluster):
            figures += _at_rest(cluster, options.runs)
    return figures


def added_bytes(archive: Path) -> int:
    """The size of the files of an image's own layer."""
    with tarfile.open(archive) as image:
        (manifest,) = json.loads(_read(image, "manifest.json"))
        with tarfile.open(fileobj=image.extractfile(manifest["Layers"][-1])) as layer:
            return sum(one.size for one in layer)


def _read(image: tarfile.TarFile, name: str) -> bytes:
    file = image.extractfile(name)
    assert file is not None
    return file.read()


@contextmanager
def _deployed(archive: Path) -> Iterator[Cluster]:
    renderer = built(SOURCES / "render")
    with RealNode(find_node_programs(), accounts=True) as node:
        node.containerd.import_image(archive)
        cluster = Cluster(node, find_controllers())
        cluster.switch_on()
        cluster.deploy(kustomize(renderer, "plain"))
        yield cluster


@contextmanager
def _pods(cluster: Cluster) -> Iterator[None]:
    """So many pods, with limits in both directions, all known."""
    say(f"node-agent: {PODS} pods come")
    kube = Kube(cluster.node.api, "agent", node=cluster.node.name)
    cluster.wait_for_account(kube.namespace)
    pods = Pods(cluster.node, kube)
    limits = {"koordinator.sh/egress-bandwidth": "10M", "koordinator.sh/ingress-bandwidth": "20M"}
    names = [f"pod-{number}" for number in range(PODS)]
    try:
        for name in names:
            pods.create(name, annotations=limits)
        for name in names:
            pods.wait_running(name)
        wait_until(lambda: _known(cluster) >= PODS, "all pods are known", 30)
        time.sleep(_SETTLED_S)
        yield
    finally:
        pods.close()
        kube.close()


def _known(cluster: Cluster) -> int:
    return sum(1 for one in cluster.client.get("/v1/pods")["pods"] if one["limits"]["egress"])


def _at_rest(cluster: Cluster, runs: int) -> list[Figure]:
    pid = cluster.pid()
    memory, cpu = [], []
    for _ in range(runs):
        began_s, used_s = time.monotonic(), _cpu_s(pid)
        time.sleep(IDLE_S)
        cpu.append(100 * (_cpu_s(pid) - used_s) / (time.monotonic() - began_s))
        memory.append(_resident_bytes(pid) / _MIB)
    return [
        _figure(f"resident memory, {PODS} pods", "MiB", tuple(memory), at_most(68)),
        _figure(f"CPU idle, {PODS} pods", "% of a core", tuple(cpu), at_most(1)),
    ]


def _start(cluster: Cluster) -> float:
    """Have the pod replaced; seconds from the start of the new container's process until it says that it is ready."""
    old = cluster.container()
    cluster.kubectl("delete", "pod", cluster.pod()["metadata"]["name"], "--wait=false")

    def is_new() -> bool:
        try:
            return cluster.container() != old
        except (LookupError, KeyError, ValueError):
            return False

    wait_until(is_new, "another container is there", 60, pause_s=0.01)
    wait_until(cluster.is_ready, "it is ready", 60, pause_s=0.01)
    ready_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    taken_s = ready_s - _started_s(cluster.pid())
    cluster.wait_rolled_out()
    return taken_s


def _started_s(pid: int) -> float:
    """When a process began, on the clock of the boot (proc_pid_stat(5), field 22)."""
    return int(_stat(pid)[19]) / os.sysconf("SC_CLK_TCK")


def _cpu_s(pid: int) -> float:
    return (int(_stat(pid)[11]) + int(_stat(pid)[12])) / os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[str]:
    """The fields after the name."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()


def _resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _figure(what: str, unit: str, runs: tuple[float, ...], target: Target) -> Figure:
    return Figure(bench="node-agent", what=what, unit=unit, runs=runs, target=target)
