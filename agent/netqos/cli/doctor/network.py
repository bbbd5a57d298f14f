"""Uplinks, qdiscs, classification and source checks of this network namespace."""

from __future__ import annotations

import json
import time
from typing import Any

from netqos.cli.doctor.check import Check, Host, Verdict, fail, of_findings, ok, unknown, warn
from netqos.cli.doctor.host import rights
from netqos.cli.units import rate
from netqos.errors import NetqosError
from netqos.host import bypass, limiters
from netqos.host.links import LinkReport, Links
from netqos.host.neighbours import Neighbours
from netqos.host.nftables import Nftables
from netqos.model.inputs import UplinkFacts
from netqos.settings.values import Settings

OUR_PLACES = {("forward", -150), ("output", -50)}
OURS = "netqos"

Json = dict[str, Any]


def uplinks(settings: Settings) -> tuple[list[Check], LinkReport]:
    """The devices that would be shaped, and their speed."""
    try:
        links = Links()
    except OSError as problem:
        return [unknown("uplinks", f"the kernel cannot be asked: {problem.strerror}")], LinkReport()
    try:
        report = links.read(settings.uplinks, now_s=time.monotonic())
    finally:
        links.close()
    if not report.uplinks:
        text = "there is no default route, so no uplink is known"
        return [
            fail("uplinks", text, "name the devices in node.uplinks"),
            *of_findings("uplinks", report.findings),
        ], report
    checks = [_uplink(one, settings) for one in report.uplinks]
    return [*checks, *of_findings("uplinks", report.findings)], report


def _uplink(one: UplinkFacts, settings: Settings) -> Check:
    if not one.present:
        return fail(
            "uplinks", f"{one.name} is not there", "correct node.uplinks, or wait until the device appears"
        )
    if not one.is_up:
        return fail("uplinks", f"{one.name} is down", f"ip link set {one.name} up")
    total = one.configured.tx or settings.bandwidth.tx
    if total is not None:
        return ok("uplinks", f"{one.name} is up, total {rate(total)} by configuration, MTU {one.mtu}")
    if one.speed_bps is None:
        text = f"{one.name} is up, its speed is unknown"
        return warn(
            "uplinks", text, "set node.bandwidth, unless the NodeSLO or the node's annotation gives the total"
        )
    return ok("uplinks", f"{one.name} is up, {rate(one.speed_bps)}, MTU {one.mtu}")


def qdiscs(host: Host) -> list[Check]:
    """Packets that HTB let pass unshaped."""
    text = host.run("tc", "-j", "-s", "qdisc", "show")
    try:
        found: list[Json] = json.loads(text) if text else []
    except ValueError:
        found = []
    if not found:
        return [unknown("qdiscs", "tc does not tell the qdiscs", "install iproute2")]
    return [_direct(found)]


def _direct(found: list[Json]) -> Check:
    ours = [one for one in found if one.get("kind") == "htb" and str(one.get("handle", "")).startswith("4e5")]
    if not ours:
        return ok("direct packets", "no tree of ours is there")
    passed = {str(one["dev"]): int(one.get("options", {}).get("direct_packets_stat", 0)) for one in ours}
    grown = {device: packets for device, packets in passed.items() if packets}
    if not grown:
        return ok("direct packets", "none passed the trees unshaped")
    text = ", ".join(f"{packets} on {device}" for device, packets in grown.items())
    return warn(
        "direct packets",
        f"passed unshaped since the tree was made: {text}",
        "worrying only if it still grows",
    )


def neighbours(links: LinkReport) -> list[Check]:
    """Limiters of others, and what leads packets past us: the findings of the daemon, found out here and now."""
    name = "neighbours"
    try:
        looking = Neighbours()
    except OSError as problem:
        return [unknown(name, f"the kernel cannot be asked: {problem.strerror}")]
    try:
        seen = looking.read(now_s=time.monotonic())
    finally:
        looking.close()
    indexes = [one.index for one in links.uplinks if one.present]
    held = limiters.held_limits(seen, indexes)
    found = (*limiters.findings(seen, held, indexes), *bypass.findings(seen, indexes))
    if not found:
        return [ok(name, "no limiter, flowtable, redirect or eBPF program of others is in the way")]
    return of_findings(name, found)


def nft_tables(host: Host) -> list[Check]:
    """Rules of others that set a packet's priority: whoever is last decides its class."""
    name = "nft tables"
    if any(one.verdict is Verdict.FAIL for one in rights(host)):
        return [unknown(name, "they cannot be read without CAP_NET_ADMIN")]
    try:
        ruleset = Nftables().query("list ruleset")
    except NetqosError as problem:
        return [unknown(name, problem.message, problem.hint)]
    return [judge_ruleset(ruleset)]


def judge_ruleset(ruleset: Json) -> Check:
    """The verdict on a ruleset as `nft -j list ruleset` gives it."""
    items = [item for item in ruleset.get("nftables", []) if isinstance(item, dict)]
    rules = [item["rule"] for item in items if "rule" in item]
    chains = [item["chain"] for item in items if "chain" in item]
    setting = sorted(
        {_table(rule) for rule in rules if not _is_ours(rule) and _sets_priority(rule.get("expr"))}
    )
    if setting:
        text = f"{', '.join(setting)} sets packets' priority, which decides their class"
        return warn("nft tables", text, "take that rule out, or leave packets of pods alone there")
    beside = sorted({_table(one) for one in chains if not _is_ours(one) and _is_at_our_place(one)})
    if beside:
        return ok("nft tables", f"{', '.join(beside)} runs at our place and sets no priority")
    return ok("nft tables", "nobody else sets packets' priority")


def _is_ours(item: Json) -> bool:
    return str(item.get("table", "")).startswith(OURS)


def _table(item: Json) -> str:
    return f"{item.get('family')} {item.get('table')}"


def _is_at_our_place(chain: Json) -> bool:
    return (chain.get("hook"), chain.get("prio")) in OUR_PLACES


def _sets_priority(expressions: object) -> bool:
    if not isinstance(expressions, list):
        return False
    for one in expressions:
        key = one.get("mangle", {}).get("key", {}) if isinstance(one, dict) else {}
        if isinstance(key, dict) and key.get("meta", {}).get("key") == "priority":
            return True
    return False


def source_checks(host: Host) -> list[Check]:
    """Whether the kernel refuses packets with a source address that is not the sender's."""
    modes = {name: host.read(f"/proc/sys/net/ipv4/conf/{name}/rp_filter") for name in ("all", "default")}
    if None in modes.values():
        return [unknown("rp_filter", "/proc/sys/net does not tell it")]
    if "1" in modes.values():
        return [ok("rp_filter", "pods cannot send with the addresses of others (strict, for new devices)")]
    text = "a pod with raw sockets can send with another pod's address and be taken for it"
    return [warn("rp_filter", text, "sysctl net.ipv4.conf.all.rp_filter=1, where routing is symmetric")]
