"""bpf(2), for whoever loads a program or asks for those of others; include/uapi/linux/bpf.h."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from functools import cache
from typing import Final

_SYSCALL: Final = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "s390x": 351, "ppc64le": 361}
_PROG_LOAD: Final = 5
INSTRUCTION: Final = struct.Struct("=BBhi")
"""struct bpf_insn of little-endian machines: code, registers (source above), jump offset, value."""


def call(command: int, attributes: bytearray) -> int:
    """bpf(2): what it returns; the kernel writes its answer into `attributes`.

    `OSError` where the kernel refuses it, ENOSYS where the call's number on this machine is not known.
    """
    number = _SYSCALL.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    buffer = (ctypes.c_char * len(attributes)).from_buffer(attributes)
    result = int(_libc().syscall(number, command, ctypes.byref(buffer), len(attributes)))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"bpf(2), command {command}: {os.strerror(code)}")
    return result


def load(kind: int, code: bytes, name: str) -> int:
    """A descriptor of a program of a kind (BPF_PROG_TYPE_*), the caller's to close; at most 15 characters of its name.

    `OSError` where it cannot be loaded.
    """
    instructions, license_ = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b"GPL")
    attributes = struct.pack(
        "=IIQQIIQII16s",
        *(kind, len(code) // INSTRUCTION.size, ctypes.addressof(instructions), ctypes.addressof(license_)),
        *(0, 0, 0, 0, 0, name.encode()[:15]),
    )
    return call(_PROG_LOAD, bytearray(attributes))


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
