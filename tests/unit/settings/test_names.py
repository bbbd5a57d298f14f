"""The small texts of the configuration at their bounds."""

from __future__ import annotations

import pytest

from netqos.errors import Rejected
from netqos.settings import names


def test_a_text_is_printable_and_bounded() -> None:
    assert names.text("a" * 4096) == "a" * 4096
    assert names.text(7) == "7"
    for wrong in ("", "a" * 4097, "a\nb", "\ud800", True, None, [1]):
        with pytest.raises(Rejected, match="1 to 4096 printable characters"):
            names.text(wrong)


@pytest.mark.parametrize("name", ["eth0", "a" * 15, "ü" * 7, "br-1.20@x"])
def test_what_the_kernel_takes_for_an_interface(name: str) -> None:
    assert names.interface(name) == name


@pytest.mark.parametrize("name", ["a" * 16, "ü" * 8, "a/b", "a b", "a:b", ".", ".."])
def test_what_the_kernel_does_not_take_for_an_interface(name: str) -> None:
    with pytest.raises(Rejected, match="is no interface"):
        names.interface(name)


@pytest.mark.parametrize("name", ["a", "a-b.c0", "0", "a" * 63, ".".join(["a" * 63] * 3 + ["b" * 61])])
def test_a_dns_name(name: str) -> None:
    assert names.dns_name(name) == name


@pytest.mark.parametrize("name", ["A", "-a", "a-", "a..b", "a_b", "a" * 64, ".".join(["a" * 63] * 4), "a\n"])
def test_no_dns_name(name: str) -> None:
    with pytest.raises(Rejected):
        names.dns_name(name)


@pytest.mark.parametrize(
    "text", ["127.0.0.1:9469", "0.0.0.0:0", "[::1]:65535", "localhost:1", "node-1.example:80"]
)
def test_an_address_to_listen_on(text: str) -> None:
    assert names.listen_address(text) == text


@pytest.mark.parametrize(
    "text",
    ["127.0.0.1", "127.0.0.1:", ":1", "::1:1", "[::1]", "[localhost]:1", "[::1]:65536", "a b:1", "-:1"],
)
def test_no_address_to_listen_on(text: str) -> None:
    with pytest.raises(Rejected, match="is no address to listen on"):
        names.listen_address(text)


def test_a_socket_path_fits_into_an_address() -> None:
    assert names.socket_path("/" + "a" * 106) == "/" + "a" * 106
    with pytest.raises(Rejected, match="a socket path of 108 bytes; allowed: 107"):
        names.socket_path("/" + "a" * 107)


@pytest.mark.parametrize(
    ("value", "bounds"),
    [
        ("0-39", (0, 39)),
        (46, (46, 46)),
        ("46", (46, 46)),
        ("ef", (46, 46)),
        ("cs1-cs2", (8, 16)),
        ("7-7", (7, 7)),
    ],
)
def test_a_dscp_range(value: object, bounds: tuple[int, int]) -> None:
    assert names.dscp_range(value) == bounds


def test_bounds_of_a_duration_are_part_of_it() -> None:
    interval = names.duration(0.005, 10.0)
    assert (interval("5ms"), interval("10s")) == (0.005, 10.0)
    for wrong in ("4.9ms", "10.1s"):
        with pytest.raises(Rejected, match="is out of range; allowed: 5ms to 10s"):
            interval(wrong)
