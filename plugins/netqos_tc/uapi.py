"""Numbers and layouts of include/uapi/linux/{rtnetlink,pkt_sched,pkt_cls,if_link}.h, as far as we need them. Pure."""

from __future__ import annotations

import struct
from typing import Final

NEWLINK: Final = 16
GETLINK: Final = 18
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

# IFLA_*: struct ifinfomsg, the start of struct rtnl_link_stats64.
IFINFO: Final = struct.Struct("=BxHiII")
IFNAME: Final = 3
MTU: Final = 4
EXT_MASK: Final = 29
SKIP_STATS: Final = 8
LINK64: Final = 1
STATS64: Final = struct.Struct("=4Q")
