"""The fast loop's grip on the trees: counters in, ceilings out, on one socket that never waits.

The kernel answers a netlink request before the call that sends it returns, one datagram for each request, so every
answer is there at once; the socket is non-blocking, and an answer that is missing means that the object is gone. A tick
reads, for each tree, the three levels and the root with one send of bytes made beforehand; it costs the same with 3
leaves and with 3000. A glance reads the total alone. For the IFB both also read the uplinks, whose packets for the node
itself never come there.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from netqos.errors import Retryable
from netqos.model.levels import Level, PerLevel
from netqos.model.quantities import bits_per_s, bytes_per_s
from netqos.model.traffic import Glance, Unit, UnitSample
from netqos_tc import answers, counts, hooks, netmsg, numbers, wire
from netqos_tc.leftover import Leftover
from netqos_tc.netmsg import Message, Request
from netqos_tc.shaped import Shaped

_DATAGRAM: Final = 8192
_LEVELS: Final = tuple(numbers.LEVELS[level] for level in Level)
_LED: Final = hooks.get_actions()

SETTLED_S: Final = 0.4
"""How old a path is before it is given up for what others changed: each new one costs an observation of all."""


@dataclass(frozen=True, slots=True)
class _Exchange:
    """Requests as bytes on the socket, how many answers belong to them, and which objects may be lacking."""

    data: bytes
    answers: int
    may_lack: frozenset[int]

    @classmethod
    def of(cls, *requests: Request) -> _Exchange:
        numbered = list(enumerate(requests, start=1))
        may_lack = frozenset(number for number, request in numbered if request in _LED)
        return cls(b"".join(one.frame(number) for number, one in numbered), len(requests), may_lack)


class TcFastPath:
    """`netqos.backend.FastPath` on our trees."""

    def __init__(self, shaped: Sequence[Shaped], monotonic: Callable[[], float]) -> None:
        """Open the socket in the namespace of the calling thread; the kernel tells others by its `port` who wrote."""
        self._shaped = {one.unit: one for one in shaped}
        self._monotonic = monotonic
        self._settled_s = monotonic() + SETTLED_S
        self._written = {unit: one.left for unit, one in self._shaped.items()}
        self._leftover = {unit: Leftover() for unit in self._shaped}
        self._levels = {unit: _levels(one.ifindex) for unit, one in self._shaped.items()}
        self._totals = {unit: _total(one) for unit, one in self._shaped.items()}
        self._all = {unit: _everything(one) for unit, one in self._shaped.items()}
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
        self._socket.bind((0, 0))
        self._socket.settimeout(0)
        self.port: Final[int] = self._socket.getsockname()[0]

    @property
    def units(self) -> tuple[Unit, ...]:
        """One for each tree."""
        return tuple(self._shaped)

    @property
    def lends(self) -> bool:
        """HTB lends unused bandwidth at once."""
        return True

    def pace_s(self, unit: Unit) -> float:
        """A changed ceiling holds from the next packet on."""
        del unit
        return 0.0

    def glance(self, units: Collection[Unit]) -> tuple[Glance, ...]:
        """What the trees' totals have sent; on the IFB also what the devices have received, for the node as well."""
        return tuple(map(self._glance, units))

    def sample(self, units: Collection[Unit] | None = None) -> tuple[UnitSample, ...]:
        """The counters of trees; `Retryable` when a tree or a device is gone, or others moved what is moved here."""
        return tuple(map(self._sample, self._shaped if units is None else units))

    def current_ceilings(self, unit: Unit) -> PerLevel[int] | None:
        """The ceilings that the kernel has now, None for a unit that is not ours."""
        if unit not in self._shaped:
            return None
        l0, l1, l2 = map(answers.read_class, map(_message, self._exchange(self._levels[unit])))
        return PerLevel(l0.spec.ceil, l1.spec.ceil, l2.spec.ceil).map(bits_per_s)

    def current_room(self, unit: Unit) -> int | None:
        """The total, where it is moved, as it was written last."""
        shaped = self._shaped.get(unit)
        if shaped is None or not (shaped.steered.has_room or shaped.steered.parts > 1):
            return None
        return bits_per_s(self._written[unit].total.ceil)

    def adjust(
        self,
        unit: Unit,
        ceilings_bps: PerLevel[int],
        *,
        room_bps: int | None = None,
        guarantees_bps: PerLevel[int] | None = None,
    ) -> int:
        """Write the classes that change whole, with the bursts that belong to them; HTB does the rest."""
        shaped = self._shaped[unit]
        ceils = ceilings_bps.map(bytes_per_s)
        steered = shaped.steered
        if room_bps is not None and guarantees_bps is not None and steered.parts > 1:
            steered = steered.in_part(bytes_per_s(room_bps), guarantees_bps.map(bytes_per_s), ceils)
        elif room_bps is not None and steered.has_room:
            steered = steered.in_room(bytes_per_s(room_bps))
        wanted = steered.with_ceiling(ceils.l0)
        met = self._written[unit].classes
        requests = [
            replace(wire.make_class(shaped.ifindex, minor, spec, create=False), flags=netmsg.ACK)
            for minor, spec in wanted.classes.items()
            if spec != met[minor]
        ]
        if requests:
            self._exchange(_Exchange.of(*requests))
            self._written[unit] = wanted
        return len(requests)

    def close(self) -> None:
        """Close the socket; the ceilings stay."""
        self._socket.close()

    def _glance(self, unit: Unit) -> Glance:
        total, *devices = self._exchange(self._totals[unit])
        received = sum(counts.device_bytes(device)[0] for device in devices)
        return Glance(
            unit=unit, taken_at_s=self._monotonic(), carried_bytes=counts.sent_bytes(total) + received
        )

    def _sample(self, unit: Unit) -> UnitSample:
        found = self._exchange(self._all[unit])
        taken_at_s = self._monotonic()
        moved = _moved(self._shaped[unit])
        self._check(unit, zip(moved, found, strict=False), taken_at_s)
        l0, l1, l2, *_total = found[: len(moved)]
        root, *rest = found[len(moved) :]
        level_bytes = PerLevel(counts.sent_bytes(l0), counts.sent_bytes(l1), counts.sent_bytes(l2))
        packets, _bytes, drops = counts.waiting(root)
        device_bytes = offered_bytes = None
        if self._shaped[unit].receivers:
            local, *devices = rest[: -len(_LED)]
            stay, stay_bytes, stay_drops = counts.waiting(local)
            packets, drops = packets - stay, max(0, drops - stay_drops)
            device_bytes = sum(counts.device_bytes(device)[0] for device in devices)
            led_bytes = sum(map(_led_bytes, rest[-len(_LED) :]))
            offered_bytes = max(0, led_bytes - counts.sent_bytes(local) - stay_bytes)
        return UnitSample(
            unit=unit,
            taken_at_s=taken_at_s,
            level_bytes=level_bytes,
            backlogged=packets > 0,
            device_bytes=device_bytes,
            offered_bytes=offered_bytes,
            dropped=drops,
        )

    def _check(self, unit: Unit, found: Iterable[tuple[int, bytes]], now_s: float) -> None:
        minor = self._leftover[unit].strange(found, self._written[unit].classes)
        if minor is not None and now_s >= self._settled_s:
            name = numbers.text(numbers.class_id(minor, self._shaped[unit].ifindex))
            raise Retryable(f"somebody else changed class {name} on {unit.device}")

    def _exchange(self, exchange: _Exchange) -> list[bytes]:
        """The answers, whole messages, one for each request in order."""
        receive = self._socket.recv
        try:
            self._socket.send(exchange.data)
            found = [receive(_DATAGRAM) for _ in range(exchange.answers)]
        except BlockingIOError:
            raise Retryable("the kernel gave no answer: a class or a device is gone") from None
        except OSError as problem:
            raise Retryable(f"netlink: {problem.strerror}") from problem
        for answer in found:
            if counts.kind(answer) == netmsg.ERROR:
                _raise_if_refused(answer, exchange)
        return found


def _led_bytes(answer: bytes) -> int:
    return hooks.read_action_bytes(_message(answer))


def _message(answer: bytes) -> Message:
    (message,) = netmsg.messages(answer)
    return message


def _levels(ifindex: int) -> _Exchange:
    return _Exchange.of(*(wire.get_class(ifindex, minor) for minor in _LEVELS))


def _total(shaped: Shaped) -> _Exchange:
    total = wire.get_class(shaped.ifindex, numbers.TOTAL)
    return _Exchange.of(total, *map(wire.get_device_stats, shaped.receivers))


def _moved(shaped: Shaped) -> tuple[int, ...]:
    """The classes that a sample looks at. A total that moves with L0's rate shows there if others move it."""
    return (*_LEVELS, numbers.TOTAL) if shaped.steered.parts > 1 else _LEVELS


def _everything(shaped: Shaped) -> _Exchange:
    """What is moved, and the root; on the IFB the local leaf, the devices that receive, and the way from them to it."""
    ifindex = shaped.ifindex
    common = [*(wire.get_class(ifindex, minor) for minor in _moved(shaped)), wire.get_root(ifindex)]
    if not shaped.receivers:
        return _Exchange.of(*common)
    local = wire.get_class(ifindex, numbers.LOCAL)
    return _Exchange.of(*common, local, *map(wire.get_device_stats, shaped.receivers), *_LED)


def _raise_if_refused(answer: bytes, exchange: _Exchange) -> None:
    message = _message(answer)
    code, text = netmsg.error_of(message)
    if code and message.sequence not in exchange.may_lack:
        name = errno.errorcode.get(code, str(code))
        raise Retryable(f"{name}: {text or os.strerror(code)}: the tree or its device is gone")
