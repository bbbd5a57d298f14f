"""What this host can do, found out by trying, never by versions. Three-valued: yes, no, or it could not be told.

The kernel's part is tried in a network namespace made for it, in a thread that ends with it. Where that is not
allowed, a request that must fail is sent instead: a known kind with broken options is refused as EINVAL, an unknown
kind as ENOENT, and nothing is changed either way. The nft table is tried in one transaction that removes it again.
"""

from __future__ import annotations

import ctypes
import enum
import errno
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from netqos.backend import Capabilities, NftRunner
from netqos.errors import NetqosError, Unsupported
from netqos.model.health import Finding, error, info, warning
from netqos.model.levels import Direction
from netqos_tc import cgroupspace, classify, hooks, netmsg, numbers, queues, wire
from netqos_tc.chooser import Chooser
from netqos_tc.layout import Facilities
from netqos_tc.netlink import Channel, Refused
from netqos_tc.netmsg import Request
from netqos_tc.owners import Told
from netqos_tc.spec import CGROUP_MAPS, FQ_CODEL, ClassSpec, LeafQueueSpec, LinkSpec, RedirectSpec, TableSpec
from netqos_tc.tree import CONTROL_FILTERS, root_spec

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


def probe(
    route: Channel, nft: Callable[[], NftRunner], *, table: TableSpec | None = None
) -> tuple[Capabilities, Facilities]:
    """What the backend can do here; nothing outlives the call.

    `table` is our table where it is there: a whole one proves what nft can do, so that a restart writes nothing.
    """
    trials = try_kernel(route)
    begins_at = cgroupspace.begins_at(mountinfo())
    told, sources, nft_findings = _proven(table, begins_at) or _try_nft(nft, begins_at)
    findings = (*_kernel_findings(trials), *nft_findings)
    is_available = Answer.NO not in {trials.may_write, trials.htb, trials.bfifo} and told is not None
    told = told or Told(cgroups=False)
    capabilities = Capabilities(
        available=is_available,
        enforces=_directions(trials) if is_available else frozenset(),
        apart=frozenset({Direction.RX}),
        lends=True,
        limits=True,
        rules=is_available,
        findings=findings,
    )
    return capabilities, Facilities(
        u32=trials.u32 is not Answer.NO,
        cgroups=told.cgroups,
        begins_at=told.begins_at,
        ingress=trials.ingress,
        sources=sources,
        choosy=trials.choosy is Answer.YES,
        fq_codel=trials.fq_codel is Answer.YES,
    )


def _directions(trials: Trials) -> frozenset[Direction]:
    return frozenset(Direction) if trials.ingress else frozenset({Direction.TX})


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


_Tried = tuple[Told | None, bool, tuple[Finding, ...]]
"""Which cgroups can be told, whether sources can be looked up, and what is to be said of both."""


def _proven(table: TableSpec | None, begins_at: int) -> _Tried | None:
    """What a table that was made before proves. One without cgroups may be from an older kernel: that is tried anew.

    So is one that a daemon in another place of the tree has made, and one that counts from the root.
    """
    if table is None:
        return None
    whole = classify.table_spec(
        cgroups=True,
        begins_at=begins_at,
        net_classes=classify.has_net_classes(table),
        ruled=classify.is_ruled(table),
    )
    if table != whole:
        return None
    return Told(begins_at=begins_at), True, _shifted(begins_at)


def _try_nft(nft: Callable[[], NftRunner], begins_at: int) -> _Tried:
    """What the table can tell, None where it cannot be made at all. Levels may count from `begins_at`."""
    try:
        runner = nft()
    except Unsupported as problem:
        return None, False, (error("no-libnftables", "backend tc", problem.message, hint=problem.hint),)
    problems = []
    for cgroups in (True, False):
        try:
            runner.run(classify.probe_text(cgroups=cgroups))
        except NetqosError as problem:
            problems.append(problem)
        else:
            sources = _try_sources(runner)
            counts_from = begins_at if cgroups and begins_at and _is_shifted(runner) else 0
            if counts_from > max(CGROUP_MAPS):
                return Told(cgroups=False), not sources, (*sources, _too_deep(counts_from))
            findings = (*sources, *map(_no_cgroups, problems), *_shifted(counts_from))
            return Told(cgroups=cgroups, begins_at=counts_from), not sources, findings
    return None, False, (_no_nft(problems[-1]),)


def _try_sources(runner: NftRunner) -> tuple[Finding, ...]:
    """What is to be said where the table cannot look up where a packet's source is."""
    try:
        runner.run(classify.probe_text(cgroups=False, sources=True))
    except NetqosError as problem:
        return (
            warning(
                "source-not-verified",
                "backend tc",
                "a workload that forges another's address sends in its name: this kernel cannot look up where a "
                f"source is; {problem.message}",
                hint="the kernel needs CONFIG_NFT_FIB_INET; net.ipv4.conf.all.rp_filter=1 drops forged packets too",
            ),
        )
    return ()


def mountinfo() -> str:
    """What is mounted where, as this process sees it; empty where that cannot be read."""
    try:
        return Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def _is_shifted(runner: NftRunner) -> bool:
    try:
        runner.run(cgroupspace.probe_text())
    except NetqosError:
        return True
    return False


def _shifted(begins_at: int) -> tuple[Finding, ...]:
    """What cannot be told from a container's cgroup namespace."""
    if not begins_at:
        return ()
    return (
        info(
            "cgroup-namespace",
            "backend tc",
            f"this container's cgroup namespace begins {begins_at} deep, and only cgroups as deep can be told apart: "
            "pods on the host's network are known by their containers, units of systemd count as the host",
            hint=_HOSTS_NAMESPACE,
        ),
    )


def _too_deep(begins_at: int) -> Finding:
    return warning(
        "cgroup-namespace",
        "backend tc",
        "not enforced: workloads known by their cgroup and pods on the host's network; this container's cgroup "
        f"namespace begins {begins_at} deep; allowed: up to {max(CGROUP_MAPS)}",
        hint=_HOSTS_NAMESPACE,
    )


_HOSTS_NAMESPACE: Final = (
    "run netqosd in the host's cgroup namespace (as a service of systemd, or privileged)"
)


def _no_cgroups(problem: NetqosError) -> Finding:
    return warning(
        "no-socket-cgroup",
        "backend tc",
        f"not enforced: workloads known by their cgroup; {problem.message}",
        hint="the kernel needs CONFIG_NFT_SOCKET (5.13 or newer), nftables 0.9.9 or newer",
    )


def _no_nft(problem: NetqosError) -> Finding:
    return error(
        "no-nft-maps",
        "backend tc",
        f"packets cannot be told apart: {problem.message}",
        hint=problem.hint
        or "the kernel needs CONFIG_NF_TABLES_INET and CONFIG_NFT_FIB_INET (modprobe nf_tables)",
    )


def _kernel_findings(trials: Trials) -> list[Finding]:
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
