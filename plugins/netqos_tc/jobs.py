"""A plan's operations as jobs: which way each goes to the kernel, and what has become of it."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from netqos.model.plan import Failure, Operation
from netqos_tc import numbers
from netqos_tc.edits import Edit
from netqos_tc.keys import ClassKey, ElementKey, Key, LinkKey, RootKey, RulesKey, SetKey, TableKey
from netqos_tc.netlink import Refused
from netqos_tc.standing import Standing

SKIPPED: Final = "skipped"
INCOMPLETE: Final = "incomplete"


class Transport(enum.Enum):
    """The ways in which operations reach the kernel; neighbours with the same one go together."""

    ROUTE = enum.auto()
    TAKE_AWAY = enum.auto()
    GIVE_BACK = enum.auto()
    NFT = enum.auto()
    SETS = enum.auto()
    RULES = enum.auto()
    ELEMENTS = enum.auto()


@dataclass(frozen=True, slots=True)
class Job:
    """One operation under way."""

    operation: Operation
    edit: Edit


@dataclass(slots=True)
class Outcome:
    """What has been done so far. Nothing is made unless all that it needs is there: done before, or `standing`."""

    standing: Standing
    applied: int = 0
    done: set[Key] = field(default_factory=set)
    failures: list[Failure] = field(default_factory=list)
    failed: dict[Key, str] = field(default_factory=dict)
    """The objects that could not be brought to what they should be, each by its name for people."""

    def add(self, job: Job, refused: Refused | None) -> None:
        """Count one operation by its answer."""
        if refused is None:
            self.applied += 1
            self.done.add(job.edit.key)
        else:
            self.fail(job, refused.name, refused.message)

    def fail(self, job: Job, code: str, message: str) -> None:
        """Note a failure."""
        self.failed[job.edit.key] = job.operation.subject
        self.failures.append(Failure(operation=job.operation, code=code, message=message))

    def skips(self, job: Job) -> bool:
        """Fail an operation that lacks what it needs, naming that."""
        lack = next((lack for key in job.edit.needs if (lack := self._lack(job.edit, key))), "")
        if lack:
            self.fail(job, SKIPPED, lack)
        return bool(lack)

    def _lack(self, edit: Edit, need: Key) -> str:
        """What is wrong with something needed, "" for nothing."""
        if need in self.failed:
            met = self.failed[need]
            return (
                f"it waits for {met}" if edit.after is None else f"it needs {met}, which could not be set up"
            )
        if need in self.done:
            return ""
        if isinstance(edit.key, ClassKey) and isinstance(need, ElementKey | RulesKey):
            is_led = self.standing.leads_to(need, edit.key.minor)
            return f"{self.standing.name(need)} still leads to it" if is_led else ""
        is_asked = edit.before is None or isinstance(edit.key, ElementKey)
        if not is_asked or edit.after is None or self.standing.has(need):
            return ""
        return f"it needs {self.standing.name(need)}, which is not there"

    def attempt(self, job: Job, work: Callable[[], None]) -> None:
        """Do the work of one operation unless it lacks something; whatever is raised becomes its failure."""
        if self.skips(job):
            return
        try:
            work()
        except Exception as problem:  # noqa: BLE001 - one operation's fault must not stop the others
            self.fail(job, type(problem).__name__, str(problem) or "no reason given")


def jobs_of(operations: Iterable[Operation]) -> list[Job]:
    """The operations that are ours."""
    return [Job(one, one.payload) for one in operations if isinstance(one.payload, Edit)]


def runs(jobs: Sequence[Job]) -> Iterator[tuple[Transport, list[Job]]]:
    """The jobs in their order, neighbours that go the same way together."""
    for transport, run in itertools.groupby(jobs, key=lambda job: _transport(job.edit)):
        yield transport, list(run)


def waves(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    """Jobs in their order, cut so that nothing goes along with what it needs: the answer to that comes first."""
    wave: list[Job] = []
    keys: set[Key] = set()
    for job in jobs:
        if not keys.isdisjoint(job.edit.needs):
            yield wave
            wave, keys = [], set()
        wave.append(job)
        keys.add(job.edit.key)
    if wave:
        yield wave


def incomplete_trees(jobs: Iterable[Job]) -> Iterator[tuple[Job, int]]:
    """Each root that is to be made without one of the classes that every tree has, with the minor of that.

    Without its default class HTB sends everything unshaped, without a level its workloads have no place.
    """
    edits = [(job, job.edit) for job in jobs if job.edit.after is not None]
    planned = {edit.key for _job, edit in edits}
    for job, edit in edits:
        if isinstance(edit.key, RootKey):
            ifindex = edit.key.ifindex
            fixed = numbers.kind_on(ifindex).fixed
            lacking = [minor for minor in fixed if ClassKey(ifindex, minor) not in planned]
            if lacking:
                yield job, min(lacking)


def _transport(edit: Edit) -> Transport:
    match edit.key:
        case TableKey():
            return Transport.NFT
        case ElementKey():
            return Transport.ELEMENTS
        case SetKey():
            return Transport.SETS
        case RulesKey():
            return Transport.RULES
        case RootKey() if edit.after is None:
            return Transport.GIVE_BACK
        case ClassKey() | LinkKey() if edit.after is None:
            return Transport.TAKE_AWAY
        case _:
            return Transport.ROUTE
