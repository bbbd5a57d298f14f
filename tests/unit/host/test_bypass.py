"""What leads packets past us, in words that say no more than is known."""

from __future__ import annotations

import struct
from dataclasses import replace

from netqos.host import bypass, tcwire
from netqos.host.bpf import Program
from netqos.host.neighbours import Device, Hooked, Neighbourhood
from netqos.host.tcwire import Filter, Flowtable

UP, VETH, IFB, OTHER = 2, 7, 9, 20


def hooked(hook: str, *, program: int = 0, target: int = 0) -> Hooked:
    kind, name = ("bpf", "a program") if program else ("u32", "")
    return Hooked(
        hook=hook, by="tcx", filter=Filter(kind=kind, program=name, program_id=program, target=target)
    )


def device(index: int, *found: Hooked, kind: str = "veth", xdp: int = 0) -> Device:
    return Device(index=index, name=f"dev{index}", kind=kind, hooked=found, xdp=xdp)


def found(*devices: Device, **more: object) -> list[tuple[str, str, str]]:
    seen = replace(Neighbourhood(devices={one.index: one for one in devices}), **more)  # type: ignore[arg-type]
    return [(one.code, one.severity.value, one.subject) for one in bypass.findings(seen, [UP])]


def test_nothing_of_others() -> None:
    assert found(device(UP, kind=""), device(VETH)) == []


def test_a_flowtable_and_one_that_the_nic_does_itself() -> None:
    tables = [
        Flowtable(name="inet x f", devices=("eth0", "veth7"), is_offloaded=offloaded)
        for offloaded in (False, True)
    ]
    assert found(flowtables=(tables[0],)) == [("flowtable-bypass", "warning", "flowtable inet x f")]
    soft, hard = (bypass.findings(Neighbourhood(flowtables=(one,)), [UP])[0].message for one in tables)
    assert "`unknown` of L1" in soft
    assert "not shaped" not in soft
    assert "passes no qdisc and is not shaped" in hard
    assert found(flowtables=(replace(tables[0], devices=()),)) == []


def test_a_redirect_to_a_device_is_and_one_through_an_ifb_is_none() -> None:
    assert found(device(VETH, hooked("ingress", target=UP)), device(UP, kind="")) == [
        ("redirect-bypass", "warning", "dev7")
    ]
    assert found(device(VETH, hooked("ingress", target=IFB)), device(IFB, kind="ifb")) == []
    assert found(device(OTHER, hooked("ingress", target=UP), kind="dummy")) == [], "nobody's device"


def test_programs_are_told_once_for_all_their_devices_and_those_of_known_redirectors_louder() -> None:
    names = {5: Program(id=5, name="cil_from_contai"), 6: Program(id=6, name="watcher"), 7: Program(id=7)}
    devices = [device(index, hooked("ingress", program=5)) for index in range(10, 15)]
    assert found(*devices, programs=names) == [("program-may-bypass", "warning", "cil_from_contai (5)")]
    told = bypass.findings(Neighbourhood(devices={one.index: one for one in devices}, programs=names), [UP])
    assert "dev10, dev11, dev12 and 2 more" in told[0].message
    assert found(device(UP, hooked("egress", program=6), kind=""), programs=names) == [
        ("program-may-bypass", "info", "watcher (6)")
    ]
    assert found(device(VETH, hooked("egress", program=7)), programs=names) == [
        ("program-may-bypass", "info", "a program (7)")
    ]
    assert (
        found(device(VETH, hooked("egress", program=8)), programs={8: Program(id=8, name="netqos_rx")}) == []
    )


def test_xdp() -> None:
    assert found(device(UP, xdp=3, kind=""), device(VETH, xdp=3)) == [
        ("xdp-may-bypass", "info", "dev2, dev7")
    ]


def test_the_program_on_an_uplinks_way_out() -> None:
    seen = Neighbourhood(devices={UP: device(UP, hooked("ingress", program=4), hooked("egress", program=5))})
    assert bypass.egress_program(seen, UP) == "a program"
    assert bypass.egress_program(seen, VETH) == ""


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def test_a_flowtable_as_the_kernel_tells_it() -> None:
    names = b"".join(attribute(1, name) for name in (b"eth0\0", b"veth1234567\0"))
    hook = (
        attribute(1, struct.pack(">I", 0))
        + attribute(2, struct.pack(">i", -300))
        + attribute(3 | 0x8000, names)
    )
    body = b"\x01\x00\x00\x07" + attribute(1, b"fw\0") + attribute(2, b"fast\0")
    body += attribute(4, struct.pack(">I", 2)) + attribute(3 | 0x8000, hook)
    plain = Flowtable(name="inet fw fast", devices=("eth0", "veth1234567"), is_offloaded=False)
    assert tcwire.decode_flowtable(memoryview(body)) == plain
    offloaded = memoryview(body + attribute(7, struct.pack(">I", 1)))
    assert tcwire.decode_flowtable(offloaded) == replace(plain, is_offloaded=True)
