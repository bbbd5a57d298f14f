"""The ingress direction on a model of the kernel: its tree by whole values, what is redirected, and what is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netqos.model.desired import NOTHING, DesiredState
from netqos.model.health import Severity
from netqos.model.levels import Direction, Level
from netqos.model.plan import Plan, Verb
from netqos.testing import states
from netqos.testing.states import G, M
from netqos_tc import changes, describe, numbers
from netqos_tc.edits import Edit, device_of
from netqos_tc.keys import ClassKey, ElementKey, ElementMap, LinkKey, QueueKey, RedirectKey, RootKey, TableKey
from netqos_tc.layout import Facilities, lay_out
from netqos_tc.observed import TcObserved
from netqos_tc.options import Options
from netqos_tc.places import Device, Hook, Routes
from netqos_tc.root import Root
from netqos_tc.spec import ClassSpec, ElementSpec, LeafQueueSpec, LinkSpec, RedirectSpec, RootSpec
from tests.unit.netqos_tc.tckernel import BRIDGE, PORT, ModelKernel
from tests.unit.netqos_tc.test_places import route

IFB = numbers.IFB_INDEX
UP = states.uplink(index=2, tx_bps=10 * G, rx_bps=4 * G)
WEB = states.pod("prod/web", Level.L0, addresses=("10.88.0.10", "fd00:88::10"), tx_bps=70 * M)
BULK = states.pod("ns/bulk", Level.L2, addresses=("10.88.0.12",), rx_bps=30 * M)


def node(*pods: object) -> DesiredState:
    chosen = pods or (WEB, BULK)
    return states.node(
        chosen,  # type: ignore[arg-type]  # pods
        uplinks=(UP,),
        tx=states.direction(10 * G),
        rx=states.direction(4 * G, ceilings_bps=(4 * G, 4 * G, 3 * G)),
    )


def plan(desired: DesiredState, observed: TcObserved, facilities: Facilities | None = None) -> Plan:
    layout = lay_out(desired, observed, Options(), facilities or Facilities())
    names = layout.names({2: "up0"})
    operations = changes.operations(layout.specs, observed, names, complete=layout.is_whole)
    return Plan(backend="tc", operations=operations, findings=layout.findings)


def kernel() -> ModelKernel:
    return ModelKernel({2: Root(kind="noqueue", handle=0)})


def bring(model: ModelKernel, desired: DesiredState) -> Plan:
    made = plan(desired, model.observe())
    model.apply(made.operations)
    return made


def minor_of(model: ModelKernel, address: str, which: ElementMap = ElementMap.RX4) -> int:
    spec = model.specs[ElementKey(which, address)]
    assert isinstance(spec, ElementSpec)
    return spec.minor


def ingress_findings(made: Plan) -> dict[str, tuple[Severity, str]]:
    return {
        one.subject: (one.severity, one.message)
        for one in made.findings
        if one.code == "not-enforced-ingress"
    }


def test_the_ingress_tree_by_its_values() -> None:
    """Class, parent, rate, ceil (bits per second), prio, quantum, queue; the other direction has no part in it."""
    model = kernel()
    bring(model, node())
    web, bulk = minor_of(model, "10.88.0.10"), minor_of(model, "10.88.0.12")
    found = {}
    for key, spec in model.specs.items():
        if isinstance(key, ClassKey) and key.ifindex == IFB and isinstance(spec, ClassSpec):
            queue = model.specs.get(QueueKey(IFB, key.minor))
            limit = queue.limit if isinstance(queue, LeafQueueSpec) else None
            found[key.minor] = (spec.parent, spec.rate * 8, spec.ceil * 8, spec.prio, spec.quantum, limit)
    assert found == {
        0x1: (0x4E520000, 4 * G, 4 * G, None, None, None),
        0x10: (0x4E520001, 2 * G, 4 * G, None, None, None),
        0x11: (0x4E520001, 1200 * M, 4 * G, None, None, None),
        0x12: (0x4E520001, 800 * M, 3 * G, None, None, None),
        0xE: (0x4E520000, 1000 * G, 1000 * G, 0, 60_000, 4_194_304),
        0x11F: (0x4E520011, 146_480, 4 * G, 1, 15_000, 3_000_000),
        web: (0x4E520010, 1_953_120, 4 * G, 0, 15_000, 5_000_000),
        bulk: (0x4E520012, 97_656, 30 * M, 2, 15_000, 75_000),
    }
    assert model.specs[RootKey(IFB)] == RootSpec(default_minor=numbers.LOCAL)
    assert model.specs[LinkKey(IFB)] == LinkSpec()
    assert model.specs[RedirectKey(PORT)] == RedirectSpec(target=IFB, owns_hook=True)


def test_an_owner_has_one_number_in_both_directions() -> None:
    model = kernel()
    bring(model, node())
    for address, versions in (("10.88.0.10", 4), ("fd00:88::10", 6)):
        maps = (ElementMap.TX4, ElementMap.RX4) if versions == 4 else (ElementMap.TX6, ElementMap.RX6)
        assert {minor_of(model, address, one) for one in maps} == {minor_of(model, "10.88.0.10")}
    assert {ClassKey(one, minor_of(model, "10.88.0.10")) for one in (2, IFB)} <= model.specs.keys()


def test_packets_are_led_to_the_ifb_last_and_away_from_it_first() -> None:
    model = kernel()
    there = bring(model, node()).operations
    back = bring(model, NOTHING).operations
    keys = [[one.payload.key for one in part if isinstance(one.payload, Edit)] for part in (there, back)]
    assert keys[0].index(LinkKey(IFB)) < keys[0].index(RootKey(IFB)) < keys[0].index(ClassKey(IFB, 0xE))
    assert keys[0][-1] == RedirectKey(PORT)
    assert keys[1][0] == RedirectKey(PORT)
    assert keys[1].index(LinkKey(IFB)) > keys[1].index(RedirectKey(PORT))
    assert not [key for key in keys[1] if isinstance(key, ClassKey | RootKey) and key.ifindex == IFB]
    assert {one.verb for one in back} == {Verb.DELETE}
    assert model.specs == {}


def test_only_a_direction_that_asks_for_something_is_shaped() -> None:
    model = kernel()
    egress = replace(node(WEB), directions=replace(node().directions, rx=states.direction(None)))
    bring(model, egress)
    assert {device_of(key) for key in model.specs} == {2, None}
    assert {one.map.direction for one in model.observe().elements} == {Direction.TX}
    ingress = states.switched_off(node(BULK))
    bring(model, ingress)
    assert {device_of(key) for key in model.specs} == {IFB, PORT, None}
    bring(model, states.switched_off(node(states.pod("ns/bulk", Level.L2, addresses=("10.88.0.12",)))))
    assert model.specs == {}


def test_where_the_kernel_cannot_do_it_egress_goes_on() -> None:
    model = kernel()
    model.apply(plan(node(), model.observe(), Facilities(ingress=False)).operations)
    assert {device_of(key) for key in model.specs} == {2, None}


def test_what_leads_to_an_ifb_that_was_removed_is_led_anew_as_part_of_that_incident() -> None:
    model = kernel()
    desired = node()
    bring(model, desired)
    before = dict(model.specs)
    model.specs = {key: spec for key, spec in before.items() if device_of(key) != IFB}
    model.specs[RedirectKey(PORT)] = RedirectSpec(target=0, owns_hook=True)
    made = bring(model, desired)
    assert model.specs == before
    assert {one.incident for one in made.operations} == {"device netqos-ifb"}
    (redirect,) = [one for one in made.operations if one.subject.startswith("redirect")]
    assert redirect.detail == "leads to nowhere by a hook of ours -> netqos-ifb by a hook of ours"
    assert redirect.is_vital


def test_whom_each_object_concerns() -> None:
    model = kernel()
    desired = node()
    observed = model.observe()
    layout = lay_out(desired, observed, Options(), Facilities())
    names = layout.names({2: "up0"})
    made = changes.operations(layout.specs, observed, names, complete=True)
    found = {one.payload.key: one.concerns for one in made if isinstance(one.payload, Edit)}
    model.apply(made)
    web, web_rx = minor_of(model, "10.88.0.10", ElementMap.TX4), minor_of(model, "10.88.0.10")
    assert {
        key: found[key] for key in (LinkKey(IFB), RootKey(IFB), ClassKey(IFB, numbers.LOCAL))
    } == dict.fromkeys((LinkKey(IFB), RootKey(IFB), ClassKey(IFB, numbers.LOCAL)), ("rx",))
    assert found[RootKey(2)] == found[ClassKey(2, numbers.L0)] == ("up0",)
    assert found[ClassKey(2, web)] == found[QueueKey(IFB, web_rx)] == ("pod prod/web",)
    assert found[ElementKey(ElementMap.RX4, "10.88.0.12")] == ("pod ns/bulk",)
    assert found[RedirectKey(PORT)] == ("pod prod/web", "pod ns/bulk")
    assert found[TableKey()] == ()
    denied = {one.payload.key: one.denies for one in made if isinstance(one.payload, Edit)}
    assert denied[ClassKey(2, web)] == denied[QueueKey(2, web)] == "egress"
    assert denied[ElementKey(ElementMap.TX4, "10.88.0.12")] == "egress"
    assert denied[QueueKey(IFB, web_rx)] == denied[RedirectKey(PORT)] == "ingress"
    assert denied[TableKey()] == denied[RootKey(2)] == denied[ClassKey(IFB, numbers.LOCAL)] == ""
    gone = changes.operations({}, model.observe(), describe.Names(), complete=True)
    assert {one.concerns for one in gone if one.subject.startswith("redirect")} == {
        (f"redirect at the egress of device {PORT}",)
    }


@pytest.mark.parametrize(
    ("device", "says"),
    [
        (None, "10.88.0.10 is reached by no route of the main table"),
        (2, "10.88.0.10 is reached by up0, an uplink, and not through this node's network"),
        (1, "10.88.0.10 is reached by lo"),
        (9, "10.88.0.10 is reached by flannel.1, a tunnel"),
    ],
)
def test_a_workload_that_is_behind_no_device_here_is_said_to_be(device: int | None, says: str) -> None:
    observed = TcObserved(
        roots={2: Root(kind="noqueue", handle=0)},
        routes=Routes.of([route("10.88.0.0/16", device)] if device is not None else []),
        devices={
            1: Device(name="lo", is_loopback=True),
            2: Device(name="up0"),
            9: Device(name="flannel.1", kind="vxlan"),
        },
    )
    made = plan(node(replace(WEB, addresses=("10.88.0.10",))), observed)
    assert not [one for one in made.operations if one.subject.startswith("redirect")]
    if device == 2:
        assert "not-enforced-bypass" in {one.code for one in made.findings}
    else:
        assert ingress_findings(made) == {
            "pod prod/web": (Severity.WARNING, f"not enforced: its ingress; {says}")
        }


@pytest.mark.parametrize(
    ("hook", "owns", "code"),
    [
        (Hook(), True, None),
        (Hook(has_clsact=True), False, None),
        (Hook(has_clsact=True, preferences=(1, 49152)), False, "shared-hook"),
        (Hook(has_clsact=True, preferences=(1, 65106)), None, "not-enforced-ingress"),
        (Hook(has_clsact=True, preferences=(65107,)), None, "not-enforced-ingress"),
        (Hook(has_ingress=True), None, "not-enforced-ingress"),
    ],
)
def test_what_others_have_at_a_hook_stays_and_is_not_cut_off(
    hook: Hook, owns: bool | None, code: str | None
) -> None:
    observed = replace(kernel().observe(), hooks={PORT: hook})
    made = plan(node(), observed)
    edits = [one.payload for one in made.operations if isinstance(one.payload, Edit)]
    wanted = None if owns is None else RedirectSpec(target=IFB, owns_hook=owns)
    assert next((one.after for one in edits if one.key == RedirectKey(PORT)), None) == wanted
    told = {one.subject: one.code for one in made.findings if one.code != "source-not-verified"}
    pods = dict.fromkeys(("pod prod/web", "pod ns/bulk"), "not-enforced-ingress")
    if owns is None:
        assert told == {"veth1": code, **pods}
    else:
        assert told == ({} if code is None else {"veth1": code})


def test_the_hook_stays_ours_when_only_our_filter_is_gone() -> None:
    observed = replace(kernel().observe(), hooks={PORT: Hook(has_clsact=True)}, own_hooks=frozenset({PORT}))
    edits = [one.payload for one in plan(node(), observed).operations if isinstance(one.payload, Edit)]
    assert RedirectSpec(target=IFB, owns_hook=True) in [one.after for one in edits]


def test_a_device_of_somebody_else_keeps_its_place() -> None:
    observed = replace(kernel().observe(), foreign_ifb="there is a device netqos-ifb (index 9)")
    made = plan(node(), observed)
    assert {device_of(one.payload.key) for one in made.operations if isinstance(one.payload, Edit)} == {
        2,
        None,
    }
    ((severity, message),) = ingress_findings(made).values()
    assert severity is Severity.ERROR
    assert "netqos-ifb (index 9), which is not ours" in message


def test_every_port_of_a_bridge_is_led_and_one_that_leaves_it_is_let_go() -> None:
    model = kernel()
    bring(model, node())
    model.devices |= {60: Device(name="veth2", kind="veth", master=BRIDGE)}
    made = bring(model, node())
    assert [one.subject for one in made.operations] == ["redirect at the egress of device 60"]
    del model.devices[60]
    model.devices[PORT] = replace(model.devices[PORT], master=0)
    made = bring(model, node())
    assert {one.verb for one in made.operations} == {Verb.DELETE}
    assert not [key for key in model.specs if isinstance(key, RedirectKey)]
