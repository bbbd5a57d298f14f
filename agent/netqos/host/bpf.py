"""Which eBPF programs hang on a device beside traffic control's own lists (tcx, since Linux 6.6), by bpf(2).

Reading takes CAP_NET_ADMIN in the first user namespace, names take CAP_SYS_ADMIN; without them nothing is found.
"""

from __future__ import annotations

import ctypes
import os
import struct
from dataclasses import dataclass
from typing import Final

from netqos.backend import bpf

_PROG_GET_FD, _MAP_GET_FD, _GET_INFO, _QUERY = 13, 14, 15, 16
_ATTACH: Final = {"ingress": 46, "egress": 47}  # BPF_TCX_INGRESS and _EGRESS
_MOST: Final = 64
_INFO_BYTES: Final = 256
_PROG_NAME: Final = slice(64, 80)
_MAP_NAME: Final = slice(24, 40)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A loaded program: its id, name, and the names of the maps that it uses."""

    id: int
    name: str = ""
    maps: tuple[str, ...] = ()


def attached(device: int, hook: str) -> tuple[int, ...]:
    """The ids of the programs that tcx runs on `ingress` or `egress` of a device of this network namespace."""
    ids = (ctypes.c_uint32 * _MOST)()
    query = bytearray(
        struct.pack("=IIIIQIIQQQQ", device, _ATTACH[hook], 0, 0, ctypes.addressof(ids), _MOST, 0, 0, 0, 0, 0)
    )
    try:
        bpf.call(_QUERY, query)
    except OSError:
        return ()
    (count,) = struct.unpack_from("=I", query, 24)
    return tuple(ids[: min(count, _MOST)])


def program(identity: int) -> Program:
    """What is known of a program; only its id where it may not be read."""
    maps = (ctypes.c_uint32 * _MOST)()
    info = _info(_PROG_GET_FD, identity, map_ids=maps)
    if info is None:
        return Program(id=identity)
    (count,) = struct.unpack_from("=I", info, 52)
    names = (_info(_MAP_GET_FD, one) for one in maps[: min(count, _MOST)])
    return Program(
        id=identity,
        name=_name(info[_PROG_NAME]),
        maps=tuple(_name(one[_MAP_NAME]) for one in names if one is not None),
    )


def _info(get_fd: int, identity: int, map_ids: ctypes.Array[ctypes.c_uint32] | None = None) -> bytes | None:
    """The struct bpf_prog_info or bpf_map_info of an object by its id."""
    try:
        descriptor = bpf.call(get_fd, bytearray(struct.pack("=III", identity, 0, 0)))
    except OSError:
        return None
    info = ctypes.create_string_buffer(_INFO_BYTES)
    if map_ids is not None:
        struct.pack_into("=IQ", info, 52, _MOST, ctypes.addressof(map_ids))
    asked = bytearray(struct.pack("=IIQ", descriptor, _INFO_BYTES, ctypes.addressof(info)))
    try:
        bpf.call(_GET_INFO, asked)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return info.raw


def _name(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode("ascii", "replace")
