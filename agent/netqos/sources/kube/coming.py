"""A list as JSON that is still coming. Pure.

It is read item by item: an item is handed on before the next one is decoded, so that neither memory nor the
interpreter's lock is held for a whole page, however large the server made it.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable, Mapping

from netqos.model.texts import shown

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
_BEHIND = frozenset(" \t\r\n,:]}")
_LEAST = 1 << 16
_LONGEST_VALUE = 8 << 20
"""How much of an answer is waited for at a time; etcd's objects have 1.5 MiB at most."""


def scan_list(pieces: Iterable[bytes], kind: str, each: Callable[[object], None]) -> Mapping[str, object]:
    """Hand on every item, and give the list's metadata; ValueError or RecursionError for what is no list of this kind.

    Only its top level is walked here; values are the C decoder's.
    """
    coming = _Coming(pieces)
    found: dict[str, object] = {}
    coming.expect("{")
    if coming.mark() != "}":
        while True:
            key = coming.value()
            coming.expect(":")
            if key == "items" and coming.mark() == "[":
                _scan_items(coming, each)
                _keep(found, key, None)
            else:
                _keep(found, key, coming.value())
            if coming.mark() == "}":
                break
            coming.expect(",")
    coming.expect("}")
    if coming.mark():
        raise ValueError("there is something after its end")
    return _list_metadata(found, kind)


class _Coming:
    """JSON that is still coming: what was read of it is let go, and no more than one value is held at a time."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._text = ""
        self._at = 0

    def mark(self) -> str:
        """The next character that is no space, empty at the end; it is not taken."""
        while True:
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found is not None else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def expect(self, mark: str) -> None:
        """Take this character, and the space before it."""
        if self.mark() != mark:
            raise ValueError(f"no {mark} where one should be")
        self._at += 1

    def value(self) -> object:
        """Take a whole value: one that something follows, for of `1.5` what has come may be `1.`."""
        self.mark()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except ValueError:
                if not self._more():
                    raise
                continue
            if self._text[end : end + 1] in _BEHIND or not self._more():
                self._at = end
                return value

    def _more(self) -> bool:
        """Wait for as much again, so that a long value is not tried with each piece; False at the end."""
        rest, self._at = self._text[self._at :], 0
        if len(rest) > _LONGEST_VALUE:
            raise ValueError(f"a value of it has more than {_LONGEST_VALUE >> 20} MiB")
        parts: list[bytes] = []
        size, wanted = 0, max(len(rest), _LEAST)
        for piece in self._pieces:
            parts.append(piece)
            size += len(piece)
            if size >= wanted:
                break
        self._text = rest + self._decode(b"".join(parts), final=not size)
        return size > 0


def _keep(found: dict[str, object], key: object, value: object) -> None:
    if isinstance(key, str) and key in {"kind", "metadata", "items"}:
        found[key] = value


def _list_metadata(found: Mapping[str, object], wanted: str) -> Mapping[str, object]:
    """Of the parts that every list has: its kind, its items (null where Go has none) and its metadata."""
    kind, metadata = found.get("kind"), found.get("metadata")
    if kind != wanted:
        raise ValueError(f"its kind is {shown(kind)}, not {wanted}")
    if "items" not in found or found["items"] is not None:
        raise ValueError("it has no items")
    if isinstance(metadata, dict):
        return metadata
    raise ValueError("it has no metadata")


def _object(item: object) -> object:
    metadata = item.get("metadata") if isinstance(item, dict) else None
    names = [metadata.get(key) if isinstance(metadata, dict) else None for key in ("name", "uid")]
    if not all(isinstance(name, str) and name for name in names):
        raise ValueError("an item of it is no object with name and uid")
    return item


def _scan_items(coming: _Coming, each: Callable[[object], None]) -> None:
    coming.expect("[")
    if coming.mark() != "]":
        while True:
            each(_object(coming.value()))
            if coming.mark() == "]":
                break
            coming.expect(",")
    coming.expect("]")
