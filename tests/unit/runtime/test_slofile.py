"""A NodeSLO for many nodes is judged whole before anybody gets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from netqos.errors import Rejected
from netqos.runtime.slofile import API_VERSION, KIND, read_slo

HEAD = f"apiVersion: {API_VERSION}\nkind: {KIND}\n"
UPSTREAM = (
    HEAD
    + """spec:
  systemStrategy: {totalNetworkBandwidth: 10G}
  resourceQOSStrategy:
    policies: {netQOSPolicy: tc}
    lsClass: {networkQOS: {enable: true, egressRequest: 4G, ingressRequest: 3G}}
    beClass: {networkQOS: {enable: true, egressRequest: 2G, egressLimit: 5G, ingressLimit: 6G}}
"""
)
PROPOSAL = (
    HEAD
    + """spec:
  networkQOSStrategy:
    enable: true
    nodeBandwidthLimit: {hw: {tx: 10000, rx: 10G}, l1: {tx: 9000, txMin: 3000}, l2: {rx: 4G}}
"""
)


def test_a_right_file_comes_out_as_it_is() -> None:
    assert read_slo(UPSTREAM, "slo.yaml") == {
        "systemStrategy": {"totalNetworkBandwidth": "10G"},
        "resourceQOSStrategy": {
            "policies": {"netQOSPolicy": "tc"},
            "lsClass": {"networkQOS": {"enable": True, "egressRequest": "4G", "ingressRequest": "3G"}},
            "beClass": {
                "networkQOS": {
                    "enable": True,
                    "egressRequest": "2G",
                    "egressLimit": "5G",
                    "ingressLimit": "6G",
                }
            },
        },
    }
    spec = read_slo(PROPOSAL, "slo.yaml")
    document = {"apiVersion": API_VERSION, "kind": KIND, "spec": spec}
    assert read_slo(json.dumps(document), "slo.json") == spec


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", ["slo.yaml:1:1: apiVersion: null is not", "slo.yaml:1:1: kind:", "slo.yaml:1:1: spec: there is"]),
        ("- 1\n", ["slo.yaml:1:1: this is no map"]),
        (HEAD + "spec: [1]\n", ["slo.yaml:3:1: spec: "]),
        (HEAD + "spec: {\n", ["slo.yaml:4:1: no YAML"]),
        (HEAD + "metadata: {name: a}\nspec: {networkQOSStrategy: {enable: true}}\n", ["slo.yaml:3:1: metadata:"]),
        (UPSTREAM.replace("egressLimit: 5G", "egresLimit: 5G"), ["did you mean egressLimit?"]),
        (UPSTREAM.replace("beClass: {", "beClass: {cpuQOS: {}, "), ["slo.yaml:8:15: spec.res"]),
        (UPSTREAM.replace("10G", "10Gbps"), ["did you mean 10G?"]),
        (PROPOSAL.replace("hw: {tx: 10000, rx: 10G}", "hw: {rx: 1M}").replace("4G", "1M"), ["the total is under 10M"]),
        (UPSTREAM.replace("enable: true, egressRequest: 4G", "enable: maybe, egressRequest: 4G"), ["slo.yaml:7:"]),
        (UPSTREAM.replace("egressRequest: 2G", "egressRequest: 5500M"), ["L2 tx: "]),
        (UPSTREAM.replace("ingressRequest: 3G", "ingressRequest: 12G"), ["L1 rx: "]),
        (UPSTREAM.replace("tc}", "ebpf}"), ["allowed: tc"]),
        (PROPOSAL.replace("txMin: 3000", "txMin: 9500"), ["L1 tx: "]),
        (PROPOSAL.replace("txMin", "txmin"), ["did you mean txMin?"]),
        (PROPOSAL + "  resourceQOSStrategy: {beClass: {networkQOS: {enable: true}}}\n", ["one of the two shapes"]),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_with_its_places(text: str, told: list[str]) -> None:
    with pytest.raises(Rejected) as refused:
        read_slo(text, "slo.yaml")
    problems = refused.value.problems
    assert len(problems) == len(told), problems
    assert all(part in problem for part, problem in zip(told, problems, strict=True)), problems


def test_all_problems_are_told_at_once() -> None:
    text = UPSTREAM.replace("3G", "3X").replace("egressLimit: 5G", "egressLimit: 500%").replace("tc}", "x}")
    with pytest.raises(Rejected) as refused:
        read_slo(text, "slo.yaml")
    assert len(refused.value.problems) == 3


@pytest.mark.parametrize("page", ["docs/kubernetes.md", "daemonset/README.md"])
def test_what_the_documents_show_is_right(page: str) -> None:
    text = (Path(__file__).parents[3] / page).read_text(encoding="utf-8")
    (shown,) = [part.partition("```")[0] for part in text.split("```yaml\n") if "kind: NodeSLO" in part]
    assert read_slo(shown, page)
