"""The program that chooses which packets are led to the IFB: those that have a class of the ingress tree.

What stays within the node has none and is spared the detour. It is a classifier for cls_bpf without a map; redirecting
is mirred's, since an IFB takes nothing else. A redirect to a device that is gone drops everything, so the program asks
first whether the IFB is there (bpf_check_mtu, which knows devices by their index, since Linux 5.12): should somebody
remove it while no daemon runs, packets pass unshaped. Of one that is down no helper tells. Where it cannot be loaded
(no CAP_BPF, no CONFIG_NET_CLS_BPF) everything is led, and what stays within the node passes the IFB's leaf without a
limit.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from typing import Final

from netqos.backend import bpf
from netqos_tc import numbers

_SCHED_CLS: Final = 3
_PRIORITY: Final = 32  # of skb->priority in struct __sk_buff

_CHECK_MTU: Final = 163

# In the order of `bpf.INSTRUCTION`.
_Instructions = tuple[tuple[int, int, int, int], ...]
_HAS_CLASS: Final[_Instructions] = (
    (0x61, 0x12, _PRIORITY, 0),  # r2 = skb->priority
    (0x77, 0x02, 0, 16),  # r2 >>= 16
    (0xB7, 0x00, 0, 0),  # r0 = 0: no match
)
_MATCH: Final[_Instructions] = (
    (0xB7, 0x00, 0, -1),  # r0 = -1: a match
    (0x95, 0x00, 0, 0),
)
_IS_THERE: Final[_Instructions] = (
    (0x62, 0x0A, -4, 0),  # mtu on the stack = 0: that of the packet
    (0xB7, 0x02, 0, numbers.IFB_INDEX),
    (0xBF, 0xA3, 0, 0),  # r3 = r10
    (0x07, 0x03, 0, -4),  # r3 -= 4
    (0xB7, 0x04, 0, 0),
    (0xB7, 0x05, 0, 0),
    (0x85, 0x00, 0, _CHECK_MTU),
    (0xBF, 0x01, 0, 0),  # r1 = r0: negative where there is no such device, else what it says of the size
    (0xB7, 0x00, 0, 0),
    (0xC5, 0x01, 1, 0),  # if r1 < 0, leave
)


def _code(*parts: _Instructions) -> bytes:
    return b"".join(bpf.INSTRUCTION.pack(*one) for part in parts for one in part)


def _unless_another_class(length: int) -> _Instructions:
    return ((0x55, 0x02, length, numbers.INGRESS_MAJOR),)  # if r2 != 4e52, leave


PROGRAMS: Final = (
    _code(_HAS_CLASS, _unless_another_class(len(_IS_THERE) + 1), _IS_THERE, _MATCH),
    _code(_HAS_CLASS, _unless_another_class(1), _MATCH),
)
"""The program, and what older kernels take of it."""


def load() -> int | None:
    """A descriptor of the program, the caller's to close; None where it cannot be loaded."""
    for code in PROGRAMS:
        with contextlib.suppress(OSError):
            return bpf.load(_SCHED_CLS, code, "netqos")
    return None


class Chooser:
    """The program, loaded when it is first asked for; filters keep it when this is closed."""

    def __init__(self) -> None:
        """Nothing is loaded yet."""
        self._descriptor: int | None = None

    def descriptor(self) -> int:
        """A descriptor of the program; `OSError` where it cannot be loaded any more."""
        if self._descriptor is None:
            self._descriptor = load()
        if self._descriptor is None:
            raise OSError(
                ctypes.get_errno(), "the program that chooses what is led to the IFB cannot be loaded"
            )
        return self._descriptor

    def close(self) -> None:
        """Let go of it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
