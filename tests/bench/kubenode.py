"""A node that follows a real API server through a fault proxy, and what its kernel enforces."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from netqos.testing.daemon import Daemon
from netqos.testing.faultproxy import FaultProxy
from netqos.testing.namespaces import scratch_folder
from netqos.testing.netns import Rig
from netqos.testing.relay import Relay
from tests.apiserver.fixtures import install_crd
from tests.apiserver.kube import Kube
from tests.apiserver.launch import write_kubeconfig
from tests.apiserver.programs import find_programs
from tests.apiserver.server import ApiServer

EGRESS = "koordinator.sh/egress-bandwidth"

_CLASS = re.compile(r"^class htb (\w+:\w+) .*\bceil (\w+)", re.MULTILINE)
_ELEMENT = re.compile(r'\b(10\.88\.\d+\.\d+)(?: comment "[^"]*")? : "?(\w+:\w+)')
_MAP = ["nft", "list", "map", "inet", "netqos", "tx4"]
_TRIES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeNode:
    """A daemon in a rig, the API server that it follows, and the proxy between them."""

    kube: Kube
    rig: Rig
    proxy: FaultProxy
    daemon: Daemon

    def limits(self) -> Mapping[str, str]:
        """The ceiling that each address meets in the kernel, read at one moment: no class changed meanwhile."""
        for _ in range(_TRIES):
            classes = self._classes()
            elements = dict(_ELEMENT.findall(self._show(_MAP)))
            if self._classes() == classes:
                return {address: classes.get(target, "no class") for address, target in elements.items()}
        raise RuntimeError("the classes never stopped changing")

    def wait(self, check: Callable[[], bool], timeout_s: float) -> float:
        """Seconds until it holds; inf where it does not within `timeout_s`."""
        began_s = time.monotonic()
        while not check():
            if time.monotonic() - began_s > timeout_s:
                return float("inf")
            time.sleep(0.01)
        return time.monotonic() - began_s

    def _classes(self) -> Mapping[str, str]:
        return dict(_CLASS.findall(self._show(["tc", "class", "show", "dev", self.rig.uplink])))

    def _show(self, command: list[str]) -> str:
        return self.rig.node.run(command).stdout


@contextmanager
def cluster() -> Iterator[tuple[ApiServer, Kube]]:
    """A server of the benchmark's own."""
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder("bench"))
        server = ApiServer(find_programs(), folder / "apiserver")
        stack.callback(server.close)
        server.start()
        install_crd(server.admin)
        yield server, Kube(server.admin, "bench")


@contextmanager
def following_node(pods: int, *, more: Mapping[str, object] | None = None) -> Iterator[KubeNode]:
    """A node with so many pods of 10M each, all enforced. `more` adds to the daemon's configuration."""
    with ExitStack() as stack:
        server, kube = stack.enter_context(cluster())
        rig = stack.enter_context(Rig(pods=("web",)))
        proxy = FaultProxy(server.access.url, server.access.ca_file, folder=rig.folder)
        stack.enter_context(proxy)
        stack.enter_context(Relay(rig, int(proxy.url.rpartition(":")[2])))
        kubeconfig = write_kubeconfig(
            rig.folder / "kubeconfig", proxy.url, proxy.ca_file, token=server.access.token
        )
        daemon = Daemon(rig, {**_document(kube, kubeconfig), **(more or {})})
        node = KubeNode(kube=kube, rig=rig, proxy=proxy, daemon=daemon)
        kube.create_pods(pods, annotations={EGRESS: "10M"})
        daemon.start(timeout_s=60)
        stack.callback(daemon.stop)
        expected = {f"10.88.{number >> 8}.{number & 255}": "10Mbit" for number in range(1, pods + 1)}
        if node.wait(lambda: node.limits() == expected, 30) == float("inf"):
            raise RuntimeError("the pods were not enforced within 30 s")
        yield node


def _document(kube: Kube, kubeconfig: Path) -> dict[str, object]:
    return {
        "node": {"name": kube.node, "bandwidth": {"tx": "900M", "rx": "800M"}},
        "policy": {"enable": True},
        "kubernetes": {"enable": True, "kubeconfig": str(kubeconfig)},
    }
