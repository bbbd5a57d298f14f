"""Times as people write them (`50ms`, `1s`, `10m`, `1h30m`) -> seconds."""

from __future__ import annotations

import re
from fractions import Fraction

from netqos.errors import Rejected
from netqos.model.texts import shown

FORMS = "50ms, 1s, 10m or 1h30m"
_LONGEST = 32
_PART = r"[0-9]{1,9}(?:\.[0-9]{1,6})?"
_DURATION = re.compile(rf"(?:({_PART})h)?(?:({_PART})m)?(?:({_PART})s)?(?:({_PART})ms)?")
_UNITS_S = (Fraction(3600), Fraction(60), Fraction(1), Fraction(1, 1000))


def parse_duration(value: object) -> float:
    """Seconds. Raises `Rejected` for anything without a unit, with a sign, or with its units out of order."""
    found = _DURATION.fullmatch(value) if isinstance(value, str) and 0 < len(value) <= _LONGEST else None
    if found is None:
        lack = "has no unit" if _is_number(value) else "is no duration"
        raise Rejected(f"{shown(value)} {lack}; allowed: a number with ms, s, m or h", hint=f"write {FORMS}")
    parts = zip(found.groups(default="0"), _UNITS_S, strict=True)
    return float(sum(Fraction(number) * unit_s for number, unit_s in parts))


def format_duration(seconds: float) -> str:
    """The shortest such text, exact to the microsecond: `50ms`, `1.5s`, `10m`."""
    exact = Fraction(round(seconds * 1_000_000), 1_000_000)
    for suffix, unit_s in (("h", 3600), ("m", 60)):
        if exact and exact % unit_s == 0:
            return f"{exact // unit_s}{suffix}"
    value, suffix = (exact, "s") if exact == 0 or exact >= 1 else (exact * 1000, "ms")
    whole, rest = divmod(int(value * 1_000_000), 1_000_000)
    return f"{whole}.{rest:06d}".rstrip("0").rstrip(".") + suffix


def _is_number(value: object) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (
        isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value) is not None
    )
