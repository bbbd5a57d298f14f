"""Whether what the fast loop moves is still as it left it: bytes are compared, and read only where they differ.

An audit takes any value in the loop's range for the loop's own. Only the loop knows what it wrote last.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Final

from netqos_tc import answers, netmsg, uapi
from netqos_tc.spec import ClassSpec

_LENGTH: Final = struct.Struct("=H")
_OPTIONS_AT: Final = netmsg.HEADER.size + uapi.TCMSG.size + len(netmsg.string(uapi.KIND, "htb"))
"""Where the kernel puts the options of a class in its answer (net/sched/sch_api.c, tc_fill_tclass)."""


class Leftover:
    """The moved classes of one tree as they were met last. What is met first counts as left by the loop."""

    def __init__(self) -> None:
        """Nothing was met yet."""
        self._met: dict[int, bytes] = {}

    def strange(self, found: Iterable[tuple[int, bytes]], written: Mapping[int, ClassSpec]) -> int | None:
        """The first class, by its minor, that is neither as it was met before nor as it was written; None for none.

        `found` are whole answers, one for each minor.
        """
        for minor, answer in found:
            config, known = _config(answer), self._met.get(minor)
            if config == known:
                continue
            if known is not None and _read(answer) != written[minor]:
                return minor
            self._met[minor] = config
        return None


def _config(answer: bytes) -> bytes:
    (length,) = _LENGTH.unpack_from(answer, _OPTIONS_AT)
    return answer[_OPTIONS_AT : _OPTIONS_AT + length]


def _read(answer: bytes) -> ClassSpec:
    (message,) = netmsg.messages(answer)
    return answers.read_class(message).spec
