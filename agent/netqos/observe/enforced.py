"""Who enforces what at this moment, and if nobody does, why: asked of a view, never of the kernel.

"Enforced" is only said of a backend that is up, shapes the direction and has applied its last plan without a failure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from netqos.model.composed import PodView
from netqos.model.desired import DesiredDirection
from netqos.model.health import Finding, Severity
from netqos.model.levels import Direction
from netqos.observe.view import AgentView, BackendView

WORKING = ("ok", "degraded")


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
        self._blocked = {direction: self._find_blocked(direction) for direction in Direction}

    def levels(self, direction: Direction) -> Verdict:
        """Whether the levels of a direction are enforced."""
        if self.view.composition is None:
            return Verdict(obstacle="nothing is composed yet: a source has not delivered")
        desired = self.view.composition.desired
        obstacle = _no_levels(desired.directions[direction], enabled=desired.enabled)
        return Verdict(obstacle=obstacle) if obstacle else self._shaped(direction)

    def level(self, pod: PodView, direction: Direction) -> Verdict:
        """Whether a pod's level is enforced: the node's levels are, and its packets are known."""
        verdict = self.levels(direction)
        return self._of_pod(pod, direction, list(verdict.by), "level") if verdict.by else verdict

    def limit(self, pod: PodView, direction: Direction) -> Verdict:
        """Whether a pod's limit is enforced; neither names nor an obstacle when it has none."""
        if not pod.limits[direction].bps:
            return Verdict()
        able = [one.name for one in self._shapers(direction) if one.capabilities and one.capabilities.limits]
        return self._of_pod(pod, direction, able, "limit")

    def rules(self, pod: PodView, direction: Direction) -> Verdict:
        """Whether the rules inside a pod are enforced."""
        shapers = self._shapers(direction)
        able = [one.name for one in shapers if one.capabilities and one.capabilities.rules]
        if shapers and not able:
            return Verdict(
                obstacle="no backend in use enforces rules inside a pod; the pods file passes them on"
            )
        return self._of_pod(pod, direction, able, "rules")

    def findings(self, pod: PodView) -> tuple[Finding, ...]:
        """What the backends say about one pod."""
        return tuple(finding for _, finding in self._said_about(pod))

    def _find_blocked(self, direction: Direction) -> dict[str, str]:
        """The backends that enforce nothing in a direction, and what they say of it.

        An ERROR finding about a device means that a promise is not kept there (`netqos.model.health`); one about the
        direction itself speaks for all devices.
        """
        composition = self.view.composition
        uplinks = {one.name for one in composition.desired.uplinks} if composition is not None else set()
        said: dict[str, dict[str, str]] = defaultdict(dict)
        for device in (direction.value, *sorted(uplinks)):
            for name, finding in self._about.get(device, ()):
                if finding.severity is Severity.ERROR:
                    said[name].setdefault(device, f"{device}: {finding.message}")
        return {
            name: "; ".join(told.values())
            for name, told in said.items()
            if direction.value in told or (len(told) == len(uplinks) and not self._is_apart(name, direction))
        }

    def _is_apart(self, name: str, direction: Direction) -> bool:
        able = self.view.backends[name].capabilities
        return able is not None and direction in able.apart

    def _said_about(self, pod: PodView) -> list[tuple[str, Finding]]:
        subjects = dict.fromkeys(
            (f"pod {pod.full_name}", f"workload {pod.full_name}", pod.full_name, pod.uid)
        )
        return [said for subject in subjects for said in self._about.get(subject, ())]

    def _shapers(self, direction: Direction) -> list[BackendView]:
        backends = self.view.backends.values()
        return [
            one
            for one in backends
            if one.state in WORKING and _shapes(one, direction) and one.name not in self._blocked[direction]
        ]

    def _shaped(self, direction: Direction) -> Verdict:
        if self.view.composition is not None and not self.view.composition.desired.uplinks:
            return Verdict(obstacle="no uplink is known")
        names = tuple(one.name for one in self._shapers(direction))
        if names:
            return Verdict(by=names)
        obstacles = [self._obstacle(one, direction) for one in self.view.backends.values() if _is_asked(one)]
        return Verdict(obstacle="; ".join(obstacles) or "no backend is in use")

    def _obstacle(self, one: BackendView, direction: Direction) -> str:
        if one.state not in WORKING:
            return f"{one.name} is {one.state}"
        if one.name in self._blocked[direction]:
            return f"{one.name}: {self._blocked[direction][one.name]}"
        return f"{one.name} does not shape {direction.pod_word}"

    def _of_pod(self, pod: PodView, direction: Direction, able: Sequence[str], what: str) -> Verdict:
        """Take out the backends whose last plan says that they do not enforce this of the pod."""
        if not pod.addresses and pod.cgroup is None:
            return Verdict(obstacle="neither an address nor a cgroup of it is known yet")
        refusals = {
            name: one.message for name, one in self._said_about(pod) if _refuses(one, direction, what)
        }
        names = tuple(name for name in able if name not in refusals)
        if names:
            return Verdict(by=names)
        reasons = [f"{name}: {refusals[name]}" for name in able]
        return Verdict(obstacle="; ".join(reasons)) if reasons else self._shaped(direction)


def _refuses(finding: Finding, direction: Direction, what: str) -> bool:
    """Whether a finding about a pod, by its code, denies `what` of it.

    `not-enforced-rules`, `-limit`, `-level` and `-egress`, `-ingress` deny that alone, one with both, such as
    `not-enforced-rules-egress`, only of that direction; any other `not-enforced...`, and `pending`, all of the pod.
    """
    _, marker, part = finding.code.rpartition("not-enforced")
    if not marker:
        return finding.code == "pending"
    words = set(filter(None, part.split("-")))
    ways, things = words & {"egress", "ingress"}, words & {"level", "limit", "rules"}
    if words - ways - things:
        return True
    return (not ways or direction.pod_word in ways) and (not things or what in things)


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


def _shapes(one: BackendView, direction: Direction) -> bool:
    return (
        one.capabilities is not None and one.capabilities.available and direction in one.capabilities.enforces
    )
