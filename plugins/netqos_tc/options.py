"""The backend's own section of the configuration, `backendOptions.tc`. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from netqos.errors import Rejected
from netqos.model.texts import shown

_TARGET: Final = re.compile(r"([0-9]{1,4})ms")

# fmt: off
KINDS: Final = (
    "atm", "bfifo", "blackhole", "cake", "cake_mq", "cbq", "cbs", "choke", "codel", "drr", "dsmark",
    "dualpi2", "etf", "ets", "fq", "fq_codel", "fq_pie", "gred", "hfsc", "hhf", "htb", "mq", "mqprio",
    "multiq", "netem", "pfifo", "pfifo_fast", "pfifo_head_drop", "pie", "plug", "prio", "qfq", "red",
    "sfb", "sfq", "skbprio", "taprio", "tbf", "teql0",
)
# fmt: on
"""The kinds of qdiscs that kernels have or had in net/sched; a typing error in `takeover` would be silent without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`queue_ms`: milliseconds of its rate that a leaf's queue holds. `takeover`: foreign roots that may be taken."""

    queue_ms: int = 20
    takeover: frozenset[str] = frozenset()


def parse(options: Mapping[str, object]) -> Options:
    """Options from the configuration; `Rejected` with every problem."""
    problems: list[str] = [
        f"{name}: unknown option; allowed: queue, takeover"
        for name in options
        if name not in {"queue", "takeover"}
    ]
    queue_ms = _queue_ms(options.get("queue"), problems)
    takeover = _takeover(options.get("takeover"), problems)
    if problems:
        raise Rejected(
            "; ".join(problems),
            subject="backendOptions.tc",
            hint="for example: {queue: {target: 20ms}, takeover: [tbf]}",
            problems=tuple(problems),
        )
    return Options(queue_ms=queue_ms, takeover=takeover)


def _queue_ms(value: object, problems: list[str]) -> int:
    match value:
        case None:
            return Options().queue_ms
        case {"target": str(text), **rest} if not rest:
            found = _TARGET.fullmatch(text)
            if found and 1 <= int(found[1]) <= 1000:
                return int(found[1])
            problems.append(f"queue.target: {shown(text)} is not a time; allowed: 1ms to 1000ms")
        case {"target": other, **rest} if not rest:
            problems.append(f"queue.target: {shown(other)} is not a time; allowed: 1ms to 1000ms")
        case _:
            problems.append(
                f"queue: {shown(value)}; allowed: an object with only the key target, {{target: 20ms}}"
            )
    return Options().queue_ms


def _takeover(value: object, problems: list[str]) -> frozenset[str]:
    if value is None:
        return frozenset()
    if not isinstance(value, list | tuple):
        problems.append(f"takeover: {shown(value)}; allowed: a list of qdisc kinds, [tbf, cake]")
        return frozenset()
    known = [kind for kind in value if isinstance(kind, str) and kind in KINDS]
    for number, kind in enumerate(value):
        if kind not in known:
            problems.append(f"takeover[{number}]: {shown(kind)} is no kind of qdisc{_guess(kind)}")
    return frozenset(known)


def _guess(kind: object) -> str:
    close = difflib.get_close_matches(kind[:16], KINDS, n=1) if isinstance(kind, str) else ()
    meant = f" (did you mean {close[0]}?)" if close else ""
    return f"{meant}; allowed: what `tc qdisc` shows, such as tbf, htb, cake"
