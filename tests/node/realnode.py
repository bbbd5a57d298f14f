"""A real Kubernetes node: API server, containerd, kubelet and pods of a CNI, on a machine of its own.

    wire (198.18.0.1, the world) -- up0 (198.18.0.2, the node's uplink) -- node -- pods (10.88.0.0/16, by the CNI)

The API server runs beside the machine and is reached inside it at the same address, 127.0.0.1, and as the service
`kubernetes`. There is no scheduler and no controller: pods are made with a nodeName.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from netqos.errors import NetqosError
from netqos.testing.cabling import NODE_MAC, WIRE_MAC, End, batch, cable, default_via, up_with
from netqos.testing.hostpod import sweep_cgroups
from netqos.testing.namespaces import Namespace, scratch_folder, sweep
from netqos.testing.networks import NODE, OUTSIDE, UPLINK, WIRE
from netqos.testing.relay import Relay
from tests.apiserver.client import Api, ApiError
from tests.apiserver.fixtures import install_crd
from tests.apiserver.kube import NODES
from tests.apiserver.server import ApiServer
from tests.node.branches import sweep_branches
from tests.node.cni import NETWORKS, PODS, Network
from tests.node.machine import Machine
from tests.node.podimage import write_image
from tests.node.programs import NodePrograms
from tests.node.runtime import Containerd, kubelet

NAME = "worker-1"
WIRE_DEVICE = "wire0"
READY_S = 60.0

_SERVICE = "10.0.0.1"  # the first of the API server's service range


class RealNode:
    """One node; use it in a `with` statement. `folder` goes with it."""

    name = NAME
    uplink = UPLINK

    def __init__(
        self, programs: NodePrograms, *, network: Network = NETWORKS["bridge"], accounts: bool = False
    ) -> None:
        """Nothing runs yet. `network` is how its first pods are connected.

        `accounts`: a pod has a ServiceAccount and its token, which takes a controller that makes each namespace's.
        """
        self._programs = programs
        self._network = network
        self._flags = ("--disable-admission-plugins=",) if accounts else ()
        self._stack = ExitStack()
        self.folder = Path()

    def __enter__(self) -> RealNode:
        """Sweep what killed owners left, then start; what stops it removes what was there already."""
        sweep()
        sweep_cgroups()
        sweep_branches()
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Remove everything."""
        self.close()

    def close(self) -> None:
        """End every process and remove every trace; no error when it is gone already."""
        self._stack.close()

    def _start(self) -> None:
        self.folder = self._stack.enter_context(scratch_folder("node"))
        self.wire = Namespace("wire", address=WIRE.host(OUTSIDE, 4), tied=True)
        self._stack.callback(self.wire.remove)
        self.node = Namespace("node", address=WIRE.host(NODE, 4), tied=True)
        self._stack.callback(self.node.remove)
        connect(self.wire, self.node)
        self.server = ApiServer(self._programs.apiserver, self.folder / "api", flags=self._flags)
        self._stack.callback(self.server.close)
        self.server.start()
        install_crd(self.server.admin)
        self._start_machine()
        self._wait_ready()

    def _start_machine(self) -> None:
        port = int(self.server.access.url.rpartition(":")[2])
        self._stack.enter_context(Relay(self, port))
        self.node.run(["nft", "-f", "-"], text=_service_rules(port))
        disk = self.folder / "machine"
        disk.mkdir()
        self.machine = Machine(disk, self.node, hostname=NAME)
        self._stack.callback(self.machine.stop)
        self.machine.start()
        self.containerd = Containerd(self.machine)
        self.containerd.set_network(self._network)
        self.containerd.start()
        write_image(self.folder / "pod.tar")
        self.containerd.import_image(self.folder / "pod.tar")
        kubeconfig = self.server.access.kubeconfig
        self.kubelet = kubelet(
            self.machine, self._programs.kubelet, kubeconfig, node=NAME, address=self.node.address
        )
        self.kubelet.start()

    @property
    def api(self) -> Api:
        """The administrator's client."""
        return self.server.admin

    def set_network(self, network: Network) -> None:
        """Connect pods in another way from now on. Let there be none of before."""
        self.containerd.set_network(network)

    def _wait_ready(self) -> None:
        def is_ready() -> bool:
            conditions = self.api.get(f"{NODES}/{NAME}").get("status", {}).get("conditions", [])
            return {"type": "Ready", "status": "True"} in [
                {key: one[key] for key in ("type", "status")} for one in conditions
            ]

        wait_until(is_ready, "the node is Ready", READY_S)


def connect(wire: Namespace, node: Namespace) -> None:
    """The node's uplink to the wire, which knows the way to its pods."""
    for one in (wire, node):
        one.set_sysctls({"net/ipv6/conf/all/accept_dad": 0, "net/ipv6/conf/default/accept_dad": 0})
    node.set_sysctls({"net/ipv4/ip_forward": 1})
    cable(End(node, UPLINK, NODE_MAC), End(wire, WIRE_DEVICE, WIRE_MAC))
    there = f"route add {PODS} via {node.address}"
    batch(wire, [*up_with(WIRE_DEVICE, [WIRE.with_length(OUTSIDE, 4)]), there])
    batch(node, [*up_with(UPLINK, [WIRE.with_length(NODE, 4)]), default_via(wire.address)])


def _service_rules(port: int) -> str:
    """The service `kubernetes`, for the node itself and pods on its network: what kube-proxy would do for them."""
    return f"""table ip rig_services {{
    chain output {{
        type nat hook output priority -100;
        ip daddr {_SERVICE} tcp dport 443 dnat to 127.0.0.1:{port}
    }}
}}
"""


def wait_until(check: Callable[[], object], what: str, timeout_s: float, *, pause_s: float = 0.05) -> float:
    """Seconds until it holds; `NetqosError` with `what` where it does not in time. An error of it means not yet."""
    began_s = time.monotonic()
    problem: Exception | None = None
    while time.monotonic() - began_s < timeout_s:
        try:
            if check():
                return time.monotonic() - began_s
        except (NetqosError, ApiError) as met:
            problem = met
        time.sleep(pause_s)
    raise NetqosError(f"not so after {timeout_s:.0f} s {problem or ''}".rstrip(), subject=what)
