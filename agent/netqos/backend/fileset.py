"""Base of the backends whose enforcement is a set of whole files that another program reads.

A subclass says what each file should hold (`encode`, pure); reading back, planning, writing, noticing drift and taking
everything away are done here. A file is never edited, only replaced whole, and only by `context.files`. While a source
has not delivered yet (`desired.complete` False) nothing is removed, neither a file nor what `merge` finds in it.
"""

# ruff: noqa: ARG002 - the defaults of what a subclass may say take what its overrides need

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from pathlib import PurePath

from netqos.backend.api import BackendContext, Capabilities, FastPath, FileSignature, LeafCounters
from netqos.backend.filespec import FileChange, FileSpec, code_of, payload, reason_of, write_operation
from netqos.engine.reconcile import diff
from netqos.errors import NetqosError, Rejected
from netqos.model.desired import DesiredState
from netqos.model.health import Finding
from netqos.model.ids import PodUid
from netqos.model.levels import Direction
from netqos.model.plan import ApplyResult, Failure, ObservedState, Operation, Plan, Verb


class FileSet(ABC):
    """A backend over `paths`, the only files that it ever touches. See docs/writing-a-backend.md."""

    steers: frozenset[PurePath] = frozenset()
    """The files that a fast path writes too: it is let go while one of them changes."""

    watched: tuple[PurePath, ...] = ()
    """Files of others that change what ours do: when one comes, goes or changes, the agent looks again."""

    def __init__(self, context: BackendContext, paths: Sequence[PurePath], *, settle_s: float = 0.0) -> None:
        """`settle_s`: how long a reader may take to see the parting content before its file is removed."""
        self.context = context
        self.paths = tuple(paths)
        self._settle_s = settle_s
        self._seen: dict[PurePath, FileSignature | None] | None = None
        self._leaving: dict[PurePath, asyncio.TimerHandle] = {}
        self._written: dict[PurePath, bytes] = {}

    # ------------------------------------------------------------ what a subclass says

    @abstractmethod
    def encode(self, desired: DesiredState) -> Mapping[PurePath, bytes]:
        """The content of each file that should be there, in the order of writing. Pure."""

    def findings(self, desired: DesiredState, observed: ObservedState) -> tuple[Finding, ...]:
        """What of the desired state is not enforced, and why. Pure."""
        return ()

    def refused(self, desired: DesiredState) -> frozenset[PurePath]:
        """Files to leave as they are, because no content can be given for this state; `findings` says why. Pure."""
        return frozenset()

    def accepts(self, desired: DesiredState, path: PurePath, found: FileSpec) -> bool:
        """Whether a file found with another content than the one encoded is as good. Pure."""
        return False

    def merge(self, path: PurePath, wanted: bytes, found: bytes) -> bytes:
        """What to write while a source has not delivered: nothing that is there may go. Default: leave it. Pure."""
        return found

    def parting(self, path: PurePath) -> bytes | None:
        """Content that tells the reader to let go, written before the file is removed; None: just remove it. Pure."""
        return None

    # ------------------------------------------------------------ the backend protocol

    @property
    def name(self) -> str:
        """The entry point's name."""
        return self.context.name

    async def probe(self) -> Capabilities:
        """Files can be written anywhere; a subclass that needs more says so."""
        return Capabilities(available=True, enforces=frozenset(Direction))

    async def observe(self) -> ObservedState:
        """Every file of ours that is there; what stands in the place of one is foreign."""
        return await asyncio.to_thread(self.look)

    def look(self) -> ObservedState:
        """`observe` in the calling thread. A file that is being let go of counts as gone."""
        seen = {path: self.context.files.signature(path) for path in self.watched}
        ours: dict[Hashable, object] = {}
        foreign: dict[str, str] = {}
        for path in self.paths:
            seen[path] = signature = self.context.files.signature(path)
            try:
                content = self.context.files.read(path)
            except Rejected as problem:
                foreign[str(path)] = problem.message
                continue
            if content is None or signature is None:
                continue
            if path not in self._leaving or content != self.parting(path):
                edited = self._written.get(path, content) != content
                ours[path] = FileSpec(content=content, mode=signature.mode, edited=edited)
        self._seen = seen
        return ObservedState(ours=ours, foreign=foreign)

    def plan(self, desired: DesiredState, observed: ObservedState) -> Plan:
        """The keyed difference between the files as encoded and as found; writes come before removals."""
        found = {path: spec for path, spec in observed.ours.items() if isinstance(spec, FileSpec)}
        wanted = self._wanted(desired, found)
        left = {key: found[key] for key in found if desired.complete or key in wanted}
        difference = diff(wanted, left)
        operations = (
            *(write_operation(Verb.CREATE, key, spec) for key, spec in difference.creates.items()),
            *(
                write_operation(Verb.CHANGE, key, change.new, change.old)
                for key, change in difference.changes.items()
            ),
            *(self._removal(key) for key in difference.deletes),
        )
        return Plan(
            backend=self.name,
            operations=operations,
            disturbs_loop=any(payload(operation).path in self.steers for operation in operations),
            findings=self.findings(desired, observed),
        )

    async def apply(self, plan: Plan) -> ApplyResult:
        """Do the operations in their order; one that fails stops no other, files do not depend on each other."""
        failures = []
        for operation in plan.operations:
            try:
                await self.perform(operation)
            except NetqosError as problem:
                failures.append(
                    Failure(operation=operation, code=code_of(problem), message=reason_of(problem))
                )
        if failures:
            self._seen = None
        return ApplyResult(applied=len(plan.operations) - len(failures), failures=tuple(failures))

    async def perform(self, operation: Operation) -> None:
        """One operation; a subclass with objects of other kinds does those itself and leaves the files to this."""
        change = payload(operation)
        leaving = self._leaving.pop(change.path, None)
        if leaving is not None:
            leaving.cancel()
        if change.content is not None:
            await asyncio.to_thread(self.write, change.path, change.content)
            return
        parting = self.parting(change.path)
        if parting is not None:
            await asyncio.to_thread(self.write, change.path, parting)
        if parting is not None and self._settle_s > 0:
            timer = asyncio.get_running_loop().call_later(self._settle_s, self._leave, change.path)
            self._leaving[change.path] = timer
        else:
            await asyncio.to_thread(self.remove, change.path)

    async def is_untouched(self) -> bool:
        """Whether every file's signature is that of the last observe or apply."""
        return self.has_seen_all()

    def fast_path(self) -> FastPath | None:
        """Nothing to steer."""
        return None

    async def counters(self) -> Mapping[PodUid, tuple[LeafCounters, ...]]:
        """Files count nothing."""
        return {}

    async def close(self) -> None:
        """Wait until every reader has let go of the files that are to be removed, then remove them."""
        if self._leaving:
            last_s = max(timer.when() for timer in self._leaving.values())
            await asyncio.sleep(last_s - asyncio.get_running_loop().time())
        for path in list(self._leaving):
            self._leaving[path].cancel()
            self._leave(path)

    # ------------------------------------------------------------ effects

    def write(self, path: PurePath, content: bytes) -> bool:
        """Replace a file of ours and remember that this was us; True when something was written."""
        written = self.context.files.replace(path, content)
        if path in self.steers:
            self._written[path] = content
        self._remember(path)
        return written

    def remove(self, path: PurePath) -> None:
        """Remove a file of ours and remember that this was us."""
        self.context.files.delete(path)
        self._written.pop(path, None)
        self._remember(path)

    def last_seen(self, path: PurePath) -> FileSignature | None:
        """The file's signature at the last look or write, None when it was not there or is not known."""
        return self._seen.get(path) if self._seen is not None else None

    def has_seen_all(self) -> bool:
        """Whether every file's signature is that of the last look or write."""
        return self._seen is not None and all(
            self.context.files.signature(path) == signature for path, signature in self._seen.items()
        )

    def _remember(self, path: PurePath) -> None:
        if self._seen is not None:
            self._seen[path] = self.context.files.signature(path)

    def _leave(self, path: PurePath) -> None:
        """Remove a file whose reader has let go; on failure the next audit sees it again."""
        del self._leaving[path]
        try:
            self.remove(path)
        except NetqosError as problem:
            self._seen = None
            self.context.log("file_not_removed", path=str(path), problem=str(problem))

    # ------------------------------------------------------------ planning

    def _wanted(self, desired: DesiredState, found: Mapping[Hashable, FileSpec]) -> dict[Hashable, FileSpec]:
        """The files as they should be, those found standing where they are good enough or must be left alone."""
        wanted: dict[Hashable, FileSpec] = {}
        for path, content in self.encode(desired).items():
            there = found.get(path)
            wanted[path] = (
                FileSpec(content=content) if there is None else self._best(desired, path, content, there)
            )
        for path in self.refused(desired):
            wanted.pop(path, None)
            if path in found:
                wanted[path] = found[path]
        return wanted

    def _best(self, desired: DesiredState, path: PurePath, wanted: bytes, there: FileSpec) -> FileSpec:
        """What is found where it is good enough, what is wanted elsewhere; while incomplete the two merged."""
        if wanted == there.content:
            content = wanted
        elif self.accepts(desired, path, there):
            content = there.content
        else:
            content = wanted if desired.complete else self.merge(path, wanted, there.content)
        edited = there.edited and content == there.content
        return FileSpec(content=content, edited=edited)

    def _removal(self, path: Hashable) -> Operation:
        assert isinstance(path, PurePath)
        detail = "remove" if self.parting(path) is None else "say that nothing is limited, then remove"
        return Operation(
            verb=Verb.DELETE,
            subject=f"file {path}",
            detail=detail,
            payload=FileChange(path=path, content=None),
        )
