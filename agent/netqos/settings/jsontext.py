"""JSON in annotations: hostile text becomes a tree of plain values, or `Rejected`; never another exception."""

from __future__ import annotations

import json
import re

from netqos.errors import Rejected
from netqos.model.texts import LONGEST_TEXT, TOO_LONG

# A text (closed or not, so that each character is looked at once) or a comma before a closing bracket.
_TRAILING_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"?|(,)(?=\s*[}\]])', re.DOTALL)


class Repeated:
    """Stands for the value of a key that was given more than once; no parser takes it for anything else."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "a value given more than once"


REPEATED = Repeated()


def load_json(text: str) -> object:
    """The decoded value. Commas before a closing bracket are accepted, NaN and Infinity are not.

    A key that is given twice has the value `REPEATED`. Raises `Rejected` for anything that is no JSON, is longer than
    64 KiB or too deeply nested.
    """
    if len(text) > LONGEST_TEXT:
        raise Rejected(f"{TOO_LONG}, and not read", hint="write less JSON")
    try:
        return _decode(text)
    except Rejected as problem:
        try:
            return _decode(_without_trailing_commas(text))
        except Rejected:
            raise problem from None


def _decode(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except json.JSONDecodeError as problem:
        raise Rejected(
            f"no JSON ({problem.msg}, character {problem.pos + 1})", hint="write one JSON object"
        ) from None
    except (RecursionError, ValueError) as problem:
        # ValueError: an integer with more digits than Python converts.
        reason = "nested too deeply" if isinstance(problem, RecursionError) else "an integer is too long"
        raise Rejected(f"no usable JSON: {reason}", hint="write one flat JSON object") from None


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        found[key] = REPEATED if key in found else value
    return found


def _refuse_constant(word: str) -> object:
    raise Rejected(f"no JSON: {word} is no number", hint="write a finite number")


def _without_trailing_commas(text: str) -> str:
    """Each comma before a closing bracket, outside of texts, becomes a space: positions stay."""
    return _TRAILING_COMMA.sub(lambda found: " " if found[1] else found[0], text)
