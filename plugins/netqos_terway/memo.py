"""What the writer of ceilings must know of the policy in force and the files do not tell. Pure.

It is kept in the state folder beside the files, so that a daemon that finds everything in order after its start can
steer at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from netqos.model.desired import DesiredState
from netqos_terway.encode import global_text, parse_global
from netqos_terway.layout import Rows, asked

DOCUMENT = "policy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Memo:
    """The uplinks that the total is of, and the values that the policy asks for, ceilings not lowered."""

    uplinks: tuple[str, ...]
    asked: Rows


def wanted_memo(desired: DesiredState) -> Memo | None:
    """The memo for a state, None where nothing is shaped by level."""
    rows = asked(desired)
    if rows is None:
        return None
    return Memo(uplinks=tuple(uplink.name for uplink in desired.uplinks), asked=rows)


def to_document(memo: Memo) -> dict[str, object]:
    """As JSON values; the rows in the words of the file."""
    return {"uplinks": list(memo.uplinks), "asked": global_text(memo.asked).decode()}


def from_document(document: object) -> Memo | None:
    """The memo in a document, None for anything else."""
    if not isinstance(document, dict):
        return None
    uplinks, text = document.get("uplinks"), document.get("asked")
    rows = parse_global(text.encode()) if isinstance(text, str) else None
    if rows is None or not isinstance(uplinks, list) or not all(isinstance(name, str) for name in uplinks):
        return None
    return Memo(uplinks=tuple(uplinks), asked=rows)
