"""Values on a command line, judged before anything is done: what is wrong ends the command as wrong usage."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Iterator, Sequence
from itertools import pairwise

MOST = 1_000_000
SMALLEST_FILE = 100_000
LONGEST_SPAN_S = 24 * 3600.0

_NEGATIVE = re.compile(r"-\.?[0-9]")


def whole_number(text: str) -> int:
    """1 to `MOST`."""
    value = int(text) if re.fullmatch(r"[+-]?[0-9]{1,9}", text) else 0
    if not 1 <= value <= MOST:
        raise ArgumentTypeError(f"{text!r} is no whole number from 1 to {MOST}")
    return value


def interval(text: str) -> float:
    """Seconds between two pictures."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.05 <= seconds <= 3600:
        raise ArgumentTypeError(f"{text!r} is no number of seconds from 0.05 to 3600")
    return seconds


def time_span(text: str) -> float:
    """A time in seconds of at most a day: a number of them, or as `10m`."""
    from netqos.errors import Rejected  # noqa: PLC0415 - only for those who give one
    from netqos.settings.durations import parse_duration  # noqa: PLC0415 - as above

    try:
        seconds = float(text) if re.fullmatch(r"-?[0-9]{1,9}(\.[0-9]{1,6})?", text) else parse_duration(text)
    except Rejected:
        seconds = 0.0
    if not 0 < seconds <= LONGEST_SPAN_S:
        raise ArgumentTypeError(f"{text!r} is no time over 0s and up to 24h, such as 90s, 10m or 1h30m")
    return seconds


def file_size(text: str) -> int:
    """Bytes, also as `64M`: decimal, as disks are sold."""
    found = re.fullmatch(r"([0-9]{1,12})([kMGT]?)", text)
    scale = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
    count = int(found[1]) * scale[found[2]] if found is not None else 0
    if not SMALLEST_FILE <= count <= 10**15:
        raise ArgumentTypeError(f"{text!r} is no size of 100k or more, such as 500k, 64M or 1G")
    return count


def pod(text: str) -> str:
    """What names a pod; whether there is one the daemon knows."""
    return _something(text, "a pod is named NAMESPACE/POD, a workload by its name, either by its UID")


def path(text: str) -> str:
    """A path that is to be used instead of the default."""
    return _something(text, "give a path, or leave the option out for the default")


def selector(text: str) -> str:
    """A label selector; whether it is right the API server knows."""
    return _something(text, "name labels of the nodes; kubernetes.io/os matches every node")


def _something(text: str, what: str) -> str:
    if not text.strip():
        raise ArgumentTypeError(f"{text!r} is empty: {what}")
    return text


def with_negative_values(words: Sequence[str]) -> list[str]:
    """The words with `--option -5M` written as `--option=-5M`, so that the value is judged, not taken for an option."""

    def joined() -> Iterator[str]:
        taken = False
        for word, following in pairwise([*words, ""]):
            if taken:
                taken = False
            elif word.startswith("--") and "=" not in word and _NEGATIVE.match(following):
                taken = True
                yield f"{word}={following}"
            else:
                yield word

    return list(joined())
