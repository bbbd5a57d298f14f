"""The backend's own section of the configuration, `backendOptions.tc`. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from netqos.errors import Rejected
from netqos.model.texts import shown
from netqos_tc.spec import BFIFO, FQ_CODEL

CODEL_MS: Final = 5
"""CoDel's own target (RFC 8289)."""

_QUEUE: Final = "bfifo, fq_codel, or an object of kind and target, {kind: fq_codel, target: 5ms}"
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
    """`queue_ms`: milliseconds of its rate that a leaf's bfifo holds. `takeover`: foreign roots that may be taken.

    `codel_ms`: leaves have fq_codel where the kernel has it, with this target in milliseconds; None: bfifo.
    """

    queue_ms: int = 20
    codel_ms: int | None = None
    takeover: frozenset[str] = frozenset()


def parse(options: Mapping[str, object]) -> Options:
    """Options from the configuration; `Rejected` with every problem."""
    problems: list[str] = [
        f"{name}: unknown option; allowed: queue, takeover"
        for name in options
        if name not in {"queue", "takeover"}
    ]
    queue_ms, codel_ms = _queue(options.get("queue"), problems)
    takeover = _takeover(options.get("takeover"), problems)
    if problems:
        raise Rejected(
            "; ".join(problems),
            subject="backendOptions.tc",
            hint="for example: {queue: {target: 20ms}, takeover: [tbf]}",
            problems=tuple(problems),
        )
    return Options(queue_ms=queue_ms, codel_ms=codel_ms, takeover=takeover)


def _queue(value: object, problems: list[str]) -> tuple[int, int | None]:
    """The milliseconds of a bfifo, and the target of fq_codel where that is asked for."""
    words = {"kind": value} if isinstance(value, str) else {} if value is None else value
    if not isinstance(words, Mapping) or set(words) - {"kind", "target"} or (value is not None and not words):
        problems.append(f"queue: {shown(value)}; allowed: {_QUEUE}")
        return Options().queue_ms, None
    kind = words.get("kind", BFIFO)
    if kind not in (BFIFO, FQ_CODEL):
        where = "queue" if isinstance(value, str) else "queue.kind"
        problems.append(f"{where}: {shown(kind)} is no queue of leaves; allowed: {_QUEUE}")
        return Options().queue_ms, None
    target_ms = _target_ms(words["target"], problems) if "target" in words else None
    if kind == FQ_CODEL:
        return Options().queue_ms, target_ms or CODEL_MS
    return target_ms or Options().queue_ms, None


def _target_ms(value: object, problems: list[str]) -> int | None:
    found = _TARGET.fullmatch(value) if isinstance(value, str) else None
    if found and 1 <= int(found[1]) <= 1000:
        return int(found[1])
    problems.append(f"queue.target: {shown(value)} is not a time; allowed: 1ms to 1000ms")
    return None


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
