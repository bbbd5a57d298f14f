"""What a server said, as values: failures, pages of a list, events of a watch, objects. Pure.

Whatever is not in the form that it must have is garbled, and nothing of it counts: a proxy in between may say anything.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from netqos.sources.kube.coming import scan_list


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


def read_page(
    pieces: Iterable[bytes], kind: str, each: Callable[[object], None], *, has_version: bool = True
) -> ListMeta:
    """Hand every item of a list to `each` as soon as it has come; `Broken` (garbled) for what is no list of `kind`.

    What `each` was given counts for nothing before this returns. `has_version` is false of the kubelet's lists alone.
    """
    try:
        metadata = scan_list(pieces, f"{kind}List", each)
    except (ValueError, RecursionError) as problem:
        raise garbled(f"the answer is no list: {_words(problem)}") from None
    version, token = metadata.get("resourceVersion", ""), metadata.get("continue", "")
    if not isinstance(version, str) or not isinstance(token, str) or (has_version and not version):
        raise garbled("the answer is no list: it has no resourceVersion")
    return ListMeta(version=version, token=token)


def read_object(data: bytes, kind: str) -> Mapping[str, object]:
    """The object that a write was answered with; `Broken` (garbled) for anything else: it may not have been done."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as problem:
        raise garbled(f"the answer is no JSON: {_words(problem)}") from None
    if not isinstance(found, dict) or found.get("kind") != kind or not _text_of(found, "name"):
        raise garbled(f"the answer is no {kind}")
    return found


def read_event(line: bytes, kind: str) -> WatchEvent:
    """One line of a watch; `Broken` (garbled) for anything else, and for an object of another kind or no version."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise garbled(f"the watch sent no JSON: {_words(problem)}") from None
    said = found.get("type") if isinstance(found, dict) else None
    content = found.get("object") if isinstance(found, dict) else None
    if not isinstance(said, str) or said not in EventType.__members__ or not isinstance(content, dict):
        raise garbled("the watch sent what is no event")
    event = WatchEvent(type=EventType[said], object=content, version=version_of(content))
    if event.type is not EventType.ERROR and not (event.version and content.get("kind") == kind):
        raise garbled(f"the watch sent {said} of what is no {kind} with a resourceVersion")
    return event


def version_of(document: Mapping[str, object]) -> str:
    """The resource version of an object, empty where it has none."""
    return _text_of(document, "resourceVersion")


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


def _text_of(document: Mapping[str, object], key: str) -> str:
    metadata = document.get("metadata")
    text = metadata.get(key) if isinstance(metadata, dict) else None
    return text if isinstance(text, str) else ""


def _words(problem: Exception) -> str:
    return str(problem)[:100]
