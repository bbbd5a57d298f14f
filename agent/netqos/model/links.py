"""Kinds of links, as the kernel names them."""

from __future__ import annotations

from typing import Final

TUNNELS: Final = frozenset(
    {
        *("vxlan", "geneve", "bareudp", "gtp", "wireguard", "xfrm", "vti", "vti6", "ipip", "sit", "ip6tnl"),
        *("gre", "gretap", "erspan", "ip6gre", "ip6gretap", "ip6erspan"),
    }
)
"""Links that wrap packets into others for another node."""
