"""A tap: a device whose speed and carrier can be set, as a NIC's change; its other end takes what leaves."""

from __future__ import annotations

import array
import fcntl
import os
import socket
import struct
import time
from types import TracebackType
from typing import Self

from netqos.testing.namespaces import Foothold

_FRAME = 65_536

# include/uapi/linux/if_tun.h
_TUNSETIFF, _TUNSETCARRIER = 0x400454CA, 0x400454E2
_IFF_TAP, _IFF_NO_PI = 0x2, 0x1000

# include/uapi/linux/sockios.h and ethtool.h (struct ethtool_cmd)
_SIOCETHTOOL, _ETHTOOL_GSET, _ETHTOOL_SSET = 0x8946, 1, 2


class Tap:
    """A tap in a namespace; it is gone when it is closed."""

    def __init__(self, place: Foothold, name: str) -> None:
        """Make it, down and with a carrier."""
        self.name = name
        with place.entered():
            self._descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        fcntl.ioctl(
            self._descriptor, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TAP | _IFF_NO_PI)
        )

    def __enter__(self) -> Self:
        """The tap."""
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _problem: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Remove it."""
        self._socket.close()
        os.close(self._descriptor)

    def set_speed(self, mbit: int) -> None:
        """What its driver reports from now on, in Mbit/s; no event tells of it."""
        command = bytearray(self._ethtool(struct.pack("=I40x", _ETHTOOL_GSET)))
        struct.pack_into("=I", command, 0, _ETHTOOL_SSET)
        struct.pack_into("=H", command, 12, mbit & 0xFFFF)
        struct.pack_into("=H", command, 28, mbit >> 16)
        self._ethtool(bytes(command))

    def set_carrier(self, *, is_on: bool) -> None:
        """Whether its other end is there."""
        fcntl.ioctl(self._descriptor, _TUNSETCARRIER, struct.pack("=i", is_on))

    def renegotiate(self, mbit: int, *, away_s: float = 0.1) -> float:
        """Lose the carrier and come back with another speed, as a NIC does; when it was back (monotonic)."""
        self.set_carrier(is_on=False)
        time.sleep(away_s)
        self.set_speed(mbit)
        self.set_carrier(is_on=True)
        return time.monotonic()

    def take(self) -> None:
        """Take what leaves by it, for ever."""
        while True:
            os.read(self._descriptor, _FRAME)

    def _ethtool(self, command: bytes) -> bytes:
        held = array.array("B", command)
        where, _ = held.buffer_info()
        request = struct.pack("16sP16x", self.name.encode(), where)
        fcntl.ioctl(self._socket.fileno(), _SIOCETHTOOL, request)
        return held.tobytes()
