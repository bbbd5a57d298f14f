"""eBPF programs of others, for kernel tests: assembled by hand, loaded by bpf(2), gone with their last descriptor.

Attaching is by links of bpf(2) in the network namespace of the calling thread; closing one detaches its program.
"""

from __future__ import annotations

import os
import struct
from types import TracebackType
from typing import Final, Self

from netqos.backend import bpf

_MAP_CREATE, _LINK_CREATE = 0, 28
_ARRAY = 2
_TYPES: Final = {"tcx": 3, "xdp": 6}
_ATTACH: Final = {("tcx", "ingress"): 46, ("tcx", "egress"): 47, ("xdp", "ingress"): 37}
_XDP_GENERIC = 2
_NEXT, _XDP_PASS = -1, 2
_REDIRECT = 23  # the helper bpf_redirect(ifindex, flags)


class ForeignProgram:
    """A program on a hook of a device that lets everything pass, or redirects it; `with` detaches it."""

    def __init__(
        self,
        kind: str,
        hook: str,
        device: int,
        *,
        name: str = "foreign",
        redirect_to: int = 0,
        uses_map: str = "",
    ) -> None:
        """`kind` tcx or xdp (generic); devices by index; `uses_map`: the name of a map that it refers to."""
        code = b""
        self._descriptors: list[int] = []
        if uses_map:
            descriptor = self._keep(bpf.call(_MAP_CREATE, _map(uses_map)))
            code += _instruction(0x18, register=1, source=1, value=descriptor) + bytes(8)
        code += _redirect(redirect_to) if redirect_to else _answer(_XDP_PASS if kind == "xdp" else _NEXT)
        program = self._keep(bpf.load(_TYPES[kind], code, name))
        flags = _XDP_GENERIC if kind == "xdp" else 0
        attributes = struct.pack("=IIIIQQQQ", program, device, _ATTACH[kind, hook], flags, 0, 0, 0, 0)
        self._keep(bpf.call(_LINK_CREATE, bytearray(attributes)))

    def __enter__(self) -> Self:
        """Nothing more to do."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Detach it."""
        self.close()

    def close(self) -> None:
        """Detach and unload it."""
        while self._descriptors:
            os.close(self._descriptors.pop())

    def _keep(self, descriptor: int) -> int:
        self._descriptors.append(descriptor)
        return descriptor


def _answer(code: int) -> bytes:
    return _instruction(0xB7, value=code) + _instruction(0x95)


def _redirect(device: int) -> bytes:
    arguments = _instruction(0xB7, register=1, value=device) + _instruction(0xB7, register=2)
    return arguments + _instruction(0x85, value=_REDIRECT) + _instruction(0x95)


def _instruction(code: int, *, register: int = 0, source: int = 0, value: int = 0) -> bytes:
    """One struct bpf_insn."""
    return bpf.INSTRUCTION.pack(code, source << 4 | register, 0, value)


def _map(name: str) -> bytearray:
    return bytearray(struct.pack("=IIIIIII16s", _ARRAY, 4, 8, 1, 0, 0, 0, name.encode()[:15]))
