"""The policy in force: file and NodeSLO merged field by field, and whether network QoS is on (contract 1.4).

How a policy becomes amounts, and what is wrong with them, is `netqos.engine.bands`; `netqos.engine.policycheck` asks
that of a file before anything is in force.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from netqos.model.inputs import Amount, LevelPolicy, NodePolicy
from netqos.model.levels import Level, PerDirection, PerLevel
from netqos.settings.values import AmountKey, Bound, Place, Settings

T = TypeVar("T")

SILENT = LevelPolicy()
NO_POLICY = NodePolicy(source="none")


def policy_in_force(
    settings: Settings, slo: NodePolicy | None, *, last_on: frozenset[Level] = frozenset()
) -> NodePolicy:
    """What the NodeSLO says, and of the rest what the file says. Every `enabled` in the result is True or False.

    Network QoS is on when the NodeSLO switches the node or a class on, off when it only switches off; where it does
    not say, the file decides in the same way. A class that nobody switches is on only where a source switches the
    whole node without naming classes. `last_on` are the classes that are on by their last good values: these are a
    source's switch where its own text was rejected.
    """
    asked, file = slo or NO_POLICY, settings.policy
    default = _first(_switch_of_node(asked), _switch_of_node(file)) is True
    levels = (_level(asked.levels[level], file.levels[level], default=default) for level in Level)
    silent = frozenset(level for level in Level if asked.levels[level] == SILENT)
    return NodePolicy(
        source=file.source if slo is None else slo.source,
        enabled=_first(_switch(asked, last_on), _switch(file, last_on)) is True,
        total=_both(asked.total, file.total),
        levels=PerLevel(*levels),
        invalid=asked.invalid | (file.invalid & silent),
        backends=chosen_backends(settings, slo),
    )


def chosen_backends(settings: Settings, slo: NodePolicy | None) -> tuple[str, ...]:
    """The enforcement backends in order of use: the NodeSLO's choice, else the file's."""
    asked = slo or NO_POLICY
    return asked.backends or settings.policy.backends or settings.backends


def places_in_force(settings: Settings, slo: NodePolicy | None) -> Mapping[AmountKey, Place]:
    """The places of the file's amounts that are in force, the NodeSLO not saying these."""
    asked = (slo or NO_POLICY).levels
    return {key: place for key, place in settings.places.items() if _amount(asked, key) is None}


def _amount(levels: PerLevel[LevelPolicy], key: AmountKey) -> Amount | None:
    level, direction, bound = key
    policy = levels[level]
    return (policy.guarantee if bound is Bound.GUARANTEE else policy.ceiling)[direction]


def _switch(policy: NodePolicy, last_on: frozenset[Level]) -> bool | None:
    """Whether a source switches network QoS on; None when it says nothing of it."""
    if policy.enabled is None and policy.invalid & last_on:
        return True
    classes = {level.enabled for level in policy.levels} - {None}
    return policy.enabled if policy.enabled is not None or not classes else True in classes


def _switch_of_node(policy: NodePolicy) -> bool | None:
    """A source's switch for the whole node. Where it speaks of single classes, it means only these."""
    names_classes = bool(policy.invalid) or any(level.enabled is not None for level in policy.levels)
    return None if names_classes else policy.enabled


def _level(asked: LevelPolicy, file: LevelPolicy, *, default: bool) -> LevelPolicy:
    enabled = _first(asked.enabled, file.enabled)
    return LevelPolicy(
        enabled=default if enabled is None else enabled,
        guarantee=_both(asked.guarantee, file.guarantee),
        ceiling=_both(asked.ceiling, file.ceiling),
    )


def _both(asked: PerDirection[T], file: PerDirection[T]) -> PerDirection[T]:
    return PerDirection(tx=_first(asked.tx, file.tx), rx=_first(asked.rx, file.rx))


def _first(asked: T, file: T) -> T:
    """`asked`, unless it does not say (None)."""
    return file if asked is None else asked
