"""Who enforces what at this moment, and if nobody does, why: asked of a view, never of the kernel.

"Enforced" is only said of a backend that is up, shapes the direction and has applied its last plan without a failure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from netqos.model.composed import PodView
from netqos.model.desired import DesiredDirection
from netqos.model.health import Finding
from netqos.model.levels import Direction
from netqos.observe.view import AgentView, BackendView

WORKING = "ok"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The backends that enforce something, in order of use; `obstacle` says why there are none."""

    by: tuple[str, ...] = ()
    obstacle: str = ""


class Enforcement:
    """Answers for one view; make a new one for each view."""

    def __init__(self, view: AgentView) -> None:
        """Look through the backends once, so that asking for each of a thousand pods stays cheap."""
        self.view = view
        self._about: dict[str, list[tuple[str, Finding]]] = defaultdict(list)
        for backend in view.backends.values():
            for finding in backend.findings:
                self._about[finding.subject].append((backend.name, finding))

    def levels(self, direction: Direction) -> Verdict:
        """Whether the levels of a direction are enforced."""
        if self.view.composition is None:
            return Verdict(obstacle="nothing is composed yet: a source has not delivered")
        desired = self.view.composition.desired
        obstacle = _no_levels(desired.directions[direction], enabled=desired.enabled)
        if not obstacle and not desired.uplinks:
            obstacle = "no uplink is known"
        return Verdict(obstacle=obstacle) if obstacle else self._shaped(direction)

    def limit(self, pod: PodView, direction: Direction) -> Verdict:
        """Whether a pod's limit is enforced; neither names nor an obstacle when it has none."""
        if not pod.limits[direction].bps:
            return Verdict()
        if not pod.addresses and pod.cgroup is None:
            return Verdict(obstacle="neither an address nor a cgroup of it is known yet")
        able = [one.name for one in self._shapers(direction) if one.capabilities and one.capabilities.limits]
        return self._without_refusals(pod, direction, able)

    def rules(self, pod: PodView, direction: Direction) -> Verdict:
        """Whether the rules inside a pod are enforced."""
        shapers = self._shapers(direction)
        able = [one.name for one in shapers if one.capabilities and one.capabilities.rules]
        if shapers and not able:
            return Verdict(
                obstacle="no backend in use enforces rules inside a pod; the pods file passes them on"
            )
        return self._without_refusals(pod, direction, able)

    def findings(self, pod: PodView) -> tuple[Finding, ...]:
        """What the backends say about one pod."""
        return tuple(finding for _, finding in self._said_about(pod))

    def _said_about(self, pod: PodView) -> list[tuple[str, Finding]]:
        subjects = dict.fromkeys(
            (f"pod {pod.full_name}", f"workload {pod.full_name}", pod.full_name, pod.uid)
        )
        return [said for subject in subjects for said in self._about.get(subject, ())]

    def _shapers(self, direction: Direction) -> list[BackendView]:
        backends = self.view.backends.values()
        return [one for one in backends if one.state == WORKING and _shapes(one, direction)]

    def _shaped(self, direction: Direction) -> Verdict:
        names = tuple(one.name for one in self._shapers(direction))
        if names:
            return Verdict(by=names)
        obstacles = [_obstacle(one, direction) for one in self.view.backends.values() if _is_asked(one)]
        return Verdict(obstacle="; ".join(obstacles) or "no backend is in use")

    def _without_refusals(self, pod: PodView, direction: Direction, able: Iterable[str]) -> Verdict:
        """Take out the backends whose last plan says that they do not enforce something of this pod and direction."""
        refusals = {name: one.message for name, one in self._said_about(pod) if _refuses(one, direction)}
        names = tuple(name for name in able if name not in refusals)
        if names:
            return Verdict(by=names)
        reasons = [f"{name}: {refusals[name]}" for name in able]
        return Verdict(obstacle="; ".join(reasons)) if reasons else self._shaped(direction)


def _refuses(finding: Finding, direction: Direction) -> bool:
    """Whether a finding about a pod denies a direction; one that names no direction denies both."""
    named = [one for one in Direction if one.pod_word in finding.message]
    return "not-enforced" in finding.code and (not named or direction in named)


def _no_levels(desired: DesiredDirection, *, enabled: bool) -> str:
    if not enabled:
        return "network QoS is off"
    if desired.total_bps is None:
        return "the total bandwidth is unknown"
    return "" if desired.levels is not None else "there is no policy for the levels"


def _is_asked(one: BackendView) -> bool:
    """Whether a backend is asked to shape: one that is off is not, nor one that only publishes files."""
    publishes = one.capabilities is not None and one.capabilities.available and not one.capabilities.enforces
    return one.state != "off" and not publishes


def _obstacle(one: BackendView, direction: Direction) -> str:
    if one.state != WORKING:
        return f"{one.name} is {one.state}"
    return f"{one.name} does not shape {direction.pod_word}"


def _shapes(one: BackendView, direction: Direction) -> bool:
    return (
        one.capabilities is not None and one.capabilities.available and direction in one.capabilities.enforces
    )
