"""What status says of terway-qos."""

from __future__ import annotations

from netqos.model.desired import DesiredState
from netqos.model.health import Severity
from netqos.model.levels import Direction, Level, PerDirection
from netqos.model.rules import IpMatch, Rule
from netqos.testing import states
from netqos.testing.states import M
from netqos_terway import findings
from netqos_terway.layout import asked, nearest_rows


def codes(state: DesiredState) -> list[str]:
    return [finding.code for finding in findings.not_enforced(state, asked(state))]


def test_nothing_to_say() -> None:
    assert codes(states.node()) == []


def test_asked_against_written() -> None:
    rows = asked(states.node())
    assert rows is not None
    lowered = nearest_rows(rows)
    assert lowered is not None
    found = list(findings.lowered(rows, lowered))
    assert [(one.code, one.severity, one.subject) for one in found] == [
        ("terway-ceiling-lowered", Severity.INFO, "backend terway tx"),
        ("terway-ceiling-lowered", Severity.INFO, "backend terway rx"),
    ]
    assert found[0].message == (
        "the ceilings of L1 and L2 are asked to be 800Mbit/s and 1Gbit/s, written 800Mbit/s and 200Mbit/s: "
        "terway-qos refuses more than the total of 1Gbit/s for both together; they move with the traffic"
    )
    assert list(findings.lowered(lowered, lowered)) == []


def test_guarantees_without_a_way() -> None:
    tight = states.direction(100 * M, (0, 60 * M, 50 * M), (100 * M, 70 * M, 60 * M))
    (finding,) = findings.not_enforced(states.node((), rx=tight), asked(states.node((), rx=tight)))
    assert (finding.code, finding.severity, finding.subject) == (
        "terway-not-writable",
        Severity.ERROR,
        "backend terway rx",
    )


def test_what_it_does_not_hold() -> None:
    rule = Rule(matches=(IpMatch(),), dscp=3)
    ruled = states.pod("dev/ruled", rules=PerDirection(tx=(), rx=(rule,)))
    slow = [states.pod(f"dev/slow{number}", tx_bps=M) for number in range(5)]
    pending = states.pod("dev/pending", cgroup=None)
    found = findings.not_enforced(states.node((ruled, *slow, pending)), None)
    assert {one.code: one.message for one in found} == {
        "terway-pod-without-cgroup": "not enforced by terway-qos: dev/pending have no cgroup (yet)",
        "terway-rules-not-enforced": "not enforced by terway-qos: dev/ruled have rules",
        "terway-limit-too-small": next(
            one.message for one in findings.not_enforced(states.node(tuple(slow)), None)
        ),
    }
    small = states.direction(20 * M, (14 * M, 5 * M, 1 * M), (20 * M, 7 * M, 20 * M))
    assert codes(states.node((), tx=small)) == ["terway-ceiling-too-small"]


def test_many_names_are_shortened() -> None:
    slow = tuple(states.pod(f"dev/slow{number}", tx_bps=M) for number in range(5))
    (finding,) = findings.not_enforced(states.node(slow), None)
    assert finding.message.endswith("and 2 more have limits under 8Mbit/s")


def test_several_uplinks() -> None:
    two = states.node((), uplinks=(states.uplink("up0"), states.uplink("up1")))
    assert codes(two) == ["terway-several-uplinks"]


def test_foreign_files() -> None:
    found = findings.foreign(["per_cgroup_bps_limit", "other", "node.json"])
    assert [(one.code, one.severity) for one in found] == [
        ("terway-foreign-node-file", Severity.ERROR),
        ("terway-foreign-limits", Severity.WARNING),
    ]


def test_every_finding_tells_the_next_step() -> None:
    assert findings.NO_NET_CLS.hint
    assert findings.no_meter("no library").hint
    assert {direction.value for direction in Direction} == {"tx", "rx"}
    assert Level.L0.value == 0
