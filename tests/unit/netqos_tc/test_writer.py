"""Applying: what fails stops what needs it and nothing else, whatever kind of failure it is."""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from unittest import mock

import pytest

from netqos.errors import Rejected, Unsupported
from netqos.model.desired import DesiredState
from netqos.model.levels import Direction, Level, PerDirection
from netqos.model.plan import ApplyResult, Operation
from netqos.model.rules import Rule
from netqos.testing import states
from netqos.testing.filehosts import MemoryState
from netqos_tc import answers, changes, classify, describe, links, numbers, tabletext, uapi, wire
from netqos_tc.contents import Contents
from netqos_tc.edits import Edit
from netqos_tc.jobs import INCOMPLETE, SKIPPED
from netqos_tc.keys import ClassKey, ElementKey, ElementMap, Key, QueueKey, RootKey, RulesKey, TableKey
from netqos_tc.layout import Facilities, lay_out
from netqos_tc.netlink import Refused
from netqos_tc.netmsg import Message, Request, attribute, string
from netqos_tc.observed import TcObserved
from netqos_tc.options import Options
from netqos_tc.root import Root
from netqos_tc.spec import ClassSpec, Spec
from netqos_tc.tools import Tools
from netqos_tc.writer import Writer

UP = states.uplink(index=2)
NOQUEUE = Root(kind="noqueue", handle=0)
WEB = states.pod("prod/web", Level.L0, addresses=("10.88.0.10",))
DB = states.pod("prod/db", Level.L1, addresses=("10.88.0.11",))


@dataclass(slots=True)
class FakeChannel:
    """Takes everything but what `refuses` says; keeps what was sent."""

    refuses: Callable[[Request], int] = lambda _request: 0
    sent: list[Request] = field(default_factory=list)
    transactions: list[int] = field(default_factory=list)

    def write(self, requests: Sequence[Request]) -> list[Refused | None]:
        self.sent += requests
        return [Refused(code=code) if (code := self.refuses(one)) else None for one in requests]

    def transact(self, requests: Sequence[Request], *, begin: Request, end: Request) -> list[Refused | None]:
        self.transactions.append(len(requests))
        return self.write(requests)


@dataclass(slots=True)
class FakeReader:
    """`ours` is what stands in the kernel."""

    root: Root = NOQUEUE
    ours: Mapping[Key, Spec] = field(default_factory=dict)

    @property
    def table(self) -> FakeReader:
        return self

    def root_of(self, _ifindex: int) -> Root:
        return self.root

    def our_class(self, ifindex: int, minor: int) -> mock.Mock | None:
        return mock.Mock(counters=answers.Counters()) if ClassKey(ifindex, minor) in self.ours else None

    def has_our_root(self, ifindex: int) -> bool:
        return RootKey(ifindex) in self.ours

    def has_table(self) -> bool:
        return TableKey() in self.ours

    def link(self, ifindex: int) -> links.Link:
        return links.Link(ifindex=ifindex, name="up0", mtu=1500)

    def classes(self, ifindex: int) -> list[mock.Mock]:
        keys = [key for key in self.ours if isinstance(key, ClassKey) and key.ifindex == ifindex]
        return [mock.Mock(minor=key.minor) for key in keys]

    def elements(self, which: ElementMap) -> dict[Key, Spec]:
        return {
            key: spec for key, spec in self.ours.items() if isinstance(key, ElementKey) and key.map is which
        }


@dataclass(slots=True)
class FakeNft:
    problem: Exception | None = None
    scripts: list[str] = field(default_factory=list)
    cannot: str = ""

    def run(self, commands: str) -> None:
        self.scripts.append(commands)
        if self.cannot and self.cannot in commands:
            raise Unsupported(f"{self.cannot} is not supported")
        if self.problem is not None:
            problem, self.problem = self.problem, None
            raise problem

    def check(self, commands: str) -> None:
        raise NotImplementedError(commands)

    def query(self, command: str) -> dict[str, object]:
        raise NotImplementedError(command)


@dataclass(slots=True, kw_only=True)
class Host:
    route: FakeChannel = field(default_factory=FakeChannel)
    netfilter: FakeChannel = field(default_factory=FakeChannel)
    nft: FakeNft = field(default_factory=FakeNft)
    reader: FakeReader = field(default_factory=FakeReader)
    state: MemoryState = field(default_factory=MemoryState)
    contents: Contents = field(default_factory=Contents)
    slept: list[float] = field(default_factory=list)

    async def apply(self, operations: Sequence[Operation]) -> ApplyResult:
        async def sleep(seconds: float) -> None:
            self.slept.append(seconds)

        tools = Tools(
            route=self.route,  # type: ignore[arg-type]  # has what the writer calls
            netfilter=self.netfilter,  # type: ignore[arg-type]
            nft=lambda: self.nft,
            state=self.state,
            reader=self.reader,  # type: ignore[arg-type]
            sleep=sleep,
            monotonic=lambda: sum(self.slept),
            contents=self.contents,
        )
        return await Writer(tools).apply(operations)


def plan(
    observed: TcObserved | None = None, desired: DesiredState | None = None
) -> tuple[tuple[Operation, ...], dict[str, int]]:
    met = observed or TcObserved(roots={2: NOQUEUE})
    wanted = desired or states.node((WEB, DB), uplinks=(UP,))
    layout = lay_out(wanted, met, Options(), Facilities(ingress=False))
    names = layout.names({2: "up0"})
    minors = {name: minor for minor, name in layout.workloads.items()}
    return changes.operations(layout.specs, met, names, complete=True), minors


def after(operations: Sequence[Operation]) -> TcObserved:
    """What is there when all operations have succeeded."""
    specs: dict[Hashable, object] = {}
    for one in operations:
        assert isinstance(one.payload, Edit)
        specs[one.payload.key] = one.payload.after
    return TcObserved(ours=specs, names={2: "up0"}, roots={2: NOQUEUE})


def standing(observed: TcObserved, *, without: Collection[Key] = ()) -> FakeReader:
    """A reader that finds what was observed."""
    return FakeReader(ours={key: spec for key, spec in observed.specs.items() if key not in without})


def key_of(operation: Operation) -> Key:
    assert isinstance(operation.payload, Edit)
    return operation.payload.key


def failed_keys(result: ApplyResult) -> dict[Key, str]:
    found = {}
    for failure in result.failures:
        assert isinstance(failure.operation.payload, Edit)
        found[failure.operation.payload.key] = failure.code
    return found


def is_class(request: Request, minor: int) -> bool:
    return request.type == uapi.NEWTCLASS and struct.unpack_from("=I", request.body, 8)[
        0
    ] == numbers.class_id(minor)


async def test_all_of_a_plan_is_written_and_the_earlier_root_kept_before() -> None:
    host = Host()
    operations, _ = plan()
    result = await host.apply(operations)
    assert result == ApplyResult(applied=len(operations))
    assert host.state.documents == {
        "root-up0": {"kind": "noqueue", "handle": 0, "options": "", "children": []}
    }
    assert host.route.sent[0].type == uapi.NEWQDISC


async def test_a_refused_leaf_stops_its_queue_and_its_element_and_nobody_elses() -> None:
    operations, minors = plan()
    web = minors["prod/web"]
    host = Host(route=FakeChannel(lambda one: errno.EINVAL if is_class(one, web) else 0))
    host.route.refuses = lambda one: errno.EINVAL if is_class(one, web) or is_queue(one, web) else 0
    result = await host.apply(operations)
    assert failed_keys(result) == {
        ClassKey(2, web): "EINVAL",
        QueueKey(2, web): SKIPPED,
        ElementKey(ElementMap.TX4, "10.88.0.10"): SKIPPED,
    }
    assert result.applied == len(operations) - 3
    assert host.netfilter.transactions == [1]


async def test_rules_go_together_and_what_one_workload_asks_for_never_stops_anothers() -> None:
    rules = PerDirection(tx=(Rule(matches=(), dscp=10),), rx=())
    other = PerDirection(tx=(Rule(matches=(), dscp=20),), rx=())
    pods = (replace(WEB, rules=rules), replace(DB, rules=other))
    operations, minors = plan(desired=states.node(pods, uplinks=(UP,)))
    host = Host()
    assert await host.apply(operations) == ApplyResult(applied=len(operations))
    assert [script.count("add chain") for script in host.nft.scripts[1:]] == [2]
    host = Host(nft=FakeNft(cannot="dscp set 20"))
    result = await host.apply(operations)
    assert failed_keys(result) == {RulesKey(Direction.TX, minors["prod/db"]): "Unsupported"}
    assert result.applied == len(operations) - 1


def is_queue(request: Request, minor: int) -> bool:
    return request.type == uapi.NEWQDISC and struct.unpack_from("=I", request.body, 12)[
        0
    ] == numbers.class_id(minor)


@pytest.mark.parametrize(
    "problem",
    [
        TypeError("x"),
        KeyError("y"),
        struct.error("z"),
        ZeroDivisionError("0"),
        OSError(5, "io"),
        ValueError(),
    ],
)
async def test_whatever_is_raised_for_one_object_is_its_failure_alone(problem: Exception) -> None:
    operations, minors = plan()
    real, web = wire.make_class, minors["prod/web"]

    def breaks(ifindex: int, minor: int, spec: ClassSpec, *, create: bool = True) -> Request:
        if minor == web:
            raise problem
        return real(ifindex, minor, spec, create=create)

    host = Host()
    with mock.patch("netqos_tc.writer.wire.make_class", breaks):
        result = await host.apply(operations)
    codes = failed_keys(result)
    assert codes[ClassKey(2, web)] == type(problem).__name__
    assert set(codes.values()) == {type(problem).__name__, SKIPPED}
    assert all(failure.message for failure in result.failures)
    assert result.applied == len(operations) - 3


# ---------------------------------------------------------------- nothing is made without what it stands on


async def test_a_leaf_is_not_even_tried_when_its_level_was_refused() -> None:
    """HTB would take it, as a class beside the levels."""
    operations, minors = plan()
    host = Host(route=FakeChannel(lambda one: errno.ENOMEM if is_class(one, 0x10) else 0))
    result = await host.apply(operations)
    under = [numbers.HOST, numbers.CRITICAL, minors["prod/web"]]
    lost: list[Key] = [key for minor in under for key in (ClassKey(2, minor), QueueKey(2, minor))]
    element = ElementKey(ElementMap.TX4, "10.88.0.10")
    assert failed_keys(result) == {
        ClassKey(2, 0x10): "ENOMEM",
        **dict.fromkeys([*lost, element], SKIPPED),
    }
    assert not [one for one in host.route.sent for minor in under if is_class(one, minor)]
    assert {one.message for one in result.failures if one.operation.subject == "class 4e51:10f on up0"} == {
        "it needs class 4e51:10 on up0, which could not be set up"
    }


@pytest.mark.parametrize("is_there", [True, False])
async def test_what_a_plan_does_not_make_must_be_there(is_there: bool) -> None:
    """A plan without the level (its repair is held back) makes the level's leaves only where the level stands."""
    operations, minors = plan()
    web = minors["prod/web"]
    own: set[Key] = {ClassKey(2, web), QueueKey(2, web), ElementKey(ElementMap.TX4, "10.88.0.10")}
    part = [one for one in operations if key_of(one) in own]
    host = Host(reader=standing(after(operations), without=own if is_there else {*own, ClassKey(2, 0x10)}))
    result = await host.apply(part)
    assert failed_keys(result) == ({} if is_there else dict.fromkeys(own, SKIPPED))
    assert bool(host.route.sent) is is_there
    assert bool(host.netfilter.sent) is is_there
    messages = [one.message for one in result.failures]
    assert messages[:1] == ([] if is_there else ["it needs class 4e51:10 on up0, which is not there"])


@pytest.mark.parametrize("need", [RootKey(2), ClassKey(2, numbers.CONTROL), TableKey()])
async def test_whatever_lacks_what_it_needs_is_skipped_and_names_it(need: Key) -> None:
    operations, _ = plan()
    part = [one for one in operations if isinstance(one.payload, Edit) and need in one.payload.needs]
    host = Host(reader=standing(after(operations), without=[need, *map(key_of, part)]))
    result = await host.apply(part)
    assert part
    assert failed_keys(result) == dict.fromkeys(map(key_of, part), SKIPPED)
    assert {one.message for one in result.failures} == {
        f"it needs {describe.subject(need, describe.Names(devices={2: 'up0'}))}, which is not there"
    }
    assert (host.route.sent, host.netfilter.sent) == ([], [])


@pytest.mark.parametrize("minor", sorted(numbers.KINDS.tx.fixed))
async def test_no_root_is_made_without_a_class_that_every_tree_has(minor: int) -> None:
    operations, _ = plan()
    host = Host()
    result = await host.apply([one for one in operations if key_of(one) != ClassKey(2, minor)])
    assert (host.route.sent, host.netfilter.sent, host.state.documents) == ([], [], {})
    codes = failed_keys(result)
    assert codes.pop(RootKey(2)) == INCOMPLETE
    assert set(codes.values()) == {SKIPPED}
    assert f"no class 4e51:{minor:x}" in result.failures[0].message


async def test_a_leaf_stays_while_an_element_that_is_left_out_of_the_plan_leads_to_it() -> None:
    operations, minors = plan()
    met = after(operations)
    there, _ = plan(met, states.node((DB,), uplinks=(UP,)))
    part = [one for one in there if not isinstance(key_of(one), ElementKey)]
    web = ClassKey(2, minors["prod/web"])
    result = await Host(reader=standing(met)).apply(part)
    assert failed_keys(result) == {web: SKIPPED}
    assert result.failures[0].message == "element 10.88.0.10 of map tx4 still leads to it"
    gone = standing(met, without=[ElementKey(ElementMap.TX4, "10.88.0.10")])
    assert (await Host(reader=gone).apply(part)).ok


async def test_without_the_root_nothing_on_the_device_is_tried() -> None:
    operations, _ = plan()
    host = Host(reader=FakeReader(Root(kind="cake", handle=0x10000)))
    result = await host.apply(operations)
    assert host.route.sent == []
    assert host.netfilter.sent == []
    assert host.state.documents == {}
    codes = failed_keys(result)
    assert codes.pop(RootKey(2)) == "Retryable"
    assert set(codes.values()) == {SKIPPED}


async def test_without_the_table_there_are_no_elements() -> None:
    operations, _ = plan()
    host = Host(nft=FakeNft(Rejected("no")))
    codes = failed_keys(await host.apply(operations))
    assert codes[TableKey()] == "Rejected"
    assert {type(key) for key in codes} == {TableKey, ElementKey}


async def test_a_refused_element_is_left_out_and_the_rest_goes_in_one_more_transaction() -> None:
    operations, _ = plan()
    bad = bytes((10, 88, 0, 10))
    host = Host(netfilter=FakeChannel(lambda one: errno.EBUSY if bad in one.body else 0))
    result = await host.apply(operations)
    assert failed_keys(result) == {ElementKey(ElementMap.TX4, "10.88.0.10"): "EBUSY"}
    assert host.netfilter.transactions == [2, 1]
    assert result.applied == len(operations) - 1


async def test_what_is_gone_already_counts_as_deleted_but_a_refused_move_keeps_the_old_leaf() -> None:
    operations, minors = plan()
    met = after(operations)
    moved = states.node((replace(WEB, level=Level.L2),), uplinks=(UP,))
    there, _ = plan(met, moved)
    host = Host(
        reader=standing(met),
        netfilter=FakeChannel(
            lambda one: errno.EPERM if bytes((10, 88, 0, 10)) in one.body else errno.ENOENT
        ),
    )
    result = await host.apply(there)
    codes = failed_keys(result)
    assert codes[ElementKey(ElementMap.TX4, "10.88.0.10")] == "EPERM"
    assert codes[ClassKey(2, minors["prod/web"])] == SKIPPED
    assert ElementKey(ElementMap.TX4, "10.88.0.11") not in codes
    assert ClassKey(2, minors["prod/db"]) not in codes


async def test_a_leaf_that_never_empties_is_waited_for_a_second_and_no_longer() -> None:
    operations, _ = plan()
    met = after(operations)
    there, _ = plan(met, states.node((DB,), uplinks=(UP,)))
    host = Host()
    stuck = mock.Mock(counters=answers.Counters(backlog_packets=3))
    host.reader = mock.Mock(our_class=lambda _ifindex, _minor: stuck)
    assert (await host.apply(there)).ok
    assert 0.9 <= sum(host.slept) <= 1.1


async def test_an_element_of_another_type_of_map_makes_the_table_anew() -> None:
    spec = classify.table_spec(cgroups=True)
    damaged = replace(spec, rules=spec.rules[1:])
    met = TcObserved(ours={TableKey(): damaged}, roots={2: NOQUEUE})
    operations, _ = plan(met)
    table = [one for one in operations if one.subject == "table inet netqos"]
    host = Host(nft=FakeNft(Rejected("nft: File exists")))
    assert (await host.apply(table)).ok
    assert host.nft.scripts == [
        tabletext.repair_text(damaged, spec),
        tabletext.removal_text() + tabletext.setup_text(cgroups=True),
    ]


async def test_rules_that_could_not_be_made_anew_are_not_forgotten() -> None:
    """What somebody made of them would pass for what they should be."""
    operations, _ = plan()
    host = Host(nft=FakeNft(Rejected("no")))
    host.contents.read([rule_message("forward", "netqos 4 tx4", b"as made")])
    await host.apply(operations)
    (edited,) = host.contents.read([rule_message("forward", "netqos 4 tx4", b"edited")])
    assert edited.comment == ""
    await host.apply(operations)
    (trusted,) = host.contents.read([rule_message("forward", "netqos 4 tx4", b"made anew")])
    assert trusted.comment == "netqos 4 tx4"


def rule_message(chain: str, comment: str, expressions: bytes) -> Message:
    told = comment.encode() + b"\0"
    body = struct.pack("=BBH", 1, 0, 0) + string(1, "netqos") + string(2, chain)
    body += attribute(4, expressions) + attribute(7, bytes((0, len(told))) + told)
    return Message(0, 0, 0, body)
