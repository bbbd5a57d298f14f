"""The form of the documents in the state folder: JSON with a version, of a bounded size, with bounded numbers. Pure.

Whoever reads a document may rely on its numbers: each is finite, not negative and not above `LARGEST`, so that it can
be added to others, compared and shown. What could not be read back is not written in the first place.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NoReturn, TypeVar

from netqos.model.texts import shown

VERSION = 1
"""The form of the documents; raised when an older daemon could misread one."""

MOST_BYTES = 16 * 2**20

T = TypeVar("T", int, float)

LARGEST = 2**53
"""No bandwidth, time, handle or count reaches it, and up to it every reader of JSON agrees on integers."""


def wrapped(document: object) -> bytes:
    """The content of a document's file; ValueError or RecursionError for what could not be read back."""
    content = encoded({"version": VERSION, "document": document}) + b"\n"
    unwrapped(content)
    return content


def wrapped_each(items: Iterable[object]) -> bytes:
    """As `wrapped` of a list; the interpreter's lock is held, and memory used, for an item at a time."""
    content = bytearray(b'{"document":[')
    for number, item in enumerate(items):
        one = encoded(item)
        _decoded(one)
        content += b"," * (number > 0) + one
        _refuse_long(len(content))
    content += b'],"version":%d}\n' % VERSION
    _refuse_long(len(content))
    return bytes(content)


def unwrapped(content: bytes) -> object:
    """The document of a file's content; ValueError or RecursionError, with the reason, where there is none."""
    _refuse_long(len(content))
    envelope = _decoded(content)
    if not isinstance(envelope, dict) or "document" not in envelope:
        raise ValueError("it has no 'document'")
    if envelope.get("version") != VERSION:
        met = envelope.get("version")
        raise ValueError(f"its version is {shown(met)}; this daemon reads version {VERSION}")
    return envelope["document"]


def encoded(document: object) -> bytes:
    """The bytes of a value, the same for equal ones; ValueError for what JSON has no form for."""
    return json.dumps(document, sort_keys=True, allow_nan=False, separators=(",", ":")).encode("ascii")


def _refuse_long(size_bytes: int) -> None:
    if size_bytes > MOST_BYTES:
        raise ValueError(f"it has {size_bytes} bytes; at most {MOST_BYTES} are read")


def _decoded(content: bytes) -> object:
    try:
        found: object = json.loads(
            content, parse_int=_whole, parse_float=_real, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as problem:
        raise ValueError(f"it is not JSON: {problem}") from None
    except UnicodeDecodeError as problem:
        raise ValueError(f"it is not JSON: {problem.reason}") from None
    except RecursionError:
        raise ValueError("it is not JSON that we wrote: too deep") from None
    return found


def _whole(text: str) -> int:
    """What is so long that nobody counts its digits is too large anyway."""
    return _checked(int(text[:20]), text)


def _real(text: str) -> float:
    return _checked(float(text), text)


def _checked(number: T, text: str) -> T:
    if 0 <= number <= LARGEST:
        return number
    raise ValueError(f"it has the number {text[:20]}; allowed are 0 to {LARGEST}")


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"it has the number {text}; allowed are 0 to {LARGEST}")
