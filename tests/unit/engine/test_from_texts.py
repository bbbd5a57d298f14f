"""From the texts that people write to the bytes that other programs read (cases B1, B3, B6, B8, B9, A7, A8, A9)."""

from __future__ import annotations

import json

import pytest

from netqos.engine.netfiles import node_file, pods_file
from netqos.model.composed import Composition
from netqos.model.health import Severity
from netqos.model.levels import PerDirection
from netqos.settings.file import parse_documents
from netqos.settings.policy import parse_node_slo
from netqos.settings.values import Settings
from tests.unit.engine.given import NODE, codes, composed, pod


def settings_of(text: str) -> Settings:
    return parse_documents([("netqos.yaml", text)])


def from_slo(spec: object, text: str = "") -> Composition:
    asked, _ = parse_node_slo({"spec": spec}, subject="nodeslo worker-1")
    return composed(settings=settings_of(text), slo=asked)


def node_values(composition: Composition) -> dict[str, int]:
    found: dict[str, int] = json.loads(node_file(composition.desired) or b"{}")
    return found


def classes(**levels: object) -> dict[str, object]:
    return {name: {"networkQOS": values} for name, values in levels.items()}


def upstream(total: object = "1000M", **levels: object) -> dict[str, object]:
    strategy = {"totalNetworkBandwidth": total}
    return {"resourceQOSStrategy": classes(**levels), "systemStrategy": strategy}


def test_percent_and_quantity_end_in_the_same_unit() -> None:
    by_percent = upstream(
        lsClass={"enable": True, "egressRequest": 30, "ingressRequest": 20, "egressLimit": 80}
    )
    by_quantity = upstream(
        lsClass={"enable": True, "egressRequest": "300M", "ingressRequest": "200M", "egressLimit": "800M"}
    )
    values = node_values(from_slo(by_percent))
    assert values == node_values(from_slo(by_quantity))
    assert (
        values["hw_tx_bps_max"],
        values["l1_tx_bps_min"],
        values["l1_tx_bps_max"],
        values["l1_rx_bps_min"],
    ) == (
        125_000_000,
        37_500_000,
        100_000_000,
        25_000_000,
    )


@pytest.mark.parametrize(("ls", "be"), [(60, 50), ("700M", "400M"), (100, 0), (100, 100)])
def test_requests_that_add_up_to_too_much_leave_l0_its_own(ls: object, be: object) -> None:
    in_percent = isinstance(ls, int)
    spec = upstream(
        lsClass={"enable": True, "egressRequest": ls, "ingressRequest": 30 if in_percent else "300M"},
        beClass={"enable": True, "egressRequest": be, "ingressRequest": 20 if in_percent else "200M"},
    )
    result = from_slo(spec)
    tx, rx = result.desired.directions.tx.levels, result.desired.directions.rx.levels
    assert tx is not None
    assert rx is not None
    assert tx.l0.guarantee_bps >= 10_000_000
    assert (rx.l1.guarantee_bps, rx.l2.guarantee_bps) == (300_000_000, 200_000_000)
    assert {one.subject for one in result.findings} <= {"policy L1 tx", "policy L2 tx"}
    assert result.findings


@pytest.mark.parametrize(
    "spec",
    [
        {},
        None,
        {"resourceQOSStrategy": None},
        {"resourceQOSStrategy": {"lsClass": None}},
        {"resourceQOSStrategy": {"lsClass": {"networkQOS": None}}},
        {"resourceQOSStrategy": {"lsClass": {"networkQOS": {"enable": None, "egressRequest": 40}}}},
        {"resourceQOSStrategy": {"lsClass": {"networkQOS": {"egressRequest": 40}}}},
    ],
)
def test_each_level_of_the_tree_may_be_missing(spec: object) -> None:
    result = from_slo(spec)
    assert not result.desired.enabled
    assert (node_file(result.desired), result.findings) == (None, ())


@pytest.mark.parametrize("total", ["0", "", "-1", "1000", None])
def test_a_total_that_is_none_falls_to_the_nic(total: object) -> None:
    result = from_slo(upstream(total, lsClass={"enable": True}))
    assert result.total_sources == PerDirection(tx="nic", rx="nic")
    assert node_values(result)["hw_tx_bps_max"] == 1_225_000_000


def test_the_proposals_shape() -> None:
    spec = {
        "networkQOSStrategy": {
            "enable": True,
            "nodeBandwidthLimit": {"hw": {"tx": 1000, "rx": "600M"}, "l2": {"tx": 400, "rxMin": "60M"}},
        }
    }
    result = from_slo(spec)
    assert node_values(result) == {
        "hw_tx_bps_max": 125_000_000,
        "hw_rx_bps_max": 75_000_000,
        "l1_tx_bps_min": 37_500_000,
        "l1_tx_bps_max": 125_000_000,
        "l2_tx_bps_min": 37_500_000,
        "l2_tx_bps_max": 50_000_000,
        "l1_rx_bps_min": 22_500_000,
        "l1_rx_bps_max": 75_000_000,
        "l2_rx_bps_min": 7_500_000,
        "l2_rx_bps_max": 75_000_000,
    }


FILE = """
node: {bandwidth: {tx: 1G, rx: 600M}}
policy:
  enable: true
  levels:
    l1: {txMin: 30%, txMax: 100%, rxMin: 30%, rxMax: 100%}
    l2: {txMin: 20%, txMax: 80%, rxMin: 30%, rxMax: 80%}
  namespaces:
    - {match: ["prod-*"], levels: [l0, l1, l2], minimum: true, dscp: [0-63]}
"""


def test_the_file_alone_is_everything() -> None:
    result = composed(settings=settings_of(FILE))
    assert result.total_sources == PerDirection(tx="file", rx="file")
    values = node_values(result)
    assert (values["l2_tx_bps_min"], values["l2_tx_bps_max"], values["l2_rx_bps_min"]) == (
        25_000_000,
        100_000_000,
        22_500_000,
    )


def test_one_class_of_the_nodeslo_over_the_file() -> None:
    result = from_slo(upstream(None, lsClass={"enable": True, "egressRequest": 50}), FILE)
    values = node_values(result)
    assert (values["l1_tx_bps_min"], values["l1_rx_bps_min"]) == (62_500_000, 22_500_000)
    assert values["l2_tx_bps_min"] == 25_000_000


def test_a_pod_keeps_its_entry_whatever_its_annotations_are() -> None:
    broken = {"koordinator.sh/networkQOS": '{"ingressLimit":"invalid","egressLimit":"2000"}'}
    one_way = {"koordinator.sh/networkQOS": '{"ingressLimit":"10M"}'}
    be = {"koordinator.sh/qosClass": "BE"}
    result = composed(
        [pod("prod/a", broken, uid="a", labels=be), pod("prod/b", one_way, uid="b", labels=be)],
        settings=settings_of(FILE),
        node=NODE,
    )
    entries = json.loads(pods_file(result.desired) or b"")
    assert {uid: entry["priority"] for uid, entry in entries.items()} == {"a": 2, "b": 2}
    assert entries["a"]["qos-config"]["egress"][0]["actions"] == [{"action": "bandwidth_max", "value": 250}]
    assert entries["b"]["qos-config"] == {
        "ingress": [
            {"matchs": [{"type": "ip"}], "actions": [{"action": "bandwidth_max", "value": 1_250_000}]}
        ],
        "egress": [],
    }
    assert codes(result.pods[0].findings) == ["invalid-limit"]


WRONG_FILE = """\
policy:
  enable: true
  levels:
    l1: {txMax: 2G}
    l2:
      rxMax: 9G
"""


def test_what_is_wrong_with_the_policy_of_a_file_is_told_with_its_line() -> None:
    result = composed(settings=settings_of(f"{WRONG_FILE}node: {{bandwidth: {{tx: 1G, rx: 3G}}}}\n"))
    assert [(one.subject, one.severity) for one in result.findings if one.code == "invalid-policy"] == [
        ("policy L1 tx (netqos.yaml line 4)", Severity.ERROR),
        ("policy L2 rx (netqos.yaml line 6)", Severity.ERROR),
    ]


def test_what_a_nodeslo_says_has_no_line_in_the_file() -> None:
    result = from_slo(upstream(lsClass={"enable": True, "egressLimit": "3G"}), WRONG_FILE)
    assert [one.subject for one in result.findings if one.code == "invalid-policy"] == [
        "policy L1 tx",
        "policy L2 rx (netqos.yaml line 6)",
    ]
