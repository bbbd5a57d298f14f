"""What the kernel's counters say against us: looked at every two seconds, told as findings.

Of an uplink the packets without a class are watched while there are any: the watch costs each packet 3 percent of what
a small one takes, and the leaf in which they run counts them for nothing.

Three things: packets whose source a workload claims leave by an uplink without a class of the uplinks (`strays`); an
unknown leaf counts more than passed the node's stack without a class; and the counters of a tree and of its device
disagree (`netqos.engine.ledger` for both). Of the way in only one side of the last can be told: what a node receives
for itself, forwards or drops is no part of the tree, but the tree cannot carry more than came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from netqos.engine import ledger
from netqos.engine.ledger import Account, Gap, Reading
from netqos.model.health import Finding, info, warning
from netqos.model.levels import Direction
from netqos_tc import answers, numbers, wire
from netqos_tc.answers import Counters
from netqos_tc.claims import Claims
from netqos_tc.links import read_device_traffic
from netqos_tc.netlink import Channel, RequestRefused
from netqos_tc.strays import Stray, Watch

LOOK_S: Final = 2.0
SUSPECT_PACKETS: Final = 10
"""In the unknown leaf between two looks, for its device to be watched."""

WATCHED_S: Final = 30.0
"""How long a device is watched after there were as many."""

SAMPLE_LOOKS: Final = 12
SAMPLED_LOOKS: Final = 3
"""What comes in is watched for some looks of each so many."""

ENOUGH_REDIRECTED_BYTES: Final = 20_000
"""In the unknown leaf, for a window to be judged."""


class Evidence:
    """Looks at the counters of one namespace."""

    def __init__(self, route: Channel, watch: Watch, inbound: Watch, monotonic: Callable[[], float]) -> None:
        """The channel stays the caller's; the watches, at egress and of what comes in, are ended with `end`."""
        self._route = route
        self._watch = watch
        self._inbound = inbound
        self._looks = 0
        self._monotonic = monotonic
        self._claims = Claims()
        self._accounts: dict[int, tuple[str, Account]] = {}
        self._unknown: dict[int, tuple[str, Account]] = {}
        self._leaves: dict[int, Counters] = {}
        self._suspected_s: dict[int, float] = {}
        self._looked_s = monotonic()

    @property
    def is_due(self) -> bool:
        """Whether it is time to look."""
        return self._monotonic() - self._looked_s >= LOOK_S

    def look(
        self,
        trees: Mapping[int, str],
        receivers: Iterable[int],
        claimed: Callable[[Direction], Mapping[str, str]],
    ) -> bool:
        """Look, at the devices with a tree of ours by index; whether there is something else to tell than before.

        `receivers` are the uplinks by which workloads receive; `claimed` is asked only when a packet went astray.
        """
        before = self._told()
        self._looked_s = now_s = self._monotonic()
        uplinks = {ifindex: name for ifindex, name in trees.items() if ifindex != numbers.IFB_INDEX}
        self._leaves = self._suspect(trees, now_s)
        self._watch.watch({one: name for one, name in uplinks.items() if one in self._suspected_s})
        self._inbound.watch(dict.fromkeys(receivers, "") if self._watches_inbound(trees) else {})
        both = ((self._watch, Direction.TX), (self._inbound, Direction.RX))
        self._claims.saw((one for watch, way in both for one in self._claimed(watch, way, claimed)), now_s)
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
        self._inbound.end()

    def _told(self) -> frozenset[tuple[str, str] | Finding]:
        others = {(one.code, one.subject) for one in self.findings()}
        return frozenset({*others, *self._claims.findings()})

    def _account(self, ifindex: int, receivers: tuple[int, ...], now_s: float) -> Account:
        _name, account = self._accounts.get(ifindex, ("", Account()))
        is_ifb = ifindex == numbers.IFB_INDEX
        try:
            reading = self._read(ifindex, receivers if is_ifb else (ifindex,), now_s, received=is_ifb)
        except RequestRefused:  # a device or the tree has gone meanwhile
            return Account()
        return ledger.step(account, reading, is_whole=not is_ifb)

    def _watches_inbound(self, trees: Mapping[int, str]) -> bool:
        self._looks += 1
        is_sampled = self._looks % SAMPLE_LOOKS < SAMPLED_LOOKS
        return numbers.IFB_INDEX in trees and (is_sampled or numbers.IFB_INDEX in self._suspected_s)

    @staticmethod
    def _claimed(
        watch: Watch, way: Direction, claimed: Callable[[Direction], Mapping[str, str]]
    ) -> Iterator[tuple[str, Stray]]:
        """What was watched, with the workload that claims it."""
        strays = watch.look()
        names = claimed(way) if strays else {}
        return ((names[one.address], one) for one in strays if one.address in names)

    def _suspect(self, devices: Iterable[int], now_s: float) -> dict[int, Counters]:
        """Which devices are to be watched, by what their unknown leaves count more than at the last look."""
        now = {ifindex: leaf for ifindex in devices if (leaf := self._unknown_leaf(ifindex)) is not None}
        for ifindex, leaf in now.items():
            before = self._leaves.get(ifindex, leaf)
            if leaf.sent_packets - before.sent_packets >= SUSPECT_PACKETS:
                self._suspected_s[ifindex] = now_s
        self._suspected_s = {
            ifindex: at_s
            for ifindex, at_s in self._suspected_s.items()
            if ifindex in now and now_s - at_s < WATCHED_S
        }
        return now

    def _unknown_leaf(self, ifindex: int) -> Counters | None:
        try:
            return answers.read_counters(self._route.get(wire.get_class(ifindex, numbers.UNKNOWN)))
        except RequestRefused:  # the device or its tree has gone meanwhile
            return None

    def _unknown_account(self, ifindex: int, now_s: float) -> Account:
        """The unknown leaf against what passed the stack without a class; less is what else has a leaf (ARP)."""
        _name, account = self._unknown.get(ifindex, ("", Account()))
        passed, leaf = self._watch.unclassed(ifindex), self._leaves.get(ifindex)
        if passed is None or leaf is None:
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
        stats = [read_device_traffic(self._route.get(wire.get_device_stats(one))) for one in devices]
        return Reading(
            at_s=now_s,
            class_bytes=total.sent_bytes,
            class_packets=total.sent_packets,
            device_bytes=sum(one[side][0] for one in stats),
            device_packets=sum(one[side][1] for one in stats),
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
