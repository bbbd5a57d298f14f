"""A node made of network namespaces, for kernel tests, the demo and the benchmarks.

    wire (the outside) -- up0 (the node's uplink, routed) -- node -- a veth pair to each pod (routed, as Calico does)

    with Rig(pods=("web", "batch")) as rig:
        rig.node.run(["tc", "qdisc", "show", "dev", rig.uplink])
        rig.pod("web").popen(["iperf3", "--client", rig.wire.address])

Nothing outside of its namespaces is touched, and nothing of them stays: on exit, exception and Ctrl-C they are removed
with all processes inside; after a kill -9 the next rig sweeps them.
"""

from __future__ import annotations

import contextlib
import ipaddress
import shutil
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from netqos.testing.namespaces import Namespace, make_folder, sweep
from netqos.testing.processes import Call, CommandFailed, run_tool
from netqos.testing.usernamespace import can_make_namespaces, reexec_in_user_namespace

__all__ = [
    "Call",
    "CommandFailed",
    "Namespace",
    "Rig",
    "can_make_namespaces",
    "reexec_in_user_namespace",
    "sweep",
]

UPLINK = "up0"
POD_NETWORK = "10.88.0.0/16"
POD_NETWORK6 = "fd00:88::/64"
WIRE_ADDRESS, WIRE_ADDRESS6 = "198.18.0.1", "fd00:77::1"  # 198.18.0.0/15 is for benchmarks (RFC 2544)
NODE_ADDRESS, NODE_ADDRESS6 = "198.18.0.2", "fd00:77::2"
_GATEWAY, _GATEWAY6 = (
    "169.254.1.1",
    "fe80::1",
)  # Calico's way: an address that nobody has, its neighbour is permanent
_WIRE_MAC, _NODE_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
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

_MASQUERADE = f"""
table inet rig {{
    chain nat {{
        type nat hook postrouting priority srcnat;
        ip saddr {POD_NETWORK} oifname {UPLINK} masquerade
        ip6 saddr {POD_NETWORK6} oifname {UPLINK} masquerade
    }}
}}
"""


class Rig:
    """The namespaces of one node with its pods; use it in a `with` statement.

    `folder` is a private folder for the caller's files, removed at the end. Links are veth pairs as the kernel makes
    them (MTU 1500, GSO on, no queue of their own), `rp_filter` is the machine's default, neighbours are permanent.
    """

    uplink = UPLINK

    def __init__(self, pods: Sequence[str] = (), *, masquerade: bool = False) -> None:
        """Say what to build; `masquerade` hides the pods' addresses behind the node's on the uplink."""
        self._wanted = tuple(pods)
        self._masquerade = masquerade
        self._pods: dict[str, Namespace] = {}
        self._made: list[Namespace] = []
        self._count = 0
        self.folder = Path()

    def __enter__(self) -> Self:
        """Sweep what killed owners left, then build; whatever stops the building removes what was built."""
        try:
            sweep()
            self.folder = make_folder("rig")
            self._build_uplink()
            for name in self._wanted:
                self.add_pod(name)
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
        """The node, with the uplink and the near end of every pod's veth pair."""
        return self._made[1]

    @property
    def pods(self) -> Mapping[str, Namespace]:
        """The pods by name, in the order in which they were added."""
        return self._pods

    def pod(self, name: str) -> Namespace:
        """One pod's namespace; its device is `eth0`, the node's end of it `pod(name).link`."""
        return self._pods[name]

    def add_pod(self, name: str) -> Namespace:
        """Add one more pod to the running node, with addresses that no other has had."""
        if name in self._pods:
            raise ValueError(f"there is a pod {name!r} already")
        if self._count == _MOST_PODS:
            raise ValueError(f"a rig has at most {_MOST_PODS} pods")
        number = _FIRST_POD + self._count
        self._count += 1
        pod = self._make(
            f"pod-{name}",
            address=str(ipaddress.ip_network(POD_NETWORK)[number]),
            address6=f"fd00:88::{number}",
            link=f"pod{number}",
        )
        self._connect(pod, near_mac=_mac(0x10, number), far_mac=_mac(0x20, number))
        self._pods[name] = pod
        return pod

    def remove_pod(self, name: str) -> None:
        """Remove a pod as a runtime does: its processes, its veth pair and its route are gone."""
        pod = self._pods.pop(name)
        self.node.run(["ip", "link", "del", pod.link])
        self._made.remove(pod)
        pod.remove()

    def close(self) -> None:
        """Remove everything, in spite of a Ctrl-C meanwhile; no error when it is gone already."""
        with _uninterrupted():
            for namespace in reversed(self._made):
                namespace.remove()
            self._made.clear()
            self._pods.clear()
            if self.folder != Path():
                shutil.rmtree(self.folder, ignore_errors=True)

    def _make(self, role: str, *, address: str, address6: str, link: str = "") -> Namespace:
        with _uninterrupted():
            namespace = Namespace(role, address=address, address6=address6, link=link)
            self._made.append(namespace)
        namespace.set_sysctls(_QUIET)
        return namespace

    def _build_uplink(self) -> None:
        wire = self._make("wire", address=WIRE_ADDRESS, address6=WIRE_ADDRESS6)
        node = self._make("node", address=NODE_ADDRESS, address6=NODE_ADDRESS6)
        node.set_sysctls(_FORWARDING)
        _cable(_End(node, UPLINK, _NODE_MAC), _End(wire, "wire0", _WIRE_MAC))
        _batch(
            wire,
            [
                *_neighbour_lines("wire0", own=wire, other=node, other_mac=_NODE_MAC),
                f"route add {POD_NETWORK} via {node.address}",
                f"route add {POD_NETWORK6} via {node.address6}",
            ],
        )
        _batch(
            node,
            [
                *_neighbour_lines(UPLINK, own=node, other=wire, other_mac=_WIRE_MAC),
                f"route add default via {wire.address}",
                f"route add ::/0 via {wire.address6}",
            ],
        )
        if self._masquerade:
            node.run(["nft", "-f", "-"], text=_MASQUERADE)

    def _connect(self, pod: Namespace, *, near_mac: str, far_mac: str) -> None:
        _cable(_End(self.node, pod.link, near_mac), _End(pod, "eth0", far_mac))
        _batch(
            self.node,
            [
                f"link set {pod.link} up",
                f"neigh replace {pod.address} lladdr {far_mac} dev {pod.link} nud permanent",
                f"neigh replace {pod.address6} lladdr {far_mac} dev {pod.link} nud permanent",
                f"route add {pod.address}/32 dev {pod.link} scope link",
                f"route add {pod.address6}/128 dev {pod.link}",
            ],
        )
        _batch(
            pod,
            [
                "link set eth0 up",
                f"addr add {pod.address}/32 dev eth0",
                f"addr add {pod.address6}/128 dev eth0",
                f"neigh replace {_GATEWAY} lladdr {near_mac} dev eth0 nud permanent",
                f"neigh replace {_GATEWAY6} lladdr {near_mac} dev eth0 nud permanent",
                f"route add {_GATEWAY} dev eth0 scope link",
                f"route add default via {_GATEWAY} dev eth0",
                f"route add ::/0 via {_GATEWAY6} dev eth0",
            ],
        )


class _End(NamedTuple):
    """One end of a veth pair."""

    namespace: Namespace
    device: str
    mac: str


def _cable(one: _End, other: _End) -> None:
    words = ["ip", "link", "add", one.device, "address", one.mac, "netns", one.namespace.name, "type", "veth"]
    words += ["peer", "name", other.device, "address", other.mac, "netns", other.namespace.name]
    run_tool(words)


def _neighbour_lines(device: str, *, own: Namespace, other: Namespace, other_mac: str) -> list[str]:
    return [
        f"link set {device} up",
        f"addr add {own.address}/24 dev {device}",
        f"addr add {own.address6}/64 dev {device}",
        f"neigh replace {other.address} lladdr {other_mac} dev {device} nud permanent",
        f"neigh replace {other.address6} lladdr {other_mac} dev {device} nud permanent",
    ]


def _batch(namespace: Namespace, lines: Sequence[str]) -> None:
    """Run lines of `ip` in one process; the first that fails stops it, with its number in the message."""
    run_tool(["ip", "-n", namespace.name, "-batch", "-"], text="\n".join(lines) + "\n")


def _mac(kind: int, number: int) -> str:
    return f"02:00:00:{kind:02x}:{number >> 8:02x}:{number & 255:02x}"


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
