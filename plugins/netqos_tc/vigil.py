"""Whether anybody touched what is ours since it was last looked at, as cheaply as that can be told."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from netqos_tc.audit import Auditor, Fingerprint
from netqos_tc.moves import Steered
from netqos_tc.renewal import Looker
from netqos_tc.surroundings import Surroundings

WHOLE_AUDIT_S: Final = 2.0
"""How long the kernel's word is taken that nobody changed anything in a tree, before everything is compared again."""


class Vigil:
    """Remembers how all was. `last` is None after a write: then only `Looker` may know what to expect."""

    def __init__(self, auditor: Auditor, looker: Looker, surroundings: Surroundings) -> None:
        """All stay the caller's."""
        self._auditor = auditor
        self._looker = looker
        self._surroundings = surroundings
        self._audited_s = -math.inf
        self.last: Fingerprint | None = None

    def is_kept(
        self,
        devices: frozenset[int],
        steered: Mapping[int, Steered],
        own_hooks: frozenset[int],
        *,
        monotonic: Callable[[], float],
        renew: Callable[[], None],
    ) -> bool:
        """Whether all on these devices is as it was; what the loop moves does not count.

        Before everything is compared `renew` puts right what is kept beside the kernel.
        """
        last = self.last or self._looker.as_awaited(devices, own_hooks, steered)
        if last is None or last.ifindexes != devices:
            return False
        if not self._is_standing(last, monotonic()):
            self._audited_s = -math.inf  # until all was found the same, whatever interrupts that
            renew()
            new = self._auditor.refresh(last, devices)
            if not new.is_same_as(last, steered):
                return False
            last, self._audited_s = new, monotonic()
        self.last = last
        return True

    def _is_standing(self, last: Fingerprint, now_s: float) -> bool:
        """Whether a look at the roots is enough: the last audit is fresh, and the kernel told of no change since."""
        touched = self._surroundings.take_touched()
        is_fresh = now_s - self._audited_s < WHOLE_AUDIT_S
        is_told = touched is not None and touched.isdisjoint(last.ifindexes)
        return is_fresh and is_told and self._auditor.is_standing(last)
