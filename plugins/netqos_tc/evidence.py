"""What the kernel's counters say against us: looked at every two seconds, told as findings.

Three things: packets whose source a workload claims leave by an uplink without a class of the uplinks (`strays`); an
unknown leaf counts more than passed the node's stack without a class; and the counters of a tree and of its device
disagree (`netqos.engine.ledger` for both). Of the way in only one side of the last can be told: what a node receives
for itself, forwards or drops is no part of the tree, but the tree cannot carry more than came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from netqos.engine import ledger
from netqos.engine.ledger import Account, Gap, Reading
from netqos.model.health import Finding, info, warning
from netqos.model.levels import Direction
from netqos_tc import answers, numbers, wire
from netqos_tc.netlink import Channel, RequestRefused
from netqos_tc.spec import ADDRESS_MAPS, ElementKey, ElementSpec
from netqos_tc.strays import OUTSIDE, PAST, Stray, Watch

LOOK_S: Final = 2.0
SUSPECT_PACKETS: Final = 10
"""Of one workload between two looks: a packet or two are those of a workload that has just come or gone."""

ENOUGH_REDIRECTED_BYTES: Final = 20_000
"""In the unknown leaf, for a window to be judged."""

RAISE_AFTER: Final = 2
SHOWN_S: Final = 30.0

_REASONS: Final = {
    PAST: "no rule of ours met them, or somebody took their class away",
    OUTSIDE: "they came in by another device than the one behind which it is",
}
_HINTS: Final = {
    PAST: "look for what redirects packets past the node's stack (`bpftool net`, `tc filter show ingress` of the "
    "workload's device, `nft list flowtables`), or a rule behind ours that sets the priority (`nft list ruleset`)",
    OUTSIDE: "another workload may forge its address (CAP_NET_RAW), or it has a second way out that the node's routes "
    "do not know",
}


@dataclass(slots=True)
class _Suspicion:
    """One workload and one reason: looks in a row in which it grew, all packets of these, and when it was told last."""

    looks: int = 0
    packets: int = 0
    told_s: float | None = None


class Claims:
    """Which workloads have packets without their class, over time. Pure but for its memory."""

    def __init__(self) -> None:
        """Nobody is suspected."""
        self._suspected: dict[tuple[str, str], _Suspicion] = {}

    def saw(self, strays: Iterable[Stray], claimed: Mapping[str, str], now_s: float) -> None:
        """One look: `claimed` has the workload's name by each address that it sends from."""
        grown: dict[tuple[str, str], int] = {}
        for one in strays:
            name = claimed.get(one.address)
            if name is not None:
                grown[name, one.kind] = grown.get((name, one.kind), 0) + one.packets
        for key in {*self._suspected, *grown}:
            self._note(key, grown.get(key, 0), now_s)

    def findings(self) -> tuple[Finding, ...]:
        """A finding for each workload and reason."""
        told = sorted(key for key, one in self._suspected.items() if one.told_s is not None)
        return tuple(_claimed(name, kind, self._suspected[name, kind].packets) for name, kind in told)

    def _note(self, key: tuple[str, str], packets: int, now_s: float) -> None:
        one = self._suspected.setdefault(key, _Suspicion())
        if packets >= SUSPECT_PACKETS:
            one.looks += 1
            one.packets += packets
            if one.looks >= RAISE_AFTER:
                one.told_s = now_s
            return
        one.looks = 0
        if one.told_s is None or now_s - one.told_s >= SHOWN_S:
            del self._suspected[key]


class Evidence:
    """Looks at the counters of one namespace."""

    def __init__(self, route: Channel, watch: Watch, monotonic: Callable[[], float]) -> None:
        """The channel stays the caller's; the watch is ended with `end`."""
        self._route = route
        self._watch = watch
        self._monotonic = monotonic
        self._claims = Claims()
        self._accounts: dict[int, tuple[str, Account]] = {}
        self._unknown: dict[int, tuple[str, Account]] = {}
        self._looked_s = monotonic()

    @property
    def is_due(self) -> bool:
        """Whether it is time to look."""
        return self._monotonic() - self._looked_s >= LOOK_S

    def look(
        self, trees: Mapping[int, str], receivers: Iterable[int], claimed: Callable[[], Mapping[str, str]]
    ) -> bool:
        """Look, at the devices with a tree of ours by index; whether there is something else to tell than before.

        `receivers` are the uplinks by which workloads receive; `claimed` is asked only when a packet went astray.
        """
        before = self._told()
        self._looked_s = now_s = self._monotonic()
        uplinks = {ifindex: name for ifindex, name in trees.items() if ifindex != numbers.IFB_INDEX}
        self._watch.watch(uplinks)
        strays = self._watch.look()
        self._claims.saw(strays, claimed() if strays else {}, now_s)
        self._accounts = {
            ifindex: (name, self._account(ifindex, tuple(receivers), now_s))
            for ifindex, name in trees.items()
        }
        self._unknown = {
            ifindex: (name, self._unknown_account(ifindex, now_s)) for ifindex, name in uplinks.items()
        }
        return self._told() != before

    def findings(self) -> tuple[Finding, ...]:
        """What is to be told."""
        gaps = [
            _disagree(name, account.told, is_ifb=ifindex == numbers.IFB_INDEX)
            for ifindex, (name, account) in sorted(self._accounts.items())
            if account.told is not None
        ]
        redirected = [
            _redirected(name, account.told)
            for _ifindex, (name, account) in sorted(self._unknown.items())
            if account.told is not None
        ]
        problem = self._watch.problem
        unwatched = (_unwatched(str(problem), problem.hint),) if problem is not None else ()
        return (*self._claims.findings(), *redirected, *gaps, *unwatched)

    def end(self) -> None:
        """Take away what was put into the kernel for it."""
        self._watch.end()

    def _told(self) -> frozenset[tuple[str, str]]:
        return frozenset((one.code, one.subject) for one in self.findings())

    def _account(self, ifindex: int, receivers: tuple[int, ...], now_s: float) -> Account:
        _name, account = self._accounts.get(ifindex, ("", Account()))
        is_ifb = ifindex == numbers.IFB_INDEX
        try:
            reading = self._read(ifindex, receivers if is_ifb else (ifindex,), now_s, received=is_ifb)
        except RequestRefused:  # a device or the tree has gone meanwhile
            return Account()
        return ledger.step(account, reading, is_whole=not is_ifb)

    def _unknown_account(self, ifindex: int, now_s: float) -> Account:
        """The unknown leaf against what passed the stack without a class; less is what else has a leaf (ARP)."""
        _name, account = self._unknown.get(ifindex, ("", Account()))
        passed = self._watch.unclassed(ifindex)
        if passed is None:
            return Account()
        try:
            leaf = answers.read_counters(self._route.get(wire.get_class(ifindex, numbers.UNKNOWN)))
        except RequestRefused:
            return Account()
        reading = Reading(
            at_s=now_s,
            class_bytes=leaf.sent_bytes,
            class_packets=leaf.sent_packets,
            device_bytes=passed[0],
            device_packets=passed[1],
        )
        return ledger.step(account, reading, is_whole=False, enough_bytes=ENOUGH_REDIRECTED_BYTES)

    def _read(self, ifindex: int, devices: tuple[int, ...], now_s: float, *, received: bool) -> Reading:
        total = answers.read_counters(self._route.get(wire.get_class(ifindex, numbers.TOTAL)))
        side = 0 if received else 1
        stats = [answers.read_device_traffic(self._route.get(wire.get_device_stats(one))) for one in devices]
        return Reading(
            at_s=now_s,
            class_bytes=total.sent_bytes,
            class_packets=total.sent_packets,
            device_bytes=sum(one[side][0] for one in stats),
            device_packets=sum(one[side][1] for one in stats),
        )


def claimed_by(elements: Mapping[ElementKey, ElementSpec], names: Mapping[str, str]) -> dict[str, str]:
    """The name of the workload that sends from each address."""
    sources = (ADDRESS_MAPS[Direction.TX, 4], ADDRESS_MAPS[Direction.TX, 6])
    return {
        str(key.value): names[spec.owner]
        for key, spec in elements.items()
        if key.map in sources and spec.owner in names
    }


def _claimed(name: str, kind: str, packets: int) -> Finding:
    return warning(
        "claimed-unclassed",
        f"pod {name}",
        f"{packets} packets from its address left by the unknown leaf of L1 within some seconds: {_REASONS[kind]}; "
        "they are not held to its level nor to its limit",
        hint=_HINTS[kind],
    )


def _redirected(name: str, told: Gap) -> Finding:
    return warning(
        "unclassed-past-the-stack",
        name,
        f"in {told.span_s:.0f} s the unknown leaf of L1 sent {told.class_bytes} bytes, of which "
        f"{-told.unexplained_bytes} did not pass the IP stack of the node: no rule can tell whose they are, nor hold "
        "them to a level or a limit",
        hint="a filter or an eBPF program redirects packets to this device: see `tc filter show ingress` of "
        "the devices of workloads and `bpftool net`; with Cilium, `bpf.hostLegacyRouting=true`",
    )


def _disagree(name: str, told: Gap, *, is_ifb: bool) -> Finding:
    share = f"{abs(told.share):.1%}"
    if is_ifb:
        what = "the uplinks received"
        hint = (
            "another device leads outside, or a container that nobody claims sends to workloads: name the device in "
            "`node.uplinks` if it is one"
        )
    elif told.share > 0:
        what = "the device sent"
        hint = "a program sends past the queue (PACKET_QDISC_BYPASS, XDP): see `ss -0 -p` and `bpftool net`"
    else:
        what = "the device sent"
        hint = "its driver loses packets or counts in another way: see `ethtool -S` and `ip -s -s link`"
    side = "more" if told.share > 0 else "less"
    return warning(
        "counters-disagree",
        name,
        f"in {told.span_s:.0f} s {what} {told.device_bytes} bytes and its classes {told.class_bytes}: {share} {side} "
        "than headers explain (allowed: 2%)",
        hint=hint,
    )


def _unwatched(problem: str, hint: str) -> Finding:
    return info(
        "claims-not-watched",
        "backend tc",
        f"whether a workload's packets leave without their class is not watched: {problem}",
        hint=hint or "the kernel needs CONFIG_NETFILTER_EGRESS (Linux 5.16)",
    )
