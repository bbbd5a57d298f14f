"""What others have set up on this node that shapes beside us or leads packets past us, as one value.

It is looked for every `RECHECK_S`; nothing of it is ever touched. What cannot be read counts as not there. The cost is
two dumps (links, qdiscs) and one of nftables; hooks are listed only where there are some, and addresses are only
looked up where a CNI's limiter was found. There the kernel is made to ask for those that it has not met yet: on a
bridge a pod that has said nothing is behind no port.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from netqos.host import bpf, tcwire
from netqos.host.bpf import Program
from netqos.host.rtnetlink import Requests
from netqos.host.tcwire import Filter, Flowtable, Qdisc

RECHECK_S = 10.0

ANSWER_S = 1.0
"""How soon it is looked again after addresses were asked for."""

_MOST_ASKED = 256

POD_KINDS = frozenset({"veth", "netkit"})
"""The kinds of links behind which pods are."""

OURS = frozenset({0x4E51, 0x4E52})
"""The majors of our own trees (contract 7)."""

_PLUGINS_HTB, _SHAPED = 0x10000, 0x30
_NETFILTER = 12
_HOOK_KINDS = frozenset({"clsact", "ingress"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooked:
    """A filter or program on a hook (`ingress`, `egress`) of a device; `by` says what runs it: `clsact` or `tcx`."""

    hook: str
    by: str
    filter: Filter


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A link with all that others have put on it. `xdp`: the id of its XDP program, 0 without."""

    index: int
    name: str
    kind: str = ""
    qdiscs: tuple[Qdisc, ...] = ()
    hooked: tuple[Hooked, ...] = ()
    xdp: int = 0

    @property
    def root(self) -> Qdisc | None:
        """The root qdisc, None where the kernel shows none."""
        return next((one for one in self.qdiscs if one.parent == tcwire.ROOT), None)

    @property
    def limiter(self) -> Qdisc | None:
        """The root where that is a token bucket of somebody, as a CNI puts one there."""
        root = self.root
        return root if root is not None and root.rate_bps and root.handle >> 16 not in OURS else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """`devices` by index: those with an object of others. `behind`: the addresses behind devices, where asked for."""

    devices: Mapping[int, Device] = field(default_factory=dict)
    flowtables: tuple[Flowtable, ...] = ()
    programs: Mapping[int, Program] = field(default_factory=dict)
    behind: Mapping[int, frozenset[str]] = field(default_factory=dict)


NOTHING_SEEN = Neighbourhood()


class Neighbours:
    """Looks; made and asked in the network namespace in question (bpf(2) knows no other). Not for several threads."""

    def __init__(self) -> None:
        """Open the sockets; OSError where that is refused."""
        self._requests = Requests()
        self._nft: Requests | None = None
        with contextlib.suppress(OSError):  # a kernel without nfnetlink
            self._nft = Requests(_NETFILTER)
        self._read_s = float("-inf")
        self._seen = Neighbourhood()
        self._asked: frozenset[str] = frozenset()

    def read(self, *, now_s: float, wanted: Callable[[], Iterable[str]] = tuple) -> Neighbourhood:
        """What is there, not older than `RECHECK_S`; `now_s` is monotonic. Where it cannot be read, what was there.

        `wanted` gives the addresses whose device matters where there are limiters.
        """
        if now_s - self._read_s >= RECHECK_S:
            self._read_s = now_s
            with contextlib.suppress(OSError, ValueError, struct.error):  # ours to decode, on any kernel
                self._seen = self._look()
            if _are_limited(self._seen.devices.values()) and self._ask_for(frozenset(wanted())):
                self._read_s += ANSWER_S - RECHECK_S
        return self._seen

    def close(self) -> None:
        """Release the sockets."""
        self._requests.close()
        if self._nft is not None:
            self._nft.close()

    def _ask_for(self, wanted: frozenset[str]) -> bool:
        """Have those resolved whose device is not known; whether one of them was not asked for at the last look."""
        unknown = frozenset(sorted(wanted.difference(*self._seen.behind.values()))[:_MOST_ASKED])
        for address in unknown:
            # Without a route, or the right to ask, it stays unknown.
            with contextlib.suppress(OSError, ValueError, struct.error):
                self._requests.resolve(address)
        earlier, self._asked = self._asked, unknown
        return not unknown <= earlier

    def _look(self) -> Neighbourhood:
        qdiscs: dict[int, list[Qdisc]] = {}
        for payload in self._requests.dump(tcwire.RTM_GETQDISC, tcwire.qdiscs_request()):
            if not tcwire.is_queue_of(payload, OURS):
                one = tcwire.decode_qdisc(payload)
                qdiscs.setdefault(one.device, []).append(one)
        devices = {}
        for payload in self._requests.links():
            device = self._device(payload, qdiscs)
            if device.qdiscs or device.hooked or device.xdp:
                devices[device.index] = device
        hooked = [one for device in devices.values() for one in device.hooked]
        programs = {one.filter.program_id for one in hooked if one.filter.program_id}
        return Neighbourhood(
            devices=devices,
            flowtables=tuple(self._flowtables()),
            programs={identity: bpf.program(identity) for identity in programs},
            behind=self._behind(devices.values()),
        )

    def _device(self, payload: memoryview, qdiscs: Mapping[int, list[Qdisc]]) -> Device:
        link = tcwire.decode_link(payload)
        own = tuple(self._with_rate(one, link.kind) for one in qdiscs.get(link.index, ()))
        return Device(
            index=link.index,
            name=link.name,
            kind=link.kind,
            qdiscs=own,
            hooked=(*self._hooked(link.index, own), *_by_tcx(link.index)),
            xdp=link.xdp,
        )

    def _with_rate(self, qdisc: Qdisc, link_kind: str) -> Qdisc:
        """A qdisc; where it is the HTB that the bandwidth plugin makes since 1.6, with the rate of its shaped class."""
        is_plugins = (qdisc.kind, qdisc.handle, qdisc.parent) == ("htb", _PLUGINS_HTB, tcwire.ROOT)
        if not is_plugins or link_kind not in POD_KINDS | {"ifb"}:
            return qdisc
        dump = self._requests.dump(tcwire.RTM_GETTCLASS, tcwire.classes_request(qdisc.device))
        rates = dict(map(tcwire.decode_class, dump))
        return replace(qdisc, rate_bps=rates.get(_PLUGINS_HTB | _SHAPED, 0))

    def _hooked(self, device: int, qdiscs: Iterable[Qdisc]) -> Iterator[Hooked]:
        """The filters of the device's hooks, without those of the kinds that only hold others."""
        kinds = {one.kind for one in qdiscs} & _HOOK_KINDS
        hooks = () if not kinds else tuple(tcwire.HOOKS) if "clsact" in kinds else ("ingress",)
        for hook in hooks:
            for payload in self._requests.dump(tcwire.RTM_GETTFILTER, tcwire.filters_request(device, hook)):
                found = tcwire.decode_filter(payload)
                if found is not None:
                    yield Hooked(hook=hook, by="clsact", filter=found)

    def _flowtables(self) -> Iterator[Flowtable]:
        if self._nft is None:
            return
        with contextlib.suppress(OSError):
            yield from map(
                tcwire.decode_flowtable, self._nft.dump(tcwire.NFT_GETFLOWTABLE, tcwire.NFNL_REQUEST)
            )

    def _behind(self, devices: Iterable[Device]) -> dict[int, frozenset[str]]:
        """The addresses behind each pod's device, by routes or, on a bridge, by neighbours; empty without limiters."""
        if not _are_limited(devices):
            return {}
        found: dict[int, set[str]] = {}
        for address, device in self._requests.host_routes().items():
            found.setdefault(device, set()).add(address)
        ports = {one.mac: one.device for one in self._neighbours(socket.AF_BRIDGE)}
        for family in (socket.AF_INET, socket.AF_INET6):
            for one in self._neighbours(family):
                found.setdefault(ports.get(one.mac, one.device), set()).add(one.address)
        return {device: frozenset(addresses) for device, addresses in found.items()}

    def _neighbours(self, family: int) -> Iterator[tcwire.Neighbour]:
        for payload in self._requests.dump(tcwire.RTM_GETNEIGH, tcwire.neighbours_request(family)):
            found = tcwire.decode_neighbour(payload)
            if found is not None:
                yield found


def _are_limited(devices: Iterable[Device]) -> bool:
    return any(one.limiter is not None for one in devices)


def _by_tcx(device: int) -> Iterator[Hooked]:
    for hook in tcwire.HOOKS:
        for identity in bpf.attached(device, hook):
            yield Hooked(
                hook=hook, by="tcx", filter=Filter(kind="bpf", program="a program", program_id=identity)
            )
