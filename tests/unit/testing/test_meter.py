from __future__ import annotations

import pytest

from netqos.testing.meter import Framing, tcp_framing, udp_framing


def test_goodput_of_tcp_at_the_usual_mtu() -> None:
    assert tcp_framing().goodput == pytest.approx(0.956, abs=0.0005)
    assert tcp_framing(family=6).goodput == pytest.approx(0.943, abs=0.0005)


@pytest.mark.parametrize(
    ("framing", "packets", "segments_each", "ethernet"),
    [
        (tcp_framing(), 1, 1, 1514),
        (tcp_framing(), 3, 40, 3 * 40 * 1514),
        (tcp_framing(family=6), 2, 7, 2 * 7 * 1514),
        (udp_framing(1400), 2, 8, 2 * 8 * 1442),
        (udp_framing(64), 5, 1, 5 * 106),
    ],
)
def test_large_packets_count_as_the_frames_they_become(
    framing: Framing, packets: int, segments_each: int, ethernet: int
) -> None:
    ip_bytes = packets * (framing.headers + segments_each * framing.payload)
    assert framing.ethernet_bytes(ip_bytes, packets) == pytest.approx(ethernet)


def test_acknowledgements_count_as_nothing() -> None:
    assert tcp_framing().ethernet_bytes(52 * 1000, 1000) == 0
    assert tcp_framing().ethernet_bytes(40 * 1000, 1000) == 0
