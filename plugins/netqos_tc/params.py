"""Rates, bursts, quanta and queues of the tree: the numbers on which guarantees and latencies depend. Pure.

They were measured on one HTB tree under TCP (cubic and bbr) and UDP; each function says what goes wrong without it.
What decides most: a leaf that is within its own rate or burst sends without asking its parents, so leaves have small
rates and bursts, and all leaves of a level together at most half of the level's guarantee.

Arguments are bits per second and bytes; results are the kernel's units (bytes per second, scheduler ticks).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from netqos.model.levels import Level
from netqos.model.quantities import bytes_per_s

TICK_NS: Final = 64
"""PSCHED_SHIFT in include/net/pkt_sched.h: one tick is 2**6 ns, whatever HZ and the clock are."""

MOST_TICKS: Final = 2**32 - 1
FRAME_HEADER: Final = 18
"""Ethernet header with one VLAN tag; HTB counts it, but not preamble, gap and checksum."""

FLOOR_BPS: Final = 8_000
"""No class has less: rate 0 is refused by tc and divides by zero elsewhere."""

UNKNOWN_TOTAL_BPS: Final = 10**12
"""The total where none is known and only limits are to bite: above any link, so that it never holds anybody."""

UNKNOWN_QUEUE_BPS: Final = 10**9
"""The rate for which queues are sized under an unknown total."""

MOST_QUEUE: Final = 32 * 1024 * 1024
CONTROL_QUEUE: Final = 16 * 1024
"""Control frames are small and few; 16 KiB are 100 ms at 1 Mbit/s."""

LOCAL_QUEUE: Final = 4 * 1024 * 1024
"""It fills only while the CPU that empties the IFB is behind: 3 ms at 10 Gbit/s."""

FAIR_FLOWS: Final = 64
"""Flows that fq_codel tells apart in one leaf: 4.4 KiB; the kernel's 1024 are 70, for each of 500 workloads."""

QUANTUM: Final = 15_000
HOST_WEIGHT: Final = 4

_GSO_PAYLOAD: Final = 64 * 1024
_SEGMENT_HEADERS: Final = 72
"""IPv6 and TCP with time stamps; IPv4 and UDP have less."""

_CODEL_INTERVAL_MS: Final = 100
_INNER_BURST_MS: Final = 5
_LEAST_INNER_BURST: Final = 16 * 1024
_L0_LEAF_BURST: Final = 16 * 1024
_MEGA: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The four numbers that HTB shapes by; see `spec.ClassSpec`."""

    rate: int
    ceil: int
    buffer: int
    cbuffer: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafRates:
    """The rates of one level's leaves: each pod's, and that of the host leaf and the critical leaf (L0 only)."""

    pod_bps: int
    host_bps: int = 0


def burst_ticks(size: int, rate: int) -> int:
    """`size` bytes at `rate` bytes per second as ticks, rounded up, so that a burst is never under its size."""
    return min(-(-size * 1_000_000_000 // (rate * TICK_NS)), MOST_TICKS)


def burst_bytes(ticks: int, rate: int) -> int:
    """The bytes of a burst of `ticks` at `rate` bytes per second, rounded down."""
    return ticks * TICK_NS * rate // 1_000_000_000


def frame_bytes(mtu: int) -> int:
    """The largest frame on the wire that is no GSO packet."""
    return mtu + FRAME_HEADER


def gso_bytes(mtu: int) -> int:
    """The largest GSO packet as HTB counts it: 64 KiB of payload, and headers for each segment.

    A `bfifo` that cannot hold it drops every such packet, for ever: over a round trip of 0.1 ms TCP with BBR sends and
    repeats nothing smaller. 400 KB at 20 Mbit/s then took 6 to 15 s, with a queue of 16 KiB or of 64 KiB alike;
    with this one 0.17 s. (The price is the pod's own delay under a small limit: 0.6 s at 1 Mbit/s, where such a packet
    takes as long on the wire.)
    """
    segments = -(-_GSO_PAYLOAD // max(mtu - _SEGMENT_HEADERS, 1))
    return _GSO_PAYLOAD + segments * (_SEGMENT_HEADERS + FRAME_HEADER)


def inner_shape(rate_bps: int, ceil_bps: int, *, mtu: int) -> Shape:
    """The total and the levels: bursts of 5 ms, at least 16 KiB.

    The kernel's own default is under one packet from 1 Gbit/s on and 0 from 10 Gbit/s on, which costs up to half of
    the throughput (0.38 to 0.54 of 40 Gbit/s).
    """
    rate = bytes_per_s(max(rate_bps, FLOOR_BPS))
    return inner_at(rate, max(bytes_per_s(ceil_bps), rate), mtu=mtu)


def inner_at(rate: int, ceil: int, *, mtu: int) -> Shape:
    """As `inner_shape`, by bytes per second: an inner class that the fast loop moves."""
    return Shape(
        rate=rate,
        ceil=ceil,
        buffer=burst_ticks(inner_burst(rate, mtu=mtu), rate),
        cbuffer=burst_ticks(inner_burst(ceil, mtu=mtu), ceil),
    )


def l0_rate(own: int, room: int, others: int) -> int:
    """L0's rate in a room that is less than the total, all in bytes per second: what L1 and L2 leave, at most its own.

    A class within its rate asks no parent, so L0's whole guarantee would come on top of what the node itself receives.
    """
    return min(own, max(room - others, bytes_per_s(FLOOR_BPS)))


def least_rate() -> int:
    """The lowest rate of a class in bytes per second."""
    return bytes_per_s(FLOOR_BPS)


def inner_burst(rate: int, *, mtu: int) -> int:
    """The burst in bytes of an inner class of `rate` bytes per second."""
    return max(rate * _INNER_BURST_MS // 1000, _LEAST_INNER_BURST, frame_bytes(mtu))


@lru_cache(maxsize=8192)
@lru_cache(maxsize=4096)
def leaf_shape(level: Level, rate_bps: int, ceil_bps: int, *, mtu: int) -> Shape:
    """A leaf: burst 16 KiB in L0, two frames in L1 and L2; cburst by its ceiling.

    With bursts of 64 KiB, 200 leaves of L2 that woke together sent 2.3 Gbit/s into a total of 600 Mbit/s.
    """
    ceil = bytes_per_s(ceil_bps)
    rate = min(bytes_per_s(max(rate_bps, smallest_leaf_bps(mtu))), ceil)
    two_frames = 2 * frame_bytes(mtu)
    burst = max(_L0_LEAF_BURST, two_frames) if level is Level.L0 else two_frames
    return Shape(
        rate=rate,
        ceil=ceil,
        buffer=burst_ticks(burst, rate),
        cbuffer=burst_ticks(leaf_cburst(ceil_bps, mtu=mtu), ceil),
    )


def leaf_cburst(ceil_bps: int, *, mtu: int) -> int:
    """5 ms of the ceiling up to 100 Mbit/s, 1 ms above, within two frames, 64 KiB and 8 MiB.

    A fixed 64 KiB gives 110 percent of a limit of 1 Mbit/s in its first 5 s; under 32 KiB a limit of 1 Gbit/s falls to
    97 percent (TCP) and 85 (UDP). Two frames stay the least at any rate.
    """
    ceil = bytes_per_s(ceil_bps)
    if ceil_bps <= 100 * _MEGA:
        size = min(ceil * 5 // 1000, 64 * 1024)
    else:
        size = min(max(ceil // 1000, 64 * 1024), 8 * 1024 * 1024)
    return max(size, 2 * frame_bytes(mtu))


def smallest_leaf_bps(mtu: int) -> int:
    """The lowest leaf rate at which two frames still fit into the kernel's 32 bits of ticks (275 s)."""
    return 8 * max(32, -(-2 * frame_bytes(mtu) * 1_000_000_000 // (MOST_TICKS * TICK_NS)))


def leaf_rates(level: Level, guarantee_bps: int, leaves: int) -> LeafRates:
    """The rates of a level's leaves: L0 clamp(m0/1024, 64k, 5M), L1 and L2 max(8k, m/8192), scaled to half of m.

    The host leaf and the critical leaf get max(2 percent of m0, 2M) each, on a small total an eighth of m0. One L2
    leaf with a rate of 400M made 900 out of a total of 600. `leaves` counts all but those two; when they have to be
    scaled it is rounded up to a power of two, so that one more pod does not rewrite every class.
    """
    if level is Level.L0:
        host_bps = min(max(guarantee_bps * 2 // 100, 2 * _MEGA), guarantee_bps // 8)
        wanted_bps = min(max(guarantee_bps // 1024, 64_000), 5 * _MEGA)
    else:
        host_bps, wanted_bps = 0, max(8_000, guarantee_bps // 8192)
    budget_bps = guarantee_bps // 2 - 2 * host_bps
    if wanted_bps * leaves > budget_bps:
        wanted_bps = budget_bps // (1 << max(leaves - 1, 0).bit_length())
    return LeafRates(pod_bps=wanted_bps, host_bps=host_bps)


def local_shape(*, mtu: int) -> Shape:
    """The leaf of what never left the node: a rate above any machine, so that it is held by nothing."""
    return inner_shape(UNKNOWN_TOTAL_BPS, UNKNOWN_TOTAL_BPS, mtu=mtu)


def control_shape(total_bps: int, *, mtu: int) -> Shape:
    """The control leaf: a 256th of the total within 64k and 1M, at most a 16th; no honest ARP or DHCP needs more."""
    rate_bps = min(max(total_bps // 256, 64_000), _MEGA)
    return leaf_shape(Level.L1, rate_bps, max(total_bps // 16, rate_bps), mtu=mtu)


def quantum(mtu: int, *, weight: int = 1) -> int:
    """Bytes that a leaf may send in its turn: 15000, and at least a frame (the kernel warns under 1000).

    Pods of a level share it equally. With 3000 a thin pod's p99 was 0.36 ms (cubic), with 60000 0.36 ms (bbr).
    """
    return max(QUANTUM, frame_bytes(mtu)) * weight


def fair_bytes(rate_bps: int, *, mtu: int) -> int:
    """The memory that fq_codel may hold: 100 ms of the rate (CoDel's interval, in which it finds its way), twice.

    The kernel counts the memory of packets (`truesize`), up to twice their bytes. At least four GSO packets.
    """
    wanted = 2 * bytes_per_s(rate_bps) * _CODEL_INTERVAL_MS // 1000
    return min(max(wanted, 4 * gso_bytes(mtu)), MOST_QUEUE)


def fair_target_us(rate_bps: int, *, target_ms: int, mtu: int) -> int:
    """The delay that CoDel allows: as asked for, and at least two frames at the rate (RFC 8289, 4.4)."""
    two_frames_us = 2 * frame_bytes(mtu) * 8 * 1_000_000 // max(rate_bps, FLOOR_BPS)
    return max(target_ms * 1000, two_frames_us)


@lru_cache(maxsize=8192)
def queue_bytes(rate_bps: int, *, target_ms: int, mtu: int) -> int:
    """The length of a leaf's queue: `target_ms` of the rate that it can count on (min(limit, guarantee of its level)).

    20 ms of the own guarantee let all levels settle within 50 ms and keep 98.3 percent in the worst second; 100 ms of
    the total kept 67. The default pfifo counts packets of 64 KB: 971 ms of delay at 10 Mbit/s. Never under one GSO
    packet, and two from 50 Mbit/s on.
    """
    packets = 2 if rate_bps >= 50 * _MEGA else 1
    wanted = bytes_per_s(rate_bps) * target_ms // 1000
    return min(max(wanted, packets * gso_bytes(mtu)), MOST_QUEUE)
