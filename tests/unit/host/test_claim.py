from __future__ import annotations

import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from netqos.errors import Fatal
from netqos.host.claim import QUEUE, Claim


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


def test_however_often_somebody_asks_the_holder_is_named(name: str, claim: Claim) -> None:
    for _ in range(3 * QUEUE):
        with pytest.raises(Fatal, match=f"process {os.getpid()}"):
            Claim(name)
        claim.answer()


def test_who_fills_the_queue_of_the_name_does_not_keep_a_daemon_from_starting(name: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as squatter, ExitStack() as waiting:
        squatter.bind(name)
        squatter.listen(0)
        for _ in range(4):
            one = waiting.enter_context(
                socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            )
            one.connect_ex(name)
        assert [one.code for one in Claim(name).findings] == ["claim-taken"]


def test_a_claim_ends_with_its_process_however_that_ends(name: str) -> None:
    code = f"import os; from netqos.host.claim import QUEUE, Claim; claim = Claim({name!r}); os.kill(os.getpid(), 9)"
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
