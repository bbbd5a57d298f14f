"""The rules of a rig's node that rewrite addresses, as text for nft: masquerade and kube-proxy's services. Pure."""

from __future__ import annotations

from netqos.testing import networks
from netqos.testing.networks import NODE, OUTSIDE, SECOND_UPLINK, UPLINK, Network

_PORTS = "30000-32767"
_FROM_PORT = "0x4000"
"""Connection mark of what came in by a port of the node: its answers go back through the node."""


def ruleset(network: Network) -> str:
    """All tables; empty where nothing is rewritten."""
    return _masquerade(network) + (_services(network) if network.services else "")


def service_elements(network: Network, number: int) -> str:
    """The commands that make the service and the node's port of one pod."""
    lines = []
    for family in network.families:
        pod, service = networks.PODS.host(number, family), networks.SERVICES.host(number, family)
        for name, key in (("backends", service), ("nodeports", node_port(number))):
            lines.append(f"add element inet rig_services {name}{family} {{ {key} : {pod} }}\n")
    return "".join(lines)


def node_port(number: int) -> int:
    """The port of the node that stands for a pod."""
    return 30_000 + number


def _masquerade(network: Network) -> str:
    """What pods send out of an uplink carries the node's address."""
    if not network.masquerade:
        return ""
    out = f"oifname {{ {UPLINK}, {SECOND_UPLINK} }} masquerade"
    rules = [f"{_ip(family)} saddr {networks.PODS.prefix(family)} {out}" for family in network.families]
    if network.services:
        rules.append(f"ct mark {_FROM_PORT} masquerade")
    return _table("rig", "", {"nat": ("postrouting priority srcnat", rules)})


def _services(network: Network) -> str:
    """kube-proxy's way: an address of a service, or a port of the node, is replaced where a packet comes in."""
    maps, rules = "", []
    for family in network.families:
        ip, key = _ip(family), f"ipv{family}_addr"
        maps += f"    map backends{family} {{ type {key} : {key}; }}\n"
        maps += f"    map nodeports{family} {{ type inet_service : {key}; }}\n"
        outside = networks.SERVICES.host(OUTSIDE, family)
        rules.append(f"{ip} daddr {outside} dnat {ip} to {networks.WIRE.host(OUTSIDE, family)}")
        rules.append(f"dnat {ip} to {ip} daddr map @backends{family}")
        for protocol in ("tcp", "udp"):
            where = f"{ip} daddr {networks.WIRE.host(NODE, family)} {protocol} dport {_PORTS}"
            target = f"dnat {ip} to {protocol} dport map @nodeports{family}"
            rules.append(f"{where} ct mark set {_FROM_PORT} {target}")
    chains = {"come_in": ("prerouting priority -100", rules), "go_out": ("output priority -100", rules)}
    return _table("rig_services", maps, chains)


def _table(name: str, maps: str, chains: dict[str, tuple[str, list[str]]]) -> str:
    text = "".join(
        f"    chain {chain} {{\n        type nat hook {hook};\n        "
        + "\n        ".join(rules)
        + "\n    }\n"
        for chain, (hook, rules) in chains.items()
    )
    return f"table inet {name} {{\n{maps}{text}}}\n"


def _ip(family: int) -> str:
    return "ip" if family == 4 else "ip6"
