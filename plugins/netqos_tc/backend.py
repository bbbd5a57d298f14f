"""The backend as the agent sees it: observe, plan, apply, and the small state between them.

The kernel holds the state. Kept in this process are only the channels, the last fingerprint, the last numbers of the
owners (for a table that somebody flushed) and the devices asked for. Calls may come from one task at a time; each
reads or writes within milliseconds and yields only while a leaf is drained.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Final, cast

from netqos.backend import BackendContext, Capabilities, FastPath, LeafCounters, NftRunner
from netqos.errors import Unsupported
from netqos.model.desired import DesiredState
from netqos.model.health import error
from netqos.model.ids import IfName, PodUid
from netqos.model.plan import ApplyResult, ObservedState, Plan
from netqos_tc import answers, changes, claims, classify, directpackets, edits, expected, numbers, options
from netqos_tc.answers import Link
from netqos_tc.audit import Fingerprint
from netqos_tc.directpackets import DirectPackets
from netqos_tc.evidence import Evidence
from netqos_tc.expected import Laid
from netqos_tc.fast import Shaped, TcFastPath
from netqos_tc.inbound import INBOUND
from netqos_tc.kept import KeptRoots
from netqos_tc.kernel import Kernel
from netqos_tc.layout import Facilities, lay_out
from netqos_tc.leafcounts import LeafCounts
from netqos_tc.moves import Steered
from netqos_tc.netclasses import NetClasses, NetClassesSeen
from netqos_tc.observed import TcObserved
from netqos_tc.probe import probe
from netqos_tc.reader import Inventory
from netqos_tc.register import names_of, owner_in
from netqos_tc.spec import RedirectKey, TableKey, TableSpec
from netqos_tc.strays import EGRESS, Watch
from netqos_tc.tools import Tools
from netqos_tc.writer import Writer

TRUSTED_S: Final = 0.4
"""How long a plan is made from the last observation unasked: no longer than it takes until drift is looked for."""

WHOLE_AUDIT_S: Final = 2.0
"""How long the kernel's word is taken that nobody changed anything in a tree, before everything is compared again."""


class TcBackend:
    """Shapes the uplinks of the network namespace in which its first call is made."""

    def __init__(self, context: BackendContext) -> None:
        """Read the options; `Rejected` with all that is wrong with them. The kernel is not touched yet."""
        self._context = context
        self._options = options.parse(context.options)
        self._facilities = Facilities()
        self._kernel: Kernel | None = None
        self._evidence: Evidence | None = None
        self._seen = TcObserved()
        self._links: Mapping[int, Link] = {}
        self._asked_for: frozenset[int] = frozenset()
        self._is_shaping = False
        self._has_written = False
        self._uplinks: tuple[int, ...] = ()
        self._steered: Mapping[int, Steered] = {}
        self._own_hooks: frozenset[int] = frozenset()
        self._led: frozenset[int] = frozenset()
        self._behind: frozenset[int] = frozenset()
        self._uids: dict[str, PodUid] = {}
        self._names: dict[str, str] = {}
        self._remembered: dict[str, int] = {}
        self._print: Fingerprint | None = None
        self._audited_s = -math.inf
        self._leaf_counts: LeafCounts | None = None
        self._laid: Laid | None = None
        self._direct = DirectPackets()
        self._kept = KeptRoots(context.state)
        self._net_classes = NetClasses.found(Path(context.cgroup_root))
        self._classes_seen = NetClassesSeen()

    @property
    def name(self) -> str:
        """The entry point's name."""
        return self._context.name

    @property
    def writes(self) -> int:
        """How many objects this backend has written since its channels were opened."""
        return self._kernel.route.writes + self._kernel.netfilter.writes if self._kernel is not None else 0

    async def probe(self) -> Capabilities:
        """Try what the kernel can do; nothing outlives the call."""
        try:
            kernel = self._open()
        except Unsupported as problem:
            finding = error("no-netlink", f"backend {self.name}", problem.message, hint=problem.hint)
            return Capabilities(available=False, findings=(finding,))
        found = kernel.reader.inventory().specs.get(TableKey())
        table = found if isinstance(found, TableSpec) else None
        capabilities, self._facilities = probe(kernel.route, self._nft, table=table)
        return capabilities

    async def observe(self) -> TcObserved:
        """Read back everything of ours, exactly, and the roots that are not ours."""
        kernel = self._open()
        kernel.reader.hooks.forget(kernel.surroundings.look(self._watched()))
        found, self._print = self._read(kernel)
        self._leaf_counts = None
        if self._has_written:
            kernel.reader.table.contents.keep(self._context.state)
            self._has_written = False
        if self._net_classes is not None:
            self._classes_seen = self._net_classes.look()
            found.specs |= self._classes_seen.elements()
        self._links = found.links
        self._own_hooks = (self._own_hooks & kernel.surroundings.devices.keys()) | found.own_hooks()
        found.leave_to_others(self._own_hooks)
        self._led = (self._led & kernel.surroundings.devices.keys()) | found.led
        now_s = self._context.monotonic()
        known = {name: minor for name, minor in self._remembered.items() if owner_in(name) in self._uids}
        self._remembered = {**known, **found.owners()}
        self._seen = TcObserved(
            ours=cast("Mapping[Hashable, object]", found.specs),
            roots=found.roots,
            names={ifindex: link.name for ifindex, link in found.links.items()},
            saved=self._kept.learn(found.links),
            remembered=dict(self._remembered),
            routes=kernel.surroundings.routes,
            devices=kernel.surroundings.devices,
            hooks=found.hooks,
            own_hooks=self._own_hooks,
            led=self._led,
            foreign_ifb=found.foreign_ifb,
            net_classes=None if self._net_classes is None else self._classes_seen.numbers,
            trusted_s=TRUSTED_S,
            findings=(
                *self._direct.findings(found.direct_packets, found.links, now_s),
                *(self._evidence.findings() if self._evidence is not None else ()),
            ),
        )
        return self._seen

    def plan(self, desired: DesiredState, observed: ObservedState) -> Plan:
        """The ordered change; what cannot be enforced is in its findings. Pure, but for three memories.

        Which devices were asked for (their roots are watched) with what the loop moves there, which pod an owner's
        name stands for, and the last layout: where just that is met, nothing is to do.
        """
        met = observed if isinstance(observed, TcObserved) else TcObserved(findings=observed.findings)
        if self._laid is not None and self._laid.is_reached(desired, met, self._facilities):
            if self._laid.keeps_places:
                met.inherit(self._laid.observed)
            return Plan(backend=self.name, findings=(*self._laid.layout.findings, *met.findings))
        layout = lay_out(desired, met, self._options, self._facilities)
        self._uplinks = tuple(one.index for one in desired.uplinks if one.index > 0)
        self._asked_for = frozenset((*self._uplinks, *layout.own_devices))
        self._is_shaping = bool(layout.specs)
        self._steered = layout.steered
        self._behind = frozenset(layout.behind)
        self._leaf_counts = None
        self._uids = {classify.owner_of(pod.uid): pod.uid for pod in desired.pods}
        self._names = {classify.owner_of(pod.uid): pod.name for pod in desired.pods}
        names = layout.names(
            {
                **{ifindex: one.name for ifindex, one in met.devices.items()},
                **met.names,
                **{one.index: one.name for one in desired.uplinks},
            }
        )
        operations = changes.operations(layout.specs, met, names, complete=layout.is_whole)
        self._laid = Laid(
            desired=desired,
            observed=met,
            facilities=self._facilities,
            layout=layout,
            is_plain=expected.is_plain(operations),
            keeps_places=expected.keeps_places(operations),
        )
        return Plan(
            backend=self.name,
            operations=operations,
            disturbs_loop=edits.touches_loop(operations),
            findings=(*layout.findings, *met.findings),
        )

    async def apply(self, plan: Plan) -> ApplyResult:
        """Carry out a plan; a failed operation stops only those that need it.

        What others change meanwhile shows in the observation that should follow.
        """
        if not plan:
            return ApplyResult()
        kernel = self._open()
        if self._evidence is not None and not self._is_shaping:
            self._evidence.end()
        self._print, self._has_written = None, True
        kernel.looker.awaits(None)
        tools = Tools(
            route=kernel.route,
            netfilter=kernel.netfilter,
            nft=self._nft,
            state=self._context.state,
            reader=kernel.reader,
            net_classes=self._net_classes,
            sleep=asyncio.sleep,
            monotonic=self._context.monotonic,
            program=kernel.chooser.descriptor,
            contents=kernel.reader.table.contents,
        )
        self._own_hooks |= edits.own_hooks(plan.operations)
        self._remembered |= names_of(edits.made(plan.operations))
        kernel.reader.hooks.forget(edits.led_devices(plan.operations))
        result = await Writer(tools).apply(plan.operations)
        if result.ok and expected.is_plain(plan.operations):
            kernel.looker.awaits(plan.operations)
        elif result.ok:
            self._print = kernel.auditor.take(self._devices())
        return result

    async def is_untouched(self) -> bool:
        """Whether all is as at the last observation; what the fast loop moves does not count."""
        kernel, devices = self._kernel, self._devices()
        if kernel is None:
            return False
        last = self._print or kernel.looker.as_awaited(devices, self._own_hooks, self._steered)
        if last is None or last.ifindexes != devices:
            return False
        if self._has_news():
            return False
        if kernel.surroundings.is_changed(self._watched()):
            return False
        if not self._is_standing(kernel, last):
            self._kept.renew()
            new, self._audited_s = kernel.auditor.refresh(last, devices), -math.inf
            if not new.is_same_as(last, self._steered):
                return False
            last, self._audited_s = new, self._context.monotonic()
        if self._net_classes is not None and not self._net_classes.is_still(self._classes_seen):
            return False
        self._print = last
        return True

    def _is_standing(self, kernel: Kernel, last: Fingerprint) -> bool:
        """Whether a look at the roots is enough: the last audit is fresh, and the kernel told of no change since."""
        touched = kernel.surroundings.take_touched()
        is_fresh = self._context.monotonic() - self._audited_s < WHOLE_AUDIT_S
        is_told = touched is not None and touched.isdisjoint(last.ifindexes)
        return is_fresh and is_told and kernel.auditor.is_standing(last)

    def fast_path(self) -> FastPath | None:
        """A grip on every tree that is shaped by level, None when there is none."""
        reader, shaped = self._open().reader, []
        for ifindex, steered in sorted(self._steered.items()):
            link = reader.link(ifindex)
            met = {minor: reader.our_class(ifindex, minor) for minor in steered.classes}
            specs = {minor: one.spec for minor, one in met.items() if one is not None}
            if link is None or len(specs) < len(met):
                continue
            is_ifb = ifindex == numbers.IFB_INDEX
            shaped.append(
                Shaped(
                    ifindex=ifindex,
                    name=IfName(link.name),
                    steered=steered,
                    left=steered.as_left(specs),
                    receivers=self._uplinks if is_ifb else (),
                )
            )
        if not shaped:
            return None
        path = TcFastPath(shaped, self._context.monotonic)
        self._open().surroundings.ignore(path.port)
        return path

    async def counters(self) -> Mapping[PodUid, tuple[LeafCounters, ...]]:
        """The counters of every workload's leaf, and of those of its rules, on each uplink."""
        if self._leaf_counts is None:
            self._leaf_counts = LeafCounts(self._seen, self._uplinks, self._uids)
        return self._leaf_counts.read(
            self._open().route, {ifindex: IfName(link.name) for ifindex, link in self._links.items()}
        )

    async def close(self) -> None:
        """Close the channels; everything stays in the kernel."""
        self.shut()

    def shut(self) -> None:
        """`close` for callers outside of an event loop."""
        if self._evidence is not None:
            self._evidence.end()
            self._evidence = None
        if self._kernel is not None:
            self._kernel.close()
            self._kernel = None
        self._print = None

    def open(self) -> None:
        """Open everything that speaks to the kernel in the namespace of the calling thread (else the first call does).

        `Unsupported` where libnftables is missing.
        """
        self._nft()

    def _open(self) -> Kernel:
        if self._kernel is None:
            self._kernel = Kernel.open()
            self._kernel.reader.table.contents.remember(self._context.state)
            watch, inbound = (Watch(self._kernel.netfilter, self._nft, one) for one in (EGRESS, INBOUND))
            self._evidence = Evidence(self._kernel.route, watch, inbound, self._context.monotonic)
        return self._kernel

    def _has_news(self) -> bool:
        """Whether the kernel's counters say something else against us than when they were looked at before."""
        if self._evidence is None or not self._evidence.is_due:
            return False
        trees = {ifindex: link.name for ifindex, link in self._links.items()}
        is_news = self._evidence.look(
            trees, self._uplinks, lambda way: claims.claimed_by(self._seen.elements, self._names, way)
        )
        return self._has_direct_news() or is_news

    def _has_direct_news(self) -> bool:
        """Whether what is to be told of packets that were sent unshaped is something else than what is told."""
        reader = self._open().reader
        roots = {ifindex: reader.our_root(ifindex) for ifindex in self._links}
        counts = {
            ifindex: answers.read_direct_packets(root.options)
            for ifindex, root in roots.items()
            if root is not None
        }
        now = self._direct.findings(counts, self._links, self._context.monotonic())
        return now != tuple(one for one in self._seen.findings if one.code == directpackets.CODE)

    def _nft(self) -> NftRunner:
        """One libnftables context for the life of the backend."""
        kernel = self._open()
        if kernel.nft is None:
            kernel.nft = self._context.nft()
        return kernel.nft

    def _read(self, kernel: Kernel) -> tuple[Inventory, Fingerprint]:
        """An inventory, and a fingerprint that was taken before it: a change in between makes the next check fail."""
        while True:
            devices = self._devices()
            fingerprint, found = kernel.looker.look(devices)
            self._links = found.links
            if self._devices() == devices:
                if self._net_classes is None:
                    kernel.looker.keep(fingerprint, found)
                return found, fingerprint

    def _watched(self) -> frozenset[int]:
        """The devices that led to our IFB when last observed, and those behind which workloads were."""
        return self._behind | {key.ifindex for key in self._seen.specs if isinstance(key, RedirectKey)}

    def _devices(self) -> frozenset[int]:
        return self._asked_for | frozenset(self._links)
