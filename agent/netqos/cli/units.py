"""Numbers as people read them, and foreign text as a terminal may show it."""

from __future__ import annotations

import unicodedata

_RATES = ((1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"))
_SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
NOTHING = "-"


def rate(bps: float | None) -> str:
    """Bits per second with four digits at most: `1.25 Gbit/s`; None is `-`."""
    return NOTHING if bps is None else _scaled(bps, _RATES, "bit/s")


def size(count: float) -> str:
    """Bytes, decimal: `123.5 MB`."""
    return _scaled(count, _SIZES, "B")


def _scaled(value: float, scales: tuple[tuple[float, str], ...], unit: str) -> str:
    for scale, name in scales:
        # 999.96 of a smaller unit would round to 1000 of it.
        if value >= scale * 0.99995:
            return f"{value / scale:.4g} {name}"
    return f"{value:.4g} {unit}"


def span(seconds: float | None) -> str:
    """A time span: `0.2s`, `45s`, `10m`, `1h05m`, `3d04h`; None is `-`."""
    if seconds is None:
        return NOTHING
    if seconds < 10:
        return f"{seconds:.1f}".rstrip("0").rstrip(".") + "s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m" + (f"{whole % 60:02}s" if whole < 600 and whole % 60 else "")
    if whole < 86_400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86_400}d{whole % 86_400 // 3600:02}h"


def milliseconds(seconds: float) -> str:
    """A short time: `0.4 ms`."""
    return f"{seconds * 1000:.3g} ms"


def count(number: int, word: str, plural: str = "") -> str:
    """`1 pod`, `3 pods`."""
    return f"{number} {word if number == 1 else plural or word + 's'}"


def safe(text: object) -> str:
    r"""Foreign text in one line: control characters, escapes and direction marks are written out as `\x1b`."""
    shown = str(text)
    if shown.isascii() and shown.isprintable():
        return shown
    return "".join(char if char.isprintable() else _written_out(char) for char in shown)


def _written_out(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def width(text: str) -> int:
    """Columns that a text takes in a terminal: wide characters are two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(_width_of(char) for char in text)


def _width_of(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, columns: int, mark: str) -> str:
    """The text in at most so many columns, ending in `mark` where something was left off."""
    if width(text) <= columns:
        return text
    room = max(0, columns - width(mark))
    kept, taken = [], 0
    for char in text:
        taken += _width_of(char)
        if taken > room:
            break
        kept.append(char)
    return "".join(kept) + mark if columns >= width(mark) else ""
