"""What is between the uplink and the wire: a switch whose queues can be the true bottleneck of the path.

    up0 (node) -- near [hop] far -- wire0

What leaves the node is held by a queue at `far`, what comes to it by one at `near`; each counts as HTB does (Ethernet
header, every segment of a GSO packet), so that rates compare.
"""

from __future__ import annotations

from netqos.model.levels import Direction
from netqos.testing.cabling import End, batch, cable
from netqos.testing.namespaces import Namespace

NEAR, FAR = "near", "far"
BURST_BYTES = 70_000
"""A whole GSO packet, so that tbf takes none apart."""


def build_hop(hop: Namespace, near: End, far: End) -> None:
    """Connect two ends through the switch, which lets everything pass."""
    cable(near, End(hop, NEAR, "02:00:00:00:00:05"))
    cable(End(hop, FAR, "02:00:00:00:00:06"), far)
    lines = ["link add sw type bridge stp_state 0 forward_delay 0 mcast_snooping 0", "link set sw up"]
    lines += [f"link set {port} up master sw" for port in (NEAR, FAR)]
    batch(hop, lines)


def narrow(hop: Namespace, direction: Direction, rate_bps: int, *, latency_ms: int = 20) -> None:
    """Let this much pass in the node's direction from now on, with a queue of so many milliseconds."""
    rate = f"rate {rate_bps}bit burst {BURST_BYTES} latency {latency_ms}ms"
    hop.run(["tc", "qdisc", "replace", "dev", _port(direction), "root", "tbf", *rate.split()])


def widen(hop: Namespace, direction: Direction) -> None:
    """Let everything pass again."""
    hop.run(["tc", "qdisc", "del", "dev", _port(direction), "root"], check=False)


def dropped(hop: Namespace, direction: Direction) -> int:
    """Packets that the queue has dropped since it was made."""
    words = hop.run(["tc", "-s", "qdisc", "show", "dev", _port(direction)]).stdout.replace(",", "").split()
    return int(words[words.index("(dropped") + 1])


def _port(direction: Direction) -> str:
    return FAR if direction is Direction.TX else NEAR
