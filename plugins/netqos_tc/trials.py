"""What the kernel can do, tried. Three-valued: yes, no, or it could not be told.

It is tried in a network namespace made for it, in a thread that ends with it. Where that is not allowed, a request
that must fail is sent instead: a known kind with broken options is refused as EINVAL, an unknown kind as ENOENT, and
nothing is changed either way.
"""

from __future__ import annotations

import ctypes
import enum
import errno
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from netqos.errors import NetqosError
from netqos.model.health import Finding, error, info, warning
from netqos_tc import hooks, netmsg, numbers, queues, wire
from netqos_tc.chooser import Chooser
from netqos_tc.controls import CONTROL_FILTERS
from netqos_tc.netlink import Channel, Refused
from netqos_tc.netmsg import Request
from netqos_tc.spec import FQ_CODEL, ClassSpec, LeafQueueSpec, LinkSpec, RedirectSpec
from netqos_tc.tree import root_spec

_CLONE_NEWNET: Final = 0x40000000  # include/uapi/linux/sched.h
_LOOPBACK: Final = 1
_UNKNOWN_KIND: Final = errno.ENOENT


class Answer(enum.Enum):
    """Whether a thing works here."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """What was tried in the kernel; `may_write`: this process has the right to configure the network."""

    may_write: Answer
    htb: Answer
    bfifo: Answer
    u32: Answer
    ifb: Answer
    redirect: Answer
    choosy: Answer
    fq_codel: Answer

    @property
    def ingress(self) -> bool:
        """Whether ingress may be shaped: no part of it is known to be missing."""
        return Answer.NO not in {self.ifb, self.redirect}


def try_kernel(route: Channel) -> Trials:
    """Try in a namespace of its own, and where that is forbidden by requests that are refused either way."""
    no_options = wire.make_qdisc(_LOOPBACK, parent=numbers.PARENT_ROOT, handle=0, kind="htb", options=b"")
    short_options = wire.make_qdisc(
        _LOOPBACK, parent=numbers.PARENT_ROOT, handle=0, kind="bfifo", options=b"\0"
    )
    no_flows = wire.make_qdisc(
        _LOOPBACK, parent=numbers.PARENT_ROOT, handle=0, kind=FQ_CODEL, options=queues.impossible()
    )
    htb, bfifo, fq_codel = route.write([_exclusive(one) for one in (no_options, short_options, no_flows)])
    aside = _in_new_namespace(_try_objects) or {}
    return Trials(
        may_write=Answer.NO if _code(htb) == errno.EPERM else Answer.YES,
        htb=aside.get("htb", _from_refusal(htb)),
        bfifo=aside.get("bfifo", _from_refusal(bfifo)),
        u32=aside.get("u32", Answer.UNKNOWN),
        ifb=aside.get("ifb", Answer.UNKNOWN),
        redirect=aside.get("redirect", Answer.UNKNOWN),
        choosy=aside.get("choosy", Answer.UNKNOWN),
        fq_codel=_from_refusal(fq_codel),
    )


def _exclusive(request: Request) -> Request:
    return Request(request.type, netmsg.CREATE | netmsg.EXCLUSIVE, request.body)


def _code(refused: Refused | None) -> int:
    return refused.code if refused is not None else 0


def _from_refusal(refused: Refused | None) -> Answer:
    """Broken options of a known kind are EINVAL, an unknown kind is ENOENT; anything else tells nothing."""
    return {errno.EINVAL: Answer.YES, _UNKNOWN_KIND: Answer.NO}.get(_code(refused), Answer.UNKNOWN)


def _try_objects() -> dict[str, Answer]:
    """Make one of each on the loopback device of a namespace that nobody uses."""
    leaf = ClassSpec(parent=numbers.ROOT, rate=1000, ceil=1000, buffer=100, cbuffer=100, prio=0, quantum=1500)
    route = Channel.route()
    try:
        htb, _leaf, bfifo, u32 = route.write(
            [
                wire.make_root(_LOOPBACK, root_spec(_LOOPBACK)),
                wire.make_class(_LOOPBACK, numbers.UNKNOWN, leaf),
                queues.make(_LOOPBACK, numbers.UNKNOWN, LeafQueueSpec(limit=1500)),
                wire.make_filter(_LOOPBACK, 1, CONTROL_FILTERS[1]),
            ]
        )
        ingress = _try_ingress(route)
    finally:
        route.close()
    if htb is not None:
        return {"htb": Answer.NO} if htb.code == _UNKNOWN_KIND else {}
    return {"htb": Answer.YES, "bfifo": _answer(bfifo), "u32": _answer(u32), **ingress}


def _try_ingress(route: Channel) -> dict[str, Answer]:
    """Make an IFB with the index that ours has, and lead another device to it."""
    redirect = RedirectSpec(target=numbers.IFB_INDEX, owns_hook=True)
    made = route.write(hooks.make_link(numbers.IFB_INDEX, LinkSpec()))
    if any(made):
        return {"ifb": Answer.NO}
    requests = [hooks.make_hook(_LOOPBACK), *hooks.make_redirect(_LOOPBACK, redirect)]
    led = zip(requests, route.write(requests), strict=True)
    is_refused = any(one is not None and not hooks.is_needless(request, one.code) for request, one in led)
    found = {"ifb": Answer.YES, "redirect": Answer.NO if is_refused else Answer.YES}
    return found | {"choosy": _try_chooser(route)}


def _try_chooser(route: Channel) -> Answer:
    """Lead only what the program chooses, in place of everything."""
    chooser = Chooser()
    try:
        redirect = RedirectSpec(target=numbers.IFB_INDEX, owns_hook=True, is_choosy=True)
        made, _action = hooks.make_redirect(_LOOPBACK, redirect, chooser.descriptor())
        return _answer(route.write([hooks.delete_redirect(_LOOPBACK), made])[1])
    except OSError:
        return Answer.NO
    finally:
        chooser.close()


def _answer(refused: Refused | None) -> Answer:
    return Answer.YES if refused is None else Answer.NO


def _in_new_namespace(work: Callable[[], dict[str, Answer]]) -> dict[str, Answer] | None:
    """The result of `work` in a new network namespace, None where none may be made."""
    results: list[dict[str, Answer]] = []

    def enter() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(_CLONE_NEWNET) == 0:
            try:
                results.append(work())
            except (NetqosError, OSError):
                return

    thread = threading.Thread(target=enter, name="netqos-tc-probe", daemon=True)
    thread.start()
    thread.join()
    return results[0] if results else None


def findings(trials: Trials) -> list[Finding]:
    """What is to be said of what this kernel lacks."""
    found = []
    if trials.may_write is Answer.NO:
        found.append(
            error(
                "no-right",
                "backend tc",
                "this process may not configure the network",
                hint="run it as root or with CAP_NET_ADMIN in the node's network namespace",
            )
        )
    if trials.htb is Answer.NO:
        found.append(_missing("sch_htb", "CONFIG_NET_SCH_HTB", "nothing can be shaped"))
    if trials.bfifo is Answer.NO:
        found.append(_missing("bfifo", "CONFIG_NET_SCH_FIFO", "queues cannot be kept short"))
    if trials.ifb is Answer.NO:
        found.append(_no_ingress("ifb", "it has no IFB", "modprobe ifb numifbs=0 (CONFIG_IFB)"))
    if trials.redirect is Answer.NO:
        hint = "modprobe act_mirred cls_u32 (CONFIG_NET_CLS_ACT, CONFIG_NET_ACT_MIRRED, CONFIG_NET_CLS_U32)"
        found.append(_no_ingress("mirred", "nothing can be redirected at a device's egress", hint))
    elif trials.choosy is Answer.NO and trials.ifb is Answer.YES:
        found.append(_no_program())
    if trials.u32 is Answer.NO:
        found.append(
            warning(
                "no-u32",
                "backend tc",
                "not enforced: a leaf of their own for ARP, LLDP, LACP and DHCP; they share the unknown leaf",
                hint="modprobe cls_u32 (CONFIG_NET_CLS_U32)",
            )
        )
    elif trials.u32 is Answer.UNKNOWN and trials.may_write is Answer.YES:
        found.append(
            info("u32-unknown", "backend tc", "whether cls_u32 is there shows when the first filter is made")
        )
    return found


def _no_ingress(part: str, reason: str, hint: str) -> Finding:
    message = f"not enforced: ingress; this kernel cannot do it: {reason}. Egress is shaped all the same"
    return warning(f"no-{part}", "backend tc", message, hint=hint)


def _no_program() -> Finding:
    return info(
        "no-program",
        "backend tc",
        "what stays within the node takes the way through the IFB too, unshaped; and should somebody remove the IFB, "
        "what workloads receive is dropped until netqosd has put it back",
        hint="netqosd needs CAP_BPF, and the kernel CONFIG_NET_CLS_BPF, for a program that chooses",
    )


def _missing(module: str, option: str, consequence: str) -> Finding:
    return error(
        f"no-{module.removeprefix('sch_')}",
        "backend tc",
        f"unavailable: {module} is missing, {consequence}",
        hint=f"modprobe {module} ({option})",
    )
