"""One pod for each address (cases E6, F19, G2)."""

from __future__ import annotations

import pytest

from netqos.engine.addresses import Claimed, claim
from tests.unit.engine.given import codes, composed, pod


def addresses(*texts: str, host_network: bool = False) -> tuple[str, ...]:
    facts = pod(addresses=texts, host_network=host_network)
    return claim([facts])[facts.uid].addresses


def test_both_families_in_a_stable_order_and_the_shortest_form() -> None:
    assert addresses("fd00:0:0::1", "10.0.0.9", "10.0.0.10") == ("10.0.0.9", "10.0.0.10", "fd00::1")
    assert addresses("", "10.0.0.9", "fd00::1", "FD00::0001") == ("10.0.0.9", "fd00::1")


def test_a_host_network_pod_has_no_address() -> None:
    assert addresses("192.0.2.1", host_network=True) == ()


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1",
        "0.0.0.0",
        "::",
        "::1",
        "224.0.0.1",
        "ff02::1",
        "fe80::1",
        "169.254.9.9",
        "10.0.0.0/8",
        "web",
    ],
)
def test_an_address_that_cannot_be_one_pods_own_is_left_out(text: str) -> None:
    facts = pod(addresses=(text, "10.0.0.9"))
    claimed = claim([facts])[facts.uid]
    assert (claimed.addresses, codes(claimed.findings)) == (("10.0.0.9",), ["address-unusable"])


def test_the_first_by_uid_keeps_an_address_and_the_other_is_told() -> None:
    first = pod("prod/a", uid="uid-1", addresses=("10.0.0.9", "10.0.0.1"))
    second = pod("prod/b", uid="uid-2", addresses=("10.0.0.9", "10.0.0.2"))
    result = composed([second, first])
    assert [one.addresses for one in result.desired.pods] == [("10.0.0.1", "10.0.0.9"), ("10.0.0.2",)]
    [finding] = result.pods[1].findings
    assert (finding.code, finding.subject) == ("address-conflict", "pod prod/b")
    assert "prod/a" in finding.message
    assert result.pods[0].findings == ()


def test_host_network_pods_share_the_nodes_address_without_a_conflict() -> None:
    pods = [pod(f"prod/{name}", addresses=("192.0.2.1",), host_network=True) for name in "ab"]
    assert set(claim(pods).values()) == {Claimed()}
