"""From the policy to the bands of one direction: defaults, checks, and what stands in for a class that is wrong
(contract 1.4).

Each of L1 and L2 tries in turn what the policy says, its own last good values, and being off; it goes on to the next as
long as it breaks a rule, and every broken rule is reported. L0 is guaranteed what the others leave, and has no other
claim than its ceiling. Amounts are bits per second.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from netqos.engine.allocate import L0_FLOOR_BPS
from netqos.engine.bandproblems import NOWHERE, BandProblem, Places, finding_of
from netqos.model.desired import Band
from netqos.model.health import Finding
from netqos.model.inputs import NodePolicy
from netqos.model.levels import Direction, Level, PerLevel
from netqos.model.quantities import format_bandwidth, resolve
from netqos.settings.values import Bound

DEFAULT_PERCENT = 30
LEFT_TO_L0_PERCENT = 1

LastBands = PerLevel[Band | None]
Say = Callable[[int], str]
NO_LAST_BANDS: LastBands = PerLevel(None, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bands:
    """The bands in force, those to remember (None for a class that was never good), and what was wrong.

    `findings` tell the `problems` with what is in force instead.
    """

    levels: PerLevel[Band]
    last_good: LastBands
    problems: tuple[BandProblem, ...] = ()
    findings: tuple[Finding, ...]


class _Origin(enum.Enum):
    POLICY = 0
    LAST_GOOD = 1
    OFF = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """What a class asks for. `guarantee_bps` None: it does not say, so it has the default."""

    guarantee_bps: int | None = 0
    ceiling_bps: int
    enabled: bool = True
    origin: _Origin = _Origin.POLICY

    @property
    def least_bps(self) -> int:
        return self.guarantee_bps or 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """What is to be resolved."""

    policy: NodePolicy
    direction: Direction
    total_bps: int
    last_good: LastBands
    say: Say = format_bandwidth


def resolve_bands(
    policy: NodePolicy,
    direction: Direction,
    total_bps: int,
    last_good: LastBands = NO_LAST_BANDS,
    *,
    places: Places = NOWHERE,
    say: Say = format_bandwidth,
) -> Bands:
    """The bands of a policy whose `enabled` fields are resolved (`policy_in_force`), under a known total.

    `places` are those of the amounts that come from the files; findings name them. `say` is how amounts are written.
    """
    case = _Case(policy=policy, direction=direction, total_bps=total_bps, last_good=last_good, say=say)
    queues = {level: _claims(case, level) for level in Level}
    problems = [
        BandProblem(
            level=level, bound=None, message="its text was rejected", hint="see the finding of its source"
        )
        for level in Level
        if level in policy.invalid
    ]
    while broken := list(_broken({level: queue[0] for level, queue in queues.items()}, case)):
        problems += broken
        for level in {problem.level for problem in broken}:
            queues[level].pop(0)
    claims = PerLevel(*(queues[level][0] for level in Level))
    levels = _bands(claims, total_bps)
    told = [(problem, _instead(claims[problem.level], levels[problem.level])) for problem in problems]
    told += _l0_problems(case, claims.l0, levels.l0)
    return Bands(
        levels=levels,
        last_good=_remembered(levels, claims, last_good),
        problems=tuple(problem for problem, _ in told),
        findings=tuple(finding_of(problem, instead, direction, places) for problem, instead in told),
    )


def _claims(case: _Case, level: Level) -> list[_Claim]:
    """What a class tries, in order; the last one never breaks a rule."""
    claims = []
    if level not in case.policy.invalid:
        is_on = case.policy.levels[level].enabled
        claims.append(_asked(case, level) if is_on else _off(case.total_bps))
    last = case.last_good[level]
    if last is not None:
        claims.append(
            _Claim(
                guarantee_bps=0 if level is Level.L0 else last.guarantee_bps,
                ceiling_bps=min(last.ceiling_bps, case.total_bps),
                enabled=last.enabled,
                origin=_Origin.LAST_GOOD,
            )
        )
    return [*claims, _off(case.total_bps, origin=_Origin.OFF)]


def _asked(case: _Case, level: Level) -> _Claim:
    asked = case.policy.levels[level]
    guarantee = 0 if level is Level.L0 else asked.guarantee[case.direction]
    ceiling = asked.ceiling[case.direction]
    return _Claim(
        guarantee_bps=None if guarantee is None else resolve(guarantee, case.total_bps),
        ceiling_bps=case.total_bps if ceiling is None else resolve(ceiling, case.total_bps),
    )


def _off(total_bps: int, *, origin: _Origin = _Origin.POLICY) -> _Claim:
    return _Claim(ceiling_bps=total_bps, enabled=False, origin=origin)


def _broken(claims: Mapping[Level, _Claim], case: _Case) -> Iterator[BandProblem]:
    """The rules that do not hold, each with the class that broke it.

    The sum is looked at among classes that are right by themselves, and broken by new values before last good ones.
    """
    alone = [problem for level, claim in claims.items() for problem in _broken_alone(level, claim, case)]
    yield from alone
    wrong = {problem.level for problem in alone}
    rest = {level: claim for level, claim in claims.items() if level not in wrong and claim.least_bps}
    together_bps = sum(claim.least_bps for claim in rest.values())
    if together_bps <= case.total_bps - _kept_for_l0_bps(case.total_bps):
        return
    new = [level for level, claim in rest.items() if claim.origin is _Origin.POLICY]
    for level in new or rest:
        yield BandProblem(
            level=level,
            bound=_bound(claims[level], Bound.GUARANTEE),
            message=f"the guarantees of L1 and L2 add up to {case.say(together_bps)} of "
            f"{case.say(case.total_bps)}; allowed: what leaves L0 {LEFT_TO_L0_PERCENT}%",
            hint="lower the guarantees of L1 and L2",
            is_shared=True,
        )


def _broken_alone(level: Level, claim: _Claim, case: _Case) -> Iterator[BandProblem]:
    ceiling, most = f"ceiling {case.say(claim.ceiling_bps)}", case.say(case.total_bps)
    high, low = _bound(claim, Bound.CEILING), _bound(claim, Bound.GUARANTEE)
    if claim.ceiling_bps > case.total_bps:
        message = f"{ceiling} is over the total; allowed: up to {most}"
        hint = "lower the ceiling, or leave it out for all of the total"
        yield BandProblem(level=level, bound=high, message=message, hint=hint)
    if claim.ceiling_bps == 0:
        message = f"{ceiling} would cut the level off; allowed: up to {most}"
        hint = "leave the ceiling out for all of the total"
        yield BandProblem(level=level, bound=high, message=message, hint=hint)
    if claim.least_bps > claim.ceiling_bps:
        message = f"guarantee {case.say(claim.least_bps)} is over its {ceiling}"
        hint = "lower the guarantee or raise the ceiling"
        yield BandProblem(level=level, bound=low, message=message, hint=hint)


def _bound(claim: _Claim, bound: Bound) -> Bound | None:
    return bound if claim.origin is _Origin.POLICY else None


def _bands(claims: PerLevel[_Claim], total_bps: int) -> PerLevel[Band]:
    m1, m2 = _guarantee(claims.l1, claims.l2, total_bps), _guarantee(claims.l2, claims.l1, total_bps)
    ceiling_0 = max(claims.l0.ceiling_bps, min(L0_FLOOR_BPS, total_bps))
    return PerLevel(
        Band(guarantee_bps=min(total_bps - m1 - m2, ceiling_0), ceiling_bps=ceiling_0),
        Band(guarantee_bps=m1, ceiling_bps=claims.l1.ceiling_bps, enabled=claims.l1.enabled),
        Band(guarantee_bps=m2, ceiling_bps=claims.l2.ceiling_bps, enabled=claims.l2.enabled),
    )


def _guarantee(own: _Claim, other: _Claim, total_bps: int) -> int:
    """What it asks for; when it does not say, 30 percent, but within its ceiling and what leaves L0 its percent."""
    if own.guarantee_bps is not None:
        return own.guarantee_bps
    left_bps = total_bps - _kept_for_l0_bps(total_bps) - other.least_bps
    return min(total_bps * DEFAULT_PERCENT // 100, own.ceiling_bps, left_bps)


def _kept_for_l0_bps(total_bps: int) -> int:
    return -(-total_bps * LEFT_TO_L0_PERCENT // 100)


def _instead(now: _Claim, band: Band) -> str:
    """What a class has in the place of what it asks for."""
    ceiling = f"ceiling {format_bandwidth(band.ceiling_bps)}"
    if now.origin is _Origin.LAST_GOOD:
        return f"its last good values stay (guarantee {format_bandwidth(band.guarantee_bps)}, {ceiling})"
    return f"there are no last good values, so it has its {ceiling} and no guarantee of its own"


def _l0_problems(case: _Case, claim: _Claim, band: Band) -> Iterator[tuple[BandProblem, str]]:
    """What is wrong with L0's amounts, each with what is in force instead."""
    if band.ceiling_bps > claim.ceiling_bps:
        least, asked = case.say(band.ceiling_bps), case.say(claim.ceiling_bps)
        problem = BandProblem(
            level=Level.L0,
            bound=_bound(claim, Bound.CEILING),
            message=f"ceiling {asked} is under {least}, on which the node's own traffic lives",
            hint="raise the ceiling of L0",
        )
        yield problem, f"{least} is applied"
    policy = case.policy.levels.l0
    request = policy.guarantee[case.direction] if policy.enabled else None
    asked_bps = 0 if request is None else resolve(request, case.total_bps)
    if asked_bps > band.guarantee_bps:
        message = (
            f"a guarantee of {case.say(asked_bps)} is asked for, but its ceiling and the guarantees of L1 and "
            f"L2 leave {case.say(band.guarantee_bps)}"
        )
        hint = "lower the guarantees of L1 and L2; one that is not given is 30%"
        problem = BandProblem(level=Level.L0, bound=Bound.GUARANTEE, message=message, hint=hint)
        yield problem, "that is what it has"


def _remembered(levels: PerLevel[Band], claims: PerLevel[_Claim], last_good: LastBands) -> LastBands:
    return PerLevel(
        *(levels[level] if claims[level].origin is _Origin.POLICY else last_good[level] for level in Level)
    )
