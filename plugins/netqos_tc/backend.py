"""The backend as the agent sees it: observe, plan, apply, and the small state between them.

The kernel holds the state. Kept in this process are only the channels, the last fingerprint, the last numbers of the
owners (for a table that somebody flushed) and the devices asked for. Calls may come from one task at a time; each
reads or writes within milliseconds and yields only while a leaf is drained.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Final, cast

from netqos.backend import BackendContext, Capabilities, FastPath, LeafCounters, NftRunner
from netqos.errors import Unsupported
from netqos.model.desired import DesiredState
from netqos.model.health import error
from netqos.model.ids import IfName, PodUid
from netqos.model.plan import ApplyResult, ObservedState, Plan
from netqos_tc import edits, expected, options
from netqos_tc.asked import Asked
from netqos_tc.evidence import Evidence
from netqos_tc.expected import Laid, lay
from netqos_tc.fast import TcFastPath
from netqos_tc.inbound import INBOUND
from netqos_tc.inventory import Inventory
from netqos_tc.kept import KeptRoots
from netqos_tc.kernel import Kernel
from netqos_tc.keys import RedirectKey
from netqos_tc.layout import Facilities
from netqos_tc.leafcounts import LeafCounts
from netqos_tc.links import Link
from netqos_tc.memory import Memory
from netqos_tc.netclasses import NetClasses, NetClassesSeen
from netqos_tc.observed import TcObserved
from netqos_tc.probe import probe
from netqos_tc.shaped import standing
from netqos_tc.strays import EGRESS, Watch
from netqos_tc.suspicions import Suspicions
from netqos_tc.writer import Writer

TRUSTED_S: Final = 0.4
"""How long a plan is made from the last observation unasked: no longer than it takes until drift is looked for."""


class TcBackend:
    """Shapes the uplinks of the network namespace in which its first call is made."""

    def __init__(self, context: BackendContext) -> None:
        """Read the options; `Rejected` with all that is wrong with them. The kernel is not touched yet."""
        self._context = context
        self._options = options.parse(context.options)
        self._facilities = Facilities()
        self._kernel: Kernel | None = None
        self._suspicions: Suspicions | None = None
        self._seen = TcObserved()
        self._links: Mapping[int, Link] = {}
        self._asked = Asked()
        self._memory = Memory()
        self._has_written = False
        self._leaf_counts: LeafCounts | None = None
        self._laid: Laid | None = None
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
        capabilities, self._facilities = probe(kernel.route, self._nft, table=kernel.reader.table.frame())
        return capabilities

    async def observe(self) -> TcObserved:
        """Read back everything of ours, exactly, and the roots that are not ours."""
        kernel = self._open()
        kernel.reader.hooks.forget(kernel.surroundings.look(self._watched()))
        found = self._read(kernel)
        self._leaf_counts = None
        if self._has_written:
            kernel.reader.table.contents.keep(self._context.state)
            self._has_written = False
        if self._net_classes is not None:
            self._classes_seen = self._net_classes.look()
            found.specs |= self._classes_seen.elements()
        self._links = found.links
        self._memory.meet(found, devices=kernel.surroundings.devices.keys(), owners=self._asked.uids)
        self._seen = TcObserved(
            ours=cast("Mapping[Hashable, object]", found.specs),
            roots=found.roots,
            names={ifindex: link.name for ifindex, link in found.links.items()},
            saved=self._kept.learn(found.links),
            remembered=dict(self._memory.minors),
            routes=kernel.surroundings.routes,
            devices=kernel.surroundings.devices,
            hooks=found.hooks,
            own_hooks=self._memory.own_hooks,
            led=self._memory.led,
            foreign_ifb=found.foreign_ifb,
            net_classes=None if self._net_classes is None else self._classes_seen.numbers,
            trusted_s=TRUSTED_S,
            findings=self._suspicions.tell(found) if self._suspicions is not None else (),
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
        self._laid, operations = lay(desired, met, self._options, self._facilities)
        layout = self._laid.layout
        self._asked, self._leaf_counts = Asked.of(desired, layout), None
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
        if self._suspicions is not None and not self._asked.is_shaping:
            self._suspicions.end()
        kernel.vigil.last, self._has_written = None, True
        kernel.looker.awaits(None)
        self._memory.write(plan.operations)
        kernel.reader.hooks.forget(edits.led_devices(plan.operations))
        tools = kernel.tools(self._context, self._nft, self._net_classes, asyncio.sleep)
        result = await Writer(tools).apply(plan.operations)
        if result.ok and expected.is_plain(plan.operations):
            kernel.looker.awaits(plan.operations)
        elif result.ok:
            kernel.vigil.last = kernel.auditor.take(self._devices())
        return result

    async def is_untouched(self) -> bool:
        """Whether all is as at the last observation; what the fast loop moves does not count."""
        kernel, suspicions = self._kernel, self._suspicions
        if kernel is None or suspicions is None:
            return False
        if suspicions.has_news(self._links, self._asked, self._seen):
            return False
        if kernel.surroundings.is_changed(self._watched()):
            return False
        is_kept = kernel.vigil.is_kept(
            self._devices(),
            self._asked.steered,
            self._memory.own_hooks,
            monotonic=self._context.monotonic,
            renew=self._kept.renew,
        )
        return is_kept and (self._net_classes is None or self._net_classes.is_still(self._classes_seen))

    def fast_path(self) -> FastPath | None:
        """A grip on every tree that is shaped by level, None when there is none."""
        shaped = list(standing(self._open().reader, self._asked.steered, self._asked.uplinks))
        if not shaped:
            return None
        path = TcFastPath(shaped, self._context.monotonic)
        self._open().surroundings.ignore(path.port)
        return path

    async def counters(self) -> Mapping[PodUid, tuple[LeafCounters, ...]]:
        """The counters of every workload's leaf, and of those of its rules, on each uplink."""
        if self._leaf_counts is None:
            self._leaf_counts = LeafCounts(self._seen, self._asked.uplinks, self._asked.uids)
        return self._leaf_counts.read(
            self._open().route, {ifindex: IfName(link.name) for ifindex, link in self._links.items()}
        )

    async def close(self) -> None:
        """Close the channels; everything stays in the kernel."""
        self.shut()

    def shut(self) -> None:
        """`close` for callers outside of an event loop."""
        if self._suspicions is not None:
            self._suspicions.end()
            self._suspicions = None
        if self._kernel is not None:
            self._kernel.close()
            self._kernel = None

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
            monotonic = self._context.monotonic
            evidence = Evidence(self._kernel.route, watch, inbound, monotonic)
            self._suspicions = Suspicions(self._kernel.reader, evidence, monotonic)
        return self._kernel

    def _nft(self) -> NftRunner:
        """One libnftables context for the life of the backend."""
        kernel = self._open()
        if kernel.nft is None:
            kernel.nft = self._context.nft()
        return kernel.nft

    def _read(self, kernel: Kernel) -> Inventory:
        """An inventory, and a fingerprint that was taken before it: a change in between makes the next check fail."""
        devices = self._devices() or kernel.reader.rooted()
        while True:
            fingerprint, found = kernel.looker.look(devices)
            self._links = found.links
            if self._devices() == devices:
                if self._net_classes is None:
                    kernel.looker.keep(fingerprint, found)
                kernel.vigil.last = fingerprint
                return found
            devices = self._devices()

    def _watched(self) -> frozenset[int]:
        """The devices that led to our IFB when last observed, and those behind which workloads were."""
        return self._asked.behind | {key.ifindex for key in self._seen.specs if isinstance(key, RedirectKey)}

    def _devices(self) -> frozenset[int]:
        return self._asked.devices | frozenset(self._links)
