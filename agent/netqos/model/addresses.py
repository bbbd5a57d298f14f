"""Addresses as texts: one form for each, so that equal ones are equal texts."""

from __future__ import annotations

import ipaddress


def plain(text: str) -> str:
    """The address in its shortest form, a v4 one that is written as v6 as v4; what is no address as it is."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
