"""Status never says "enforced" of what is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netqos.model.health import Finding, error, info, warning
from netqos.model.levels import Direction
from netqos.observe.enforced import Enforcement, Verdict
from netqos.observe.view import AgentView
from netqos.testing import states
from tests.unit.observe.sample import DESIRED, FILES, PODS, TC, TERWAY, composition, tx_only, view

WEB, DB, CRUNCH, HOSTILE = PODS
TX, RX = Direction.TX, Direction.RX
BY_TC = Verdict(by=("tc",))
WHERE_IT_IS = replace(TC.capabilities, apart=frozenset())  # type: ignore[type-var] # of the sample, there are some


def with_tc(*findings: Finding, state: str = "ok") -> AgentView:
    return view(backends={"tc": replace(TC, state=state, findings=findings), "files": FILES})


def with_desired(**changes: object) -> AgentView:
    return view(composition=composition(replace(DESIRED, **changes), PODS))  # type: ignore[arg-type]


def test_what_works_is_enforced() -> None:
    found = Enforcement(with_tc())
    assert found.levels(TX) == found.level(WEB, TX) == found.limit(WEB, TX) == BY_TC
    assert found.levels(RX) == found.level(WEB, RX) == found.limit(CRUNCH, RX) == BY_TC
    assert found.limit(DB, TX) == Verdict()


def test_only_in_its_direction() -> None:
    shown = tx_only()
    found = Enforcement(replace(shown, backends={"tc": shown.backends["tc"]}))
    assert found.levels(TX) == found.level(WEB, TX) == BY_TC
    assert found.levels(RX) == found.limit(CRUNCH, RX) == Verdict(obstacle="tc does not shape ingress")


@pytest.mark.parametrize("state", ["failing", "unavailable", "backing-off"])
def test_a_backend_that_does_not_work_enforces_nothing(state: str) -> None:
    found = Enforcement(with_tc(state=state))
    assert found.levels(TX) == found.limit(WEB, TX) == Verdict(obstacle=f"tc is {state}")


def test_a_foreign_root_qdisc_on_the_only_uplink_means_not_enforced() -> None:
    found = Enforcement(with_tc(error("foreign-root-qdisc", "up0", "not enforced: the root qdisc is cake")))
    obstacle = Verdict(obstacle="tc: up0: not enforced: the root qdisc is cake")
    assert found.levels(TX) == found.limit(WEB, TX) == found.level(WEB, TX) == obstacle


def test_a_direction_that_is_shaped_on_a_device_of_its_own_asks_no_uplink() -> None:
    told = error("foreign-root-qdisc", "up0", "not enforced: the root qdisc is cake")
    assert Enforcement(with_tc(told)).levels(RX) == BY_TC
    shown = view(backends={"tc": replace(TC, findings=(told,), capabilities=WHERE_IT_IS)})
    assert Enforcement(shown).levels(RX) == Verdict(obstacle="tc: up0: not enforced: the root qdisc is cake")


def test_an_error_about_a_direction_is_one_on_all_its_devices() -> None:
    desired = replace(DESIRED, uplinks=(*DESIRED.uplinks, states.uplink("up1", index=3)))
    shown = replace(
        with_tc(error("not-enforced-ingress", "rx", "the IFB is somebody else's")),
        composition=composition(desired, PODS),
    )
    found = Enforcement(shown)
    obstacle = Verdict(obstacle="tc: rx: the IFB is somebody else's")
    assert found.levels(RX) == found.limit(CRUNCH, RX) == obstacle
    assert found.levels(TX) == found.limit(CRUNCH, TX) == BY_TC


def test_one_of_two_uplinks_still_enforces() -> None:
    desired = replace(DESIRED, uplinks=(*DESIRED.uplinks, states.uplink("up1", index=3)))
    shown = replace(
        with_tc(error("foreign-root-qdisc", "up0", "taken")), composition=composition(desired, PODS)
    )
    assert Enforcement(shown).levels(TX) == BY_TC


def test_warnings_about_a_device_do_not_stop_it() -> None:
    assert Enforcement(with_tc(warning("taken-over-root", "up0", "as configured"))).levels(TX) == BY_TC


@pytest.mark.parametrize(
    ("code", "level", "limit", "rules"),
    [
        ("not-enforced-rules", True, True, False),
        ("not-enforced-limit", True, False, True),
        ("not-enforced-rules-egress", True, True, False),
        ("not-enforced-rules-ingress", True, True, True),
        ("limit-not-enforced-egress", False, False, False),
        ("not-enforced-ingress", True, True, True),
        ("not-enforced-cgroup", False, False, False),
        ("not-enforced", False, False, False),
        ("pending", False, False, False),
        ("minimum-scaled", True, True, True),
    ],
)
def test_a_backends_refusal_counts_for_what_it_says(code: str, level: bool, limit: bool, rules: bool) -> None:
    able = replace(TC.capabilities, rules=True)  # type: ignore[type-var]
    said = info(code, "pod batch/crunch", "no; its egress limit is another matter")
    shown = view(backends={"tc": replace(TC, capabilities=able, findings=(said,))})
    found = Enforcement(shown)
    outcome = [
        bool(one.by) for one in (found.level(CRUNCH, TX), found.limit(CRUNCH, TX), found.rules(CRUNCH, TX))
    ]
    assert outcome == [level, limit, rules]
    assert found.limit(WEB, TX) == BY_TC
    assert found.findings(CRUNCH) == (said,)


def test_workloads_are_meant_by_their_own_word() -> None:
    said = warning("not-enforced-cgroup", "workload web", "no")
    assert Enforcement(with_tc(said)).limit(WEB, TX) == Verdict(obstacle="tc: no")


def test_a_pod_that_nothing_is_known_of_is_not_enforced() -> None:
    obstacle = Verdict(obstacle="neither an address nor a cgroup of it is known yet")
    found = Enforcement(with_tc())
    assert found.level(HOSTILE, TX) == found.limit(HOSTILE, RX) == obstacle


@pytest.mark.parametrize(
    ("shown", "obstacle"),
    [
        (view(composition=None), "nothing is composed yet: a source has not delivered"),
        (with_desired(enabled=False), "network QoS is off"),
        (with_desired(uplinks=()), "no uplink is known"),
        (
            with_desired(directions=replace(DESIRED.directions, tx=states.direction(None))),
            "the total bandwidth is unknown",
        ),
        (view(backends={}), "no backend is in use"),
        (view(backends={"files": FILES}), "no backend is in use"),
        (view(backends={"tc": replace(TC, state="off")}), "no backend is in use"),
        (view(backends={"terway": TERWAY}), "terway is unavailable"),
    ],
)
def test_the_reason_is_told(shown: AgentView, obstacle: str) -> None:
    assert Enforcement(shown).levels(TX) == Verdict(obstacle=obstacle)


def test_limits_hold_with_network_qos_off() -> None:
    off = replace(DESIRED, enabled=False)
    assert Enforcement(view(composition=composition(off, PODS))).limit(WEB, TX) == BY_TC
