"""What is written is what is read, to the last number; a second start writes nothing; what others break is mended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from pyroute2 import IPRoute

from netqos.errors import Retryable
from netqos.model.desired import NOTHING, DesiredPod, DesiredState
from netqos.model.health import Severity
from netqos.model.levels import Direction, Level, PerDirection, PerLevel
from netqos.model.rules import Rule
from netqos.testing import states
from netqos.testing.harness import converge
from netqos.testing.states import G, M
from netqos_tc import nfwire, numbers
from netqos_tc.audit import Auditor, Fingerprint
from netqos_tc.classify import owner_of
from netqos_tc.edits import Edit
from netqos_tc.fast import SETTLED_S
from netqos_tc.keys import ClassKey
from netqos_tc.netlink import Channel
from netqos_tc.spec import ClassSpec
from netqos_tc.vigil import WHOLE_AUDIT_S
from tests.kernel.tchost import UPLINK, UPLINK_INDEX, UplinkHost

pytestmark = pytest.mark.kernel("veth", "htb", "u32", "nft", "nft-fib", "nft-socket")


DESIRED = states.node(uplinks=(UPLINK,))


TREES = (UPLINK_INDEX, numbers.IFB_INDEX)


@pytest.fixture
def host() -> Iterator[UplinkHost]:
    made = UplinkHost()
    yield made
    made.close()


def node(total_bps: int, *pods: DesiredPod) -> DesiredState:
    uplink = replace(UPLINK, total_bps=replace(UPLINK.total_bps, tx=total_bps))
    return states.node(pods or states.PODS, uplinks=(uplink,), tx=states.direction(total_bps))


def pyroute2_classes(host: UplinkHost) -> dict[int, dict[str, int]]:
    """The classes as another library reads them, bursts in ticks."""

    def read() -> dict[int, dict[str, int]]:
        found = {}
        with IPRoute() as route:
            both = (one for ifindex in TREES for one in route.get_classes(index=ifindex))
            for one in both:
                options = one.get_nested("TCA_OPTIONS")
                parms = options.get_attr("TCA_HTB_PARMS")
                found[one["handle"]] = {
                    "rate": options.get_attr("TCA_HTB_RATE64") or parms["rate"],
                    "ceil": options.get_attr("TCA_HTB_CEIL64") or parms["ceil"],
                    "prio": parms["prio"],
                    "quantum": parms["quantum"],
                    "buffer": parms["buffer"],
                    "cbuffer": parms["cbuffer"],
                    "parent": one["parent"],
                }
        return found

    return host.namespace.call(read)


@pytest.mark.parametrize("total_bps", [10 * M, 1000 * M, 10 * G, 40 * G, 100 * G, 400 * G])
async def test_every_number_reads_back_and_another_library_agrees(host: UplinkHost, total_bps: int) -> None:
    backend = host.backend()
    desired = node(total_bps)
    plan = await converge(backend, desired)
    edits = [one.payload for one in plan.operations]
    wanted = {edit.key: edit.after for edit in edits if isinstance(edit, Edit)}
    observed = (await backend.observe()).ours
    assert observed == wanted
    others = pyroute2_classes(host)
    for key, spec in observed.items():
        if isinstance(key, ClassKey) and isinstance(spec, ClassSpec):
            other = others[numbers.class_id(key.minor, key.ifindex)]
            assert (other["rate"], other["ceil"]) == (spec.rate, spec.ceil)
            assert (other["buffer"], other["cbuffer"]) == (spec.buffer, spec.cbuffer)
            if key.minor not in numbers.INNER:
                assert (other["prio"], other["quantum"]) == (spec.prio, spec.quantum)
                assert other["parent"] in {spec.parent, numbers.PARENT_ROOT}


async def test_ten_megabits_are_1250000_bytes_per_second(host: UplinkHost) -> None:
    backend = host.backend()
    await converge(
        backend, node(1000 * M, states.pod("ns/web", addresses=("10.88.0.10",), tx_bps=10 * M, rx_bps=3 * M))
    )
    (minor,) = {key.minor for key in (await backend.observe()).classes if numbers.is_pod_minor(key.minor)}
    classes = pyroute2_classes(host)
    ceils = {way: classes[numbers.KINDS[way].class_id(minor)]["ceil"] for way in Direction}
    assert ceils == {Direction.TX: 1_250_000, Direction.RX: 375_000}


async def test_a_start_where_nothing_is_shaped_writes_nothing(host: UplinkHost) -> None:
    """Also not to find out what this kernel can do."""
    before = generation(host)
    backend = host.backend()
    capabilities = await backend.probe()
    assert (capabilities.available, capabilities.findings) == (True, ())
    assert not backend.plan(NOTHING, await backend.observe())
    assert (generation(host), backend.writes) == (before, 0)
    await converge(backend, DESIRED)
    assert generation(host) > before


def generation(host: UplinkHost) -> int:
    """How often anything of nftables was changed in the namespace."""

    def read() -> int:
        channel = Channel.netfilter()
        try:
            return nfwire.read_generation(channel.get(nfwire.get_generation()))
        finally:
            channel.close()

    return host.namespace.call(read)


async def test_a_second_start_writes_nothing_and_finds_the_same_handles(host: UplinkHost) -> None:
    first = host.backend()
    desired = node(1000 * M)
    await converge(first, desired)
    before = await first.observe()
    qdiscs = host.namespace.run(["tc", "qdisc", "show", "dev", "up0"]).stdout
    second = host.backend()
    path = first.fast_path()
    assert path is not None
    path.adjust(path.sample()[0].unit, PerLevel(600 * M, 0, 0))
    path.close()
    plan = second.plan(desired, await second.observe())
    assert not plan
    assert second.writes == 0
    assert host.namespace.run(["tc", "qdisc", "show", "dev", "up0"]).stdout == qdiscs
    after = await second.observe()
    assert set(after.ours) == set(before.ours)


# ---------------------------------------------------------------- drift

# Shell commands in the namespace, {leaf} is the minor of an L0 pod's leaf.
DRIFTS = {
    "root": "tc qdisc del dev up0 root",
    "leaf": "tc class del dev up0 classid 4e51:{leaf}",
    "leaf's rate": "tc class change dev up0 classid 4e51:{leaf} parent 4e51:10 htb rate 5mbit ceil 7mbit",
    "level": "tc class change dev up0 classid 4e51:11 parent 4e51:1 htb rate 1mbit",
    "total": "tc class change dev up0 classid 4e51:1 parent 4e51: htb rate 1mbit",
    "host leaf": "tc class del dev up0 classid 4e51:10f",
    "unknown leaf": "tc class del dev up0 classid 4e51:11f",
    "queue removed": "tc qdisc del dev up0 parent 4e51:{leaf}",
    "queue replaced": "tc qdisc replace dev up0 parent 4e51:{leaf} pfifo limit 7",
    "queue changed in its place": "tc qdisc change dev up0 parent 4e51:{leaf} bfifo limit 1700",
    "child under a leaf": "tc class add dev up0 parent 4e51:{leaf} classid 4e51:fffd htb rate 1mbit",
    "filter": "tc filter del dev up0 parent 4e51: prio 1",
    "filter retargeted": """
        tc filter del dev up0 parent 4e51: prio 2
        tc filter add dev up0 parent 4e51: protocol 0x88cc prio 2 u32 match u32 0 0 flowid 4e51:11f
    """,
    "all filters and the control leaf": """
        tc filter del dev up0 parent 4e51:
        tc class del dev up0 classid 4e51:c
    """,
    "host leaf under another level": """
        tc class del dev up0 classid 4e51:10f
        tc class add dev up0 parent 4e51:12 classid 4e51:10f htb rate 1mbit
    """,
    "leaf at the root": """
        tc class del dev up0 classid 4e51:{leaf}
        tc class add dev up0 parent 4e51: classid 4e51:{leaf} htb rate 8kbit
    """,
    "level at the root": """
        for one in $(tc class show dev up0 | grep "parent 4e51:12 " | cut -d" " -f3); do
            tc class del dev up0 classid $one
        done
        tc class del dev up0 classid 4e51:12
        tc class add dev up0 parent 4e51: classid 4e51:12 htb rate 1mbit
    """,
    "class and filter of others": """
        tc class add dev up0 parent 4e51: classid 4e51:99 htb rate 1gbit
        tc filter add dev up0 parent 4e51: protocol ip prio 50 u32 match u32 0 0 classid 4e51:99
    """,
    "classes of others in each other": """
        tc class add dev up0 parent 4e51: classid 4e51:99 htb rate 1gbit
        tc class add dev up0 parent 4e51:99 classid 4e51:9 htb rate 1gbit
        tc class add dev up0 parent 4e51:9 classid 4e51:999 htb rate 1gbit
        tc class add dev up0 parent 4e51:12 classid 4e51:98 htb rate 1gbit
        tc qdisc add dev up0 parent 4e51:999 handle 9: htb default 1
        tc class add dev up0 parent 9: classid 9:1 htb rate 1mbit
        tc filter add dev up0 parent 4e51: protocol ip prio 50 u32 match u32 0 0 classid 4e51:9
        tc filter add dev up0 parent 4e51:9 protocol ip prio 1 u32 match u32 0 0 classid 4e51:999
    """,
    "leaf of nobody that a filter leads to": """
        tc class add dev up0 parent 4e51:11 classid 4e51:fffd htb rate 1gbit
        tc filter add dev up0 parent 4e51: protocol ipv6 prio 9 u32 match u32 0 0 classid 4e51:fffd
    """,
    "filter on a level": """
        tc filter add dev up0 parent 4e51:10 protocol ip prio 1 u32 match u32 0 0 classid 4e51:11f
    """,
    "filter in another chain": """
        tc filter add dev up0 parent 4e51: protocol ip chain 7 prio 50 u32 match u32 0 0 classid 4e51:11f
    """,
    "filters with a preference of ours elsewhere": """
        tc filter add dev up0 parent 4e51: protocol ip chain 7 prio 4 u32 match u32 0 0 classid 4e51:11f
        tc filter add dev up0 parent 4e51:10f protocol ipv6 prio 5 u32 match u32 0 0 classid 4e51:11f
        tc filter add dev up0 parent 4e51:{leaf} protocol ip prio 1 u32 match u32 0 0 classid 4e51:11f
        tc filter add dev up0 parent 4e51:12 protocol ip prio 2 u32 match u32 0 0 classid 4e51:11f
    """,
    "filter behind one of ours": """
        tc filter add dev up0 parent 4e51: protocol ip prio 4 u32 match u32 0 0 classid 4e51:11f
    """,
    "filter before one of ours": """
        tc filter del dev up0 parent 4e51: prio 4
        tc filter add dev up0 parent 4e51: protocol ip prio 4 u32 match u32 0 0 classid 4e51:11f
        tc filter add dev up0 parent 4e51: protocol ip prio 4 u32 match ip src 0.0.0.0/32 classid 4e51:c
    """,
    "filter of ours to another tree": """
        tc filter del dev up0 parent 4e51: prio 1
        tc filter add dev up0 parent 4e51: protocol arp prio 1 u32 match u32 0 0 classid 7:c
    """,
    "element": "nft delete element inet netqos tx4 { 10.88.0.10 }",
    "element's class": """
        nft delete element inet netqos tx4 { 10.88.0.10 }
        nft add element inet netqos tx4 { 10.88.0.10 : 4e51:10f }
    """,
    "map": "nft flush map inet netqos tx4",
    "table": "nft delete table inet netqos",
    "ruleset": "nft flush ruleset",
    "chain": "nft flush chain inet netqos forward",
    "chain removed": "nft flush chain inet netqos output; nft delete chain inet netqos output",
    "rule inserted": "nft insert rule inet netqos forward meta priority set 1:1",
    "chain elsewhere": """
        nft flush chain inet netqos output
        nft delete chain inet netqos output
        nft add chain inet netqos output '{ type filter hook forward priority 7; }'
    """,
    "chain that drops": "nft chain inet netqos forward '{ policy drop; }'",
    "chain of others": """
        nft add chain inet netqos evil '{ type filter hook output priority 0; policy drop; }'
        nft add rule inet netqos evil accept
    """,
    "chains of others from which ours jump": """
        nft add chain inet netqos one
        nft add chain inet netqos other
        nft add rule inet netqos one jump other
        nft add rule inet netqos other drop
        nft insert rule inet netqos output jump one
    """,
    "table switched off": "nft add table inet netqos '{ flags dormant; }'",
    "map of another type": """
        nft flush chain inet netqos forward
        nft flush chain inet netqos output
        nft delete map inet netqos tx6
        nft add map inet netqos tx6 '{ type ipv4_addr : classid; }'
    """,
}


@pytest.mark.parametrize("what", DRIFTS)
async def test_drift_is_noticed_and_mended(host: UplinkHost, what: str) -> None:
    backend = host.backend()
    desired = node(1000 * M)
    await converge(backend, desired)
    observed = await backend.observe()
    before = host.comparable(observed.ours)
    owner = owner_of(states.pod_uid("prod/web"))
    (minor,) = {one.minor for one in observed.elements.values() if one.owner == owner}
    assert await backend.is_untouched()
    host.namespace.run(["sh", "-ec", DRIFTS[what].replace("{leaf}", f"{minor:x}")])
    assert not await backend.is_untouched()
    assert (await backend.observe()).specs == (await host.backend().observe()).specs
    for _ in range(2):
        plan = await converge(backend, desired)
        if not plan:
            break
    after = await backend.observe()
    assert not backend.plan(desired, after)
    assert host.comparable(after.ours) == before
    assert after.specs == (await host.backend().observe()).specs
    assert await backend.is_untouched()


CHANGES: dict[str, Callable[[tuple[DesiredPod, ...]], tuple[DesiredPod, ...]]] = {
    "limit": lambda pods: (replace(pods[0], limits_bps=PerDirection(tx=70 * M, rx=9 * M)), *pods[1:]),
    "level": lambda pods: (replace(pods[0], level=Level.L2), *pods[1:]),
    "one more": lambda pods: (*pods, states.pod("ns/new", Level.L1, addresses=("10.88.0.99",), rx_bps=3 * M)),
    "one less": lambda pods: pods[1:],
    "another address": lambda pods: (replace(pods[0], addresses=("10.88.0.77",)), *pods[1:]),
    "only one": lambda pods: pods[-1:],
}


@pytest.mark.parametrize("what", CHANGES)
async def test_what_a_change_left_is_known_before_and_after_it_is_read_back(
    host: UplinkHost, what: str
) -> None:
    backend = host.backend()
    await converge(backend, node(1000 * M))
    await backend.observe()
    desired = replace(DESIRED, pods=CHANGES[what](DESIRED.pods))
    for _ in range(2):
        assert await converge(backend, desired)
        assert await backend.is_untouched()
        met = await backend.observe()
        assert met.specs == (await host.backend().observe()).specs
        assert not backend.plan(desired, met)
        desired = DESIRED
    await converge(backend, replace(DESIRED, pods=CHANGES[what](DESIRED.pods)))
    host.drift()
    assert not await backend.is_untouched()


@pytest.mark.kernel("cls-bpf")
@pytest.mark.parametrize("preference", [1, 50])
async def test_a_filter_of_another_kind_is_removed_whatever_its_preference(
    host: UplinkHost, preference: int
) -> None:
    backend = host.backend()
    await converge(backend, DESIRED)
    before = (await backend.observe()).ours
    script = f"""
        tc filter del dev up0 parent 4e51: prio 1
        tc filter add dev up0 parent 4e51: protocol all prio {preference} bpf bytecode '1,6 0 0 4294967295,' \\
            classid 4e51:11f
    """
    host.namespace.run(["sh", "-ec", script])
    assert not await backend.is_untouched()
    await converge(backend, DESIRED)
    assert (await backend.observe()).ours == before


async def test_what_others_put_into_our_tree_is_an_error_at_once(host: UplinkHost) -> None:
    """Even a plan that may only add tells it."""
    backend = host.backend()
    await converge(backend, DESIRED)
    host.namespace.run(["sh", "-ec", DRIFTS["class and filter of others"]])
    for desired in (states.incomplete(DESIRED), DESIRED):
        plan = backend.plan(desired, await backend.observe())
        (finding,) = [one for one in plan.findings if one.code == "foreign-in-our-tree"]
        assert (finding.severity, finding.subject) == (Severity.ERROR, "up0")
        assert finding.message.startswith("class 4e51:99 on up0, filter 50 on up0: not ours")
    await converge(backend, DESIRED)
    plan = backend.plan(DESIRED, await backend.observe())
    assert not [one for one in plan.findings if one.code == "foreign-in-our-tree"]


async def test_a_reused_address_is_its_new_pods_while_a_source_has_not_delivered(host: UplinkHost) -> None:
    """In one pass; what its earlier pod had stays, and each later pass finds nothing to do."""
    backend = host.backend()
    old, young = (
        states.pod(name, addresses=("10.88.0.50",), tx_bps=most * M)
        for name, most in (("ns/old", 12), ("ns/young", 95))
    )
    await converge(backend, states.node((*states.PODS, old), uplinks=(UPLINK,)))
    before = set((await backend.observe()).classes)
    early = states.incomplete(states.node((*states.PODS, young), uplinks=(UPLINK,)))
    await converge(backend, early)
    for again in (backend, host.backend()):
        observed = await again.observe()
        assert not again.plan(early, observed)
        minors = {key.minor for key in set(observed.classes) - before}
        led = {(one.owner, one.minor) for key, one in observed.elements.items() if key.value == "10.88.0.50"}
        assert led == {(owner_of(young.uid), minor) for minor in minors}
        assert before < set(observed.classes)
    text = host.namespace.run(["nft", "list", "map", "inet", "netqos", "tx4"]).stdout
    assert young.uid in text
    assert old.uid not in text


@pytest.mark.parametrize("is_complete", [True, False])
async def test_who_has_a_class_and_no_element_yet_keeps_its_number(
    host: UplinkHost, is_complete: bool
) -> None:
    """Else it would be given one more class each time that its element cannot be written."""
    backend, young = host.backend(), states.pod("ns/young", addresses=("10.88.0.50",), tx_bps=95 * M)
    await converge(backend, DESIRED)
    desired = states.node((*states.PODS, young), uplinks=(UPLINK,))
    desired = desired if is_complete else states.incomplete(desired)
    plan = backend.plan(desired, await backend.observe())
    assert [one for one in plan.operations if one.subject.startswith("class ")]
    host.namespace.run(["nft", "delete", "table", "inet", "netqos"])
    assert not (await backend.apply(plan)).ok
    again = backend.plan(desired, await backend.observe())
    assert not [one for one in again.operations if one.subject.startswith("class ")]
    assert (await backend.apply(again)).ok
    assert not backend.plan(desired, await backend.observe())


async def test_a_filter_on_a_leaf_does_nothing_and_is_left_alone(host: UplinkHost) -> None:
    backend = host.backend()
    await converge(backend, DESIRED)
    rule = "tc filter add dev up0 parent 4e51:10f protocol ip prio 50 u32 match u32 0 0 classid 4e51:11f"
    host.namespace.run(rule.split())
    assert not backend.plan(DESIRED, await backend.observe())
    assert await backend.is_untouched()


async def test_what_others_do_elsewhere_is_no_drift(host: UplinkHost) -> None:
    backend = host.backend()
    await converge(backend, node(1000 * M))
    await backend.observe()
    host.namespace.run(["nft", "add", "table", "inet", "theirs"])
    host.namespace.run(["tc", "qdisc", "add", "dev", "wire0", "root", "pfifo", "limit", "10"])
    assert await backend.is_untouched()
    assert await backend.is_untouched()


async def test_while_the_kernel_tells_of_no_change_only_roots_are_looked_at(
    host: UplinkHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend, whole = host.backend(), 0
    compare = Auditor.refresh

    def counted(auditor: Auditor, last: Fingerprint, devices: frozenset[int]) -> Fingerprint:
        nonlocal whole
        whole += 1
        return compare(auditor, last, devices)

    monkeypatch.setattr(Auditor, "refresh", counted)
    await converge(backend, node(20 * M))
    path = backend.fast_path()
    assert path is not None
    assert await backend.is_untouched()
    whole = 0
    for ceiling_bps in (10 * M, 20 * M):
        path.adjust(path.units[0], PerLevel(ceiling_bps, 0, 0))
        assert await backend.is_untouched()
    assert whole == 0
    host.namespace.run(["tc", "qdisc", "add", "dev", "wire0", "root", "pfifo", "limit", "10"])
    assert await backend.is_untouched()
    assert whole == 0
    path.close()
    await asyncio.sleep(WHOLE_AUDIT_S)
    assert await backend.is_untouched()
    assert whole == 1


async def test_the_loops_ceiling_is_no_drift_and_any_other_number_of_l0_is(host: UplinkHost) -> None:
    backend = host.backend()
    await converge(backend, node(20 * M))
    await backend.observe()
    path = backend.fast_path()
    assert path is not None
    unit = path.sample()[0].unit
    for ceiling_bps in (10 * M, 13 * M, 20 * M):
        path.adjust(unit, PerLevel(ceiling_bps, 0, 0))
        assert await backend.is_untouched()
        assert not backend.plan(node(20 * M), await backend.observe())
    path.close()
    assert await backend.is_untouched()
    host.namespace.run(
        [
            "tc",
            "class",
            "change",
            "dev",
            "up0",
            "classid",
            "4e51:10",
            "parent",
            "4e51:1",
            "htb",
            "rate",
            "9mbit",
            "ceil",
            "20mbit",
        ]
    )
    assert not await backend.is_untouched()


async def test_the_loop_notices_who_else_moves_a_ceiling_within_its_range(host: UplinkHost) -> None:
    backend = host.backend()
    await converge(backend, node(20 * M))
    path, other = backend.fast_path(), backend.fast_path()
    assert path is not None
    assert other is not None
    unit = path.sample()[0].unit
    for ceiling_bps in (10 * M, 13 * M):
        path.adjust(unit, PerLevel(ceiling_bps, 0, 0))
        path.sample()
        path.sample()
    other.adjust(unit, PerLevel(11 * M, 0, 0))
    path.sample()
    await asyncio.sleep(SETTLED_S)
    with pytest.raises(Retryable, match=r"somebody else changed class 4e51:10 on up0"):
        path.sample()
    assert await backend.is_untouched()
    path.close()
    other.close()
    again = backend.fast_path()
    assert again is not None
    again.sample()
    met = again.current_ceilings(unit)
    assert met is not None
    assert (met.l0, again.adjust(unit, PerLevel(13 * M, 0, 0))) == (11 * M, 1)
    again.close()


async def test_the_device_may_go_and_come_back(host: UplinkHost) -> None:
    backend = host.backend()
    desired = node(1000 * M)
    await converge(backend, desired)
    path = backend.fast_path()
    assert path is not None
    host.namespace.run(["ip", "link", "del", "up0"])
    assert not await backend.is_untouched()
    with pytest.raises(Retryable):
        path.sample()
    path.close()
    assert await backend.counters() == {}
    result = await backend.apply(backend.plan(desired, await backend.observe()))
    assert {failure.code for failure in result.failures} == {"ENODEV", "skipped"}
    host.add_uplink()
    await converge(backend, desired)
    assert not backend.plan(desired, await backend.observe())


EDITS = {
    "a rule of ours": """
        handle=$(nft -a list chain inet netqos inwards | sed -n 's/.*"netqos 4 rx4" # handle //p')
        nft replace rule inet netqos inwards handle $handle meta priority set 4e51:10f comment '"netqos 4 rx4"'
    """,
    "a rule of a workload": """
        handle=$(nft -a list table inet netqos | sed -n '/chain r/,/}/ s/.*dscp set.* # handle //p' | head -n 1)
        chain=$(nft list table inet netqos | sed -n 's/.*chain \\(r[0-9a-f]*tx\\) {/\\1/p')
        comment=$(nft list chain inet netqos $chain | sed -n 's/.*dscp set.*comment "\\(.*\\)"/\\1/p' | head -n 1)
        nft replace rule inet netqos $chain handle $handle return comment "\\"$comment\\""
    """,
}


@pytest.mark.parametrize("what", EDITS)
@pytest.mark.parametrize("ran", [True, False])
async def test_a_rule_that_does_something_else_under_the_same_comment(
    host: UplinkHost, what: str, ran: bool
) -> None:
    """A daemon that did not run meanwhile knows them too, and no number is given anew."""
    backend = host.backend()
    rules = PerDirection(tx=(Rule(matches=(), dscp=10),), rx=())
    desired = node(1000 * M, states.pod("prod/web", addresses=("10.88.0.10",), rules=rules))
    await converge(backend, desired)
    assert not backend.plan(desired, await backend.observe())
    good = host.namespace.run(["nft", "list", "table", "inet", "netqos"]).stdout
    host.namespace.run(["sh", "-ec", EDITS[what]])
    assert host.namespace.run(["nft", "list", "table", "inet", "netqos"]).stdout != good
    if not ran:
        backend = host.backend()
    else:
        assert not await backend.is_untouched()
    plan = await converge(backend, desired)
    assert len(plan.operations) == 1
    assert host.namespace.run(["nft", "list", "table", "inet", "netqos"]).stdout == good
    assert not backend.plan(desired, await backend.observe())
    assert await backend.is_untouched()
    await converge(backend, NOTHING)
    assert not backend.plan(NOTHING, await backend.observe())
    assert host.state.documents == {}
