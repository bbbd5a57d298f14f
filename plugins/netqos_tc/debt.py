"""Classes that cannot be mended by changing them back, since HTB keeps what they owe. Pure.

HTB counts what a class has sent too much as time (`ctokens`, of a class without a parent that may lend `tokens` too),
at the rate of the moment, and a later rate does not change it (net/sched/sch_htb.c, htb_charge_class; the debt is
60 s at most, and neither a larger burst nor a higher rate pays it: measured). One GSO packet at 8 kbit/s is 65 s.
So a class that somebody set to less than such a packet a second holds the node up long after it was set right.
"""

from __future__ import annotations

from typing import Final

from netqos_tc import numbers
from netqos_tc.keys import ClassKey, Key
from netqos_tc.lifeline import NODES_LEAVES
from netqos_tc.params import gso_bytes
from netqos_tc.spec import ClassSpec, Spec

_PACKET: Final = gso_bytes(1500)
_SHARED: Final = frozenset({*numbers.INNER, *NODES_LEAVES})
"""The classes through which more than one workload, or the node itself, sends."""


def is_in_debt(key: Key, spec: Spec, met: Spec) -> bool:
    """Whether a class may owe more than a second, so that its tree is made anew."""
    if not (isinstance(key, ClassKey) and isinstance(spec, ClassSpec) and isinstance(met, ClassSpec)):
        return False
    if key.minor not in _SHARED:
        return False
    is_slow = met.ceil < _PACKET <= spec.ceil
    return is_slow or (key.minor == numbers.TOTAL and met.rate < _PACKET <= spec.rate)
