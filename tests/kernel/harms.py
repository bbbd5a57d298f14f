"""What somebody may do to each kind of object of ours, and which objects a repair may touch for it.

One table for all trees: a line is a name, the commands, and patterns of the subjects that the repair's operations may
have. `{up}` is the uplink, `{leaf}` the minor of a limited pod's leaf, `{pod}` that pod's address.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Harm:
    """Commands, one a line, and the subjects (regular expressions) that are put right."""

    commands: str
    repairs: tuple[str, ...]

    def lines(self, **names: str) -> list[list[str]]:
        """The commands as lists of words."""
        return [
            ["nft", line.removeprefix("nft ")] if line.startswith("nft ") else line.split()
            for line in self.commands.format(**names).splitlines()
            if line
        ]


_LEAF = ("class 4e51:{leaf} on {up}", "queue of class 4e51:{leaf} on {up}", "queue .*4e51:{leaf} .*")
_TABLE = ("table inet netqos",)
_ELEMENTS = ("element .*",)

TX_HARMS = {
    "root deleted": Harm("tc qdisc del dev {up} root", ("root qdisc of {up}", ".* on {up}")),
    "root replaced by a default kind": Harm(
        "tc qdisc replace dev {up} root handle 9: pfifo_fast", ("root qdisc of {up}", ".* on {up}")
    ),
    "root given a size table": Harm(
        "tc qdisc change dev {up} root stab overhead 500 linklayer ethernet",
        ("root qdisc of {up}", ".* on {up}"),
    ),
    "total changed": Harm(
        "tc class change dev {up} parent 4e51: classid 4e51:1 htb rate 7mbit", ("class 4e51:1 on {up}",)
    ),
    "total strangled": Harm(
        "tc class change dev {up} parent 4e51: classid 4e51:1 htb rate 8kbit",
        ("root qdisc of {up}", ".* on {up}"),
    ),
    "host leaf strangled": Harm(
        "tc class change dev {up} parent 4e51:10 classid 4e51:10f htb rate 8kbit",
        ("root qdisc of {up}", ".* on {up}"),
    ),
    "level changed": Harm(
        "tc class change dev {up} parent 4e51:1 classid 4e51:12 htb rate 7mbit", ("class 4e51:12 on {up}",)
    ),
    "level L0 changed": Harm(
        "tc class change dev {up} parent 4e51:1 classid 4e51:10 htb rate 7mbit ceil 9mbit",
        ("class 4e51:10 on {up}",),
    ),
    "host leaf changed": Harm(
        "tc class change dev {up} parent 4e51:10 classid 4e51:10f htb rate 8mbit ceil 9mbit",
        ("class 4e51:10f on {up}",),
    ),
    "leaf's limit changed": Harm(
        "tc class change dev {up} parent 4e51:10 classid 4e51:{leaf} htb rate 5mbit ceil 5mbit",
        ("class 4e51:{leaf} on {up}",),
    ),
    "leaf deleted": Harm("tc class del dev {up} classid 4e51:{leaf}", _LEAF),
    "unknown leaf deleted": Harm(
        "tc class del dev {up} classid 4e51:11f", ("class 4e51:11f on {up}", ".*queue.* 4e51:11f .*")
    ),
    "class of others": Harm(
        "tc class add dev {up} parent 4e51:1 classid 4e51:99 htb rate 1mbit", (".*4e51:99.*",)
    ),
    "queue resized": Harm(
        "tc qdisc change dev {up} parent 4e51:{leaf} bfifo limit 4k", (".*4e51:{leaf} .*",)
    ),
    "queue replaced": Harm(
        "tc qdisc replace dev {up} parent 4e51:{leaf} pfifo limit 4", (".*4e51:{leaf} .*",)
    ),
    "queue deleted": Harm(
        "tc qdisc replace dev {up} parent 4e51:{leaf} handle 77: pfifo\ntc qdisc del dev {up} parent 4e51:{leaf}",
        (".*4e51:{leaf} .*",),
    ),
    "filter deleted": Harm("tc filter del dev {up} parent 4e51: protocol arp prio 1", ("filter .*",)),
    "filters deleted": Harm("tc filter del dev {up} parent 4e51:", ("filter .*",)),
    "filter of others": Harm(
        "tc filter add dev {up} parent 4e51: protocol ip prio 50 u32 match u32 0 0 classid 4e51:12",
        ("filter .*",),
    ),
    "element deleted": Harm("nft delete element inet netqos tx4 {{ {pod} }}", _ELEMENTS),
    "element of others": Harm("nft add element inet netqos tx4 {{ 10.99.9.9 : 4e51:10f }}", _ELEMENTS),
    "element moved": Harm(
        "nft delete element inet netqos tx4 {{ {pod} }}\nnft add element inet netqos tx4 {{ {pod} : 4e51:11f }}",
        _ELEMENTS,
    ),
    "map emptied": Harm("nft flush map inet netqos tx4", _ELEMENTS),
    "rule of others": Harm("nft insert rule inet netqos output counter drop", _TABLE),
    "chain emptied": Harm("nft flush chain inet netqos forward", _TABLE),
    "chain deleted": Harm("nft flush chain inet netqos output\nnft delete chain inet netqos output", _TABLE),
    "chain of others": Harm("nft add chain inet netqos x", _TABLE),
    "policy changed": Harm("nft add chain inet netqos output {{ policy drop; }}", _TABLE),
    "table switched off": Harm("nft add table inet netqos {{ flags dormant; }}", _TABLE),
    "table deleted": Harm("nft delete table inet netqos", (*_TABLE, *_ELEMENTS)),
    "ruleset flushed": Harm("nft flush ruleset", (*_TABLE, *_ELEMENTS)),
}

_RX_LEAF = (".*4e52:{leaf} on {ifb}",)
_IFB = ("device {ifb}", "root qdisc of {ifb}", ".* on {ifb}", "redirect at the egress of .*")

RX_HARMS = {
    "IFB deleted": Harm("ip link del {ifb}", _IFB),
    "IFB down": Harm("ip link set {ifb} down", ("device {ifb}",)),
    "IFB's queue shortened": Harm("ip link set {ifb} txqueuelen 32", ("device {ifb}",)),
    "IFB's MTU lowered": Harm("ip link set {ifb} mtu 1500", ("device {ifb}",)),
    "IFB renamed": Harm("ip link set {ifb} name foo0", ("device (foo0|{ifb})",)),
    "IFB's alias changed": Harm("ip link set {ifb} alias foo", ("device {ifb}",)),
    "IFB's packets led astray": Harm(
        "tc qdisc add dev {ifb} clsact\n"
        "tc filter add dev {ifb} egress pref 1 u32 match u32 0 0 action mirred egress redirect dev lo",
        ("device {ifb}",),
    ),
    "hook of others on the IFB": Harm("tc qdisc add dev {ifb} ingress", ("device {ifb}",)),
    "ingress root deleted": Harm("tc qdisc del dev {ifb} root", _IFB[1:3]),
    "ingress root given a size table": Harm(
        "tc qdisc change dev {ifb} root stab overhead 500 linklayer ethernet", _IFB[1:3]
    ),
    "ingress total changed": Harm(
        "tc class change dev {ifb} parent 4e52: classid 4e52:1 htb rate 7mbit", ("class 4e52:1 on {ifb}",)
    ),
    "ingress level changed": Harm(
        "tc class change dev {ifb} parent 4e52:1 classid 4e52:12 htb rate 7mbit", ("class 4e52:12 on {ifb}",)
    ),
    "ingress level L0 changed": Harm(
        "tc class change dev {ifb} parent 4e52:1 classid 4e52:10 htb rate 7mbit ceil 9mbit",
        ("class 4e52:10 on {ifb}",),
    ),
    "local leaf deleted": Harm("tc class del dev {ifb} classid 4e52:e", (".*4e52:e on {ifb}",)),
    "local leaf strangled": Harm(
        "tc class change dev {ifb} parent 4e52: classid 4e52:e htb rate 8bit", _IFB[1:3]
    ),
    "ingress limit changed": Harm(
        "tc class change dev {ifb} parent 4e52:10 classid 4e52:{leaf} htb rate 5mbit ceil 5mbit", _RX_LEAF
    ),
    "ingress leaf deleted": Harm("tc class del dev {ifb} classid 4e52:{leaf}", _RX_LEAF),
    "ingress queue replaced": Harm("tc qdisc replace dev {ifb} parent 4e52:{leaf} pfifo limit 4", _RX_LEAF),
    "redirect deleted": Harm("tc filter del dev {veth} egress", ("redirect at the egress of {veth}",)),
    "hook deleted": Harm("tc qdisc del dev {veth} clsact", ("redirect at the egress of {veth}",)),
    "redirect doubled": Harm(
        "tc filter add dev {veth} egress pref 65106 protocol all u32 match u32 0 0 "
        "action mirred egress redirect dev lo",
        ("redirect at the egress of {veth}",),
    ),
    "redirect led elsewhere": Harm(
        "tc filter del dev {veth} egress\n"
        "tc filter add dev {veth} egress pref 65106 protocol all u32 match u32 0 0 "
        "action mirred egress redirect dev lo",
        ("redirect at the egress of {veth}",),
    ),
    "redirect of one protocol instead": Harm(
        "tc filter del dev {veth} egress\n"
        "tc filter add dev {veth} egress pref 65106 protocol ip u32 match u32 0 0 "
        "action mirred egress redirect dev lo",
        ("redirect at the egress of {veth}",),
    ),
    "way to the IFB led elsewhere": Harm(
        "tc actions change action mirred egress redirect dev lo index 1313996802",
        ("redirect at the egress of .*",),
    ),
    "ingress element deleted": Harm("nft delete element inet netqos rx4 {{ {pod} }}", _ELEMENTS),
    "ingress element of others": Harm(
        "nft add element inet netqos rx4 {{ 10.99.9.9 : 4e52:11f }}", _ELEMENTS
    ),
    "ingress map emptied": Harm("nft flush map inet netqos rx4", _ELEMENTS),
    "ingress map deleted": Harm(
        "nft flush chain inet netqos inwards\nnft delete map inet netqos rx4", (*_TABLE, *_ELEMENTS)
    ),
}
