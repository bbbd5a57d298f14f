"""The shape of a node policy in the early proposal: `networkQOSStrategy` of a NodeSLO (contract 1.4).

`tx` and `rx` of a level are its ceiling, `txMin` and `rxMin` its guarantee, `hw` is the total. A whole number is
Mbit/s, as the speed of a NIC is given; a text is a quantity in bits per second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from netqos.model.inputs import Amount, LevelPolicy
from netqos.model.levels import Direction, Level, PerDirection
from netqos.model.quantities import parse_bandwidth, parse_limit
from netqos.settings.issues import Code, Issues, Path, check_keys
from netqos.settings.trees import Shape, Tree, ceiling, flag, optional, section

MEGABIT = 1_000_000
LEVEL_KEYS = ("tx", "rx", "txMin", "rxMin")


def parse_proposal(spec: Tree, path: Path, issues: Issues, *, strict: bool = False) -> Shape:
    """The levels and the total of a spec. `strict`: unknown keys are issues."""
    before = len(issues)
    strategy = section(spec, "networkQOSStrategy", path, issues)
    path = (*path, "networkQOSStrategy")
    limits = section(strategy, "nodeBandwidthLimit", path, issues)
    is_unreadable = len(issues) > before
    enabled = flag(strategy, "enable", path, issues)
    if is_unreadable:
        return Shape(enabled=enabled, invalid=frozenset(Level), invalid_total=frozenset(Direction))
    invalid = set(Level) if len(issues) > before else set()
    inner = (*path, "nodeBandwidthLimit")
    if strict:
        check_keys(strategy, ("enable", "nodeBandwidthLimit"), path, issues)
        check_keys(limits, ("hw", *(level.name.lower() for level in Level)), inner, issues)
    levels: dict[Level, LevelPolicy] = {}
    for level in Level:
        before = len(issues)
        levels[level] = _parse_level(limits, level, inner, issues, enabled=enabled, strict=strict)
        if len(issues) > before:
            invalid.add(level)
    total = _parse_total(limits, inner, issues, strict=strict)
    return replace(total, enabled=enabled, levels=levels, invalid=frozenset(invalid))


def _parse_level(
    limits: Tree, level: Level, path: Path, issues: Issues, *, enabled: bool | None, strict: bool
) -> LevelPolicy:
    name = level.name.lower()
    values = section(limits, name, path, issues)
    path = (*path, name)
    if strict:
        check_keys(values, LEVEL_KEYS, path, issues)

    def amount(key: str) -> Amount | None:
        return optional(values, key, path, issues, parse=_in_megabits(parse_limit))

    return LevelPolicy(
        enabled=enabled,
        guarantee=PerDirection(tx=amount("txMin"), rx=amount("rxMin")),
        ceiling=PerDirection(tx=ceiling(amount("tx")), rx=ceiling(amount("rx"))),
    )


def _parse_total(limits: Tree, path: Path, issues: Issues, *, strict: bool) -> Shape:
    before = len(issues)
    values = section(limits, "hw", path, issues)
    is_unreadable = len(issues) > before
    path = (*path, "hw")
    if strict:
        check_keys(values, ("tx", "rx"), path, issues)
    totals: dict[Direction, int | None] = {}
    invalid = set(Direction) if is_unreadable else set()
    for direction in Direction:
        before = len(issues)
        parse = _in_megabits(parse_bandwidth)
        totals[direction] = optional(values, direction.value, path, issues, parse=parse, code=Code.TOTAL)
        if len(issues) > before:
            invalid.add(direction)
    total = PerDirection(tx=totals[Direction.TX], rx=totals[Direction.RX])
    return Shape(total=total, invalid_total=frozenset(invalid))


def _in_megabits(parse: Callable[[object], int]) -> Callable[[object], int]:
    def parse_either(value: object) -> int:
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return parse(value * MEGABIT if is_number else value)  # type: ignore[operator] # it is an int there

    return parse_either
