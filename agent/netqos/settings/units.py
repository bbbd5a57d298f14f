"""Whether the amounts of a policy are all in one unit (contract 1.4): bits per second or percentages, not both."""

from __future__ import annotations

from collections.abc import Mapping

from netqos.model.inputs import Amount, LevelPolicy, Percent
from netqos.model.levels import Level
from netqos.settings.issues import Code, Issues, Path

# Nothing and everything mean the same in either unit; a CRD's defaults add them as percentages to any object.
_UNITLESS: tuple[Amount, ...] = (0, Percent(0), Percent(100))


def mixed_levels(
    levels: Mapping[Level, LevelPolicy], paths: Mapping[Level, Path], issues: Issues
) -> set[Level]:
    """The levels that differ from the first one, or within themselves; each is an issue at its path."""
    expected: set[str] = set()
    mixed: set[Level] = set()
    for level, policy in sorted(levels.items(), key=lambda item: item[0].value):
        units = _units(policy)
        if len(expected | units) > 1:
            mixed.add(level)
            known = f", and {' and '.join(sorted(expected))} before" if expected and len(units) == 1 else ""
            issues.add(
                Code.MIXED_UNITS,
                paths[level],
                f"{' and '.join(sorted(units))} here{known}; allowed: one unit for all levels",
                hint="write all of them as percentages, or all in bits per second",
            )
        else:
            expected |= units
    return mixed


def _units(policy: LevelPolicy) -> set[str]:
    amounts = (policy.guarantee.tx, policy.guarantee.rx, policy.ceiling.tx, policy.ceiling.rx)
    return {
        "percentages" if isinstance(amount, Percent) else "bits per second"
        for amount in amounts
        if amount is not None and amount not in _UNITLESS
    }
