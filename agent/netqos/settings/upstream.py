"""Koordinator's own shape of a node policy: `resourceQOSStrategy` and `systemStrategy` of a NodeSLO (contract 1.4).

Requests are guarantees, limits are ceilings; a whole number is a percentage of the total, a text a quantity in bits
per second. What other features keep in these maps is not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

from netqos.errors import Rejected
from netqos.model.inputs import Amount, LevelPolicy, Percent
from netqos.model.levels import Direction, Level, PerDirection
from netqos.model.quantities import parse_bandwidth, parse_limit
from netqos.model.texts import listed, shown
from netqos.settings.issues import Code, Issues, Path, check_keys
from netqos.settings.trees import Shape, Tree, ceiling, flag, optional, section
from netqos.settings.units import mixed_levels

KEYS = ("enable", "ingressRequest", "ingressLimit", "egressRequest", "egressLimit")
# The classes that may hold a level's values; the first one that does counts.
CLASSES = {Level.L0: ("systemClass",), Level.L1: ("lsClass", "lsrClass"), Level.L2: ("beClass",)}
# `netQOSPolicy` and the backend's entry point.
BACKENDS = {"tc": "tc", "terway-qos": "terway"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Class:
    """The `networkQOS` of one class: its place, and what was read. `policy` None: it has none."""

    path: Path
    policy: LevelPolicy | None = None
    is_invalid: bool = False


def has_upstream(spec: Tree) -> bool:
    """Whether any class has a `networkQOS`."""
    ignored = Issues()
    strategy = section(spec, "resourceQOSStrategy", (), ignored)
    classes = [section(strategy, name, (), ignored) for names in CLASSES.values() for name in names]
    return any(one.get("networkQOS") is not None for one in classes)


def parse_upstream(spec: Tree, path: Path, issues: Issues, *, strict: bool = False) -> Shape:
    """The levels of a spec. `strict`: unknown keys within a `networkQOS` are issues."""
    before = len(issues)
    strategy = section(spec, "resourceQOSStrategy", path, issues)
    if len(issues) > before:
        return Shape(invalid=frozenset(Level))
    path = (*path, "resourceQOSStrategy")
    classes = {level: _parse_level(strategy, level, path, issues, strict=strict) for level in Level}
    levels = {level: one.policy for level, one in classes.items() if one.policy is not None}
    mixed = mixed_levels(levels, {level: one.path for level, one in classes.items()}, issues)
    invalid = frozenset(mixed | {level for level, one in classes.items() if one.is_invalid})
    said = {policy.enabled for policy in levels.values()}
    return Shape(enabled=_is_enabled(said, is_certain=not invalid), levels=levels, invalid=invalid)


def parse_upstream_total(spec: Tree, path: Path, issues: Issues) -> Shape:
    """`systemStrategy.totalNetworkBandwidth`, which holds for both directions, as a shape without levels.

    Go writes a quantity that nobody set as "0", so that is as good as absent.
    """
    before = len(issues)
    strategy = section(spec, "systemStrategy", path, issues)
    path = (*path, "systemStrategy")
    total = optional(strategy, "totalNetworkBandwidth", path, issues, parse=_parse_total, code=Code.TOTAL)
    invalid = frozenset(Direction) if len(issues) > before else frozenset()
    return Shape(total=PerDirection(tx=total, rx=total), invalid_total=invalid)


def parse_backend(spec: Tree, path: Path, issues: Issues) -> tuple[str, ...] | None:
    """The backend that `policies.netQOSPolicy` selects, None when it selects none."""
    strategy = section(spec, "resourceQOSStrategy", path, Issues())
    path = (*path, "resourceQOSStrategy")
    policies = section(strategy, "policies", path, issues)
    path = (*path, "policies")
    return optional(policies, "netQOSPolicy", path, issues, parse=_parse_policy, code=Code.BACKEND)


def parse_class_amount(value: object) -> Amount:
    """A whole number 0 to 100 as a percentage, a text as `parse_limit`."""
    if not isinstance(value, int) or isinstance(value, bool):
        return parse_limit(value)
    if not 0 <= value <= 100:
        raise Rejected(
            f"{shown(value)} is no percentage; allowed: a whole number 0 to 100 for a percentage of the total, "
            'or a text such as "10M" in bits per second',
            hint="put quotes around a quantity",
        )
    return Percent(value)


def _is_enabled(said: set[bool | None], *, is_certain: bool) -> bool | None:
    """One class switches network QoS on; it is off when nobody does, somebody says so, and no class was rejected."""
    if True in said:
        return True
    return False if False in said and is_certain else None


def _parse_level(strategy: Tree, level: Level, path: Path, issues: Issues, *, strict: bool) -> _Class:
    before = len(issues)
    for name in CLASSES[level]:
        holder = section(strategy, name, path, issues)
        if holder.get("networkQOS") is not None:
            policy = _parse_class(holder, (*path, name), issues, strict=strict)
            return _Class(path=(*path, name, "networkQOS"), policy=policy, is_invalid=len(issues) > before)
    return _Class(path=(*path, CLASSES[level][0]), is_invalid=len(issues) > before)


def _parse_class(holder: Tree, path: Path, issues: Issues, *, strict: bool) -> LevelPolicy:
    values = section(holder, "networkQOS", path, issues)
    path = (*path, "networkQOS")
    if strict:
        check_keys(values, KEYS, path, issues)
    enabled = flag(values, "enable", path, issues)
    if enabled is False:
        # Its values have no effect, so that what is wrong in them is no reason to keep older ones.
        return LevelPolicy(enabled=False)

    def amount(key: str) -> Amount | None:
        return optional(values, key, path, issues, parse=parse_class_amount)

    return LevelPolicy(
        enabled=enabled,
        guarantee=PerDirection(tx=amount("egressRequest"), rx=amount("ingressRequest")),
        ceiling=PerDirection(tx=ceiling(amount("egressLimit")), rx=ceiling(amount("ingressLimit"))),
    )


def _parse_total(value: object) -> int | None:
    return parse_bandwidth(value) if parse_limit(value) else None


def _parse_policy(value: object) -> tuple[str, ...]:
    backend = BACKENDS.get(value) if isinstance(value, str) else None
    if backend is None:
        raise Rejected(
            f"{shown(value)} is no policy; allowed: {listed(list(BACKENDS))}", hint="or leave it out"
        )
    return (backend,)
