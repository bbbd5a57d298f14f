"""Whether the counters of a device's classes agree with the device's own. Pure.

What a tree did not meet shows only there: a program that sends past the queue, a driver that loses packets, a device
that leads outside and is no uplink. The two count differently, which is taken into account as an interval:

- HTB counts a merged packet (GSO) as the frames that it becomes, each with its headers; a virtual device counts it as
  one. So `classes - device` may be as many headers as the device counted packets less.
- A NIC may count the checksum of a frame, a tag that it put in, and what fills a short frame up to 60 bytes.

A window is over when it is long enough and carried enough; two in a row that disagree in the same way are told, and
three in a row that agree well end it. So neither noise nor the moment between two readings makes a finding flap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

WINDOW_S: Final = 2.0
"""Two readings that are some milliseconds apart differ by well under a percent of such a window."""

ENOUGH_BYTES: Final = 2_000_000
RAISE_SHARE: Final = 0.02
CLEAR_SHARE: Final = 0.01
RAISE_AFTER: Final = 2
CLEAR_AFTER: Final = 3
FORGET_S: Final = 300.0
"""How long a disagreement is told when nothing flows that could end it."""

LEAST_HEADERS: Final = 14 + 20 + 8
"""Ethernet, IPv4 and UDP."""

MOST_HEADERS: Final = 14 + 4 + 40 + 60 + 70
"""Ethernet with a tag, IPv6, TCP with all its options, and the outer headers of VXLAN over IPv6."""

_TAIL: Final = 8
"""A frame's checksum and a tag that the hardware puts in."""

_SHORTEST: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Counters since ever at one moment: of the classes, and of the device (or the sum of several)."""

    at_s: float
    class_bytes: int
    class_packets: int
    device_bytes: int
    device_packets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """One window: what both counted, and the bytes of the device (positive) or of the classes that nothing explains."""

    span_s: float
    class_bytes: int
    device_bytes: int
    unexplained_bytes: int

    @property
    def share(self) -> float:
        """The unexplained part of all that was counted, with its sign."""
        return self.unexplained_bytes / max(self.class_bytes, self.device_bytes, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One device under watch: where the window began, how the last ones went, and the disagreement that is told."""

    began: Reading | None = None
    suspects: int = 0
    side: int = 0
    agreed: int = 0
    told: Gap | None = None
    told_s: float = 0.0


def gap(before: Reading, after: Reading, *, is_whole: bool = True) -> Gap:
    """The window between two readings. `is_whole` False: the device also carries what no class meets."""
    classes = after.class_bytes - before.class_bytes
    device = after.device_bytes - before.device_bytes
    packets = after.device_packets - before.device_packets
    merged = max(0, after.class_packets - before.class_packets - packets)
    least = classes - merged * MOST_HEADERS
    fill = max(0, packets * (_SHORTEST + _TAIL) - device) if packets else 0
    most = classes - merged * LEAST_HEADERS + packets * _TAIL + fill
    over = max(0, device - most) if is_whole else 0
    return Gap(
        span_s=after.at_s - before.at_s,
        class_bytes=classes,
        device_bytes=device,
        unexplained_bytes=over or min(0, device - least),
    )


def step(
    account: Account, reading: Reading, *, is_whole: bool = True, enough_bytes: int = ENOUGH_BYTES
) -> Account:
    """The account after one more reading; `told` is set while there is something to tell.

    `enough_bytes` is what a window must have carried before it is judged.
    """
    began = account.began
    if began is None or _is_anew(began, reading):
        return Account(began=reading)
    if account.told is not None and reading.at_s - account.told_s >= FORGET_S:
        account = replace(account, told=None)
    met = gap(began, reading, is_whole=is_whole)
    if met.span_s < WINDOW_S or max(met.class_bytes, met.device_bytes) < enough_bytes:
        return account
    return _judge(replace(account, began=reading), met, reading.at_s)


def _judge(account: Account, met: Gap, at_s: float) -> Account:
    side = (met.share > RAISE_SHARE) - (met.share < -RAISE_SHARE)
    suspects = (account.suspects + 1 if side == account.side else 1) if side else 0
    agreed = account.agreed + 1 if abs(met.share) < CLEAR_SHARE else 0
    account = replace(account, suspects=suspects, side=side, agreed=agreed)
    if suspects >= RAISE_AFTER:
        return replace(account, told=met, told_s=at_s)
    return replace(account, told=None) if agreed >= CLEAR_AFTER else account


def _is_anew(before: Reading, after: Reading) -> bool:
    """Whether counters went back: the tree or the device was made anew."""
    return (
        after.class_bytes < before.class_bytes
        or after.class_packets < before.class_packets
        or after.device_bytes < before.device_bytes
        or after.device_packets < before.device_packets
    )
