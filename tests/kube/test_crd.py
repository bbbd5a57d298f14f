"""NodeSLO with the CRD of daemonset/: both shapes whole, Koordinator's objects unchanged, wrong types refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.client import ApiError
from tests.apiserver.kube import NODESLOS, Kube

NETWORK = {
    "enable": True,
    "ingressRequest": 30,
    "ingressLimit": "10G",
    "egressRequest": 30,
    "egressLimit": 100,
}

# As Koordinator's controller writes it from its defaults, with what other features keep there.
KOORDINATOR: dict[str, Any] = {
    "cpuBurstStrategy": {"cfsQuotaBurstPercent": 300, "policy": "none", "sharePoolThresholdPercent": 50},
    "extensions": {"test.ext": {"deep": [1, {"a": None, "b": 1.5}]}},
    "hostApplications": [
        {"name": "nginx", "priority": "koord-prod", "qos": "LS", "cgroupPath": {"base": "CgroupRoot"}}
    ],
    "resourceQOSStrategy": {
        "policies": {"cpuPolicy": "groupIdentity", "netQOSPolicy": "tc"},
        "lsrClass": {"cpuQOS": {"enable": False, "groupIdentity": 2}, "networkQOS": NETWORK},
        "lsClass": {"memoryQOS": {"enable": False, "lowLimitPercent": 0}, "networkQOS": NETWORK},
        "beClass": {"blkioQOS": {"blocks": [{"name": "vda", "type": "device"}]}, "networkQOS": NETWORK},
        "systemClass": {"resctrlQOS": {"catRangeEndPercent": 100}, "networkQOS": {"enable": False}},
        "cgroupRoot": {"cpuQOS": {"groupIdentity": 0}},
    },
    "resourceUsedThresholdWithBE": {"cpuSuppressPolicy": "cpuset", "enable": True},
    "systemStrategy": {
        "minFreeKbytesFactor": 100,
        "totalNetworkBandwidth": "10G",
        "watermarkScaleFactor": 150,
    },
}
PROPOSAL = {
    "networkQOSStrategy": {
        "enable": True,
        "later": {"more": "of it"},
        "nodeBandwidthLimit": {
            "hw": {"tx": 10000, "rx": "10G"},
            "l0": {"tx": 10000},
            "l1": {"tx": 9000, "rx": 8000, "txMin": "3G", "rxMin": 2000},
            "l2": {"tx": 5000, "rx": 4000, "txMin": 1000, "rxMin": 900, "later": True},
        },
    }
}


@pytest.mark.parametrize("spec", [KOORDINATOR, PROPOSAL, {**KOORDINATOR, **PROPOSAL}, {}])
def test_an_object_comes_back_as_it_was_written(spec: dict[str, Any], kube: Kube) -> None:
    assert kube.create_slo(spec)["spec"] == spec
    assert kube.api.get(f"{NODESLOS}/{kube.node}")["spec"] == spec


def test_the_server_drops_nothing_without_a_word(kube: Kube) -> None:
    body = {
        "apiVersion": "slo.koordinator.sh/v1alpha1",
        "kind": "NodeSLO",
        "metadata": {"name": kube.node},
        "spec": {**KOORDINATOR, **PROPOSAL},
    }
    assert kube.api.create(NODESLOS, body, dryRun="All", fieldValidation="Strict")["spec"] == body["spec"]


@pytest.mark.parametrize(
    ("path", "spec"),
    [
        ("spec.networkQOSStrategy.enable", {"networkQOSStrategy": {"enable": "yes"}}),
        (
            "spec.resourceQOSStrategy.lsClass.networkQOS.ingressRequest",
            {"resourceQOSStrategy": {"lsClass": {"networkQOS": {"ingressRequest": [30]}}}},
        ),
        (
            "spec.networkQOSStrategy.nodeBandwidthLimit.l1.txMin",
            {"networkQOSStrategy": {"nodeBandwidthLimit": {"l1": {"txMin": 1.5}}}},
        ),
        ("spec.resourceQOSStrategy.beClass", {"resourceQOSStrategy": {"beClass": "off"}}),
    ],
)
def test_a_value_of_another_type_is_refused_where_it_is_written(
    path: str, spec: dict[str, Any], kube: Kube
) -> None:
    with pytest.raises(ApiError, match=path.replace(".", r"\.")) as told:
        kube.create_slo(spec)
    assert told.value.status == 422


def test_what_only_netqosd_can_judge_is_taken(kube: Kube) -> None:
    spec = {"resourceQOSStrategy": {"beClass": {"networkQOS": {"enable": True, "egressLimit": "10q"}}}}
    assert kube.create_slo(spec)["spec"] == spec


def test_a_change_and_a_deletion_are_watched(kube: Kube) -> None:
    version = kube.create_slo(PROPOSAL)["metadata"]["resourceVersion"]
    kube.patch_slo({"networkQOSStrategy": {"enable": False}})
    kube.delete_slo()
    selector = f"metadata.name={kube.node}"
    watch = kube.api.watch(NODESLOS, timeout_s=2, fieldSelector=selector, resourceVersion=version)
    told = [(one["type"], one["object"]["spec"]["networkQOSStrategy"]["enable"]) for one in watch]
    assert told == [("MODIFIED", False), ("DELETED", False)]
