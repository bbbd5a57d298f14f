"""Which suspicions become findings, and the ways that are told of a workload's packets."""

from __future__ import annotations

from collections.abc import Hashable

from netqos.model.health import Severity
from netqos.model.levels import Direction
from netqos_tc import numbers
from netqos_tc.answers import HtbClass
from netqos_tc.claims import SHOWN_S, Claims, claimed_by
from netqos_tc.inbound import BESIDE, INBOUND
from netqos_tc.keys import ElementKey, ElementMap, RedirectKey
from netqos_tc.observed import TcObserved
from netqos_tc.paths import Ways
from netqos_tc.places import Device, Route, Routes
from netqos_tc.spec import ClassSpec, ElementSpec, RedirectSpec
from netqos_tc.strays import EGRESS, OUTSIDE, PAST, Stray

WEB, WEB6, STRANGER = "10.1.0.7", "fd00::7", "192.0.2.9"
CLAIMED = {WEB: "prod/web", WEB6: "prod/web", "10.1.0.8": "prod/db"}
MINOR = 0x1001


def saw(claims: Claims, strays: list[Stray], now_s: float) -> None:
    claims.saw([(CLAIMED[one.address], one) for one in strays if one.address in CLAIMED], now_s)


def told(claims: Claims) -> list[tuple[str, str]]:
    return [(one.subject, one.message.partition(":")[0]) for one in claims.findings()]


def test_a_workload_is_told_after_two_looks_with_enough_of_its_packets() -> None:
    claims = Claims()
    saw(claims, [Stray(PAST, WEB, 6), Stray(PAST, WEB6, 5), Stray(PAST, STRANGER, 900)], 2.0)
    assert told(claims) == []
    saw(claims, [Stray(PAST, WEB, 20)], 4.0)
    wanted = "packets from its address left by the unknown leaf of L1"
    assert told(claims) == [("pod prod/web", f"at least 10 {wanted}")]
    saw(claims, [Stray(PAST, WEB, 69)], 6.0)
    assert told(claims) == [("pod prod/web", f"at least 100 {wanted}")]
    assert claims.findings()[0].severity is Severity.WARNING


def test_few_packets_or_a_single_look_are_those_of_a_workload_that_came_or_went() -> None:
    claims = Claims()
    for number in range(10):
        saw(claims, [Stray(PAST, WEB, 9 if number % 2 else 500)], 2.0 * number)
        assert told(claims) == []


def test_each_reason_is_told_by_itself_and_ends_by_itself() -> None:
    claims = Claims()
    for at_s in (2.0, 4.0):
        saw(claims, [Stray(PAST, WEB, 20), Stray(OUTSIDE, WEB, 30)], at_s)
    assert len(claims.findings()) == 2
    saw(claims, [Stray(OUTSIDE, WEB, 30)], 4.0 + SHOWN_S)
    (left,) = claims.findings()
    assert "another device" in left.message
    saw(claims, [], 4.0 + 2 * SHOWN_S)
    assert claims.findings() == ()


def test_what_comes_in_is_told_apart_from_what_leaves() -> None:
    claims = Claims()
    for at_s in (2.0, 4.0):
        saw(claims, [Stray(PAST, WEB, 20), Stray(BESIDE, WEB, 30)], at_s)
    found = {one.code: one.message.partition(":")[0] for one in claims.findings()}
    assert found == {
        "claimed-unclassed": "at least 10 packets from its address left by the unknown leaf of L1",
        "claimed-unclassed-ingress": "at least 10 packets to its address came without its class",
    }
    text = INBOUND.setup_text("t", {7: "", 9: ""})
    assert "iif { 7, 9 } oif != { 7, 9 } meta priority & 0xffff0000 != 0x4e520000 update @beside4" in text


def test_only_sources_are_claimed_and_only_by_workloads_that_are_known() -> None:
    elements = {
        ElementKey(ElementMap.TX4, WEB): ElementSpec(minor=MINOR, owner="web"),
        ElementKey(ElementMap.TX6, WEB6): ElementSpec(minor=MINOR, owner="web"),
        ElementKey(ElementMap.RX4, "10.1.0.9"): ElementSpec(minor=MINOR, owner="web"),
        ElementKey(ElementMap.TX4, "10.1.0.3"): ElementSpec(minor=MINOR, owner="gone"),
        ElementKey(ElementMap.CG3, 77): ElementSpec(minor=MINOR, owner="web"),
    }
    assert claimed_by(elements, {"web": "prod/web"}) == {WEB: "prod/web", WEB6: "prod/web"}
    assert claimed_by(elements, {"web": "prod/web"}, Direction.RX) == {"10.1.0.9": "prod/web"}


def test_a_device_whose_name_is_no_plain_word_is_not_watched() -> None:
    text = EGRESS.setup_text("t", {7: "up0", 9: 'e"; flush ruleset; "'})
    assert 'device "up0"' in text
    assert "d9" not in text
    assert "flush" not in text


def leaf(ifindex: int, level_minor: int) -> HtbClass:
    parent = numbers.class_id(level_minor, ifindex)
    spec = ClassSpec(parent=parent, rate=1, ceil=9, buffer=1, cbuffer=1, prio=0, quantum=1500)
    return HtbClass(ifindex=ifindex, minor=MINOR, spec=spec, queue_handle=0)


def ways(devices: dict[int, Device], *led: int) -> Ways:
    elements: dict[Hashable, object] = {
        ElementKey(ElementMap.TX4, WEB): ElementSpec(minor=MINOR, owner="web"),
        ElementKey(ElementMap.RX4, WEB): ElementSpec(minor=MINOR, owner="web"),
    }
    redirects: dict[Hashable, object] = {
        RedirectKey(one): RedirectSpec(target=numbers.IFB_INDEX, owns_hook=True) for one in led
    }
    ten = int.from_bytes(bytes([10, 1, 0, 7]))
    observed = TcObserved(
        ours={**elements, **redirects},
        devices=devices,
        routes=Routes.of([Route(version=4, length=32, network=ten, metric=0, device=5)]),
    )
    return Ways(observed, (2,))


def test_the_way_of_a_workload_behind_its_own_veth() -> None:
    known = ways({2: Device(name="up0"), 5: Device(name="cali5", kind="veth")}, 5)
    assert known.way(leaf(2, 0x10), "up0", "web").steps == (
        "workload",
        "cali5",
        "nft tx4",
        "class 4e51:1001 in L0 of up0",
    )
    assert known.way(leaf(numbers.IFB_INDEX, 0x12), "netqos-ifb", "web").steps == (
        "up0",
        "nft rx4",
        "redirect at cali5",
        "class 4e52:1001 in L2 of netqos-ifb",
        "workload",
    )
    assert known.way(leaf(numbers.IFB_INDEX, 0x12), "netqos-ifb", "web").claims == (f"rx4 {WEB}",)


def test_a_rules_own_leaf_is_said() -> None:
    known = ways({2: Device(name="up0"), 5: Device(name="cali5", kind="veth")}, 5)
    assert known.way(leaf(2, 0x1005), "up0", "web", 3).steps[2:] == (
        "nft tx4, rule 3",
        "class 4e51:1001 in 4e51:1005 of up0",
    )


def test_a_missing_redirect_or_element_is_said() -> None:
    known = ways({2: Device(name="up0"), 5: Device(name="cali5", kind="veth")})
    assert known.way(leaf(numbers.IFB_INDEX, 0x12), "netqos-ifb", "web").steps[2] == "no redirect at cali5"
    nobody = Ways(TcObserved(), (2,))
    assert nobody.way(leaf(2, 0x11), "up0", "web").steps[1:3] == ("the node's own stack", "no element of nft")
    assert nobody.way(leaf(2, 0x11), "up0", "web").claims == ()


def test_behind_a_bridge_its_ports_lead() -> None:
    ports = {number: Device(name=f"veth{number}", kind="veth", master=5) for number in (11, 12, 13)}
    known = ways({2: Device(name="up0"), 5: Device(name="cni0", kind="bridge"), **ports}, 11, 12)
    assert (
        known.way(leaf(numbers.IFB_INDEX, 0x10), "netqos-ifb", "web").steps[2]
        == "redirects at 2 of 3 ports of cni0"
    )
