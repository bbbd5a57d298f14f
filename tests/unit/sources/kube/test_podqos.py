from __future__ import annotations

from typing import Any

import pytest

from netqos.model.inputs import KubernetesQos
from netqos.sources.kube.podqos import qos_of_name, qos_of_spec

G, B, E = KubernetesQos.GUARANTEED, KubernetesQos.BURSTABLE, KubernetesQos.BEST_EFFORT


def has(requests: dict[str, Any] | None = None, limits: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"resources": {"requests": requests, "limits": limits}}


BOTH = {"cpu": "1", "memory": "1Gi"}
TABLE: list[tuple[str, dict[str, Any], KubernetesQos]] = [
    ("nothing", {"containers": [{}]}, E),
    ("no containers", {}, E),
    ("requests as limits", {"containers": [has(BOTH, BOTH)]}, G),
    ("other words for the same", {"containers": [has({"cpu": "1000m", "memory": "1024Mi"}, BOTH)]}, G),
    ("exponents", {"containers": [has({"cpu": "1e0", "memory": "1073741824"}, BOTH)]}, G),
    ("numbers", {"containers": [has({"cpu": 1, "memory": "1Gi"}, BOTH)]}, G),
    ("limits only", {"containers": [has(None, BOTH)]}, B),
    ("requests only", {"containers": [has(BOTH)]}, B),
    ("a smaller request", {"containers": [has({"cpu": "500m", "memory": "1Gi"}, BOTH)]}, B),
    ("cpu alone", {"containers": [has({"cpu": "1"}, {"cpu": "1"})]}, B),
    ("a second one without", {"containers": [has(BOTH, BOTH), {}]}, B),
    ("an init container without", {"containers": [has(BOTH, BOTH)], "initContainers": [{}]}, B),
    ("an init container with", {"containers": [has(BOTH, BOTH)], "initContainers": [has(BOTH, BOTH)]}, G),
    (
        "a sidecar with less",
        {
            "containers": [has(BOTH, BOTH)],
            "initContainers": [{"restartPolicy": "Always", **has({"cpu": "1m"})}],
        },
        B,
    ),
    (
        "an ephemeral container does not count",
        {"containers": [{}], "ephemeralContainers": [has(BOTH, BOTH)]},
        E,
    ),
    ("zero is as good as absent", {"containers": [has({"cpu": "0", "memory": "0"}, {"cpu": "0"})]}, E),
    ("others do not count", {"containers": [has({"example.org/gpu": "1"}, {"example.org/gpu": "1"})]}, E),
    ("of the pod as a whole", {**has(BOTH, BOTH), "containers": [{}]}, G),
    ("requests of the pod", {**has(BOTH), "containers": [has(BOTH, BOTH)]}, B),
    ("nothing of the pod stands for all", {"resources": {}, "containers": [has(BOTH, BOTH)]}, E),
    ("what is no quantity is absent", {"containers": [has({"cpu": "lots"}, {"cpu": "-1", "memory": []})]}, E),
]


@pytest.mark.parametrize(("spec", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_class_of_a_spec(spec: dict[str, Any], expected: KubernetesQos) -> None:
    assert qos_of_spec(spec) is expected


@pytest.mark.parametrize("name", [None, 7, "guaranteed", "", {}])
def test_a_name_that_is_none(name: object) -> None:
    assert qos_of_name(name) is None
