"""How a log event looks as a line: JSON for programs, text for a terminal.

Values come from outside (annotations, names): whatever they hold, a line stays one line, prints no control characters
and has a bounded length.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

LEVELS: Mapping[str, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}

MOST_CHARACTERS = 4096
"""Of one value; a longer one is cut. The journal's own bound is 48 KiB a line."""

MOST_OF_TRACEBACK = 16384
"""Of a traceback, whose end is kept: it says what happened."""

_FIRST = ("time", "level", "event", "logger")
_SYSLOG = {"debug": 7, "info": 6, "warning": 4, "error": 3, "critical": 2}


def render_json(event: Mapping[str, Any]) -> str:
    """One JSON object: time (UTC), level, event and logger first, then the rest in the order given."""
    stamp = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    fields = {"time": stamp, **{key: event[key] for key in _FIRST if key in event}}
    fields |= {key: value for key, value in event.items() if key not in fields}
    return json.dumps({str(key): _bounded(str(key), value) for key, value in fields.items()}, default=_plain)


def render_text(event: Mapping[str, Any]) -> str:
    """`12:03:04.567 warning event key=value`; a traceback follows on lines of its own, indented."""
    stamp = datetime.now().astimezone().strftime("%H:%M:%S.%f")[:-3]
    words = [stamp, f"{event.get('level', ''):7}", _word(event.get("event", ""))]
    rest = {key: value for key, value in event.items() if key not in {*_FIRST, "exception"}}
    words += [f"{key}={_word(_bounded(str(key), value))}" for key, value in rest.items()]
    trace = str(_bounded("exception", event.get("exception", "")))
    lines = ["".join(part if part.isprintable() else "?" for part in line) for line in trace.splitlines()]
    return "\n    ".join([" ".join(words), *lines])


def syslog_prefix(level: str) -> str:
    """The priority as sd-daemon(3) wants it before a line on stderr."""
    return f"<{_SYSLOG.get(level, 6)}>"


def _word(value: object) -> str:
    text = value if isinstance(value, str) else _plain(value)
    is_plain = bool(text) and text.isprintable() and not any(mark in text for mark in " \"'=")
    return text if is_plain else json.dumps(text)


def _bounded(key: str, value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if not isinstance(value, str | int | float | bool | None):
        value = value if _is_small(value) else _plain(value)
    if not isinstance(value, str):
        return value
    if key == "exception":
        left_out = len(value) - MOST_OF_TRACEBACK
        return value if left_out <= 0 else f"({left_out} characters left out)...{value[-MOST_OF_TRACEBACK:]}"
    left_out = len(value) - MOST_CHARACTERS
    return value if left_out <= 0 else f"{value[:MOST_CHARACTERS]}...({left_out} characters left out)"


def _is_small(value: object) -> bool:
    """Whether a container may go to JSON as it is."""
    if not isinstance(value, dict | list | tuple):
        return False
    try:
        return len(json.dumps(value, allow_nan=False)) <= MOST_CHARACTERS
    except (TypeError, ValueError, RecursionError):
        return False


def _plain(value: object) -> str:
    try:
        return str(value)
    except Exception as problem:  # noqa: BLE001 - the __str__ of a plugin's object must not stop its caller
        return f"<{type(value).__name__} that cannot be shown: {type(problem).__name__}>"
