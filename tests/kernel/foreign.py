"""Everything that others may have on a node, put there at once, and how to see it."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from netqos.host import bpf
from netqos.testing.bpf import ForeignProgram
from netqos.testing.netns import Rig

NFT = """
table inet theirs {
    chain post { type filter hook postrouting priority mangle; policy accept; counter; }
    chain out { type filter hook output priority mangle; policy accept; meta mark set 0x7; }
}
table ip netqos_like {
    chain fwd1 { type filter hook forward priority 0; policy accept; }
}
"""
LIST = """
tc qdisc show
ip -d link show | grep -o 'prog/xdp id [0-9]*\\|^[0-9]*: [^:]*'
for device in $(ip -br link | cut -d' ' -f1 | cut -d@ -f1); do
    for place in ingress egress root; do
        tc filter show dev $device $place 2>/dev/null | sed "s/^/$device $place /"
    done
done
"""
PASS_ALL = "bytecode 1,6 0 0 4294967295,"
DROP_NONE = "u32 match u32 0 0xffffffff"


def limit_as_cni(rig: Rig, pod: str, *, tx: str = "", rx: str = "", ifb: str = "bwp0123456789a") -> None:
    """Limit a pod as the bandwidth plugin of the CNI project does."""
    link = rig.pod(pod).link

    def tc(words: str) -> None:
        rig.node.run(["tc", *words.split()])

    if rx:
        tc(f"qdisc add dev {link} root handle 1: tbf rate {rx} burst 32kb latency 25ms")
    if tx:
        rig.node.run(["ip", "link", "add", ifb, "type", "ifb"])
        rig.node.run(["ip", "link", "set", ifb, "up"])
        tc(f"qdisc add dev {ifb} root handle 1: tbf rate {tx} burst 32kb latency 25ms")
        tc(f"qdisc add dev {link} ingress")
        tc(
            f"filter add dev {link} parent ffff: protocol all u32 match u32 0 0 "
            f"action mirred egress redirect dev {ifb}"
        )


@contextmanager
def everything(rig: Rig, pod: str) -> Iterator[None]:
    """Qdiscs, filters, programs and tables of others on the uplink and on a pod's device, while the block lasts."""
    link = rig.pod(pod).link
    for device in (rig.uplink, link):
        rig.node.run(["tc", *f"qdisc add dev {device} clsact".split()])
        for hook in ("ingress", "egress"):
            place = f"filter add dev {device} {hook} protocol all"
            rig.node.run(["tc", *f"{place} prio 1 handle 1 bpf da".split(), *PASS_ALL.split(" ", 1)])
            rig.node.run(["tc", *f"{place} prio 7 {DROP_NONE} at 0 flowid 1:1".split()])
    rig.node.run(["nft", "-f", "-"], text=NFT)
    with ExitStack() as stack, rig.node.entered():
        for device in (rig.uplink, link):
            index = socket.if_nametoindex(device)
            for kind, hook in (("tcx", "ingress"), ("tcx", "egress"), ("xdp", "ingress")):
                stack.enter_context(ForeignProgram(kind, hook, index))
        yield


def seen(rig: Rig) -> frozenset[str]:
    """Every object of the node's network that a plan could touch, one line each, without counters."""
    listed = rig.node.run(["sh", "-c", LIST]).stdout
    found = {re.sub(r" refcnt \d+", "", line.strip()) for line in listed.splitlines()}
    with rig.node.entered():
        for index, device in socket.if_nameindex():
            found |= {f"{device} tcx {hook} {bpf.attached(index, hook)}" for hook in ("ingress", "egress")}
    ruleset = rig.node.run(["nft", "-s", "list", "ruleset"]).stdout
    return frozenset(found | {table for table in re.split(r"(?m)^(?=table )", ruleset) if table})
