"""Limiters of CNIs, told from objects of the kernel, and nothing else taken for one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netqos.host import tcwire
from netqos.host.bpf import Program
from netqos.host.limiters import THROTTLE_MAP, findings, held_limits
from netqos.host.neighbours import Device, Hooked, Neighbourhood
from netqos.host.tcwire import Filter, Qdisc
from netqos.model.inputs import HeldLimits
from netqos.model.levels import PerDirection

WEB, DB, BWP, UP = 7, 8, 9, 2
TO_WEB = Qdisc(device=WEB, kind="tbf", handle=0x10000, parent=tcwire.ROOT, rate_bps=20_000_000)
FROM_DB = Qdisc(device=BWP, kind="tbf", handle=0x10000, parent=tcwire.ROOT, rate_bps=10_000_000)
TO_IFB = Hooked(hook="ingress", by="clsact", filter=Filter(kind="u32", target=BWP))
SEEN = Neighbourhood(
    devices={
        WEB: Device(index=WEB, name="veth7", kind="veth", qdiscs=(TO_WEB,)),
        DB: Device(index=DB, name="veth8", kind="veth", hooked=(TO_IFB,)),
        BWP: Device(index=BWP, name="bwp0123", kind="ifb", qdiscs=(FROM_DB,)),
    },
    behind={WEB: frozenset({"10.88.0.10", "fd00:88::10"}), DB: frozenset({"10.88.0.11"})},
)
HELD_WEB = PerDirection(tx="", rx="tbf 20M on veth7")
FQ = Qdisc(device=UP, kind="fq", handle=0, parent=0x10001)
EDT = Hooked(hook="egress", by="tcx", filter=Filter(kind="bpf", program="a program", program_id=5))
MANAGED = Neighbourhood(
    devices={UP: Device(index=UP, name="eth0", qdiscs=(FQ,), hooked=(EDT,))},
    programs={5: Program(id=5, name="cil_to_netdev", maps=("cilium_metrics", THROTTLE_MAP))},
)


def test_a_bucket_to_the_pod_and_one_that_is_fed_from_it() -> None:
    held = held_limits(SEEN, [UP])
    assert held == HeldLimits(
        by_address={
            "10.88.0.10": HELD_WEB,
            "fd00:88::10": HELD_WEB,
            "10.88.0.11": PerDirection(tx="tbf 10M on bwp0123, fed by veth8", rx=""),
        }
    )
    (finding,) = findings(SEEN, held, [UP])
    assert (finding.code, "veth7, veth8" in finding.message) == ("limited-by-cni", True)


@pytest.mark.parametrize(
    "device",
    [
        replace(SEEN.devices[WEB], kind=""),
        replace(SEEN.devices[WEB], qdiscs=(replace(TO_WEB, kind="htb", rate_bps=0),)),
        replace(SEEN.devices[WEB], qdiscs=(replace(TO_WEB, parent=0x10001),)),
        replace(SEEN.devices[WEB], qdiscs=(replace(TO_WEB, handle=0x4E520000),)),
    ],
    ids=["no pod's device", "another kind", "not the root", "ours"],
)
def test_what_is_no_limiter_of_a_pod(device: Device) -> None:
    seen = replace(SEEN, devices={WEB: device})
    assert (held_limits(seen, [UP]), findings(seen, HeldLimits(), [UP])) == (HeldLimits(), ())


def test_an_uplink_of_the_kind_of_pods_devices_is_none_of_them() -> None:
    seen = replace(SEEN, devices={WEB: SEEN.devices[WEB]})
    held = held_limits(seen, [WEB])
    assert (held, findings(seen, held, [WEB])) == (HeldLimits(), ())


def test_a_redirect_that_leads_to_no_bucket_limits_nobody() -> None:
    seen = replace(SEEN, devices={DB: SEEN.devices[DB], BWP: replace(SEEN.devices[BWP], qdiscs=())})
    assert held_limits(seen, [UP]) == HeldLimits()


def test_ciliums_bandwidth_manager_holds_what_pods_send() -> None:
    held = held_limits(MANAGED, [UP])
    assert held.of_all == PerDirection(tx="cil_to_netdev with cilium_throttle and fq on eth0", rx="")
    assert held.of(("10.0.0.1",)) == held.of_all
    assert [one.subject for one in findings(MANAGED, held, [UP])] == ["egress"]


@pytest.mark.parametrize(
    "seen",
    [
        replace(MANAGED, programs={5: Program(id=5, name="cil_to_netdev", maps=("cilium_metrics",))}),
        replace(MANAGED, programs={5: Program(id=5)}),
        replace(MANAGED, devices={UP: replace(MANAGED.devices[UP], qdiscs=())}),
        replace(MANAGED, devices={UP: replace(MANAGED.devices[UP], hooked=(replace(EDT, hook="ingress"),))}),
        replace(MANAGED, devices={3: MANAGED.devices[UP]}),
    ],
    ids=["without its map", "unreadable", "without fq", "on the way in", "no uplink"],
)
def test_cilium_without_a_sign_of_its_manager_holds_nothing(seen: Neighbourhood) -> None:
    assert held_limits(seen, [UP]) == HeldLimits()
