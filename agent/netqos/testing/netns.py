"""A node made of network namespaces, for kernel tests, the demo and the benchmarks.

    wire (the outside) -- up0 (the node's uplink, routed) -- node -- a veth pair to each pod (routed, as Calico does)

How pods are connected is said by a `networks.Network`: that picture is its default.

    with Rig(pods=("web", "batch")) as rig:
        rig.node.run(["tc", "qdisc", "show", "dev", rig.uplink])
        rig.pod("web").popen(["iperf3", "--client", rig.wire.address])

Nothing outside of its namespaces is touched, and nothing of them stays: on exit, exception and Ctrl-C they are removed
with all processes inside; after a kill -9 the next rig sweeps them.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from netqos.testing.hostpod import HostPod, sweep_cgroups
from netqos.testing.namespaces import Namespace, make_folder, sweep
from netqos.testing.networks import (
    FAMILIES,
    NEXT_HOP,
    NODE,
    OUTSIDE,
    REMOTE_POD,
    REMOTE_PODS,
    ROUTED,
    SECOND_UPLINK,
    UPLINK,
    WIRE,
    Network,
    Subnet,
    first_addresses,
    pod_subnet,
    second_addresses,
)
from netqos.testing.processes import Call, CommandFailed
from netqos.testing.usernamespace import can_make_namespaces, reexec_in_user_namespace
from netqos.testing.wiring import PodSite, Site, attach, build

__all__ = [
    "Call",
    "CommandFailed",
    "Namespace",
    "Rig",
    "can_make_namespaces",
    "reexec_in_user_namespace",
    "sweep",
]

_FIRST_POD = 10
_MOST_PODS = 4000

# IPv6 duplicate address detection costs a second, router solicitations are noise in the counters.
_QUIET = {
    "net/ipv6/conf/all/accept_dad": 0,
    "net/ipv6/conf/default/accept_dad": 0,
    "net/ipv6/conf/all/accept_ra": 0,
    "net/ipv6/conf/default/accept_ra": 0,
}
_FORWARDING = {"net/ipv4/ip_forward": 1, "net/ipv6/conf/all/forwarding": 1}


class Rig:
    """The namespaces of one node with its pods; use it in a `with` statement.

    `folder` is a private folder for the caller's files, removed at the end. Links are veth pairs as the kernel makes
    them (MTU 1500, GSO on, no queue of their own), `rp_filter` is the machine's default.
    """

    uplink = UPLINK

    def __init__(
        self, pods: Sequence[str] = (), *, host_pods: Sequence[str] = (), network: Network = ROUTED
    ) -> None:
        """Say what to build: the names of the first pods, those on the host's network, and how pods are connected."""
        self._wanted = tuple(pods)
        self._wanted_on_host = tuple(host_pods)
        self.network = network
        self._pods: dict[str, Namespace] = {}
        self._host_pods: dict[str, HostPod] = {}
        self._numbers: dict[str, int] = {}
        self._made: list[Namespace] = []
        self._count = 0
        self._hop: Namespace | None = None
        self.folder = Path()

    def __enter__(self) -> Self:
        """Sweep what killed owners left, then build; whatever stops the building removes what was built."""
        try:
            sweep()
            sweep_cgroups()
            self.folder = make_folder("rig")
            self._build()
            for name in self._wanted:
                self.add_pod(name)
            for name in self._wanted_on_host:
                self._host_pods[name] = HostPod(name, self.node)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove everything."""
        self.close()

    @property
    def wire(self) -> Namespace:
        """The outside world, one hop behind the uplink."""
        return self._made[0]

    @property
    def node(self) -> Namespace:
        """The node, with the uplinks and the near end of every pod's veth pair."""
        return self._made[1]

    @property
    def remote(self) -> Namespace | None:
        """The second node of an overlay, which its pods' addresses are on."""
        return self._made[2] if self.network.overlay else None

    @property
    def hop(self) -> Namespace | None:
        """What is between the uplink and the wire (`netqos.testing.nexthop`), where the network has it."""
        return self._hop

    @property
    def uplinks(self) -> tuple[str, ...]:
        """The node's uplinks; the first leads to the default route."""
        return (UPLINK, SECOND_UPLINK)[: self.network.uplinks]

    @property
    def pods(self) -> Mapping[str, Namespace]:
        """The pods with a namespace of their own, by name, in the order in which they were added."""
        return self._pods

    @property
    def host_pods(self) -> Mapping[str, HostPod]:
        """The pods on the host's network, by name."""
        return self._host_pods

    def pod(self, name: str) -> Namespace:
        """One pod's namespace; its device is `eth0`, the node's end of it `pod(name).link`."""
        return self._pods[name]

    def place(self, name: str) -> Namespace | HostPod:
        """Where one pod's processes run, whatever kind of pod it is."""
        return self._host_pods[name] if name in self._host_pods else self._pods[name]

    def addresses(self, name: str) -> tuple[str, ...]:
        """All addresses of a pod, those of its first device in front; none of a pod on the host's network."""
        if name in self._host_pods:
            return ()
        number = self._numbers[name]
        return (*first_addresses(self.network, number), *second_addresses(self.network, number))

    def number(self, name: str) -> int:
        """The number of a pod in every subnet."""
        return self._numbers[name]

    def add_pod(self, name: str) -> Namespace:
        """Add one more pod to the running node, with addresses that no other has had."""
        if name in self._pods:
            raise ValueError(f"there is a pod {name!r} already")
        if self._count == _MOST_PODS:
            raise ValueError(f"a rig has at most {_MOST_PODS} pods")
        number = _FIRST_POD + self._count
        self._count += 1
        pod = self._make(f"pod-{name}", pod_subnet(self.network), number, link=f"pod{number}")
        attach(PodSite(site=self._site, pod=pod, number=number))
        self._pods[name] = pod
        self._numbers[name] = number
        return pod

    def remove_pod(self, name: str) -> None:
        """Remove a pod as a runtime does: its processes, its devices and its routes are gone."""
        pod = self._pods.pop(name)
        self._made.remove(pod)
        if pod.link in self.node.run(["ip", "-o", "link"]).stdout:
            self.node.run(["ip", "link", "del", pod.link])
        pod.remove()

    def close(self) -> None:
        """Remove everything, in spite of a Ctrl-C meanwhile; no error when it is gone already."""
        with _uninterrupted():
            for pod in self._host_pods.values():
                pod.remove()
            for namespace in reversed(self._made):
                namespace.remove()
            self._made.clear()
            self._pods.clear()
            self._host_pods.clear()
            self._hop = None
            if self.folder != Path():
                shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def _site(self) -> Site:
        return Site(network=self.network, wire=self.wire, node=self.node, remote=self.remote, hop=self._hop)

    def _make(self, role: str, subnet: Subnet, number: int, *, link: str = "") -> Namespace:
        address, address6 = (
            subnet.host(number, family) if family in self.network.families else "" for family in FAMILIES
        )
        with _uninterrupted():
            namespace = Namespace(role, address=address, address6=address6, link=link)
            self._made.append(namespace)
        namespace.set_sysctls(_QUIET)
        return namespace

    def _build(self) -> None:
        wire = self._make("wire", WIRE, OUTSIDE)
        self._make("node", WIRE, NODE).set_sysctls(_FORWARDING)
        if self.network.overlay:
            wire.set_sysctls(_FORWARDING)
            self._make("remote", REMOTE_PODS, REMOTE_POD)
        if self.network.hop:
            self._hop = self._make("hop", WIRE, NEXT_HOP)
        build(self._site)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait until the end of the block; only the main thread gets signals anyway."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
