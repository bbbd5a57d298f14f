"""What writers work with, and how one job is done by itself."""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from netqos.backend import NftRunner, StateStore
from netqos_tc.contents import Contents
from netqos_tc.edits import Edit
from netqos_tc.jobs import Job, Outcome
from netqos_tc.netclasses import NetClasses
from netqos_tc.netlink import Channel, Refused
from netqos_tc.reader import Reader

ABSENT: Final = frozenset({errno.ENOENT, errno.ENODEV})


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What the writer works with; `sleep` and `monotonic` are for waiting until a leaf is empty.

    `program` gives a descriptor of the one that chooses what is led to the IFB; `contents` forgets what is made anew.
    """

    route: Channel
    netfilter: Channel
    nft: Callable[[], NftRunner]
    state: StateStore
    reader: Reader
    sleep: Callable[[float], Awaitable[None]]
    monotonic: Callable[[], float]
    program: Callable[[], int] = lambda: -1
    contents: Contents = field(default_factory=Contents)
    net_classes: NetClasses | None = None


def alone(outcome: Outcome, jobs: Sequence[Job], write: Callable[[Edit], Refused | None]) -> None:
    """Do jobs one by one; each fails by itself."""
    for job in jobs:
        outcome.attempt(job, partial(_write_one, outcome, job, write))


def _write_one(outcome: Outcome, job: Job, write: Callable[[Edit], Refused | None]) -> None:
    outcome.add(job, write(job.edit))
