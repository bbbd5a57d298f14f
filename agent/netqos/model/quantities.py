"""Bandwidths: Kubernetes quantities as text, bits per second as int; the only home of a factor 8 and of percentages.

Parsing is stricter than the API server's client in Python and as strict as the API server: ASCII digits, the suffixes
of `k8s.io/apimachinery/pkg/api/resource`, nothing around them. Arithmetic is exact, never floating point. A rejected
value raises `Rejected` with the value met, what is allowed and, where it can be guessed, what was meant.
"""

from __future__ import annotations

import re
from fractions import Fraction

from netqos.errors import Rejected
from netqos.model.inputs import Amount, Percent
from netqos.model.texts import shown

SMALLEST_BPS = 1_000
LARGEST_BPS = 1_000_000_000_000_000
FORMS = "500k, 10M or 1.5G (bits per second)"
RANGE = "1k to 1P"
LIMITS = f"{RANGE}, or 0 for no limit"

# Longer texts are no bandwidth, and the bound keeps the arithmetic below cheap.
_LONGEST = 64
# With at most 64 digits before it, an exponent beyond this is far outside of the range either way.
_LARGEST_EXPONENT = 128

_QUANTITY = re.compile(
    r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]+)?"
)
_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)%")
_MEANT = re.compile(r"([0-9][0-9_,']*(?:\.[0-9]+)?)\s*([kmgtp]?)i?(bits?|b)?(?:/s|ps)?", re.IGNORECASE)
_NO_LIMIT_WORDS = frozenset({"unlimited", "none", "max", "inf", "infinity", "off", "no limit", "nolimit"})
_SCALES: dict[str, Fraction] = {
    "": Fraction(1),
    **{suffix: Fraction(1000) ** power for power, suffix in enumerate(("n", "u", "m"), start=-3)},
    **{suffix: Fraction(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Fraction(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}
_UNITS = (("P", 10**15), ("T", 10**12), ("G", 10**9), ("M", 10**6))


def parse_bandwidth(value: object) -> int:
    """A bandwidth in bits per second, 1k to 1P. A fraction of a bit is rounded up, as the API server's Value() does."""
    bps = _parse(value, allowed=RANGE)
    if bps == 0:
        raise _rejected(f"{shown(value)} is no bandwidth", allowed=RANGE)
    return bps


def parse_limit(value: object) -> int:
    """A limit in bits per second: as `parse_bandwidth`, or 0 (also -0), which means "no limit"."""
    return _parse(value, allowed=LIMITS)


def parse_percent(text: object) -> Percent:
    """`30%` or `12.5%`, 0% to 100%."""
    found = _PERCENT.fullmatch(text) if isinstance(text, str) else None
    if found is None or Fraction(found[1]) > 100:
        raise Rejected(
            f"{shown(text)} is no percentage; allowed: 0% to 100%", hint="write it as 30% or 12.5%"
        )
    exact = Fraction(found[1])
    return Percent(exact.numerator if exact.denominator == 1 else exact)


def parse_amount(value: object) -> Amount:
    """A limit as `parse_limit`, or a percentage of the total as `parse_percent`."""
    if isinstance(value, str) and value.endswith("%"):
        return parse_percent(value)
    try:
        return parse_limit(value)
    except Rejected as problem:
        raise Rejected(f"{problem.message}; or a percentage such as 30%", hint=problem.hint) from None


def format_bandwidth(bps: int) -> str:
    """The shortest plain form (`10M`, `1.5G`, `1234567`) that `parse_limit` reads back as exactly the same number."""
    for suffix, unit in _UNITS:
        if bps >= unit and bps % (unit // 1000) == 0:
            return _decimal(bps, unit) + suffix
    if 1000 <= bps < 1_000_000 and bps % 100 == 0:
        return _decimal(bps, 1000) + "k"
    return str(bps)


def bytes_per_s(bps: int) -> int:
    """Bits per second as whole bytes per second, rounded down, but a positive bandwidth never becomes 0."""
    if bps < 0:
        raise ValueError(f"negative bandwidth: {bps} bit/s")
    return max(bps // 8, 1) if bps else 0


def bits_per_s(bytes_per_second: int) -> int:
    """Bytes per second as bits per second."""
    return bytes_per_second * 8


def resolve(amount: Amount, total_bps: int) -> int:
    """An amount in bits per second, a share of `total_bps` rounded down; a positive share never becomes 0."""
    if isinstance(amount, int):
        return amount
    share = total_bps * amount.value // 100
    return max(share, 1) if amount.value > 0 and total_bps > 0 else share


def format_amount(amount: Amount) -> str:
    """`10M` or `30%`."""
    return format_bandwidth(amount) if isinstance(amount, int) else f"{_shortest(Fraction(amount.value))}%"


def _parse(value: object, *, allowed: str) -> int:
    exact = _exact(value, allowed=allowed)
    if exact != 0 and not SMALLEST_BPS <= exact <= LARGEST_BPS:
        raise _rejected(f"{shown(value)} is {_side(value, exact)}", allowed=allowed)
    return -(-exact.numerator // exact.denominator)


def _exact(value: object, *, allowed: str) -> Fraction:
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    if not isinstance(value, str):
        raise _rejected(f"{shown(value)} is no quantity", allowed=allowed)
    found = _QUANTITY.fullmatch(value) if len(value) <= _LONGEST else None
    if found is None:
        raise _rejected(f"{shown(value)} is no quantity{_meant(value, allowed=allowed)}", allowed=allowed)
    sign, number, suffix = found.groups(default="")
    # Fraction("7.") is refused before Python 3.12.
    exact = Fraction(number.rstrip(".")) * _scale(suffix)
    return -exact if sign == "-" else exact


def _scale(suffix: str) -> Fraction:
    if suffix in _SCALES:
        return _SCALES[suffix]
    exponent = int(suffix[1:])
    return Fraction(10) ** max(-_LARGEST_EXPONENT, min(exponent, _LARGEST_EXPONENT))


def _side(value: object, exact: Fraction) -> str:
    if exact < 0:
        return "negative"
    if exact > LARGEST_BPS:
        return "over the largest bandwidth"
    if isinstance(value, str) and value.endswith("m"):
        return f"under the smallest bandwidth, since m is milli (did you mean {value[:-1]}M?)"
    return "under the smallest bandwidth"


def _meant(text: str, *, allowed: str) -> str:
    """What a word that is no quantity was probably meant to be, as the end of a sentence; may be empty."""
    if text.strip().lower() in _NO_LIMIT_WORDS:
        return " (did you mean 0?)" if allowed == LIMITS else ""
    if text.strip().endswith("%"):
        return ", and no percentage is taken here"
    found = _MEANT.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if found is None or not text.isascii():
        return ""
    number = re.sub(r"[_,']", "", found[1])
    unit = "k" if found[2] in "kK" and found[2] else found[2].upper()
    if found[3] == "B":
        return f" (did you mean {number}{unit} in bits, {_shortest(Fraction(number) * 8)}{unit} in bytes?)"
    return f" (did you mean {number}{unit}?)"


def _rejected(message: str, *, allowed: str) -> Rejected:
    return Rejected(
        f"{message}; allowed: {allowed}, written as {FORMS}",
        hint="write a Kubernetes quantity: 10M is ten megabits per second",
    )


def _decimal(bps: int, unit: int) -> str:
    """`bps` in units of `unit`, exact; the caller made sure that three decimals are enough."""
    whole, rest = divmod(bps, unit)
    return f"{whole}.{rest * 1000 // unit:03d}".rstrip("0").rstrip(".")


def _shortest(exact: Fraction) -> str:
    """At most six decimals, as many as `parse_percent` takes."""
    whole, rest = divmod(exact.numerator * 10**6 // exact.denominator, 10**6)
    return f"{whole}.{rest:06d}".rstrip("0").rstrip(".")
