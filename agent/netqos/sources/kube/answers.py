"""What a server said, as values: failures, pages of a list, events of a watch. Pure.

A list is read item by item while it comes: an item is handed on before the next one is decoded, so that neither memory
nor the interpreter's lock is held for a whole page, however large the server made it.
"""

from __future__ import annotations

import codecs
import enum
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
_BEHIND = frozenset(" \t\r\n,:]}")
_LEAST = 1 << 16
_LONGEST_VALUE = 8 << 20
"""How much of an answer is waited for at a time; etcd's objects have 1.5 MiB at most."""


class Kind(enum.Enum):
    """Why a request gave nothing: nobody answered, the answer was a refusal, or it made no sense."""

    LOST = "lost"
    REFUSED = "refused"
    GARBLED = "garbled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One failed request. `code` is the HTTP status of a refusal; `retry_after_s` what the server asked for.

    `is_stale_login`: credentials or certificates may have changed, so they should be read anew.
    """

    kind: Kind
    detail: str
    code: int = 0
    retry_after_s: float | None = None
    is_stale_login: bool = False


class Broken(Exception):
    """A request failed."""

    def __init__(self, failure: Failure) -> None:
        """`failure` says how."""
        super().__init__(failure.detail)
        self.failure = failure


@dataclass(frozen=True, slots=True, kw_only=True)
class ListMeta:
    """What a page says of its list. `token` is empty on the last page."""

    version: str
    token: str


class EventType(enum.Enum):
    """The types of a watch's events."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEvent:
    """One event; `version` is the object's resource version, empty where it has none."""

    type: EventType
    object: Mapping[str, object]
    version: str


def read_page(pieces: Iterable[bytes], each: Callable[[object], None]) -> ListMeta:
    """Hand every item of a list to `each` as soon as it has come; `Broken` (garbled) for what is no list."""
    try:
        metadata = _scan_list(_Coming(pieces), each)
    except (ValueError, RecursionError) as problem:
        raise garbled(f"the answer is no list: {_words(problem)}") from None
    version, token = metadata.get("resourceVersion"), metadata.get("continue")
    return ListMeta(
        version=version if isinstance(version, str) else "", token=token if isinstance(token, str) else ""
    )


def read_event(line: bytes) -> WatchEvent:
    """One line of a watch; `Broken` (garbled) for anything else."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise garbled(f"the watch sent no JSON: {_words(problem)}") from None
    kind = found.get("type") if isinstance(found, dict) else None
    content = found.get("object") if isinstance(found, dict) else None
    if not isinstance(kind, str) or kind not in EventType.__members__ or not isinstance(content, dict):
        raise garbled("the watch sent what is no event")
    return WatchEvent(type=EventType[kind], object=content, version=version_of(content))


def version_of(document: Mapping[str, object]) -> str:
    """The resource version of an object, empty where it has none."""
    metadata = document.get("metadata")
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    return version if isinstance(version, str) else ""


def refusal(code: int, data: bytes, retry_after: str | None) -> Failure:
    """A status from 400 on with its body, mostly a Status object."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        document = None
    return _refused(code, document, retry_after)


def refusal_of_event(event: WatchEvent) -> Failure:
    """What an ERROR event says."""
    code = event.object.get("code")
    return _refused(code if isinstance(code, int) else 0, event.object, None)


def lost(detail: str, *, is_stale_login: bool = False) -> Broken:
    """Nobody answered, or not to the end."""
    return Broken(Failure(kind=Kind.LOST, detail=detail, is_stale_login=is_stale_login))


def garbled(detail: str) -> Broken:
    """The answer made no sense."""
    return Broken(Failure(kind=Kind.GARBLED, detail=detail))


def _refused(code: int, document: object, retry_after: str | None) -> Failure:
    status = document if isinstance(document, dict) else {}
    message, details = status.get("message"), status.get("details")
    asked: object = details.get("retryAfterSeconds") if isinstance(details, dict) else None
    if retry_after is not None and retry_after.isascii() and retry_after.isdigit():
        asked = int(retry_after[:6])
    wait_s = float(asked) if isinstance(asked, int) and not isinstance(asked, bool) and asked >= 0 else None
    words = message[:200] if isinstance(message, str) and message else "no reason given"
    return Failure(
        kind=Kind.REFUSED,
        detail=f"{code}: {words}",
        code=code,
        retry_after_s=wait_s,
        is_stale_login=code == 401,
    )


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


def _scan_list(coming: _Coming, each: Callable[[object], None]) -> Mapping[str, object]:
    """The list's metadata. Only its top level is walked here; values are the C decoder's."""
    metadata: object = None
    coming.expect("{")
    if coming.mark() != "}":
        while True:
            key = coming.value()
            coming.expect(":")
            if key == "items" and coming.mark() == "[":
                _scan_items(coming, each)
            else:
                value = coming.value()
                metadata = value if key == "metadata" else metadata
            if coming.mark() == "}":
                break
            coming.expect(",")
    coming.expect("}")
    if coming.mark():
        raise ValueError("there is something after its end")
    if isinstance(metadata, dict):
        return metadata
    raise ValueError("it has no metadata")


def _scan_items(coming: _Coming, each: Callable[[object], None]) -> None:
    coming.expect("[")
    if coming.mark() != "]":
        while True:
            each(coming.value())
            if coming.mark() == "]":
                break
            coming.expect(",")
    coming.expect("]")


def _words(problem: Exception) -> str:
    return str(problem)[:100]
