"""Carries out a plan's operations: runs of the same transport in one batch, each answer brought back to its operation.

What an operation needs and did not get stops it, and nothing else. Elements that the kernel refuses are left out and
the others are applied: one workload in disorder never holds up the rest.
"""

from __future__ import annotations

import errno
import itertools
from collections.abc import Sequence
from functools import partial
from typing import Final, assert_never

from netqos.errors import Retryable
from netqos.model.plan import ApplyResult, Operation
from netqos_tc import hooks, numbers, queues, root, wire
from netqos_tc.edits import Edit
from netqos_tc.jobs import INCOMPLETE, Job, Outcome, Transport, incomplete_trees, jobs_of, runs, waves
from netqos_tc.kept import document_name
from netqos_tc.keys import ClassKey, FilterKey, LinkKey, QueueKey, RedirectKey, RootKey
from netqos_tc.netlink import Refused
from netqos_tc.netmsg import Request
from netqos_tc.root import Root
from netqos_tc.spec import ClassSpec, FilterSpec, LeafQueueSpec, LinkSpec, RedirectSpec, RootSpec, Spec
from netqos_tc.standing import Standing
from netqos_tc.tablewriter import TableWriter
from netqos_tc.tools import ABSENT, Tools, alone

DRAIN_S: Final = 1.0
_DRAIN_STEP_S: Final = 0.005


class Writer:
    """Applies operations in their order."""

    def __init__(self, tools: Tools) -> None:
        """`tools` stay the caller's."""
        self._tools = tools
        self._table = TableWriter(tools)

    async def apply(self, operations: Sequence[Operation]) -> ApplyResult:
        """Carry out operations; whatever one of them raises becomes its failure."""
        outcome = Outcome(standing=Standing(self._tools.reader))
        for transport, jobs in runs(_whole(outcome, jobs_of(operations))):
            match transport:
                case Transport.NFT:
                    alone(outcome, jobs, self._table.write_table)
                case Transport.GIVE_BACK:
                    alone(outcome, jobs, self._give_back)
                case Transport.ELEMENTS:
                    self._table.write_elements(outcome, jobs)
                case Transport.SETS | Transport.RULES:
                    self._table.write_rules(outcome, jobs)
                case Transport.TAKE_AWAY:
                    await self._drain(jobs)
                    self._write_route(outcome, jobs)
                case Transport.ROUTE:
                    self._write_route(outcome, jobs)
                case _:
                    assert_never(transport)
        self._open_dead_ends(operations, outcome)
        return ApplyResult(applied=outcome.applied, failures=tuple(outcome.failures))

    def _open_dead_ends(self, operations: Sequence[Operation], outcome: Outcome) -> None:
        """Remove each redirect that leads nowhere and could not be led anew: all would be dropped there."""
        edits = [job.edit for job in jobs_of(operations) if job.edit.key in outcome.failed]
        dead = [
            edit.key.ifindex
            for edit in edits
            if isinstance(edit.key, RedirectKey)
            and isinstance(edit.before, RedirectSpec)
            and edit.before.target == 0
        ]
        self._tools.route.write([hooks.delete_redirect(ifindex) for ifindex in dead])

    def _write_route(self, outcome: Outcome, jobs: Sequence[Job]) -> None:
        """A batch for each layer of the tree."""
        for wave in waves(jobs):
            self._write_wave(outcome, wave)

    def _write_wave(self, outcome: Outcome, jobs: Sequence[Job]) -> None:
        sent: list[tuple[Job, int]] = []
        requests: list[Request] = []

        def encode(job: Job) -> None:
            own = self._requests(job.edit)
            sent.append((job, len(own)))
            requests.extend(own)

        for job in jobs:
            outcome.attempt(job, partial(encode, job))
        answers = iter(zip(requests, self._tools.route.write(requests), strict=True))
        for job, count in sent:
            refused = [
                one
                for request, one in itertools.islice(answers, count)
                if one is not None and not hooks.is_needless(request, one.code)
            ]
            if job.edit.after is None and all(one.code in ABSENT for one in refused):
                refused = []
            if any(one.code == errno.ENODEV for one in refused) and self._is_device_gone(job.edit):
                refused = []
            outcome.add(job, refused[0] if refused else None)

    def _is_device_gone(self, edit: Edit) -> bool:
        """Whether a device that was to be led to the IFB has gone meanwhile, which is no failure."""
        return isinstance(edit.key, RedirectKey) and self._tools.reader.link(edit.key.ifindex) is None

    def _requests(self, edit: Edit) -> list[Request]:
        match edit:
            case Edit(key=LinkKey() | RedirectKey()):
                return self._device_requests(edit)
            case Edit(key=RootKey(ifindex), before=before, after=RootSpec() as spec):
                if before is not None:
                    return [wire.delete_root(ifindex), wire.make_root(ifindex, spec)]
                if ifindex != numbers.IFB_INDEX:
                    self._keep_root(edit, ifindex)
                return [wire.make_root(ifindex, spec)]
            case Edit(key=ClassKey(ifindex, minor), before=before, after=ClassSpec() as spec):
                return [wire.make_class(ifindex, minor, spec, create=before is None)]
            case Edit(key=ClassKey(ifindex, minor), after=None):
                return [wire.delete_class(ifindex, minor)]
            case Edit(key=QueueKey(ifindex, minor), before=before, after=LeafQueueSpec() as spec):
                return queues.requests(ifindex, minor, before, spec)
            case Edit(key=FilterKey() as key):
                return _filter_requests(key, edit.before, edit.after)
            case _:
                raise TypeError(f"no request for {edit.key} from {edit.before} to {edit.after}")

    def _device_requests(self, edit: Edit) -> list[Request]:
        """What leads packets to the ingress tree: the IFB, and the redirects."""
        match edit:
            case Edit(key=LinkKey(ifindex), before=None, after=LinkSpec() as spec):
                return hooks.make_link(ifindex, spec)
            case Edit(key=LinkKey(ifindex), before=LinkSpec() as met, after=LinkSpec() as spec):
                return hooks.change_link(ifindex, met, spec)
            case Edit(key=LinkKey(ifindex)):
                return [hooks.delete_link(ifindex)]
            case Edit(key=RedirectKey(ifindex), before=before, after=after):
                return self._redirect_requests(ifindex, before, after)
            case _:
                raise TypeError(f"no device in {edit.key}")

    def _redirect_requests(self, ifindex: int, before: Spec | None, after: Spec | None) -> list[Request]:
        """Ours is put beside what others have at the hook; the hook goes only if we made it and all on it is ours."""
        reader = self._tools.reader
        if not isinstance(after, RedirectSpec):
            owns = isinstance(before, RedirectSpec) and before.owns_hook
            is_last = owns and reader.hooks.is_ours_alone(ifindex)
            return [hooks.delete_hook(ifindex) if is_last else hooks.delete_redirect(ifindex)]
        requests = [] if before is None else [hooks.delete_redirect(ifindex)]
        if after.owns_hook and not reader.hooks.has_hook(ifindex):
            requests.append(hooks.make_hook(ifindex))
        program = self._tools.program() if after.is_choosy else -1
        return [*requests, *hooks.make_redirect(ifindex, after, program)]

    def _keep_root(self, edit: Edit, ifindex: int) -> None:
        """Write down what we take the place of, first making sure that it is still what was planned with."""
        if self._tools.reader.root_of(ifindex) != edit.earlier:
            raise Retryable("another program has changed the root qdisc meanwhile; it is looked at again")
        earlier = edit.earlier or Root(kind="noop", handle=0)
        self._tools.state.save(document_name(edit.device), root.to_document(earlier))

    def _give_back(self, edit: Edit) -> Refused | None:
        """Put back what was there; where that is refused, the device's default."""
        assert isinstance(edit.key, RootKey)
        ifindex, route = edit.key.ifindex, self._tools.route
        if not self._tools.reader.has_our_root(ifindex):
            return None
        requests = root.restore(ifindex, edit.earlier)
        top, *below = route.write(requests, batch=len(requests))  # together: nobody is killed half-way
        if top is not None:
            route.write([wire.delete_root(ifindex)])
        self._tools.state.delete(document_name(edit.device))
        return next((one for one in (top, *below) if one is not None), None)

    async def _drain(self, jobs: Sequence[Job]) -> None:
        """Wait until nothing waits in the leaves or the IFB that are to go, at most a second for all of them."""
        end_s = self._tools.monotonic() + DRAIN_S
        waiting = [job.edit.key for job in jobs if isinstance(job.edit.key, ClassKey | LinkKey)]
        while True:
            waiting = [key for key in waiting if self._backlog(key)]
            if not waiting or self._tools.monotonic() >= end_s:
                return
            await self._tools.sleep(_DRAIN_STEP_S)

    def _backlog(self, key: ClassKey | LinkKey) -> int:
        reader = self._tools.reader
        found = (
            reader.our_root(key.ifindex)
            if isinstance(key, LinkKey)
            else reader.our_class(key.ifindex, key.minor)
        )
        return found.counters.backlog_packets if found is not None else 0


def _whole(outcome: Outcome, jobs: list[Job]) -> list[Job]:
    """Without the roots that would be left with half a tree; what stands on them is skipped in its turn."""
    for job, minor in incomplete_trees(jobs):
        assert isinstance(job.edit.key, RootKey)
        lacking = numbers.text(numbers.class_id(minor, job.edit.key.ifindex))
        outcome.fail(
            job, INCOMPLETE, f"the plan has no class {lacking}, without which the tree does not work"
        )
    return [job for job in jobs if job.edit.key not in outcome.failed]


def _filter_requests(key: FilterKey, before: Spec | None, after: Spec | None) -> list[Request]:
    requests = []
    if isinstance(before, FilterSpec):
        requests.append(wire.delete_filter(key, before.protocol))
    if isinstance(after, FilterSpec):
        requests.append(wire.make_filter(key.ifindex, key.preference, after))
    return requests
