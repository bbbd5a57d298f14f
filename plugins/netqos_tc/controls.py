"""The filters on an uplink's root, for frames that no rule of nft meets. Pure."""

from __future__ import annotations

from typing import Final

from netqos_tc import numbers
from netqos_tc.spec import FilterSpec, U32Match

# Ethernet protocol numbers (not address families, which would install filters for AX.25). These frames pass no nft:
# ARP, LLDP, LACP, and what a host sends without an address (DHCP by a packet socket, duplicate address detection).
_ANY: Final = (U32Match(value=0, mask=0, offset=0),)
_NO_SOURCE4: Final = (U32Match(value=0, mask=0xFFFFFFFF, offset=12),)
_NO_SOURCE6: Final = tuple(U32Match(value=0, mask=0xFFFFFFFF, offset=offset) for offset in (8, 12, 16, 20))
CONTROL_FILTERS: Final = {
    1: FilterSpec(protocol=0x0806, matches=_ANY, minor=numbers.CONTROL),
    2: FilterSpec(protocol=0x88CC, matches=_ANY, minor=numbers.CONTROL),
    3: FilterSpec(protocol=0x8809, matches=_ANY, minor=numbers.CONTROL),
    4: FilterSpec(protocol=0x0800, matches=_NO_SOURCE4, minor=numbers.CONTROL),
    5: FilterSpec(protocol=0x86DD, matches=_NO_SOURCE6, minor=numbers.CONTROL),
}
