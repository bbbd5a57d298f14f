"""What the last plan was made for, as far as later looks go by it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from netqos.model.desired import DesiredState
from netqos.model.ids import PodUid
from netqos_tc.classify import owner_of
from netqos_tc.layout import Layout
from netqos_tc.moves import Steered


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The devices whose roots are watched (`uplinks` and our own), what the loop moves there, and workloads by owner.

    `behind` are the devices by which workloads receive.
    """

    is_shaping: bool = False
    uplinks: tuple[int, ...] = ()
    devices: frozenset[int] = frozenset()
    behind: frozenset[int] = frozenset()
    steered: Mapping[int, Steered] = field(default_factory=dict)
    uids: Mapping[str, PodUid] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, desired: DesiredState, layout: Layout) -> Asked:
        """What is laid out for a desired state."""
        uplinks = tuple(one.index for one in desired.uplinks if one.index > 0)
        return cls(
            is_shaping=bool(layout.specs),
            uplinks=uplinks,
            devices=frozenset((*uplinks, *layout.own_devices)),
            behind=frozenset(layout.behind),
            steered=layout.steered,
            uids={owner_of(pod.uid): pod.uid for pod in desired.pods},
            names={owner_of(pod.uid): pod.name for pod in desired.pods},
        )
