"""What others have in traffic control, on links and in nftables, from netlink messages to values. Pure.

Numbers are from include/uapi/linux/{rtnetlink,pkt_sched,pkt_cls,if_link,neighbour}.h, tc_act/tc_mirred.h and
netfilter/nf_tables.h. Only what tells limiters and short cuts is decoded.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from netqos.host.rtwire import Attributes, decode_attributes, number, text

RTM_GETNEIGH, RTM_GETQDISC, RTM_GETTCLASS, RTM_GETTFILTER = 30, 38, 42, 46
NFT_GETFLOWTABLE = 10 << 8 | 23
NFNL_REQUEST = bytes(4)
ROOT, CLSACT = 0xFFFFFFFF, 0xFFFFFFF1
HOOKS = {"ingress": 0xFFFFFFF2, "egress": 0xFFFFFFF3}
"""The parents of a clsact qdisc's filters; those of an `ingress` qdisc answer to the first one too."""

_TCMSG = struct.Struct("=B3xiIII")
_NDMSG = struct.Struct("=BxxxiHBB")
_LINK = struct.Struct("=BxHiII")
_NFGENMSG = struct.Struct("=BBH")
_NFT_FAMILIES = {1: "inet", 2: "ip", 5: "netdev", 7: "bridge", 10: "ip6"}
_RATE_AT = 8  # in struct tc_ratespec, which tc_tbf_qopt and tc_htb_opt begin with
_RATE64 = {"tbf": 4, "htb": 6}  # TCA_TBF_RATE64, TCA_HTB_RATE64
_ACTIONS = {"u32": 7, "matchall": 2, "flower": 3, "basic": 3, "bpf": 1, "fw": 4}
_TARGET_AT = 24  # behind tc_gen and eaction in struct tc_mirred
_OFFLOAD = 1
_NOTHING = memoryview(b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class Qdisc:
    """A qdisc. `rate_bps`: bits per second of what limits, 0 of any other kind."""

    device: int
    kind: str
    handle: int
    parent: int
    rate_bps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link. `kind` is empty for hardware; `xdp` is the id of its XDP program, 0 without."""

    index: int
    name: str
    kind: str
    xdp: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A filter on a hook: the name and id of its program, the device that it redirects to; "" and 0 without."""

    kind: str
    program: str = ""
    program_id: int = 0
    target: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Flowtable:
    """A flowtable of nftables. `is_offloaded`: the NIC itself forwards what is in it."""

    name: str
    devices: tuple[str, ...]
    is_offloaded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A link-layer address: of an IP address on a link, or (`address` empty) behind a port of a bridge."""

    device: int
    mac: str
    address: str = ""


def qdiscs_request() -> bytes:
    """The payload that asks for all qdiscs."""
    return _TCMSG.pack(0, 0, 0, 0, 0)


def filters_request(device: int, hook: str) -> bytes:
    """The payload that asks for the filters of one hook."""
    return _TCMSG.pack(0, device, 0, HOOKS[hook], 0)


def neighbours_request(family: int) -> bytes:
    """The payload that asks for all neighbours of a family; AF_BRIDGE for what is behind the ports of bridges."""
    return _NDMSG.pack(family, 0, 0, 0, 0)


def is_queue_of(payload: memoryview, majors: frozenset[int]) -> bool:
    """Whether a qdisc stands in a class of a tree with one of these majors; cheap, for dumps of thousands."""
    parent = _TCMSG.unpack_from(payload)[3]
    return parent != ROOT and parent >> 16 in majors


def decode_qdisc(payload: memoryview) -> Qdisc:
    """A qdisc."""
    _family, device, handle, parent, _info = _TCMSG.unpack_from(payload)
    found = decode_attributes(payload[_TCMSG.size :])
    kind = text(found.get(1))
    rate_bps = _rate(found, kind) if kind == "tbf" else 0
    return Qdisc(device=device, kind=kind, handle=handle, parent=parent, rate_bps=rate_bps)


def classes_request(device: int) -> bytes:
    """The payload that asks for the classes of a device."""
    return _TCMSG.pack(0, device, 0, 0, 0)


def decode_class(payload: memoryview) -> tuple[int, int]:
    """(id, rate in bits per second) of a class of HTB; rate 0 of another kind."""
    _family, _device, handle, _parent, _info = _TCMSG.unpack_from(payload)
    found = decode_attributes(payload[_TCMSG.size :])
    return handle, _rate(found, "htb") if text(found.get(1)) == "htb" else 0


def decode_filter(payload: memoryview) -> Filter | None:
    """A filter, None for an entry that only holds others together."""
    found = decode_attributes(payload[_TCMSG.size :])
    kind, options = text(found.get(1)), decode_attributes(found.get(2, _NOTHING))
    if kind == "bpf" and options:
        name, identity = text(options.get(7)), number(options.get(11))  # TCA_BPF_NAME, TCA_BPF_ID
        return Filter(
            kind=kind, program=name or "a program", program_id=identity, target=_target(kind, options)
        )
    is_filter = kind != "u32" or 5 in options  # TCA_U32_SEL
    return Filter(kind=kind, target=_target(kind, options)) if options and is_filter else None


def decode_link(payload: memoryview) -> Link:
    """A link."""
    _family, _type, index, _flags, _change = _LINK.unpack_from(payload)
    found = decode_attributes(payload[_LINK.size :])
    info, xdp = (decode_attributes(found.get(one, _NOTHING)) for one in (18, 43))  # IFLA_LINKINFO, IFLA_XDP
    is_attached = 2 in xdp and bytes(xdp[2]) != b"\0"  # IFLA_XDP_ATTACHED
    program = (number(xdp.get(4)) or 1) if is_attached else 0
    return Link(index=index, name=text(found.get(3)), kind=text(info.get(1)), xdp=program)


def decode_neighbour(payload: memoryview) -> Neighbour | None:
    """A neighbour with a link-layer address."""
    family, device, _state, _flags, _type = _NDMSG.unpack_from(payload)
    found = decode_attributes(payload[_NDMSG.size :])
    if 2 not in found:  # NDA_LLADDR
        return None
    address = ""
    if family in {socket.AF_INET, socket.AF_INET6} and 1 in found:
        address = socket.inet_ntop(family, found[1])
    return Neighbour(device=device, mac=bytes(found[2]).hex(":"), address=address)


def decode_flowtable(payload: memoryview) -> Flowtable:
    """A flowtable; `name` is as nft writes it, with family and table."""
    family, _version, _resource = _NFGENMSG.unpack_from(payload)
    found = decode_attributes(payload[_NFGENMSG.size :])
    hook = decode_attributes(found.get(3, _NOTHING))
    flags = int(struct.unpack(">I", found[7])[0]) if 7 in found else 0
    return Flowtable(
        name=f"{_NFT_FAMILIES.get(family, family)} {text(found.get(1))} {text(found.get(2))}",
        devices=tuple(_texts(hook.get(3, _NOTHING))),
        is_offloaded=bool(flags & _OFFLOAD),
    )


def _rate(found: Attributes, kind: str) -> int:
    """Bits per second; the 64-bit rate is there where the 32-bit one is saturated."""
    options = decode_attributes(found.get(2, _NOTHING))
    if _RATE64[kind] in options:
        return int(struct.unpack("=Q", options[_RATE64[kind]])[0]) * 8
    return number(options[1][_RATE_AT:]) * 8 if 1 in options else 0


def _target(kind: str, options: Attributes) -> int:
    """Where the first action of a filter sends packets, 0 for another action or none."""
    actions = decode_attributes(options.get(_ACTIONS.get(kind, 0), _NOTHING))
    for _order, raw in sorted(actions.items()):
        action = decode_attributes(raw)
        if text(action.get(1)) != "mirred":
            continue
        parms = decode_attributes(action.get(2, _NOTHING)).get(2)
        return number(parms[_TARGET_AT:]) if parms is not None else 0
    return 0


def _texts(data: memoryview) -> Iterator[str]:
    """The strings of a list whose entries all have one type."""
    offset = 0
    while offset + 4 <= len(data):
        (length,) = struct.unpack_from("=H", data, offset)
        if length < 4:
            return
        yield text(data[offset + 4 : offset + length])
        offset += (length + 3) & ~3
