"""The tc backend keeps the contract of a backend, on the real kernel."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis.strategies import SearchStrategy

from netqos.model.desired import DesiredState
from netqos.testing.contract import BackendContract, Harness
from netqos.testing.strategies import desired_states
from tests.kernel.tchost import UPLINK, UplinkHost

pytestmark = pytest.mark.kernel("veth", "htb", "u32", "nft", "nft-fib", "nft-socket")


def at_uplink(state: DesiredState) -> DesiredState:
    return replace(state, uplinks=tuple(replace(one, index=UPLINK.index) for one in state.uplinks))


class TestTcBackend(BackendContract):
    first = at_uplink(BackendContract.first)
    second = at_uplink(BackendContract.second)
    max_examples = 15

    def make(self) -> Harness:
        return UplinkHost()

    def desired_states(self) -> SearchStrategy[DesiredState]:
        return desired_states(UPLINK)
