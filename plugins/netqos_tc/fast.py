"""The fast loop's grip on the trees: counters in, L0's ceiling out, on one socket that never waits.

The kernel answers a netlink request before the call that sends it returns, so every answer is there at once; the
socket is non-blocking, and an answer that is missing means that the object is gone. A tick reads, for each uplink, the
three levels, the root and the device with one send of bytes made beforehand; it costs the same with 3 leaves and with
3000.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from netqos.errors import Retryable
from netqos.model.ids import IfName
from netqos.model.levels import Direction, Level, PerLevel
from netqos.model.quantities import bits_per_s, bytes_per_s
from netqos.model.traffic import Unit, UnitSample
from netqos_tc import answers, netmsg, numbers, params, wire
from netqos_tc.netmsg import Message, Request
from netqos_tc.params import Shape
from netqos_tc.spec import ClassSpec

_DATAGRAM: Final = 8192
_LEVELS: Final = tuple(numbers.LEVELS[level] for level in Level)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaped:
    """An uplink that has a tree: its device, and L0's class as it was when the grip was made."""

    ifindex: int
    name: IfName
    mtu: int
    l0: ClassSpec


@dataclass(frozen=True, slots=True)
class _Exchange:
    """Requests as bytes on the socket, and how many answers belong to them."""

    data: bytes
    answers: int

    @classmethod
    def of(cls, *requests: Request) -> _Exchange:
        frames = (request.frame(number) for number, request in enumerate(requests, start=1))
        return cls(b"".join(frames), len(requests))


class TcFastPath:
    """`netqos.backend.FastPath` on our trees."""

    def __init__(self, uplinks: Sequence[Shaped], monotonic: Callable[[], float]) -> None:
        """Open the socket in the namespace of the calling thread."""
        self._uplinks = {Unit(Direction.TX, one.name): one for one in uplinks}
        self._monotonic = monotonic
        self._written: dict[Unit, int] = {}
        self._levels = {unit: _levels(one.ifindex) for unit, one in self._uplinks.items()}
        self._all = {unit: _everything(one.ifindex) for unit, one in self._uplinks.items()}
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
        self._socket.bind((0, 0))
        self._socket.settimeout(0)

    @property
    def units(self) -> tuple[Unit, ...]:
        """One for each tree."""
        return tuple(self._uplinks)

    @property
    def lends(self) -> bool:
        """HTB lends unused bandwidth at once."""
        return True

    @property
    def min_interval_s(self) -> float:
        """A changed ceiling holds from the next packet on."""
        return 0.0

    def sample(self) -> tuple[UnitSample, ...]:
        """The counters of every uplink; `Retryable` when a tree or a device is gone."""
        return tuple(self._sample(unit) for unit in self._uplinks)

    def current_ceilings(self, unit: Unit) -> PerLevel[int] | None:
        """The ceilings that the kernel has now, None for a unit that is not ours."""
        if unit not in self._uplinks:
            return None
        l0, l1, l2 = (answers.read_class(message) for message in self._exchange(self._levels[unit]))
        return PerLevel(l0.spec.ceil, l1.spec.ceil, l2.spec.ceil).map(bits_per_s)

    def current_room(self, unit: Unit) -> int | None:
        """No total is moved."""
        del unit
        return None

    def adjust(self, unit: Unit, ceilings_bps: PerLevel[int], *, room_bps: int | None = None) -> int:
        """Write L0's class whole, with the new ceiling and the burst that belongs to it; HTB does the rest."""
        del room_bps
        uplink = self._uplinks[unit]
        spec = with_ceiling(uplink.l0, ceilings_bps.l0, mtu=uplink.mtu)
        if self._written.get(unit) == spec.ceil:
            return 0
        request = wire.make_class(uplink.ifindex, numbers.L0, spec, create=False)
        self._exchange(_Exchange.of(replace(request, flags=netmsg.ACK)))
        self._written[unit] = spec.ceil
        return 1

    def close(self) -> None:
        """Close the socket; the ceilings stay."""
        self._socket.close()

    def _sample(self, unit: Unit) -> UnitSample:
        l0, l1, l2, root, device = self._exchange(self._all[unit])
        taken_at_s = self._monotonic()
        waiting = answers.read_qdisc(root).counters
        return UnitSample(
            unit=unit,
            taken_at_s=taken_at_s,
            level_bytes=PerLevel(l0, l1, l2).map(lambda one: answers.read_class(one).counters.sent_bytes),
            backlogged=waiting.backlog_packets > 0,
            device_bytes=answers.read_device_sent(device),
            dropped=waiting.drops,
        )

    def _exchange(self, exchange: _Exchange) -> list[Message]:
        """The answers, one for each request in order."""
        try:
            self._socket.send(exchange.data)
            found: list[Message] = []
            while len(found) < exchange.answers:
                found += netmsg.messages(self._socket.recv(_DATAGRAM))
        except BlockingIOError:
            raise Retryable("the kernel gave no answer: a class or a device is gone") from None
        except OSError as problem:
            raise Retryable(f"netlink: {problem.strerror}") from problem
        for message in found:
            if message.type == netmsg.ERROR:
                _raise_if_refused(message)
        return found


def with_ceiling(l0: ClassSpec, ceiling_bps: int, *, mtu: int) -> ClassSpec:
    """L0's class under another ceiling, never under its rate; every other parameter as it was (contract 3)."""
    shape = Shape(rate=l0.rate, ceil=l0.ceil, buffer=l0.buffer, cbuffer=l0.cbuffer)
    moved = params.with_ceil(shape, max(bytes_per_s(ceiling_bps), l0.rate), mtu=mtu)
    return replace(l0, ceil=moved.ceil, cbuffer=moved.cbuffer)


def _levels(ifindex: int) -> _Exchange:
    return _Exchange.of(*(wire.get_class(ifindex, minor) for minor in _LEVELS))


def _everything(ifindex: int) -> _Exchange:
    levels = (wire.get_class(ifindex, minor) for minor in _LEVELS)
    return _Exchange.of(*levels, wire.get_root(ifindex), wire.get_device_stats(ifindex))


def _raise_if_refused(message: Message) -> None:
    code, text = netmsg.error_of(message)
    if code:
        name = errno.errorcode.get(code, str(code))
        raise Retryable(f"{name}: {text or os.strerror(code)}: the tree or its device is gone")
