"""A whole view of a busy node, with every kind of thing in it, and an agent that holds one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace

from netqos.backend import Capabilities, LeafCounters, PacketWay
from netqos.engine import pathstate, room
from netqos.engine.room import RoomState
from netqos.engine.unitstate import LoopPolicy, Onset, UnitState
from netqos.engine.why import Ground, Reasoned, why
from netqos.model.composed import EMPTY_LAST_GOOD, AppliedLimit, Choice, Composition, PodView
from netqos.model.desired import Band, DesiredPod, DesiredState
from netqos.model.health import Finding, error, info, warning
from netqos.model.ids import IfName, PodUid
from netqos.model.inputs import Freshness, Override, SourceState
from netqos.model.levels import Direction, Level, PerDirection, PerLevel
from netqos.model.plan import ApplyResult, Failure, Operation, Plan, Verb
from netqos.model.rules import IpMatch, PortMatch, PortRange, Protocol, Rule
from netqos.model.traffic import Decision, Unit, UnitSample
from netqos.observe.pathview import PathView
from netqos.observe.view import AgentView, BackendView, LoopView, Numbered, OverrideRequest, Round
from netqos.runtime.overrides import accept
from netqos.testing import states
from netqos.testing.clock import FakeClock

M = 1_000_000
CLOCK = FakeClock()

WEB, DB, CRUNCH, HOSTILE = (
    states.pod_uid(name) for name in ("web", "prod/db", "batch/crunch", "prod/hostile")
)

RULE = Rule(
    matches=(
        IpMatch(networks=("10.0.0.0/8",)),
        PortMatch(ranges=(PortRange(low=80, high=80),), protocol=Protocol.TCP, expression="=80"),
    ),
    level=Level.L1,
    dscp=46,
    minimum_bps=1 * M,
    maximum_bps=5 * M,
)

DESIRED = states.node(
    (
        states.pod("web", Level.L0, addresses=("10.88.0.10", "fd00:88::10"), tx_bps=80 * M),
        states.pod("prod/db", Level.L1, addresses=("10.88.0.11",)),
        states.pod(
            "batch/crunch",
            Level.L2,
            addresses=("10.88.0.12",),
            tx_bps=50 * M,
            rx_bps=20 * M,
            rules=PerDirection(tx=(RULE,), rx=()),
        ),
        states.pod("prod/hostile", Level.L2, cgroup=None, rx_bps=7 * M),
    )
)

NAMED = {pod.name: pod for pod in DESIRED.pods}

EVIL = "\x1b[2J\x1b]0;owned\x07 \u202e10M\n"
"""What a hostile annotation would like to do to a terminal."""


def view_of(pod: DesiredPod, source: str, *findings: Finding, egress: str = "", ingress: str = "") -> PodView:
    """A pod's view that agrees with what is desired of it."""
    namespace, _, name = pod.name.rpartition("/")
    return PodView(
        uid=pod.uid,
        namespace=namespace,
        name=name,
        level=pod.level,
        level_source=source,
        level_choices=(
            Choice(source="override", value="", verdict="absent"),
            Choice(source=source, value=pod.level.name.lower(), verdict="used"),
            Choice(
                source="kubernetes class",
                value="Burstable",
                verdict="shadowed",
                reason=f"{source} comes first",
            ),
        ),
        limits=PerDirection(
            tx=_limit(pod.limits_bps.tx, egress or "default"),
            rx=_limit(pod.limits_bps.rx, ingress or "default"),
        ),
        addresses=pod.addresses,
        cgroup=pod.cgroup,
        host_network=pod.host_network,
        findings=findings,
    )


def _limit(bps: int | None, source: str) -> AppliedLimit:
    choices = (
        Choice(
            source="annotation koordinator.sh/networkQOS",
            value=EVIL,
            verdict="rejected",
            reason="no quantity",
        ),
        Choice(source=source, value="" if bps is None else str(bps), verdict="used"),
    )
    return AppliedLimit(bps=bps, source=source, choices=choices)


BAD_VALUE = warning(
    "bad-limit", "pod prod/hostile", f"egress-bandwidth {EVIL!r} is no quantity", hint="write it as 10M"
)
PODS = (
    view_of(NAMED["web"], "workload", egress="workload"),
    view_of(NAMED["prod/db"], "label koordinator.sh/qosClass"),
    view_of(
        NAMED["batch/crunch"],
        "kubernetes class",
        egress="annotation koordinator.sh/egress-bandwidth",
        ingress="annotation kubernetes.io/ingress-bandwidth",
    ),
    view_of(NAMED["prod/hostile"], "kubernetes class", BAD_VALUE, ingress="override"),
)

UNIT = Unit(Direction.TX, IfName("up0"))
DECISION = Decision(
    unit=UNIT,
    at_s=999.9,
    elapsed_s=0.02,
    rates_bps=PerLevel(612 * M, 201_500_000, 98 * M),
    backlogged=PerLevel(True, False, True),
    contention=True,
    ceilings_bps=PerLevel(600 * M, 800 * M, 1000 * M),
    changed=True,
)

RX_UNIT = Unit(Direction.RX, IfName("netqos-ifb"))
RX_DECISION = Decision(
    unit=RX_UNIT,
    at_s=999.9,
    elapsed_s=0.02,
    rates_bps=PerLevel(203 * M, 177 * M, 60 * M),
    backlogged=PerLevel(False, True, False),
    contention=True,
    ceilings_bps=PerLevel(210 * M, 450 * M, 450 * M),
    changed=False,
    room_bps=450 * M,
)
"""The node itself receives 150 of the 600 Mbit/s."""


def ground_of(
    made: Decision, total_bps: int, bands: PerLevel[Band] | None, needs: PerLevel[int], *, kept_bps: int = 0
) -> Ground:
    """A decision with what it could have been made from: its third second of contention."""
    assert bands is not None
    policy = LoopPolicy(total_bps=total_bps, bands=bands, lends=True, headroom=0.0)
    total = total_bps if made.room_bps is None else made.room_bps
    onset = Onset(at_s=made.at_s - 2.5, used_bps=total * 96 // 100, total_bps=total, waited=False)
    state = UnitState(
        base=UnitSample(unit=made.unit, taken_at_s=made.at_s, level_bytes=PerLevel(1, 2, 3)),
        policy=replace(policy, total_bps=total, bands=room.within(bands, total)),
        rates_bps=made.rates_bps,
        contention=made.contention,
        onset=onset if made.contention else None,
        needs=(needs,),
        ceilings_bps=made.ceilings_bps,
        wanted_bps=made.ceilings_bps,
        wanted_since_s=made.at_s - 1.5,
        room=RoomState(kept_bps=kept_bps),
        room_bps=made.room_bps,
    )
    return Ground(made, policy, state)


GROUND = ground_of(DECISION, 1000 * M, states.TX.levels, PerLevel(1000 * M, 200 * M, 1000 * M))
RX_GROUND = ground_of(
    RX_DECISION, 600 * M, states.RX.levels, PerLevel(203 * M, 450 * M, 60 * M), kept_bps=150 * M
)
QUIET = ground_of(
    replace(
        DECISION,
        at_s=998.9,
        rates_bps=PerLevel(412 * M, 1_500_000, 98 * M),
        backlogged=PerLevel(False, False, False),
        contention=False,
        ceilings_bps=PerLevel(1000 * M, 800 * M, 1000 * M),
        changed=False,
    ),
    1000 * M,
    states.TX.levels,
    PerLevel(412 * M, 1_500_000, 98 * M),
)

SHARED_HOOK = info("shared-hook", "pod11", "its egress has filters of others before ours")
TC = BackendView(
    name="tc",
    state="ok",
    capabilities=Capabilities(
        available=True,
        enforces=frozenset(Direction),
        apart=frozenset({Direction.RX}),
        lends=True,
        rules=False,
    ),
    last_result=ApplyResult(applied=14),
    last_applied_s=940.0,
    findings=(SHARED_HOOK,),
    operations={("create", "ok"): 14, ("change", "error"): 1},
    repairs=2,
)
TERWAY = BackendView(
    name="terway",
    state="unavailable",
    capabilities=Capabilities(
        available=False,
        findings=(
            error("no-net-cls", "backend terway", "this node has no net_cls", hint="use the tc backend"),
        ),
    ),
    findings=(error("no-net-cls", "backend terway", "this node has no net_cls", hint="use the tc backend"),),
)
FILES = BackendView(
    name="files",
    state="ok",
    capabilities=Capabilities(available=True, limits=False),
    last_result=ApplyResult(applied=2),
    last_applied_s=941.0,
    operations={("create", "ok"): 2},
)

OVERRIDE = Override(
    uid=HOSTILE,
    limits=PerDirection(tx=None, rx=7 * M),
    level=None,
    expires_wall_s=1_700_000_600.0,
    expires_boot_s=5_500.0,
    boot_id="boot-1",
    reason="load test",
    author_uid=0,
)

NOTES = (
    warning(
        "total-far-from-speed", "eth0", "the total 1G is above the speed 100M", hint="check node.bandwidth"
    ),
    error("direct-packets", "up0", "12 packets bypassed the classes", hint="see docs/cli.md"),
)


TX_PATH = PathView(
    total_bps=1000 * M, floor_bps=930 * M, follows=False, limit_bps=None, shortfall=None, steps=()
)
RX_PATH = PathView(
    total_bps=600 * M,
    floor_bps=305 * M,
    follows=True,
    limit_bps=470 * M,
    shortfall=pathstate.Shortfall(
        plateau_bps=480 * M, loss_share=0.0125, workloads=3, since_s=900.0, seen_s=940.0
    ),
    steps=(
        pathstate.Step(at_s=948.1, reason=pathstate.Reason.TRY_LOWER, before_bps=600 * M, after_bps=470 * M),
        pathstate.Step(at_s=950.0, reason=pathstate.Reason.EASED, before_bps=470 * M, after_bps=470 * M),
    ),
)


def view(**changes: object) -> AgentView:
    """The busy node; keywords replace fields."""
    whole = AgentView(
        version="0.1.0",
        node="worker-1",
        started_s=400.0,
        now_s=1_000.0,
        ready=True,
        composition=composition(DESIRED, PODS),
        sources={
            "file": SourceState(freshness=Freshness.FRESH, since_s=999.8),
            "nodeslo": SourceState(freshness=Freshness.WAITING),
            "pods": SourceState(freshness=Freshness.STALE, since_s=880.0, detail="server not reachable"),
        },
        backends={"tc": TC, "terway": TERWAY, "files": FILES},
        loop=LoopView(
            newest={UNIT: GROUND, RX_UNIT: RX_GROUND},
            ticks=12_345,
            late_p99_s=0.0004,
            late_max_s=0.012,
            duration_p99_s=0.0002,
            contention_s={UNIT: 61.5, RX_UNIT: 7.25},
            writes=77,
            last_tick_s=999.9,
        ),
        paths={UNIT: TX_PATH, RX_UNIT: RX_PATH},
        overrides=(OVERRIDE,),
        findings=NOTES,
    )
    return replace(whole, **changes)  # type: ignore[arg-type]


def tx_only() -> AgentView:
    """The same on a host where nothing shapes ingress."""
    whole = view()
    able = replace(TC.capabilities, enforces=frozenset({Direction.TX}), apart=frozenset())  # type: ignore[type-var]
    loop = replace(whole.loop, newest={UNIT: GROUND}, contention_s={UNIT: 61.5})
    return replace(whole, backends={**whole.backends, "tc": replace(TC, capabilities=able)}, loop=loop)


def composition(desired: DesiredState, pods: tuple[PodView, ...]) -> Composition:
    return Composition(
        desired=desired,
        total_sources=PerDirection(tx="nodeslo", rx="speed of up0"),
        pods=pods,
        findings=NOTES,
        last_good=EMPTY_LAST_GOOD,
    )


EMPTY = AgentView(
    version="0.1.0",
    node="worker-1",
    started_s=999.0,
    now_s=1_000.0,
    ready=False,
    composition=None,
    sources={"file": SourceState(freshness=Freshness.WAITING)},
    backends={},
    loop=LoopView(),
    overrides=(),
    findings=(),
)

PLAN = (
    Plan(
        backend="tc",
        operations=(
            Operation(verb=Verb.CREATE, subject="class 4e51:1001 on up0", detail="rate 80M ceil 80M"),
            Operation(verb=Verb.CHANGE, subject="class 4e51:11 on up0", detail="ceil 10M -> 20M"),
            Operation(verb=Verb.DELETE, subject="class 4e51:1002 on up0"),
        ),
        findings=(SHARED_HOOK,),
    ),
    Plan(backend="files"),
)

COUNTERS: dict[PodUid, tuple[LeafCounters, ...]] = {
    WEB: (
        LeafCounters(
            direction=Direction.TX,
            sent_bytes=123_456_789,
            sent_packets=98_765,
            drops=12,
            backlog_bytes=3_000,
            where="class 4e51:1001 on up0",
        ),
        LeafCounters(
            direction=Direction.RX,
            sent_bytes=9_876_543,
            sent_packets=8_765,
            drops=3,
            backlog_bytes=1_500,
            where="class 4e52:1001 on netqos-ifb",
        ),
    ),
    CRUNCH: (
        LeafCounters(
            direction=Direction.TX,
            sent_bytes=555,
            sent_packets=5,
            drops=0,
            backlog_bytes=0,
            where="class 4e51:1003",
            way=lambda: PacketWay(
                ("workload", "cali7", "nft tx4", "class 4e51:1003 in L2 of up0"), ("tx4 10.88.0.12",)
            ),
        ),
        LeafCounters(
            direction=Direction.RX,
            sent_bytes=0,
            sent_packets=0,
            drops=0,
            backlog_bytes=0,
            where="class 4e52:1003 on netqos-ifb",
            way=lambda: PacketWay(
                (
                    "up0",
                    "nft rx4",
                    "redirect at cali7",
                    "class 4e52:1003 in L2 of netqos-ifb",
                    "workload",
                ),
                ("rx4 10.88.0.12",),
            ),
        ),
    ),
}

FAILED = ApplyResult(
    applied=1,
    failures=(
        Failure(
            operation=Operation(verb=Verb.CHANGE, subject="class 4e51:11 on up0", detail="ceil 10M -> 20M"),
            code="ENOENT",
            message="no such class",
        ),
    ),
)


class SampleAgent:
    """Obeys the `Agent` protocol over one view; overrides are kept and shown as the real one does."""

    def __init__(self, shown: AgentView | None = None, clock: FakeClock = CLOCK) -> None:
        self.shown = shown if shown is not None else view()
        self.clock = clock
        self.requests: list[tuple[PodUid, OverrideRequest]] = []
        self.results: dict[str, ApplyResult] = {"tc": ApplyResult(applied=3), "files": ApplyResult()}
        self.calls: list[str] = []
        self.ticks: asyncio.Queue[Numbered[Ground]] = asyncio.Queue()
        self.taken: asyncio.Queue[Numbered[Round]] = asyncio.Queue()
        self.failure: Exception | None = None
        self.delay_s = 0.0
        self.readers = 0

    def view(self) -> AgentView:
        if self.failure is not None:
            raise self.failure
        return self.shown

    def history(self) -> tuple[Reasoned, ...]:
        return tuple(Reasoned(one.decision, why(one)) for one in (QUIET, GROUND, RX_GROUND))

    async def stream(self) -> AsyncGenerator[tuple[Numbered[Ground], ...], None]:
        self.readers += 1
        try:
            while True:
                yield (await self.ticks.get(),)
        finally:
            self.readers -= 1

    async def rounds(self) -> AsyncGenerator[tuple[Numbered[Round], ...], None]:
        self.readers += 1
        try:
            while True:
                yield (await self.taken.get(),)
        finally:
            self.readers -= 1

    async def plan(self) -> tuple[Plan, ...]:
        await self._called("plan")
        return PLAN

    async def counters(self, pod: PodView) -> tuple[LeafCounters, ...]:
        await self._called("counters")
        return COUNTERS.get(pod.uid, ())

    async def all_counters(self) -> Mapping[PodUid, tuple[LeafCounters, ...]]:
        await self._called("all_counters")
        return COUNTERS

    async def set_override(self, uid: PodUid, request: OverrideRequest) -> Override:
        await self._called("set_override")
        self.requests.append((uid, request))
        accepted = replace(accept(uid, request, self.clock), author_uid=0)
        kept = tuple(one for one in self.shown.overrides if one.uid != uid)
        self.shown = replace(self.shown, overrides=(*kept, accepted))
        return accepted

    async def delete_override(self, uid: PodUid) -> bool:
        await self._called("delete_override")
        kept = tuple(one for one in self.shown.overrides if one.uid != uid)
        found = len(kept) < len(self.shown.overrides)
        self.shown = replace(self.shown, overrides=kept)
        return found

    async def reconcile(self) -> Mapping[str, ApplyResult]:
        await self._called("reconcile")
        return self.results

    async def _called(self, name: str) -> None:
        self.calls.append(name)
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        if self.failure is not None:
            raise self.failure
