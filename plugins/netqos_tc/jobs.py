"""A plan's operations as jobs: which way each goes to the kernel, and what has become of it."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from netqos.model.plan import Failure, Operation
from netqos_tc.changes import Edit
from netqos_tc.netlink import Refused
from netqos_tc.spec import ClassKey, ElementKey, Key, RootKey, TableKey

SKIPPED: Final = "skipped"


class Transport(enum.Enum):
    """The ways in which operations reach the kernel; neighbours with the same one go together."""

    ROUTE = enum.auto()
    TAKE_AWAY = enum.auto()
    GIVE_BACK = enum.auto()
    NFT = enum.auto()
    ELEMENTS = enum.auto()


@dataclass(frozen=True, slots=True)
class Job:
    """One operation under way."""

    operation: Operation
    edit: Edit


@dataclass(slots=True)
class Outcome:
    """What has been done so far. A failed object stops what needs it."""

    applied: int = 0
    failures: list[Failure] = field(default_factory=list)
    failed: dict[Key, str] = field(default_factory=dict)
    """The objects that could not be brought to what they should be, each by its name for people."""

    def add(self, job: Job, refused: Refused | None) -> None:
        """Count one operation by its answer."""
        if refused is None:
            self.applied += 1
        else:
            self.fail(job, refused.name, refused.message)

    def fail(self, job: Job, code: str, message: str) -> None:
        """Note a failure."""
        self.failed[job.edit.key] = job.operation.subject
        self.failures.append(Failure(operation=job.operation, code=code, message=message))

    def skips(self, job: Job) -> bool:
        """Fail an operation whose needs have failed."""
        lacking = [self.failed[key] for key in job.edit.needs if key in self.failed]
        if lacking:
            self.fail(job, SKIPPED, f"it needs {lacking[0]}, which could not be set up")
        return bool(lacking)

    def settle(self, job: Job, refused: Refused | None) -> None:
        """As `add`, but an operation refused for want of what it needs is a skipped one."""
        if refused is None or not self.skips(job):
            self.add(job, refused)

    def attempt(self, job: Job, work: Callable[[], None]) -> None:
        """Do the work of one operation unless it lacks something; whatever is raised becomes its failure."""
        if self.skips(job):
            return
        try:
            work()
        except Exception as problem:  # noqa: BLE001 - one operation's fault must not stop the others
            self.fail(job, type(problem).__name__, str(problem) or "no reason given")


def runs(operations: Sequence[Operation]) -> Iterator[tuple[Transport, list[Job]]]:
    """The operations in their order, neighbours that go the same way together."""
    jobs = [Job(one, one.payload) for one in operations if isinstance(one.payload, Edit)]
    for transport, run in itertools.groupby(jobs, key=lambda job: _transport(job.edit)):
        yield transport, list(run)


def _transport(edit: Edit) -> Transport:
    match edit.key:
        case TableKey():
            return Transport.NFT
        case ElementKey():
            return Transport.ELEMENTS
        case RootKey() if edit.after is None:
            return Transport.GIVE_BACK
        case ClassKey() if edit.after is None:
            return Transport.TAKE_AWAY
        case _:
            return Transport.ROUTE
