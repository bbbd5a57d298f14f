"""What this process knows from before and the kernel does not tell any more once somebody has removed something."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from netqos.model.plan import Operation
from netqos_tc import edits, register
from netqos_tc.inventory import Inventory


class Memory:
    """`own_hooks`, `led` and `minors` as `TcObserved` has them (there the last is `remembered`)."""

    def __init__(self) -> None:
        """Nothing is known."""
        self.own_hooks: frozenset[int] = frozenset()
        self.led: frozenset[int] = frozenset()
        self.minors: dict[str, int] = {}

    def meet(self, found: Inventory, *, devices: Collection[int], owners: Collection[str]) -> None:
        """Learn from what was read; of what is known stays what is of these devices and owners.

        What is somebody else's at hooks is left to them.
        """
        self.own_hooks = self.own_hooks.intersection(devices) | found.own_hooks()
        found.leave_to_others(self.own_hooks)
        self.led = self.led.intersection(devices) | found.led
        known = {name: minor for name, minor in self.minors.items() if register.owner_in(name) in owners}
        self.minors = {**known, **found.owners()}

    def write(self, operations: Sequence[Operation]) -> None:
        """Learn from what is about to be written."""
        self.own_hooks |= edits.own_hooks(operations)
        self.minors |= register.names_of(edits.made(operations))
