"""What was read of the kernel, as it is put together."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from netqos_tc import numbers, register
from netqos_tc.keys import Key, RedirectKey
from netqos_tc.links import Link
from netqos_tc.places import Hook
from netqos_tc.root import Root
from netqos_tc.spec import RedirectSpec, Spec


@dataclass(slots=True, kw_only=True)
class Inventory:
    """What was read. `links` are the devices with a tree, `direct_packets` what their roots sent unshaped.

    `foreign_ifb` says what stands where our IFB belongs.
    """

    specs: dict[Key, Spec] = field(default_factory=dict)
    roots: dict[int, Root] = field(default_factory=dict)
    links: dict[int, Link] = field(default_factory=dict)
    direct_packets: dict[int, int] = field(default_factory=dict)
    hooks: dict[int, Hook] = field(default_factory=dict)
    foreign_ifb: str | None = None
    names: Mapping[str, int] | None = None

    def own_hooks(self) -> frozenset[int]:
        """The devices whose hook our filter says to be ours."""
        return frozenset(
            key.ifindex
            for key, spec in self.specs.items()
            if isinstance(key, RedirectKey) and isinstance(spec, RedirectSpec) and spec.owns_hook
        )

    @property
    def led(self) -> frozenset[int]:
        """The devices that lead to our IFB."""
        return frozenset(key.ifindex for key in self.specs if isinstance(key, RedirectKey))

    def leave_to_others(self, own_hooks: Collection[int]) -> None:
        """Take what has our preference but not our mark for somebody's, but at a hook that we made."""
        for key, spec in list(self.specs.items()):
            if isinstance(spec, RedirectSpec) and isinstance(key, RedirectKey):
                if spec.is_marked or key.ifindex in own_hooks:
                    continue
                hook = self.hooks[key.ifindex]
                taken = tuple(sorted((*hook.preferences, numbers.HOOK_PREFERENCE)))
                self.hooks[key.ifindex] = replace(hook, preferences=taken)
                del self.specs[key]

    def owners(self) -> Mapping[str, int]:
        """The minor of every leaf by the name under which it has that; read once."""
        if self.names is None:
            self.names = register.names_of(self.specs)
        return self.names
