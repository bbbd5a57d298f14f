"""What single values cannot show: values that contradict each other, within one file or between files.

Checks that need the node's total are the engine's.
"""

from __future__ import annotations

from collections.abc import Iterator

from netqos.errors import Rejected
from netqos.model.inputs import Amount, LevelPolicy, Percent
from netqos.model.levels import Direction, Level
from netqos.model.quantities import format_amount, format_bandwidth
from netqos.model.texts import listed, shown
from netqos.settings.assemble import level_policies
from netqos.settings.durations import format_duration
from netqos.settings.issues import Code, Issue, Issues, Path
from netqos.settings.matching import parse_address
from netqos.settings.nodes import Node
from netqos.settings.places import own_path
from netqos.settings.schema import BandwidthSection, Config, NodeSection
from netqos.settings.units import mixed_levels
from netqos.settings.values import Bound

SMALLEST_TOTAL_BPS = 10_000_000
LARGEST_SUM = 99

_SHAPES = ("levels", "networkQOSStrategy", "resourceQOSStrategy")
_MATCHES = ("addresses", "cgroup", "unit")

Values = Iterator[tuple[Path, str]]


def check_tree(root: Node) -> Iterator[Issue]:
    """What may stand only once, and what excludes each other.

    A value that is wrong in itself has its own problem and is passed over, so that this needs no valid tree.
    """
    yield from _repeated(root, _names(root, ("node", "uplinks")), "uplink")
    yield from _repeated(root, _texts(root, ("backends",)), "backend")
    yield from _repeated(root, _names(root, ("workloads",)), "workload name")
    yield from _repeated(root, _addresses(root), "address")
    for key in ("cgroup", "unit"):
        yield from _repeated(root, _matched(root, key), key)
    yield from _check_matches(root)
    yield from _check_shapes(root)


def check_values(config: Config) -> Iterator[Issue]:
    """What contradicts each other in a tree whose single values are right."""
    yield from _check_loop(config)
    yield from _check_totals(config)
    yield from _check_levels(config)


def _repeated(root: Node, values: Values, what: str) -> Iterator[Issue]:
    first: dict[str, Path] = {}
    for path, value in values:
        if value not in first:
            first[value] = path
            continue
        mark = root.locate(first[value])
        yield Issue(
            code=Code.POLICY,
            path=path,
            message=f"{what} {shown(value)} again; it stands in {mark.file} line {mark.line} already",
            hint="remove or rename one of them",
        )


def _texts(root: Node, path: Path) -> Values:
    for place, node in enumerate(root.items_at(path)):
        if isinstance(node.value, str):
            yield (*path, place), node.value


def _names(root: Node, path: Path) -> Values:
    """The items of a list by their `name`, or as texts."""
    for place, node in enumerate(root.items_at(path)):
        name = node.get("name") or node
        if isinstance(name.value, str):
            yield ((*path, place) if name is node else (*path, place, "name")), name.value


def _matched(root: Node, key: str) -> Values:
    for place, node in enumerate(root.items_at(("workloads",))):
        found = node.get("match", key)
        if found is not None and isinstance(found.value, str):
            yield ("workloads", place, "match", key), found.value


def _addresses(root: Node) -> Values:
    for place in range(len(root.items_at(("workloads",)))):
        for path, text in _texts(root, ("workloads", place, "match", "addresses")):
            try:
                yield path, parse_address(text)
            except Rejected:
                continue


def _check_matches(root: Node) -> Iterator[Issue]:
    for place, node in enumerate(root.items_at(("workloads",))):
        match = node.get("match")
        if match is None or not isinstance(match.value, dict):
            continue
        given = [key for key in _MATCHES if key in match.value and match.value[key].value is not None]
        if len(given) != 1:
            yield Issue(
                code=Code.POLICY,
                path=("workloads", place, "match"),
                message=f"{' and '.join(given) or 'nothing'} given; allowed: exactly one of {listed(_MATCHES)}",
                hint="make it one workload for each" if given else "say how its packets are known",
            )


def _check_shapes(root: Node) -> Iterator[Issue]:
    policy = root.get("policy")
    found = [
        key for key in _SHAPES if policy is not None and (node := policy.get(key)) and node.value is not None
    ]
    for key in found[1:]:
        mark = root.locate(("policy", found[0]))
        yield Issue(
            code=Code.TWO_SHAPES,
            path=("policy", key),
            message=f"a second shape of the policy; {found[0]} stands in {mark.file} line {mark.line}; allowed: one",
            hint="remove one of them",
        )


def _check_loop(config: Config) -> Iterator[Issue]:
    loop = config.loop
    if loop.contended_interval > loop.interval:
        met, most = format_duration(loop.contended_interval), format_duration(loop.interval)
        message = f"{met} is over interval ({most}); allowed: up to it"
        yield _issue(("loop", "contendedInterval"), message, hint="lower it, or raise interval")
    if loop.enter_backlogged > loop.enter:
        met, most = _percent(loop.enter_backlogged), _percent(loop.enter)
        message = f"{met} of the total is over enter ({most}); allowed: up to it"
        yield _issue(("loop", "enterBacklogged"), message, hint="lower it, or raise enter")
    if loop.leave >= loop.enter_backlogged:
        low = f"{_percent(loop.enter_backlogged)}"
        message = (
            f"{_percent(loop.leave)} of the total is not under enterBacklogged ({low}); allowed: less than it"
        )
        yield _issue(("loop", "leave"), message, hint="lower it, so that contention does not flutter")


def _check_totals(config: Config) -> Iterator[Issue]:
    if config.node.allow_small_total:
        return
    for path, bps in _totals(config.node):
        if bps is not None and bps < SMALLEST_TOTAL_BPS:
            smallest = format_bandwidth(SMALLEST_TOTAL_BPS)
            message = f"{format_bandwidth(bps)} is too small for a total; allowed: {smallest} or more"
            yield _issue(path, message, hint="write 1G for a gigabit, or set node.allowSmallTotal")


def _totals(node: NodeSection) -> Iterator[tuple[Path, int | None]]:
    sections: list[tuple[Path, BandwidthSection]] = [(("node", "bandwidth"), node.bandwidth)]
    sections += [
        (("node", "uplinks", place, "bandwidth"), uplink.bandwidth)
        for place, uplink in enumerate(node.uplinks or ())
    ]
    for path, section in sections:
        for way, total in (("tx", section.tx), ("rx", section.rx)):
            yield (*path, way), None if total is None else total[0]


def _check_levels(config: Config) -> Iterator[Issue]:
    policies = level_policies(config.policy)
    paths: dict[Level, Path] = {level: ("policy", "levels", level.name.lower()) for level in Level}
    issues = Issues()
    mixed_levels(policies, paths, issues)
    yield from issues.found()
    for level, policy in policies.items():
        yield from _check_order(policy, paths[level])
    for direction in Direction:
        yield from _check_sum(policies, direction)


def _check_order(policy: LevelPolicy, path: Path) -> Iterator[Issue]:
    for direction in Direction:
        low, high = policy.guarantee[direction], policy.ceiling[direction]
        if _is_over(low, high) and low is not None and high is not None:
            message = f"{format_amount(low)} is over {direction.value}Max ({format_amount(high)}); allowed: up to it"
            yield _issue((*path, f"{direction.value}Min"), message, hint="lower it, or raise the maximum")


def _is_over(low: Amount | None, high: Amount | None) -> bool:
    if isinstance(low, Percent) and isinstance(high, Percent):
        return low.value > high.value
    return isinstance(low, int) and isinstance(high, int) and low > high


def _check_sum(policies: dict[Level, LevelPolicy], direction: Direction) -> Iterator[Issue]:
    """Percentages guaranteed to L1 and L2 leave L0 its part; quantities are compared with the total by the engine."""
    amounts = {
        level: policies[level].guarantee[direction] for level in (Level.L1, Level.L2) if level in policies
    }
    shares = {level: share for level, share in amounts.items() if isinstance(share, Percent) and share.value}
    total = sum(share.value for share in shares.values())
    if total > LARGEST_SUM:
        message = (
            f"l1 and l2 are guaranteed {format_amount(Percent(total))} together; allowed: {LARGEST_SUM}%"
        )
        path = own_path(max(shares, key=lambda level: level.value), direction, Bound.GUARANTEE)
        yield _issue(path, message, hint="leave l0 at least 1%")


def _percent(share: float) -> str:
    return f"{round(share * 100, 6):g}%"


def _issue(path: Path, message: str, *, hint: str) -> Issue:
    return Issue(code=Code.POLICY, path=path, message=message, hint=hint)
