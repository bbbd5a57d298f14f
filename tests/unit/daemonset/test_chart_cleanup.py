"""What the chart's pre-delete hook puts back: what an earlier one kept, and of that nothing that was updated since."""

from __future__ import annotations

import importlib.util
import json
from copy import deepcopy
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[3] / "daemonset/chart/cleanup.py"
Document = dict[str, Any]


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    for key in ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "NAMESPACE"):
        monkeypatch.setenv(key, "x")
    spec = importlib.util.spec_from_file_location("chart_cleanup", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def daemonset(image: str, most: str, *, port: int = 9100, grace_s: int = 15) -> Document:
    container = {"name": "netqos", "image": image, "livenessProbe": {"httpGet": {"port": port}}, "env": []}
    pod = {"containers": [container], "terminationGracePeriodSeconds": grace_s}
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": most}}
    return {
        "metadata": {"annotations": {}},
        "spec": {"updateStrategy": strategy, "template": {"spec": pod}},
    }


def cleaned(hook: ModuleType, before: Document) -> Document:
    """As the hook's patch leaves it, when it is killed then."""
    patch = hook.cleanup_patch(hook.kept_of(before))
    after = deepcopy(before)
    after["metadata"]["annotations"].update(patch["metadata"]["annotations"])
    after["spec"]["updateStrategy"]["rollingUpdate"].update(patch["spec"]["updateStrategy"]["rollingUpdate"])
    asked, pod = patch["spec"]["template"]["spec"], after["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    container.update(asked["containers"][0])
    found = {key: value for key, value in container.items() if value is not None}
    pod.update(asked, containers=[found])
    return after


OLD = daemonset("netqos:0.1.0", "10%")
NEW = daemonset("netqos:0.2.0", "50%", port=9555, grace_s=20)


def test_what_a_killed_one_kept_is_put_back(hook: ModuleType) -> None:
    killed = cleaned(hook, OLD)
    assert hook.kept_of(killed) == hook.state_of(OLD) != hook.state_of(killed)
    again = cleaned(hook, killed)
    assert hook.kept_of(again) == hook.state_of(OLD)


@pytest.mark.parametrize("new", [NEW, daemonset("netqos:0.2.0", "100%", grace_s=1)])
def test_an_update_since_then_stays(hook: ModuleType, new: Document) -> None:
    updated = deepcopy(new)
    updated["metadata"]["annotations"] = cleaned(hook, OLD)["metadata"]["annotations"]
    assert hook.kept_of(updated) == hook.state_of(new)
    again = cleaned(hook, updated)
    assert hook.kept_of(again) == hook.state_of(new)
    (work,) = again["spec"]["template"]["spec"]["initContainers"]
    assert work["image"] == "netqos:0.2.0"


def test_of_half_an_update_each_part_counts_by_itself(hook: ModuleType) -> None:
    half = cleaned(hook, OLD)
    half["spec"]["updateStrategy"] = NEW["spec"]["updateStrategy"]
    (container,) = half["spec"]["template"]["spec"]["containers"]
    container["image"] = "netqos:0.2.0"
    probe = {"httpGet": {"port": 9555}}
    container["livenessProbe"] = probe
    kept = hook.kept_of(half)
    assert kept["updateStrategy"] == NEW["spec"]["updateStrategy"]
    assert kept["terminationGracePeriodSeconds"] == 15
    expected = {**hook.state_of(OLD)["container"], "image": "netqos:0.2.0", "livenessProbe": probe}
    assert kept["container"] == expected


@pytest.mark.parametrize("text", ["", "{", "null", "7", "[]", "{}", json.dumps({"container": {}})])
def test_an_annotation_that_no_hook_wrote_counts_for_nothing(hook: ModuleType, text: str) -> None:
    killed = cleaned(hook, OLD)
    killed["metadata"]["annotations"] = {hook.BEFORE: text}
    assert hook.kept_of(killed) == hook.state_of(killed)
