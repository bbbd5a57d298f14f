"""The IFB and the redirects as messages: they read back, another library agrees, and nothing else passes for them."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from netqos_tc import hooks, netmsg, numbers, uapi, wire
from netqos_tc.links import Link
from netqos_tc.netmsg import Message, Request
from netqos_tc.spec import FilterSpec, LinkSpec, RedirectSpec, U32Match

DEVICE = 12
OURS = RedirectSpec(target=numbers.IFB_INDEX, owns_hook=True)


def answer(request: Request) -> Message:
    """A request as if the kernel had sent it."""
    (message,) = netmsg.messages(request.frame(1))
    return message


def redirect(spec: RedirectSpec = OURS) -> Message:
    """The filter of a redirect, as the kernel shows it."""
    made, _action = hooks.make_redirect(DEVICE, spec)
    return answer(made)


@pytest.mark.parametrize("owns_hook", [True, False])
@pytest.mark.parametrize("target", [numbers.IFB_INDEX, 0])
def test_a_redirect_reads_back(target: int, owns_hook: bool) -> None:
    spec = RedirectSpec(target=target, owns_hook=owns_hook)
    assert hooks.read_redirect([redirect(spec)]) == spec


@pytest.mark.parametrize("owns_hook", [True, False])
def test_a_redirect_of_what_a_program_chooses_reads_back(owns_hook: bool) -> None:
    spec = RedirectSpec(target=numbers.IFB_INDEX, owns_hook=owns_hook, is_choosy=True)
    made, _action = hooks.make_redirect(DEVICE, spec, 7)
    assert hooks.read_redirect([answer(made)]) == spec
    older = answer(made)._replace(body=answer(made).body.replace(b"netqos 2", b"netqos 0"))
    assert hooks.read_redirect([older]) == RedirectSpec(target=-1, owns_hook=owns_hook)


def test_another_library_reads_the_same_redirect() -> None:
    made, _action = hooks.make_redirect(DEVICE, OURS)
    found = tcmsg(made.frame(1))
    found.decode()
    assert (found["index"], found["parent"]) == (DEVICE, 0xFFFFFFF3)
    assert found["info"] == 65106 << 16 | 0x0300
    assert found.get_attr("TCA_KIND") == "u32"
    (key,) = found.get_nested("TCA_OPTIONS", "TCA_U32_SEL")["keys"]
    assert (key["key_val"], key["key_mask"]) == (0, 0)


STRANGE = RedirectSpec(target=-1, owns_hook=False, is_marked=False)


def stranger(**changes: object) -> Message:
    """A filter with our preference that differs from ours."""
    spec = FilterSpec(
        protocol=uapi.ALL_PROTOCOLS, matches=(U32Match(value=0, mask=0, offset=0),), minor=numbers.UNKNOWN
    )
    made = wire.make_filter(DEVICE, numbers.HOOK_PREFERENCE, replace(spec, **changes))  # type: ignore[arg-type]
    return answer(made)


@pytest.mark.parametrize("changes", [{}, {"protocol": 0x0800}, {"matches": ()}])
def test_whatever_else_has_our_preference_leads_nowhere_that_we_know(changes: dict[str, object]) -> None:
    assert hooks.read_redirect([stranger(**changes)]) == STRANGE


def test_a_redirect_of_somebody_else_is_not_ours() -> None:
    ours = redirect()
    theirs = ours._replace(body=ours.body.replace(b"netqos+hook", b"other+agent"))
    assert hooks.read_redirect([theirs]) == STRANGE


def test_several_with_our_preference_are_counted_and_those_of_others_left_out() -> None:
    ours = redirect()
    other = answer(wire.make_filter(DEVICE, 7, FilterSpec(protocol=0x0800, matches=(), minor=1)))
    assert hooks.read_redirect([other, ours, stranger(), other]) == replace(OURS, more=1)
    assert hooks.read_redirect([stranger(), ours]) == replace(STRANGE, more=1, is_marked=True, owns_hook=True)
    assert hooks.read_redirect([other]) is None
    assert hooks.preferences([other, ours, other]) == (7,)


def test_the_ifb_is_marked_and_up_with_its_queue_before_anything_is_sent_to_it() -> None:
    made = hooks.make_link(numbers.IFB_INDEX, LinkSpec())
    created, changed = (ifinfmsg(one.frame(1)) for one in made)
    for one in (created, changed):
        one.decode()
    assert (created["index"], created["flags"] & 1, created.get_attr("IFLA_TXQLEN")) == (0x4E520000, 0, 1000)
    assert created.get_attr("IFLA_IFNAME") == "netqos-ifb"
    assert created.get_nested("IFLA_LINKINFO").get_attr("IFLA_INFO_KIND") == "ifb"
    assert (changed["flags"] & 1, changed.get_attr("IFLA_IFALIAS")) == (1, "netqos")
    assert made[0].flags & netmsg.EXCLUSIVE


@pytest.mark.parametrize(
    ("link", "is_ours"),
    [
        (Link(ifindex=numbers.IFB_INDEX, name="netqos-ifb", mtu=65535, kind="ifb", alias="netqos"), True),
        (Link(ifindex=numbers.IFB_INDEX, name="netqos-ifb", mtu=65535, kind="ifb"), False),
        (Link(ifindex=numbers.IFB_INDEX, name="netqos-ifb", mtu=65535, kind="veth", alias="netqos"), False),
        (Link(ifindex=9, name="netqos-ifb", mtu=65535, kind="ifb", alias="netqos"), False),
    ],
)
def test_which_device_is_our_ifb(link: Link, is_ours: bool) -> None:
    assert (hooks.read_own_link(link) is not None) is is_ours
    is_known_by_its_tree = (link.ifindex, link.kind) == (numbers.IFB_INDEX, "ifb")
    assert (hooks.read_own_link(link, has_tree=True) is not None) is is_known_by_its_tree


def test_what_a_link_is_like_is_read_whole() -> None:
    link = Link(
        ifindex=numbers.IFB_INDEX,
        name="x",
        mtu=1500,
        kind="ifb",
        alias="netqos",
        is_up=False,
        queue_length=32,
    )
    assert hooks.read_own_link(link) == LinkSpec(name="x", is_up=False, queue_length=32, mtu=1500)


def test_the_hook_is_made_where_there_is_none_and_goes_with_all_on_it() -> None:
    made, gone = hooks.make_hook(DEVICE), hooks.delete_hook(DEVICE)
    assert made.flags & netmsg.EXCLUSIVE
    for one in (made, gone):
        assert struct.unpack_from("=i", one.body, 4) == (DEVICE,)
        assert struct.unpack_from("=I", one.body, 12) == (0xFFFFFFF1,)
