"""A scenario for `netqosctl simulate`: totals, a policy, workloads, and what these want to send. Pure.

It is a configuration file with traffic: `node.bandwidth`, `policy` and `loop` are those of netqosd's file and go
through its own parsers. Every problem is told at once, at its line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

from pydantic import Field, ValidationError

from netqos.engine.demandtext import LONGEST_S, parse_demand
from netqos.engine.fluidflows import Demand
from netqos.engine.fluidtree import Member
from netqos.engine.fluidunit import Traffic
from netqos.engine.policycheck import policy_problems
from netqos.engine.totals import configured_total
from netqos.model.levels import Direction, Level, PerDirection
from netqos.settings.durations import format_duration
from netqos.settings.fields import Bandwidth, LevelName, WorkloadName, entries, taking
from netqos.settings.file import MOST_PROBLEMS, settings_of
from netqos.settings.issues import Code, Issue
from netqos.settings.names import duration
from netqos.settings.nodes import Node
from netqos.settings.places import own_path
from netqos.settings.problems import InvalidConfiguration
from netqos.settings.schemaerrors import issues_of
from netqos.settings.section import Section
from netqos.settings.values import Bound, Settings
from netqos.settings.workloadkeys import LimitsSection
from netqos.settings.yamltext import read_yaml

MOST_WORKLOADS = 200
MOST_WORK = 2_000
"""Workloads times seconds: more takes minutes."""

AFTER_S = 3.0
"""A scenario that does not say how long it is goes on for so long after its last change."""

OF_THE_DAEMON = ("node", "policy", "loop")

_Demand = Annotated[Demand, taking(parse_demand)]
_Demands = Annotated[tuple[_Demand, ...], entries(20)]
_Time = Annotated[float, taking(duration(0.5, LONGEST_S))]


class BesideSection(Section):
    """What the node itself receives."""

    rx: Bandwidth | None = Field(default=None, description="In bits/s; it takes its part of the link.")


class ScenarioWorkload(Section):
    """One workload, or several alike."""

    name: WorkloadName = Field(description="Its name.")
    level: LevelName = Field(default=Level.L1, description="Its level.")
    limits: LimitsSection = Field(default=LimitsSection(), description="What it may use at most.")
    count: int = Field(default=1, ge=1, le=MOST_WORKLOADS, description="So many of them.")
    egress: _Demands | None = Field(default=None, description="What it wants to send.")
    ingress: _Demands | None = Field(default=None, description="What it is sent.")


class ScenarioSection(Section):
    """The keys of a scenario that a configuration file does not have."""

    length: _Time | None = Field(default=None, description="How long it goes on.")
    beside: BesideSection = Field(default=BesideSection(), description="What comes beside the workloads.")
    workloads: Annotated[tuple[ScenarioWorkload, ...], entries(MOST_WORKLOADS)] = Field(
        description="Who is there, and what they want."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What is to be simulated: the settings, for how long, and the traffic of each direction (None: there is none)."""

    settings: Settings
    length_s: float
    traffic: PerDirection[Traffic | None]


def read_scenario(text: str, name: str) -> Scenario:
    """The scenario of a YAML or JSON text; `InvalidConfiguration` with every problem of it."""
    root, problems = read_yaml(text, name)
    found = list(problems)
    if root is not None and isinstance(root.value, Mapping):
        settings, issues = settings_of(_part(root, OF_THE_DAEMON, inside=True), check=_policy_issues)
        own = _part(root, OF_THE_DAEMON, inside=False)
        section, more = _validate(own)
        issues = [*issues, *more]
        issues += [] if section is None else _contradictions(settings, section)
        found += [root.problem(issue) for issue in islice(issues, MOST_PROBLEMS)]
        if section is not None and not found:
            return _scenario(settings, section)
    elif root is not None:
        found.append(root.problem(_issue((), "no map; allowed: node, policy, workloads and more")))
    raise InvalidConfiguration(found, order=[name])


def _part(root: Node, keys: tuple[str, ...], *, inside: bool) -> Node:
    assert isinstance(root.value, Mapping)
    value = {key: node for key, node in root.value.items() if (key in keys) is inside}
    return Node(mark=root.mark, value=value, keys=root.keys)


def _validate(own: Node) -> tuple[ScenarioSection | None, list[Issue]]:
    try:
        return ScenarioSection.model_validate(own.plain()), []
    except ValidationError as error:
        return None, list(islice(issues_of(error, ScenarioSection), MOST_PROBLEMS))


def _policy_issues(settings: Settings) -> Iterator[Issue]:
    for one in policy_problems(settings):
        level, bound = one.problem.level, one.problem.bound or Bound.GUARANTEE
        place = settings.places.get((level, one.direction, bound))
        path = own_path(level, one.direction, bound) if place is None else place.path
        yield Issue(code=Code.POLICY, path=path, message=one.problem.message, hint=one.problem.hint)


def _contradictions(settings: Settings, section: ScenarioSection) -> Iterator[Issue]:
    """What is wrong between values that are right by themselves."""
    names = [one.name for one in section.workloads]
    for place, name in enumerate(names):
        if name in names[:place]:
            yield _issue(
                ("workloads", place, "name"), f"{name} is there twice", "give it another name, or a count"
            )
    if sum(one.count for one in section.workloads) > MOST_WORKLOADS:
        yield _issue(("workloads",), f"more than {MOST_WORKLOADS} workloads", "lower the counts")
    yield from _work_issues(section)
    if not settings.policy.enabled:
        yield _issue(("policy", "enable"), "network QoS is off: nothing is steered", "write enable: true")
    wanted = [way for way in Direction if any(_demands(one, way) for one in section.workloads)]
    if not wanted:
        yield _issue(("workloads",), "nobody wants anything", "give one a list egress: or ingress:")
    for way in wanted:
        if configured_total(settings, way) is None:
            message = "missing; there is traffic in this direction"
            yield _issue(("node", "bandwidth", way.value), message, f"write {way.value}: 10G")


def _work_issues(section: ScenarioSection) -> Iterator[Issue]:
    count, length_s = sum(one.count for one in section.workloads), _length_s(section)
    if count * length_s > MOST_WORK:
        message = (
            f"{count} workloads for {format_duration(length_s)} are too much; allowed: {MOST_WORK} together"
        )
        yield _issue(("length",), message, "shorten the scenario, or lower the counts")


def _issue(path: tuple[str | int, ...], message: str, hint: str = "") -> Issue:
    return Issue(code=Code.POLICY, path=path, message=message, hint=hint)


def _demands(one: ScenarioWorkload, way: Direction) -> tuple[Demand, ...]:
    return (one.egress if way is Direction.TX else one.ingress) or ()


def _scenario(settings: Settings, section: ScenarioSection) -> Scenario:
    return Scenario(
        settings=settings,
        length_s=_length_s(section),
        traffic=PerDirection(tx=_traffic(section, Direction.TX), rx=_traffic(section, Direction.RX)),
    )


def _length_s(section: ScenarioSection) -> float:
    demands = [one for each in section.workloads for way in Direction for one in _demands(each, way)]
    last_s = max((moment for one in demands for moment in changes_s(one)), default=0.0)
    return last_s + AFTER_S if section.length is None else section.length


def changes_s(demand: Demand) -> tuple[float, ...]:
    """The moments at which a demand begins and ends."""
    return (demand.start_s,) if demand.end_s is None else (demand.start_s, demand.end_s)


def _traffic(section: ScenarioSection, way: Direction) -> Traffic | None:
    members, demands = [], {}
    for one in section.workloads:
        limit_bps = one.limits.egress if way is Direction.TX else one.limits.ingress
        for number in range(1, one.count + 1):
            name = one.name if one.count == 1 else f"{one.name}-{number}"
            members.append(Member(name=name, level=one.level, limit_bps=limit_bps or None))
            demands[name] = _demands(one, way)
    if not any(demands.values()):
        return None
    beside_bps = (section.beside.rx or 0) if way is Direction.RX else None
    return Traffic(members=tuple(members), demands=demands, beside_bps=beside_bps)
