"""What the agent is measured against: the same tree built by hand and left alone, and no shaping by level at all.

The static tree has the shape and the leaf parameters of the datapath's measurements (one leaf a workload, queues in
bytes), but no agent: ceilings stay where the policy puts them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from netqos.model.desired import Band
from netqos.model.levels import Direction, Level, PerLevel
from netqos.testing.netns import Rig

_MTU = 1514
_GSO = 65536
_CLASS = {Level.L0: 0x10, Level.L1: 0x11, Level.L2: 0x12}
_HOST, _UNKNOWN, _CONTROL, _LOCAL = 0x20, 0x21, 0x22, 0x23
_FIRST_POD = 0x1000
_IFB = "static-ifb"
_HERE = "DEVICE"
_UNLIMITED_BPS = 100_000_000_000


def install_static(
    rig: Rig,
    levels: Mapping[str, Level],
    *,
    total_bps: int,
    bands: PerLevel[Band],
    direction: Direction = Direction.TX,
) -> None:
    """Build HTB for one direction, and its nft table, in the node's namespace."""
    device = direct_device(rig, direction)
    is_out = direction is Direction.TX
    default = f"{_UNKNOWN:x}" if is_out else f"{_LOCAL:x}"
    lines = [
        f"qdisc add dev {device} root handle 1: htb default {default}",
        _class("1:", 1, total_bps, total_bps, burst=inner_burst(total_bps)),
    ]
    for level in Level:
        band = bands[level]
        rate, ceiling = max(band.guarantee_bps, 8000), band.ceiling_bps
        lines.append(_class("1:1", _CLASS[level], rate, ceiling, burst=inner_burst(ceiling)))
    m0 = bands.l0.guarantee_bps
    if is_out:
        lines += _leaf(Level.L0, _HOST, bands.l0, rate=max(m0 // 50, 2_000_000), quantum=60_000)
        lines += _leaf(Level.L0, _CONTROL, bands.l0, rate=1_000_000)
    else:
        lines.append(_class("1:", _LOCAL, _UNLIMITED_BPS, _UNLIMITED_BPS, burst=inner_burst(_UNLIMITED_BPS)))
    lines += _leaf(Level.L1, _UNKNOWN, bands.l1, rate=_leaf_rate(Level.L1, bands.l1))
    for number, (_, level) in enumerate(levels.items()):
        lines += _leaf(level, _FIRST_POD + number, bands[level], rate=_leaf_rate(level, bands[level]))
    _batch(rig, device, lines)
    classify(rig, {name: static_class(number) for number, name in enumerate(levels)}, direction=direction)


def install_plain(rig: Rig, *, total_bps: int, direction: Direction = Direction.TX) -> None:
    """The same bottleneck with one first-in-first-out queue for everybody: a node without network QoS."""
    device = direct_device(rig, direction)
    lines = [
        f"qdisc add dev {device} root handle 1: htb default 1",
        _class("1:", 1, total_bps, total_bps, burst=inner_burst(total_bps)),
        f"qdisc add dev {device} parent 1:1 handle 2: pfifo limit 1000",
    ]
    _batch(rig, device, lines)


def direct_device(rig: Rig, direction: Direction) -> str:
    """The device whose root holds a direction: the uplink, or an IFB to which every pod's device is redirected."""
    if direction is Direction.TX:
        return rig.uplink
    rig.node.run(["ip", "link", "add", _IFB, "type", "ifb"])
    rig.node.run(["ip", "link", "set", _IFB, "txqueuelen", "1000", "up"])
    lines = []
    for pod in rig.pods.values():
        redirect = f"u32 match u32 0 0 action mirred egress redirect dev {_IFB}"
        lines += [
            f"qdisc add dev {pod.link} clsact",
            f"filter add dev {pod.link} egress protocol all prio 1 {redirect}",
        ]
    batch(rig, lines)
    return _IFB


def batch(rig: Rig, lines: Sequence[str]) -> None:
    """Run lines of tc on the node, all in one process."""
    rig.node.run(["tc", "-batch", "-"], text="\n".join(lines) + "\n")


def _batch(rig: Rig, device: str, lines: Sequence[str]) -> None:
    batch(rig, [line.replace(_HERE, device) for line in lines])


def static_class(number: int) -> str:
    """The class of the pod at a place of `levels`."""
    return f"1:{_FIRST_POD + number:x}"


def inner_burst(bps: int) -> int:
    """A millisecond of a class's rate, at least two packets: late timers lose what does not fit."""
    return max(2 * _MTU, min(bps // 8 // 1000, 1 << 20))


def _leaf_rate(level: Level, band: Band) -> int:
    if level is Level.L0:
        return min(max(band.guarantee_bps // 1024, 64_000), 5_000_000)
    return max(8_000, band.guarantee_bps // 8192)


def _leaf(level: Level, minor: int, band: Band, *, rate: int, quantum: int = 15_000) -> list[str]:
    burst = 16_384 if level is Level.L0 else 2 * _MTU
    words = _class(f"1:{_CLASS[level]:x}", minor, rate, band.ceiling_bps, burst=burst)
    return [
        f"{words} prio {level.value} quantum {quantum}",
        f"qdisc add dev {_HERE} parent 1:{minor:x} handle {minor:x}: bfifo limit {queue_bytes(band)}",
    ]


def queue_bytes(band: Band) -> int:
    """20 ms of a level's guarantee, at least two GSO packets where that is 50 Mbit/s or more."""
    share = max(band.guarantee_bps, 1_000_000)
    least = 2 * _GSO if share >= 50_000_000 else 16_384
    return max(share // 50 // 8, least)


def _class(parent: str, minor: int, rate: int, ceiling: int, *, burst: int) -> str:
    cburst = max(2 * _MTU, min(ceiling // 8 // 200, _GSO))
    return (
        f"class add dev {_HERE} parent {parent} classid 1:{minor:x} htb "
        f"rate {rate}bit ceil {ceiling}bit burst {burst} cburst {cburst}"
    )


def classify(rig: Rig, classes: Mapping[str, str], *, direction: Direction) -> None:
    """Give every pod's packets that leave by the uplink, or go to a pod, the class of that pod."""
    rig.node.run(["nft", "-f", "-"], text=_ruleset(rig, classes, direction))


def _ruleset(rig: Rig, classes: Mapping[str, str], direction: Direction) -> str:
    def elements(family: int) -> str:
        addresses = [
            (pod.address if family == 4 else pod.address6, leaf)
            for pod, leaf in ((rig.pod(name), leaf) for name, leaf in classes.items())
        ]
        return ", ".join(f"{address} : {leaf}" for address, leaf in addresses)

    is_out = direction is Direction.TX
    side, others = ("saddr", "!=") if is_out else ("daddr", "==")
    host = f"fib saddr type local meta priority set 1:{_HOST:x}" if is_out else ""
    return f"""
table inet static_{direction.value} {{
    map pods4 {{ type ipv4_addr : classid; elements = {{ {elements(4)} }}; }}
    map pods6 {{ type ipv6_addr : classid; elements = {{ {elements(6)} }}; }}
    chain post {{
        type filter hook postrouting priority mangle; policy accept;
        oifname {others} "{rig.uplink}" accept
        meta priority set ip {side} map @pods4 accept
        meta priority set ip6 {side} map @pods6 accept
        {host}
    }}
}}
"""
