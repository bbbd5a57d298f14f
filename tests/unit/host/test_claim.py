from __future__ import annotations

import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest

from netqos.errors import Fatal
from netqos.host.claim import Claim


@pytest.fixture
def name() -> str:
    return f"\0netqos-test-{uuid.uuid4()}"


@pytest.fixture
def claim(name: str) -> Iterator[Claim]:
    claim = Claim(name)
    yield claim
    claim.close()


def test_the_second_claim_is_refused_and_names_the_first(name: str, claim: Claim) -> None:
    with pytest.raises(Fatal, match=f"process {os.getpid()}"):
        Claim(name)
    assert claim.findings == ()


def test_a_full_queue_does_not_open_the_claim(name: str, claim: Claim) -> None:
    waiting = []
    for _ in range(8):
        one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        one.connect_ex(name)
        waiting.append(one)
    with pytest.raises(Fatal):
        Claim(name)
    for one in waiting:
        one.close()


def test_a_claim_ends_with_its_process_however_that_ends(name: str) -> None:
    code = f"import os; from netqos.host.claim import Claim; claim = Claim({name!r}); os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    Claim(name).close()


def test_a_closed_claim_can_be_made_again(name: str) -> None:
    Claim(name).close()
    Claim(name).close()


def test_who_may_not_shape_does_not_keep_the_daemon_from_starting(
    name: str, claim: Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netqos.host.claim._holder", lambda _name: (4711, 1000))
    assert [one.code for one in Claim(name).findings] == ["claim-taken"]
