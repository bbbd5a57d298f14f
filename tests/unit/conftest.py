"""What keeps unit tests apart from each other and from a daemon that runs on this machine."""

from __future__ import annotations

import uuid

import pytest


@pytest.fixture(autouse=True)
def own_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test is alone in its network namespace, as far as daemons can tell."""
    monkeypatch.setattr("netqos.host.claim.NAME", f"\0netqos-test-{uuid.uuid4()}")
