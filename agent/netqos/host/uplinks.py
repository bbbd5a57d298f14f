"""Which devices are the uplinks, and what people must know of them. Pure: facts of the kernel in, uplinks out.

Configured names win. Without them it is where the packets of the default routes leave (`netqos.host.places`), of each
family those with the lowest metric; without any default route there is no uplink, and nothing is guessed (contract
1.5). Traffic is shaped in one place only: of two named uplinks of which one carries the other, the one named first
stays. What the facts show by themselves (missing, down, none at all) the engine tells; here is said what only the
kernel's details show.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, replace

from netqos.host.places import BUNDLES, PARTS_OF_A_NIC, TUNNELS
from netqos.host.rtwire import IFF_LOOPBACK, DefaultRoute, Link
from netqos.model.health import Finding, error, info, warning
from netqos.model.ids import IfName
from netqos.model.inputs import NO_LIMITS, UplinkFacts
from netqos.model.levels import PerDirection

NOMINAL_SPEED = frozenset({"veth", "bridge"})
"""Kinds whose driver reports a constant (veth: 10000) or its fastest port's speed (a bridge), not what they can do."""

PRESET_MBIT = {"tun": frozenset({10, 10_000})}
"""What a kind's driver reports until somebody sets a speed (tun: 10, in later kernels 10000; drivers/net/tun.c)."""

_UNKNOWN_MBIT = frozenset({-1, 0, 65535, 4294967295})


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A link that may become an uplink, with all that was read of it.

    `speed_mbit` is what the driver reports, None where it reports nothing. `carriers` are the indexes of the links
    below it. `members` are those of a bond or team. `serves` are the devices of default routes whose packets leave by
    it; none for one that was named. `sysfs` is the (index, MAC) that /sys tells of this name, None where it knows no
    such name.
    """

    link: Link
    configured: PerDirection[int | None] = NO_LIMITS
    speed_mbit: int | None = None
    carriers: tuple[int, ...] = ()
    members: tuple[Link, ...] = ()
    serves: tuple[Link, ...] = ()
    sysfs: tuple[int, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The uplinks with what there is to say of them."""

    uplinks: tuple[UplinkFacts, ...] = ()
    findings: tuple[Finding, ...] = ()


def default_devices(routes: Iterable[DefaultRoute]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The devices of each family's default routes with the lowest metric, and those of the others, nearest first.

    Without repetition, IPv4's first. Metrics of different families say nothing of each other, so each family has its
    own lowest.
    """
    listed = tuple(routes)
    found: list[int] = []
    others: list[tuple[int, int]] = []
    for family in sorted({route.family for route in listed}):
        ours = [route for route in listed if route.family == family]
        lowest = min(route.metric for route in ours)
        found += [device for route in ours if route.metric == lowest for device in route.devices]
        others += [(one.metric, device) for one in ours if one.metric > lowest for device in one.devices]
    first = dict.fromkeys(found)
    return tuple(first), tuple(dict.fromkeys(device for _, device in sorted(others) if device not in first))


def select(
    candidates: Iterable[Candidate], missing: Iterable[tuple[str, PerDirection[int | None]]]
) -> Selection:
    """Uplinks and findings of the links found and of the configured names that are not there."""
    kept, findings = _one_place_each(tuple(candidates))
    facts = [_facts(one, _beside(one, kept)) for one in kept]
    for one in kept:
        findings += _findings(one)
    for name, configured in missing:
        facts.append(UplinkFacts(name=IfName(name), present=False, is_up=False, configured=configured))
    return Selection(uplinks=tuple(facts), findings=tuple(findings))


def unshaped_nics(links: Iterable[Link], shaped: Container[int]) -> tuple[Finding, ...]:
    """What leaves past every level: hardware that is up and neither shaped, nor below or beside what is (case D10)."""
    return tuple(
        info(
            "nic-not-shaped",
            link.name,
            "it is up, and what pods and the node send by it has no level and no limit",
            hint="name it in node.uplinks beside the others, if that traffic counts",
        )
        for link in links
        if is_nic(link) and link.is_up and not link.master and link.index not in shaped
    )


def is_nic(link: Link) -> bool:
    """Whether a link is hardware, as far as the kernel tells: it has no kind."""
    return not link.kind and not link.flags & IFF_LOOPBACK


def _one_place_each(candidates: tuple[Candidate, ...]) -> tuple[list[Candidate], list[Finding]]:
    kept: list[Candidate] = []
    findings: list[Finding] = []
    for one in candidates:
        no_uplink = _no_uplink(one.link)
        if no_uplink is not None:
            findings.append(no_uplink)
            continue
        rival = next((other for other in kept if _share_traffic(one, other)), None)
        if rival is None:
            kept.append(one)
        else:
            findings.append(_stacked(one.link.name, rival.link.name))
    return kept, findings


def _share_traffic(one: Candidate, other: Candidate) -> bool:
    a, b = one.link.index, other.link.index
    return a == b or a in other.carriers or b in one.carriers


def _beside(one: Candidate, others: Iterable[Candidate]) -> Candidate | None:
    """Another uplink on the same device below, whose speed is for both together."""
    return next(
        (other for other in others if other is not one and set(one.carriers) & set(other.carriers)), None
    )


def _facts(one: Candidate, beside: Candidate | None) -> UplinkFacts:
    if beside is not None:
        shared = f"its link is also that of {beside.link.name}, and its speed is for both together"
        return replace(_facts(one, None), speed_bps=None, why_no_speed=shared)
    return UplinkFacts(
        name=IfName(one.link.name),
        index=one.link.index,
        mtu=one.link.mtu,
        is_up=one.link.is_up,
        speed_bps=_speed_bps(one),
        why_no_speed=_why_no_speed(one),
        configured=one.configured,
    )


def _speed_bps(one: Candidate) -> int | None:
    is_known = one.speed_mbit is not None and one.speed_mbit not in _UNKNOWN_MBIT and one.speed_mbit > 0
    if not is_known or not one.link.is_up or _is_nominal(one):
        return None
    assert one.speed_mbit is not None
    return one.speed_mbit * 1_000_000


def _is_nominal(one: Candidate) -> bool:
    kind = one.link.kind
    return kind in NOMINAL_SPEED or one.speed_mbit in PRESET_MBIT.get(kind, ())


def _why_no_speed(one: Candidate) -> str:
    """Nothing of a link that is down: that has no speed, and it is told anyway."""
    if not one.link.is_up or _speed_bps(one) is not None:
        return ""
    met = "no speed" if one.speed_mbit is None else f"{one.speed_mbit} Mbit/s"
    reason = f"as any {one.link.kind} device does" if _is_nominal(one) else "so it is unknown"
    return f"the driver reports {met}, {reason}"


def _findings(one: Candidate) -> list[Finding]:
    link = one.link
    found = [_kind(one)]
    if one.sysfs != (link.index, link.mac):
        found.append(_foreign_sysfs(one))
    return [finding for finding in found if finding is not None]


def _kind(one: Candidate) -> Finding | None:
    link = one.link
    instead = [served.name for served in one.serves if served.index != link.index]
    if instead:
        return info(
            "uplink-serves-another",
            link.name,
            f"the default route is by {', '.join(instead)}, whose packets leave here: they are shaped here, once",
        )
    if link.kind in BUNDLES:
        members = ", ".join(member.name for member in one.members) or "none"
        return info("uplink-is-bond", link.name, f"shaped as a whole, here; its members ({members}) are not")
    if link.slave_kind in BUNDLES:
        return warning(
            "uplink-is-bond-member",
            link.name,
            f"it is a member of a {link.slave_kind}, whose other members are not shaped with it",
            hint=f"name the {link.slave_kind} in node.uplinks instead",
        )
    if link.kind == "bridge":
        return warning(
            "uplink-is-bridge",
            link.name,
            "frames that only pass from port to port are not shaped here",
            hint="name the bridge's port to the outside in node.uplinks",
        )
    if link.kind in TUNNELS:
        return warning(
            "uplink-is-tunnel",
            link.name,
            f"a {link.kind} device: its packets leave by another device, in another form",
            hint="name the device that carries the tunnel in node.uplinks, if that is what is short",
        )
    if link.kind in PARTS_OF_A_NIC:
        return info(
            "uplink-shares-nic",
            link.name,
            f"a {link.kind} device: what else uses the device below it is neither seen nor shaped",
        )
    return None


def _no_uplink(link: Link) -> Finding | None:
    """The finding for a link by which nothing leaves the node, whoever made it."""
    if link.flags & IFF_LOOPBACK:
        return error("uplink-is-loopback", link.name, "the loopback device is no uplink; it is left alone")
    if link.kind == "ifb":
        return error(
            "uplink-is-ifb",
            link.name,
            "an IFB is no uplink: it gives back what is led to it; it is left alone",
            hint="name the device by which the node's traffic leaves in node.uplinks",
        )
    return None


def _stacked(name: str, rival: str) -> Finding:
    return error(
        "uplinks-stacked",
        name,
        f"its traffic also passes {rival}, and shaping it twice drops packets; only {rival} is shaped",
        hint="keep one of them in node.uplinks",
    )


def _foreign_sysfs(one: Candidate) -> Finding:
    met = "does not know it" if one.sysfs is None else f"has it as index {one.sysfs[0]}, {one.sysfs[1]}"
    return warning(
        "sysfs-of-another-namespace",
        one.link.name,
        f"/sys {met}; the kernel's answer is index {one.link.index}, {one.link.mac or 'no MAC'}: "
        "/sys shows the devices of another network namespace",
        hint="run in the host's network namespace (hostNetwork: true), with the /sys that belongs to it",
    )
