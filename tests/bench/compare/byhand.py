"""Enforcers without an agent: nothing, HTB by hand well and badly set, and a limit a pod as the CNI plugin sets it."""

from __future__ import annotations

from collections.abc import Mapping

from netqos.model.desired import Band
from netqos.model.levels import Direction, Level, PerLevel
from netqos.testing.netns import Rig
from tests.bench.baseline import batch, classify, direct_device, install_plain, install_static
from tests.bench.compare.surface import KernelOnly, Policy

_LEVEL_CLASS = {Level.L0: "1:10", Level.L1: "1:11", Level.L2: "1:12"}
_BURST_S = 0.01


class Nothing(KernelOnly):
    """A node without network QoS."""

    name = "nothing"
    how = "one class of the total with one FIFO of 1000 packets in each direction: the bottleneck, and no levels"

    def apply(self, policy: Policy) -> None:
        """Build the bottleneck."""
        install_bottleneck(self.rig, policy)


class StaticTree(KernelOnly):
    """The tree that netqos builds, without netqos."""

    name = "static HTB"
    how = (
        "HTB with the guarantees, the ceilings and priorities, one leaf a pod with a queue of 20 ms of its level's "
        "guarantee in bytes; nobody moves anything afterwards"
    )

    def apply(self, policy: Policy) -> None:
        """Build both trees."""
        for way in Direction:
            install_static(
                self.rig,
                policy.pods,
                total_bps=policy.totals_bps[way],
                bands=policy.bands[way],
                direction=way,
            )


class NaiveTree(KernelOnly):
    """What one gets from a first look at the manual page."""

    name = "naive HTB"
    how = "HTB with the guarantees and ceilings, one leaf a level; no priorities, tc's defaults for bursts and queues"

    def apply(self, policy: Policy) -> None:
        """Build both trees; what no pod sent is in L1's class."""
        for way in Direction:
            _build_levels(self.rig, way, policy.bands[way], total_bps=policy.totals_bps[way])
            classify_by_level(self.rig, policy.pods, way)


class PodLimits(KernelOnly):
    """The bandwidth plugin of the CNI project: one TBF a pod and direction, fixed for the pod's life."""

    name = "CNI limits"
    how = (
        "what the bandwidth plugin builds for a pod, with its level's guarantee as its limit and a burst of 10 ms "
        "(runtimes pass 2^31 bits: seconds without a limit): TBF on the pod's device and on an IFB fed from it, "
        "latency 25 ms; the bottleneck as in 'nothing'"
    )

    def apply(self, policy: Policy) -> None:
        """Limit every pod in both directions."""
        install_bottleneck(self.rig, policy)
        lines: list[str] = []
        for number, (name, level) in enumerate(policy.pods.items()):
            link, device = self.rig.pod(name).link, f"cni{number}"
            self.rig.node.run(["ip", "link", "add", device, "type", "ifb"])
            self.rig.node.run(["ip", "link", "set", device, "up"])
            redirect = f"u32 match u32 0 0 action mirred egress redirect dev {device}"
            lines += [
                f"filter add dev {link} ingress protocol all prio 1 {redirect}",
                _tbf(link, policy.guarantee_bps(Direction.RX, level)),
                _tbf(device, policy.guarantee_bps(Direction.TX, level)),
            ]
        batch(self.rig, lines)


def install_bottleneck(rig: Rig, policy: Policy) -> None:
    """The plain bottleneck of both directions."""
    for way in Direction:
        install_plain(rig, total_bps=policy.totals_bps[way], direction=way)


def _build_levels(rig: Rig, way: Direction, bands: PerLevel[Band], *, total_bps: int) -> None:
    device = direct_device(rig, way)
    lines = [
        f"qdisc add dev {device} root handle 1: htb default 11",
        f"class add dev {device} parent 1: classid 1:1 htb rate {total_bps}bit",
    ]
    for level, leaf in _LEVEL_CLASS.items():
        rate, ceiling = bands[level].guarantee_bps, bands[level].ceiling_bps
        lines.append(f"class add dev {device} parent 1:1 classid {leaf} htb rate {rate}bit ceil {ceiling}bit")
    batch(rig, lines)


def level_class(level: Level) -> str:
    """A level's class in these trees."""
    return _LEVEL_CLASS[level]


def classify_by_level(rig: Rig, pods: Mapping[str, Level], way: Direction) -> None:
    """Send every pod's packets to its level's class."""
    classify(rig, {name: level_class(level) for name, level in pods.items()}, direction=way)


def _tbf(device: str, bps: int) -> str:
    burst = int(bps / 8 * _BURST_S)
    return f"qdisc add dev {device} root tbf rate {bps}bit burst {burst} latency 25ms"
