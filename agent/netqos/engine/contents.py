"""Whole file contents: tables of JSON entries written and merged, and any content in words for who reads a plan."""

from __future__ import annotations

import json
from collections.abc import Mapping

MOST_SHOWN = 3
MOST_CHARACTERS = 40


def json_table(entries: Mapping[str, object]) -> bytes:
    """A JSON object with one entry a line and a newline at the end, in the mapping's order."""
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(entry)}" for key, entry in entries.items())
    return f"{{\n{lines}\n}}\n".encode() if lines else b"{}\n"


def merge_json_tables(found: bytes, wanted: bytes) -> bytes:
    """`wanted` and those entries of `found` that it does not have, sorted by key.

    What is found and is no table, or no entry of one, is dropped.
    """
    before = json_object(found) or {}
    kept = {key: entry for key, entry in before.items() if isinstance(entry, dict)}
    merged = {**kept, **(json_object(wanted) or {})}
    return json_table(dict(sorted(merged.items())))


def describe_content(content: bytes) -> str:
    """`12 entries, 345 bytes` for what reads as a table, else the size."""
    entries = _entries(content)
    size = f"{len(content)} bytes"
    return size if entries is None else f"{_count(len(entries), 'entry', 'entries')}, {size}"


def describe_difference(old: bytes, new: bytes) -> str:
    """What is added, removed and changed, a few of each by name; sizes where a side is no table."""
    before, after = _entries(old), _entries(new)
    if before is None or after is None:
        return f"{len(old)} bytes -> {len(new)} bytes"
    changed = [key for key in after if key in before and before[key] != after[key]]
    parts = [
        _list("add", [key for key in after if key not in before]),
        _list("remove", [key for key in before if key not in after]),
        _list("change", [_describe_change(key, before[key], after[key]) for key in changed]),
    ]
    return "; ".join(part for part in parts if part) or "another order"


def _entries(content: bytes) -> Mapping[str, object] | None:
    """A JSON object, or lines of `key value`; None for anything else."""
    if content.startswith((b"{", b"[")):
        return json_object(content)
    lines = [line.split() for line in content.decode(errors="replace").splitlines() if line.strip()]
    return {words[0]: words[1] for words in lines} if all(len(words) == 2 for words in lines) else None


def json_object(content: bytes) -> Mapping[str, object] | None:
    """The object that the content is, None where it is anything else."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _describe_change(key: str, old: object, new: object) -> str:
    text = f"{key} {old} -> {new}"
    return text if len(text) <= 2 * MOST_CHARACTERS else key


def _list(verb: str, names: list[str]) -> str:
    if not names:
        return ""
    shown = [name if len(name) <= 2 * MOST_CHARACTERS else name[:MOST_CHARACTERS] + "..." for name in names]
    more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    return f"{verb} {', '.join(shown[:MOST_SHOWN])}{more}"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
