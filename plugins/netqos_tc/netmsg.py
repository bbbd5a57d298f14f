"""Netlink framing: headers, attributes, requests. Pure; include/uapi/linux/netlink.h."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

REQUEST: Final = 0x1
ACK: Final = 0x4
ECHO: Final = 0x8
DUMP: Final = 0x300
REPLACE: Final = 0x100
EXCLUSIVE: Final = 0x200
CREATE: Final = 0x400

DUMP_INTERRUPTED: Final = 0x10
"""NLM_F_DUMP_INTR in an answer: the objects changed under the dump, which has to be repeated."""

ERROR: Final = 2
DONE: Final = 3

HEADER: Final = struct.Struct("=IHHII")
_ATTRIBUTE: Final = struct.Struct("=HH")
_TYPE_MASK: Final = 0x3FFF
NESTED: Final = 0x8000

_EXTENDED: Final = 0x200  # NLM_F_ACK_TLVS in an error message
_CAPPED: Final = 0x100  # NLM_F_CAPPED: the failed request is not repeated behind the error
_ERROR_TEXT: Final = 1  # NLMSGERR_ATTR_MSG


@dataclass(frozen=True, slots=True)
class Request:
    """One message to send; the channel adds NLM_F_REQUEST and the sequence number."""

    type: int
    flags: int
    body: bytes

    def frame(self, sequence: int, *, flags: int = 0) -> bytes:
        """The bytes on the socket."""
        head = HEADER.pack(HEADER.size + len(self.body), self.type, self.flags | flags | REQUEST, sequence, 0)
        return head + self.body


class Message(NamedTuple):
    """One message received: `body` begins behind the header."""

    type: int
    flags: int
    sequence: int
    body: bytes


def messages(buffer: bytes) -> Iterator[Message]:
    """The messages of one datagram."""
    offset, end = 0, len(buffer)
    while offset + HEADER.size <= end:
        length, kind, flags, sequence, _port = HEADER.unpack_from(buffer, offset)
        if length < HEADER.size or offset + length > end:
            raise ValueError(f"netlink message of {length} bytes in a datagram of {end}")
        yield Message(kind, flags, sequence, buffer[offset + HEADER.size : offset + length])
        offset += (length + 3) & ~3


def error_of(message: Message) -> tuple[int, str]:
    """The errno (0: success) and the kernel's own words, if it gave any, of an NLMSG_ERROR or a failed NLMSG_DONE."""
    (code,) = struct.unpack_from("=i", message.body)
    if message.type == DONE or not message.flags & _EXTENDED:
        return -code, ""
    (length,) = struct.unpack_from("=I", message.body, 4)
    behind = 4 + (HEADER.size if message.flags & _CAPPED else length)
    text = attributes(message.body, behind).get(_ERROR_TEXT, b"")
    return -code, text.rstrip(b"\0").decode(errors="replace")


def attribute(kind: int, value: bytes) -> bytes:
    """One attribute, padded."""
    return _ATTRIBUTE.pack(4 + len(value), kind) + value + bytes(-len(value) & 3)


def string(kind: int, text: str) -> bytes:
    """A string attribute, NUL-terminated."""
    return attribute(kind, text.encode() + b"\0")


def attributes(buffer: bytes, offset: int = 0) -> Mapping[int, bytes]:
    """The attributes from `offset` to the end; of several with one type the last.

    As `each_attribute`, without a generator: some ten thousand are read in each look at 500 workloads.
    """
    found: dict[int, bytes] = {}
    unpack, end = _ATTRIBUTE.unpack_from, len(buffer)
    while offset + 4 <= end:
        length, kind = unpack(buffer, offset)
        if length < 4 or offset + length > end:
            raise _cut_short(length, end - offset)
        found[kind & _TYPE_MASK] = buffer[offset + 4 : offset + length]
        offset += (length + 3) & ~3
    return found


def each_attribute(buffer: bytes, offset: int = 0) -> Iterator[tuple[int, bytes]]:
    """Type and value of each attribute, in order."""
    end = len(buffer)
    while offset + 4 <= end:
        length, kind = _ATTRIBUTE.unpack_from(buffer, offset)
        if length < 4 or offset + length > end:
            raise _cut_short(length, end - offset)
        yield kind & _TYPE_MASK, buffer[offset + 4 : offset + length]
        offset += (length + 3) & ~3


def _cut_short(length: int, left: int) -> ValueError:
    return ValueError(f"netlink attribute of {length} bytes where {left} are left")
