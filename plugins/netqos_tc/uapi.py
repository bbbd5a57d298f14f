"""Numbers and layouts of include/uapi/linux/{rtnetlink,pkt_sched,pkt_cls,if_link}.h, as far as we need them. Pure."""

from __future__ import annotations

import struct
from typing import Final

NEWLINK: Final = 16
DELLINK: Final = 17
GETLINK: Final = 18
NEWROUTE: Final = 24
DELROUTE: Final = 25
GETROUTE: Final = 26
NEWQDISC: Final = 36
DELQDISC: Final = 37
GETQDISC: Final = 38
NEWTCLASS: Final = 40
DELTCLASS: Final = 41
GETTCLASS: Final = 42
NEWTFILTER: Final = 44
DELTFILTER: Final = 45
GETTFILTER: Final = 46
NEWSTATS: Final = 92
GETSTATS: Final = 94

# TCA_*: every message of traffic control is a struct tcmsg with these attributes.
TCMSG: Final = struct.Struct("=B3xiIII")
KIND: Final = 1
OPTIONS: Final = 2
STATS2: Final = 7
SIZE_TABLE: Final = 8
EGRESS_BLOCK: Final = 14
CHAIN: Final = 11

# TCA_HTB_*; struct tc_htb_opt is two of struct tc_ratespec and five numbers.
HTB_PARMS: Final = 1
HTB_INIT: Final = 2
HTB_RATE64: Final = 6
HTB_CEIL64: Final = 7
HTB_VERSION: Final = 3
HTB_OPT: Final = struct.Struct("=BBHhHIBBHhHIIIIII")
HTB_GLOB: Final = struct.Struct("=IIIII")
LINKLAYER_ETHERNET: Final = 1

# TCA_STATS_*: struct gnet_stats_basic without its padding, struct gnet_stats_queue.
STATS_BASIC: Final = 1
STATS_QUEUE: Final = 3
BASIC: Final = struct.Struct("=QI")
QUEUE: Final = struct.Struct("=IIIII")

# TCA_U32_*: struct tc_u32_sel, behind which its keys stand.
U32_CLASSID: Final = 1
U32_SEL: Final = 5
SEL: Final = struct.Struct("=BBBxHHhhI")
TERMINAL: Final = 1
U32_ACT: Final = 7

# TCA_BPF_*.
BPF_ACT: Final = 1
BPF_FD: Final = 6
BPF_NAME: Final = 7

NEWACTION: Final = 48
DELACTION: Final = 49
GETACTION: Final = 50
ACT_TAB: Final = 1
TCAMSG: Final = 4

# TCA_ACT_*; struct tc_mirred: index, capabilities, verdict, two counts of references, what to do, device.
ACT_KIND: Final = 1
ACT_OPTIONS: Final = 2
ACT_INDEX: Final = 3
ACT_STATS: Final = 4
ACT_COOKIE: Final = 6
MIRRED_PARMS: Final = 2
MIRRED: Final = struct.Struct("=IIiiiiI")
STOLEN: Final = 4
EGRESS_REDIRECT: Final = 1

# TC_H_CLSACT as the parent of the hook, and the places of its filters.
CLSACT: Final = 0xFFFFFFF1
HOOK_INGRESS: Final = 0xFFFFFFF2
HOOK_EGRESS: Final = 0xFFFFFFF3
ALL_PROTOCOLS: Final = 0x0003

# IFLA_*: struct ifinfomsg, the start of struct rtnl_link_stats64.
IFINFO: Final = struct.Struct("=BxHiII")
IFNAME: Final = 3
MTU: Final = 4
MASTER: Final = 10
QUEUE_LENGTH: Final = 13
LINK_INFO: Final = 18
INFO_KIND: Final = 1
INFO_DATA: Final = 2
BRIDGE_CALLS: Final = {4: 36, 6: 37}
"""IFLA_BR_NF_CALL_IPTABLES and IFLA_BR_NF_CALL_IP6TABLES, by the version of IP."""
ALIAS: Final = 20
UP: Final = 0x1
LOOPBACK: Final = 0x8
EXT_MASK: Final = 29
SKIP_STATS: Final = 8
LINK64: Final = 1
STATS64: Final = struct.Struct("=4Q")

# struct rtmsg, RTA_*, struct rtnexthop; RT_TABLE_MAIN, RTN_UNICAST, RTNH_F_DEAD.
ROUTE: Final = struct.Struct("=BBBBBBBBI")
ROUTE_TO: Final = 1
ROUTE_DEVICE: Final = 4
ROUTE_METRIC: Final = 6
ROUTE_HOPS: Final = 9
ROUTE_TABLE: Final = 15
HOP: Final = struct.Struct("=HBBi")
INET: Final = 2
INET6: Final = 10
MAIN_TABLE: Final = 254
UNICAST: Final = 1
DEAD: Final = 1

# RTNLGRP_*, as the bits of a socket's address.
LINK_GROUP: Final = 1 << 0
TC_GROUP: Final = 1 << 3
ROUTE4_GROUP: Final = 1 << 6
ROUTE6_GROUP: Final = 1 << 10
