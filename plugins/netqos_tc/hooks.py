"""The IFB and the redirects as netlink messages: made, removed, read back. Pure.

The filter carries our mark as the cookie of its action, and with it whether we made the hook on which it stands; so
the kernel itself tells the next daemon what to take away.

All filters share the action that leads to the IFB (one for each cookie): its counter has every byte that came there, in
HTB's own measure, also those that were dropped there (net/sched/act_api.c: a filter that names the index of an action
is bound to it, whatever else it says; so an action that led to an IFB that is gone is set anew behind the filter).
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from netqos_tc import answers, netmsg, uapi, wire
from netqos_tc.links import Link
from netqos_tc.netmsg import Message, Request, attribute, attributes, each_attribute, string
from netqos_tc.numbers import HOOK_PREFERENCE, IFB_INDEX, MARK
from netqos_tc.spec import LinkSpec, RedirectSpec, U32Match

_COOKIES: Final = {False: b"netqos", True: b"netqos+hook"}
_INDICES: Final = {False: 0x4E520001, True: 0x4E520002}
_ACTIONS: Final = {"bpf": uapi.BPF_ACT, "u32": uapi.U32_ACT}
_PROGRAM: Final = "netqos 2"
"""The program's name, with the version of what it chooses."""

_ANYTHING: Final = (U32Match(value=0, mask=0, offset=0),)


def make_link(ifindex: int, spec: LinkSpec) -> list[Request]:
    """Create the IFB: named and marked before it is up, its own queue long enough before anything is sent to it."""
    kind = attribute(uapi.LINK_INFO | netmsg.NESTED, string(uapi.INFO_KIND, "ifb"))
    body = uapi.IFINFO.pack(0, 0, ifindex, 0, 0) + string(uapi.IFNAME, spec.name) + _sizes(spec) + kind
    return [Request(uapi.NEWLINK, netmsg.CREATE | netmsg.EXCLUSIVE, body), *change_link(ifindex, spec, spec)]


def change_link(ifindex: int, met: LinkSpec, spec: LinkSpec) -> list[Request]:
    """Bring the IFB to what it should be; it is up at the end, also if the name that it had is taken meanwhile."""
    requests = [delete_hook(ifindex)] if met.is_hooked else []
    if met.name != spec.name:
        requests.append(Request(uapi.NEWLINK, 0, uapi.IFINFO.pack(0, 0, ifindex, 0, uapi.UP)))
        renamed = uapi.IFINFO.pack(0, 0, ifindex, 0, 0) + string(uapi.IFNAME, spec.name)
        requests.append(Request(uapi.NEWLINK, 0, renamed))
    up = uapi.UP if spec.is_up else 0
    body = uapi.IFINFO.pack(0, 0, ifindex, up, uapi.UP) + string(uapi.ALIAS, spec.mark) + _sizes(spec)
    return [*requests, Request(uapi.NEWLINK, 0, body)]


def delete_link(ifindex: int) -> Request:
    """Remove the IFB with all that stands on it."""
    return Request(uapi.DELLINK, 0, uapi.IFINFO.pack(0, 0, ifindex, 0, 0))


def read_own_link(link: Link, *, has_tree: bool = False, is_hooked: bool = False) -> LinkSpec | None:
    """Our IFB, known by our mark or by our tree on it; None for a device that is somebody else's."""
    if (link.ifindex, link.kind) != (IFB_INDEX, "ifb") or not (has_tree or link.alias == MARK):
        return None
    return LinkSpec(
        name=link.name,
        is_up=link.is_up,
        queue_length=link.queue_length,
        mtu=link.mtu,
        mark=link.alias,
        is_hooked=is_hooked,
    )


def make_hook(ifindex: int) -> Request:
    """Create the hook; EEXIST where there is one."""
    body = wire.tcmsg(ifindex, handle=uapi.CLSACT & 0xFFFF0000, parent=uapi.CLSACT)
    return Request(uapi.NEWQDISC, netmsg.CREATE | netmsg.EXCLUSIVE, body + string(uapi.KIND, "clsact"))


def delete_hook(ifindex: int) -> Request:
    """Remove the hook with all filters on it."""
    return Request(uapi.DELQDISC, 0, wire.tcmsg(ifindex, parent=uapi.CLSACT))


def make_redirect(ifindex: int, spec: RedirectSpec, program: int = -1) -> list[Request]:
    """The filter that sends packets to the IFB, and its action as it should be where there was one already.

    `program` is the descriptor of the one that chooses (`netqos_tc.chooser`), for a spec that is choosy.
    """
    action = attribute(1 | netmsg.NESTED, _action(spec))
    if spec.is_choosy:
        kind, options = "bpf", attribute(uapi.BPF_FD, struct.pack("=i", program))
        options += string(uapi.BPF_NAME, _PROGRAM) + attribute(uapi.BPF_ACT | netmsg.NESTED, action)
    else:
        kind, options = "u32", attribute(uapi.U32_SEL, wire.selector(_ANYTHING))
        options += attribute(uapi.U32_ACT | netmsg.NESTED, action)
    body = _place(ifindex) + string(uapi.KIND, kind) + attribute(uapi.OPTIONS, options)
    again = bytes(uapi.TCAMSG) + attribute(uapi.ACT_TAB | netmsg.NESTED, action)
    return [
        Request(uapi.NEWTFILTER, netmsg.CREATE | netmsg.EXCLUSIVE, body),
        Request(uapi.NEWACTION, netmsg.CREATE | netmsg.REPLACE, again),
    ]


def is_needless(request: Request, code: int) -> bool:
    """Whether a refusal means nothing: an action that a filter has made is only put right by itself.

    In a user namespace nobody may do that: tc_ctl_action in net/sched/act_api.c asks for CAP_NET_ADMIN in the first.
    """
    return request.type == uapi.NEWACTION and code == errno.EPERM


def get_actions() -> tuple[Request, ...]:
    """The actions that lead to the IFB, one by one; ENOENT where no filter has it."""
    return tuple(
        Request(
            uapi.GETACTION,
            0,
            bytes(uapi.TCAMSG)
            + attribute(
                uapi.ACT_TAB | netmsg.NESTED,
                attribute(
                    1 | netmsg.NESTED,
                    string(uapi.ACT_KIND, "mirred") + attribute(uapi.ACT_INDEX, struct.pack("=I", index)),
                ),
            ),
        )
        for index in _INDICES.values()
    )


def read_action_bytes(message: Message) -> int:
    """The bytes that an action has led to the IFB; 0 for one that is not there."""
    if message.type == netmsg.ERROR:
        return 0
    actions = attributes(message.body, uapi.TCAMSG)[uapi.ACT_TAB]
    stats = attributes(attributes(attributes(actions)[1])[uapi.ACT_STATS])
    sent_bytes, _packets = uapi.BASIC.unpack_from(stats[uapi.STATS_BASIC])
    return int(sent_bytes)


def _action(spec: RedirectSpec) -> bytes:
    index = _INDICES[spec.owns_hook]
    mirred = uapi.MIRRED.pack(index, 0, uapi.STOLEN, 0, 0, uapi.EGRESS_REDIRECT, spec.target)
    action = string(uapi.ACT_KIND, "mirred") + attribute(uapi.ACT_COOKIE, _COOKIES[spec.owns_hook])
    return action + attribute(uapi.ACT_OPTIONS | netmsg.NESTED, attribute(uapi.MIRRED_PARMS, mirred))


def delete_redirect(ifindex: int) -> Request:
    """Remove what has our preference at the hook, of whatever protocol."""
    return Request(uapi.DELTFILTER, 0, _place(ifindex, protocol=0))


def dump_filters(ifindex: int) -> Request:
    """The filters at the egress of a device's hook."""
    return wire.dump_filters(ifindex, uapi.HOOK_EGRESS)


def dump_ingress_filters(ifindex: int) -> Request:
    """The filters at the other side of a device's hook."""
    return wire.dump_filters(ifindex, uapi.HOOK_INGRESS)


def read_redirect(messages: Iterable[Message]) -> RedirectSpec | None:
    """Our filter among those at an egress hook; None where none has our preference."""
    ours = [one for one in messages if answers.filter_preference(one) == HOOK_PREFERENCE and _is_filter(one)]
    if not ours:
        return None
    cookies = {cookie for one in ours for cookie in _cookies(one)}
    met = replace(_read_one(ours[0]), more=len(ours) - 1, is_marked=not cookies.isdisjoint(_COOKIES.values()))
    return replace(met, owns_hook=_COOKIES[True] in cookies)


def preferences(messages: Iterable[Message]) -> tuple[int, ...]:
    """The preferences of the filters of others at an egress hook, in the order in which packets meet them."""
    return tuple(sorted({answers.filter_preference(one) for one in messages} - {HOOK_PREFERENCE}))


def _is_filter(message: Message) -> bool:
    """Whether it is a filter, and not what the kernel shows first of each preference, or what holds u32's together."""
    has_options = uapi.OPTIONS in attributes(message.body, uapi.TCMSG.size)
    return has_options and answers.read_filter(message) is not None


def _read_one(message: Message) -> RedirectSpec:
    unknown = RedirectSpec(target=-1, owns_hook=False)
    met = answers.read_filter(message)
    if met is None or met.protocol != uapi.ALL_PROTOCOLS:
        return unknown
    options = attributes(attributes(message.body, uapi.TCMSG.size).get(uapi.OPTIONS, b""))
    is_choosy = met.kind == "bpf" and options.get(uapi.BPF_NAME) == _PROGRAM.encode() + b"\0"
    if not is_choosy and (met.kind, met.matches) != ("u32", _ANYTHING):
        return unknown
    actions = _actions(message)
    if len(actions) != 1 or actions[0].get(uapi.ACT_COOKIE) not in _COOKIES.values():
        return unknown
    parts = attributes(actions[0].get(uapi.ACT_OPTIONS, b""))
    if uapi.MIRRED_PARMS not in parts:
        return unknown
    owns_hook = actions[0][uapi.ACT_COOKIE] == _COOKIES[True]
    index, *_rest, does, target = uapi.MIRRED.unpack_from(parts[uapi.MIRRED_PARMS])
    if (index, does) != (_INDICES[owns_hook], uapi.EGRESS_REDIRECT):
        return unknown
    return RedirectSpec(target=target, owns_hook=owns_hook, is_choosy=is_choosy)


def _actions(message: Message) -> list[Mapping[int, bytes]]:
    """The actions of a filter of u32 or cls_bpf; those of other kinds are not ours."""
    parts = attributes(message.body, uapi.TCMSG.size)
    kind = parts.get(uapi.KIND, b"").rstrip(b"\0").decode()
    listed = attributes(parts.get(uapi.OPTIONS, b"")).get(_ACTIONS.get(kind, -1), b"")
    return [attributes(one) for _order, one in each_attribute(listed)]


def _cookies(message: Message) -> list[bytes]:
    return [bytes(one[uapi.ACT_COOKIE]) for one in _actions(message) if uapi.ACT_COOKIE in one]


def _sizes(spec: LinkSpec) -> bytes:
    return attribute(uapi.QUEUE_LENGTH, struct.pack("=I", spec.queue_length)) + attribute(
        uapi.MTU, struct.pack("=I", spec.mtu)
    )


def _place(ifindex: int, protocol: int = uapi.ALL_PROTOCOLS) -> bytes:
    info = wire.filter_info(HOOK_PREFERENCE, protocol)
    return wire.tcmsg(ifindex, parent=uapi.HOOK_EGRESS, info=info)
