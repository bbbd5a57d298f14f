from __future__ import annotations

from pathlib import Path

import pytest

from netqos.runtime.cluster import decided, is_in_cluster
from netqos.settings.values import KubernetesSettings, Settings, Toggle


def test_a_pod_is_known_by_its_environment_or_its_service_account(tmp_path: Path) -> None:
    assert not is_in_cluster({}, tmp_path)
    assert not is_in_cluster({"KUBERNETES_SERVICE_HOST": ""}, tmp_path)
    assert is_in_cluster({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, tmp_path)
    (tmp_path / "token").write_text("x")
    assert is_in_cluster({}, tmp_path)


@pytest.mark.parametrize(
    ("asked", "in_cluster", "enable"),
    [
        (Toggle.AUTO, True, Toggle.ON),
        (Toggle.AUTO, False, Toggle.OFF),
        (Toggle.ON, False, Toggle.ON),
        (Toggle.OFF, True, Toggle.OFF),
    ],
)
def test_auto_is_decided(asked: Toggle, in_cluster: bool, enable: Toggle) -> None:
    settings = Settings(kubernetes=KubernetesSettings(enable=asked, annotations=False))
    assert decided(settings, in_cluster=in_cluster).kubernetes == KubernetesSettings(
        enable=enable, annotations=False
    )
