"""What the agent is measured against: the same tree built by hand and left alone, and no shaping by level at all.

The static tree has the shape and the leaf parameters of the datapath's measurements (one leaf a workload, queues in
bytes), but no agent: ceilings stay where the policy puts them.
"""

from __future__ import annotations

from collections.abc import Mapping

from netqos.model.desired import Band
from netqos.model.levels import Level, PerLevel
from netqos.testing.netns import Rig

_MTU = 1514
_GSO = 65536
_CLASS = {Level.L0: 0x10, Level.L1: 0x11, Level.L2: 0x12}
_HOST, _UNKNOWN, _CONTROL = 0x20, 0x21, 0x22
_FIRST_POD = 0x1000


def install_static(rig: Rig, levels: Mapping[str, Level], *, total_bps: int, bands: PerLevel[Band]) -> None:
    """Build HTB on the uplink and its nft table in the node's namespace."""
    lines = [
        f"qdisc add dev {rig.uplink} root handle 1: htb default {_UNKNOWN:x}",
        _class("1:", 1, total_bps, total_bps, burst=_inner_burst(total_bps)),
    ]
    for level in Level:
        band = bands[level]
        rate, ceiling = max(band.guarantee_bps, 8000), band.ceiling_bps
        lines.append(_class("1:1", _CLASS[level], rate, ceiling, burst=_inner_burst(ceiling)))
    m0 = bands.l0.guarantee_bps
    lines += _leaf(Level.L0, _HOST, bands.l0, rate=max(m0 // 50, 2_000_000), quantum=60_000)
    lines += _leaf(Level.L1, _UNKNOWN, bands.l1, rate=_leaf_rate(Level.L1, bands.l1))
    lines += _leaf(Level.L0, _CONTROL, bands.l0, rate=1_000_000)
    for number, (_, level) in enumerate(levels.items()):
        lines += _leaf(level, _FIRST_POD + number, bands[level], rate=_leaf_rate(level, bands[level]))
    rig.node.run(["tc", "-batch", "-"], text="\n".join(lines) + "\n")
    rig.node.run(["nft", "-f", "-"], text=_ruleset(rig, levels))


def install_plain(rig: Rig, *, total_bps: int) -> None:
    """The same bottleneck with one first-in-first-out queue for everybody: a node without network QoS."""
    lines = [
        f"qdisc add dev {rig.uplink} root handle 1: htb default 1",
        _class("1:", 1, total_bps, total_bps, burst=_inner_burst(total_bps)),
        f"qdisc add dev {rig.uplink} parent 1:1 handle 2: pfifo limit 1000",
    ]
    rig.node.run(["tc", "-batch", "-"], text="\n".join(lines) + "\n")


def uninstall(rig: Rig) -> None:
    """Take either of them away again."""
    rig.node.run(["tc", "qdisc", "del", "dev", rig.uplink, "root"], check=False)
    rig.node.run(["nft", "delete", "table", "inet", "static"], check=False)


def static_class(number: int) -> str:
    """The class of the pod at a place of `levels`."""
    return f"1:{_FIRST_POD + number:x}"


def _inner_burst(bps: int) -> int:
    return max(2 * _MTU, min(bps // 8 // 1000, 1 << 20))


def _leaf_rate(level: Level, band: Band) -> int:
    if level is Level.L0:
        return min(max(band.guarantee_bps // 1024, 64_000), 5_000_000)
    return max(8_000, band.guarantee_bps // 8192)


def _leaf(level: Level, minor: int, band: Band, *, rate: int, quantum: int = 15_000) -> list[str]:
    burst = 16_384 if level is Level.L0 else 2 * _MTU
    share = max(band.guarantee_bps, 1_000_000)
    least = 2 * _GSO if share >= 50_000_000 else 16_384
    limit = max(share // 50 // 8, least)
    words = _class(f"1:{_CLASS[level]:x}", minor, rate, band.ceiling_bps, burst=burst)
    return [
        f"{words} prio {level.value} quantum {quantum}",
        f"qdisc add dev up0 parent 1:{minor:x} handle {minor:x}: bfifo limit {limit}",
    ]


def _class(parent: str, minor: int, rate: int, ceiling: int, *, burst: int) -> str:
    cburst = max(2 * _MTU, min(ceiling // 8 // 200, _GSO))
    return (
        f"class add dev up0 parent {parent} classid 1:{minor:x} htb "
        f"rate {rate}bit ceil {ceiling}bit burst {burst} cburst {cburst}"
    )


def _ruleset(rig: Rig, levels: Mapping[str, Level]) -> str:
    def elements(family: int) -> str:
        pods = [rig.pod(name) for name in levels]
        addresses = [pod.address if family == 4 else pod.address6 for pod in pods]
        return ", ".join(f"{address} : {static_class(number)}" for number, address in enumerate(addresses))

    return f"""
table inet static {{
    map tx4 {{ type ipv4_addr : classid; elements = {{ {elements(4)} }}; }}
    map tx6 {{ type ipv6_addr : classid; elements = {{ {elements(6)} }}; }}
    chain post {{
        type filter hook postrouting priority mangle; policy accept;
        oifname != "{rig.uplink}" accept
        meta priority set ip saddr map @tx4 accept
        meta priority set ip6 saddr map @tx6 accept
        fib saddr type local meta priority set 1:{_HOST:x}
    }}
}}
"""
