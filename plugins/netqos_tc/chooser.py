"""The program that chooses which packets are led to the IFB: those that have a class of the ingress tree.

What stays within the node has none and is spared the detour. It is a classifier of five instructions for cls_bpf, with
no map and no helper; redirecting is mirred's, since an IFB takes nothing else. Where it cannot be loaded (no CAP_BPF,
no CONFIG_NET_CLS_BPF) everything is led, and what stays within the node passes the IFB's leaf without a limit.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from typing import Final

from netqos_tc import numbers

_SYSCALL: Final = {"x86_64": 321, "aarch64": 280, "riscv64": 280}
_PROG_LOAD: Final = 5
_SCHED_CLS: Final = 3
_PRIORITY: Final = 32  # of skb->priority in struct __sk_buff

# include/uapi/linux/bpf.h: code, registers (source above), jump offset, value.
_INSTRUCTION: Final = struct.Struct("=BBhi")
_CODE: Final = b"".join(
    _INSTRUCTION.pack(*one)
    for one in (
        (0x61, 0x12, _PRIORITY, 0),  # r2 = skb->priority
        (0x77, 0x02, 0, 16),  # r2 >>= 16
        (0xB7, 0x00, 0, 0),  # r0 = 0: no match
        (0x55, 0x02, 1, numbers.INGRESS_MAJOR),  # if r2 != 4e52, leave
        (0xB7, 0x00, 0, -1),  # r0 = -1: a match
        (0x95, 0x00, 0, 0),
    )
)


def load() -> int | None:
    """A descriptor of the program, the caller's to close; None where it cannot be loaded."""
    number = _SYSCALL.get(platform.machine())
    if number is None:
        return None
    code = ctypes.create_string_buffer(_CODE, len(_CODE))
    text = ctypes.create_string_buffer(b"GPL")
    attributes = struct.pack(
        "=IIQQIIQII16s",
        *(_SCHED_CLS, len(_CODE) // _INSTRUCTION.size, ctypes.addressof(code), ctypes.addressof(text)),
        *(0, 0, 0, 0, 0, b"netqos"),
    )
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    libc = ctypes.CDLL(None, use_errno=True)
    found = int(libc.syscall(number, _PROG_LOAD, buffer, len(attributes)))
    return found if found >= 0 else None


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
