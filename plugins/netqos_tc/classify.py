"""The nft table that tells each packet its class: its shape, its rules, and the names in it. Pure.

A packet meets one of two chains, whatever way it takes: `output` where the node sends it, else `forward`. (IPVS sends
what it forwards from input to output; a bridge with br_netfilter lets frames meet `forward`.) The order decides (each
step was measured with masquerade, VXLAN and host traffic):

- `forward`: the source address decides, and is believed only of a packet that came in where the node would send
  an answer; a forged one counts as from outside. (Forwarding sets the priority before this hook and never after; what
  rewrites the destination was before it too.)
- `output`, behind what rewrites destinations: a priority of ours that a process set itself is cleared; packets that
  were sent before and come back in a tunnel have no socket and keep theirs. Then the cgroups, the deepest last, since
  the last match stays. Of what has no class yet the source address decides; the rest is the host's.
- What has no class of the uplinks now was sent by neither a workload nor the node: it comes from outside, and its
  destination decides. A destination that nobody claims is the ingress tree's unknown leaf. The handles of the trees
  themselves would mean "unshaped", so they are no classes.
- Last come the rules inside workloads, by the class that the packet has now (`podrules`).

Each step counts: two comparisons more are 1 percent of what a small packet costs, a chain more 4, a look into the
routes 3.

A class of the other direction's tree means nothing to a tree: it is HTB's default there. So pod to pod and node to
pod keep the sender's class and are the IFB's local leaf, and what comes from outside and leaves by an uplink again, in
a tunnel or not, is the uplink's unknown leaf. A rule is recognised by its comment, which carries the version of its
text. The commands that make the table are `tabletext`'s.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import Final

from netqos_tc import numbers
from netqos_tc.keys import CGROUP_MAPS, ElementMap
from netqos_tc.nfwire import RULES_MAP
from netqos_tc.spec import ChainSpec, RuleSpec, TableSpec

FORWARD: Final = "forward"
OUTPUT: Final = "output"
INWARDS: Final = "inwards"
LEAD: Final = "lead"
CHAIN_NAMES: Final = (LEAD, INWARDS, FORWARD, OUTPUT)
CRITICAL_OWNER: Final = "netqos:critical"

_MANGLE: Final = -150
_BEHIND_DNAT: Final = -50
CHAINS: Final = {
    LEAD: ChainSpec(name=LEAD, hook=-1, priority=-1, policy=-1),
    INWARDS: ChainSpec(name=INWARDS, hook=-1, priority=-1, policy=-1),
    FORWARD: ChainSpec(name=FORWARD, hook=2, priority=_MANGLE),
    OUTPUT: ChainSpec(name=OUTPUT, hook=3, priority=_BEHIND_DNAT),
}
_PLAIN_OWNER: Final = re.compile(r"[\x21-\x7e]{1,120}")
_NET_CLASS: Final = "classid"
_VERIFIED: Final = "verified"
_BELIEVED: Final = "believed"
_RULES: Final = "rules"
_RULED: Final = "ruled"
_BEGINS: Final = re.compile(r"netqos \d+ cg\d+ from (\d+)")
_OURS: Final = f"meta priority & 0x{numbers.OURS_MASK:08x} {{}} 0x{numbers.OURS:08x}"
_UNCLASSED: Final = _OURS.format("!=")
_SENT_HERE: Final = f"meta priority & 0xffff0000 == 0x{numbers.KINDS.tx.root:08x}"
_HOST: Final = numbers.text(numbers.KINDS.tx.class_id(numbers.HOST))
_OUTSIDE: Final = numbers.text(numbers.KINDS.rx.class_id(numbers.UNKNOWN))
_SENT: Final = f"{_SENT_HERE} meta priority != {numbers.MAJOR:x}:0"
_STEPS: Final = {
    LEAD: ((_RULES, f"meta priority vmap @{RULES_MAP}"),),
    INWARDS: (
        ("outside", f"{{set}} {_OUTSIDE}"),
        ("rx4", "{set} ip daddr map @rx4"),
        ("rx6", "{set} ip6 daddr map @rx6"),
        (_RULES, "{end}"),
    ),
    FORWARD: (
        ("tx4", "{set} ip saddr map @tx4"),
        ("tx6", "{set} ip6 saddr map @tx6"),
        (_VERIFIED, f"{_SENT} fib saddr . iif oif exists {{end}}"),
        (_BELIEVED, f"{_SENT} {{end}}"),
        ("inwards", f"goto {INWARDS}"),
    ),
    OUTPUT: (
        ("tx4", f"{_UNCLASSED} {{set}} ip saddr map @tx4"),
        ("tx6", f"{_UNCLASSED} {{set}} ip6 saddr map @tx6"),
        ("host", f"{_UNCLASSED} fib saddr type local {{set}} {_HOST}"),
        ("sent", f"{_SENT} {{end}}"),
        ("inwards", f"goto {INWARDS}"),
    ),
}
"""The rules behind those of `output` that depend on the cgroups; packets meet them in this order."""


def table_spec(
    *,
    cgroups: bool,
    begins_at: int = 0,
    sources: bool = True,
    net_classes: bool = False,
    ruled: bool = False,
) -> TableSpec:
    """The table as it must be; without `cgroups` for a kernel that cannot tell a packet's cgroup.

    `begins_at` is how deep in the tree the cgroups begin that can be told (`netqos_tc.cgroupspace`). Without `sources`
    for a kernel that cannot look up where a source is. With `net_classes` where cgroups are of version 1. With `ruled`
    packets look for rules of their workload.
    """
    made = rules(cgroups=cgroups, begins_at=begins_at, sources=sources, net_classes=net_classes, ruled=ruled)
    return TableSpec(
        maps=frozenset({*(one.value for one in maps(cgroups=cgroups)), RULES_MAP}),
        chains=frozenset(CHAINS.values()),
        rules=tuple(RuleSpec(chain=chain, comment=name) for chain, name, _text in made),
    )


def has_cgroups(spec: TableSpec) -> bool:
    """Whether a table was made `cgroups=True`."""
    return ElementMap.CG1.value in spec.maps


def has_sources(spec: TableSpec) -> bool:
    """Whether a table was made `sources=True`."""
    return any(rule.comment.split()[2:3] == [_VERIFIED] for rule in spec.rules)


def has_net_classes(spec: TableSpec) -> bool:
    """Whether a table was made `net_classes=True`."""
    return any(rule.comment.endswith(f" {_NET_CLASS}") for rule in spec.rules)


def is_ruled(spec: TableSpec) -> bool:
    """Whether a table was made `ruled=True`."""
    return any(rule.comment.endswith(f" {_RULED}") for rule in spec.rules)


def begins_at(spec: TableSpec) -> int:
    """With what `begins_at` a table was made."""
    found = (_BEGINS.search(rule.comment) for rule in spec.rules)
    return next((int(one[1]) for one in found if one), 0)


def maps(*, cgroups: bool) -> tuple[ElementMap, ...]:
    """The maps of the table."""
    return tuple(one for one in ElementMap if one is not ElementMap.NC and (cgroups or one.depth is None))


@lru_cache(maxsize=8192)
def owner_of(uid: str) -> str:
    """A pod's name in the kernel: its UID, or a digest of a UID that the 128 bytes of a comment could not hold."""
    if _PLAIN_OWNER.fullmatch(uid) and uid != CRITICAL_OWNER:
        return uid
    return "sha256:" + hashlib.sha256(uid.encode("utf-8", "surrogatepass")).hexdigest()


def cgroup_map(depth: int) -> ElementMap | None:
    """The map for cgroups of a depth, None when it is too deep (or the root)."""
    return CGROUP_MAPS.get(depth)


def rules(
    *, cgroups: bool, begins_at: int, sources: bool, net_classes: bool, ruled: bool
) -> list[tuple[str, str, str]]:
    """Chain, comment and text of every rule, in order.

    `socket transparent` matches whatever has a socket; a tunnel's outer packet of a forwarded one has none.
    """
    set_priority = "meta priority set"
    rules = []
    if cgroups:
        is_ours = _OURS.format("==")
        rules.append((OUTPUT, "reset", f"{is_ours} socket transparent <= 1 {set_priority} 0:0"))
        rules += [
            (
                OUTPUT,
                f"{one.value} from {begins_at}" if begins_at else one.value,
                f"{set_priority} socket cgroupv2 level {depth - begins_at} map @{one.value}",
            )
            for depth, one in sorted(CGROUP_MAPS.items())
            if depth >= begins_at
        ]
    else:
        rules.append((OUTPUT, "reset", f"{_OURS.format('==')} meta skuid >= 0 {set_priority} 0:0"))
    if net_classes:
        is_class = f"meta cgroup & 0xffff0000 == 0x{numbers.KINDS.tx.root:08x}"
        rules.append((OUTPUT, _NET_CLASS, f"{is_class} {set_priority} meta cgroup"))
    left_out = {_BELIEVED if sources else _VERIFIED, *(() if ruled else (_RULES,))}
    end = f"goto {LEAD}" if ruled else "accept"
    rules += [
        (
            chain,
            f"{name} {_RULED}" if ruled and "{end}" in text else name,
            text.format(set=set_priority, end=end),
        )
        for chain, own in _STEPS.items()
        for name, text in own
        if name not in left_out
    ]
    rules.sort(key=lambda rule: CHAIN_NAMES.index(rule[0]))
    return [(chain, f"netqos 4 {name}", text) for chain, name, text in rules]
