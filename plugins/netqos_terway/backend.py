"""The terway backend: files for terway-qos, a table that counts, and a writer that moves ceilings.

Three kinds of objects are ours: the files, the nft table of `meter`, and the memo of the policy in the state folder.
All of them are planned and read back; a restart that finds them in order writes nothing. When network QoS goes off,
the reader is told "no limits" and given time to see it before a file is removed.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePath

from netqos.backend import BackendContext, Capabilities, FastPath
from netqos.backend.fileset import FileSet
from netqos.backend.filespec import FileChange, FileSpec
from netqos.engine.contents import merge_json_tables
from netqos.model.desired import DesiredState
from netqos.model.health import Finding
from netqos.model.levels import Direction
from netqos.model.plan import ObservedState, Operation, Plan, Verb
from netqos_terway import encode, extras, findings
from netqos_terway.counting import Counting
from netqos_terway.extras import MEMO, METER, ExtraChange
from netqos_terway.files import CeilingWriter, Outside
from netqos_terway.layout import Rows, asked, is_taken, keeps, nearest_rows
from netqos_terway.memo import DOCUMENT, Memo, from_document, to_document
from netqos_terway.meter import MeterSpec
from netqos_terway.options import Options

SETTLE_S = 6.0
"""terway-qos rereads its files every 5 s, and at once when the folder's watch tells it."""

JOIN_S = 5.0


class TerwayBackend(FileSet):
    """See the module. The lock is held by whoever reads or writes the files: the agent's calls or the writer."""

    def __init__(self, context: BackendContext, options: Options, *, settle_s: float = SETTLE_S) -> None:
        """Nothing is read, written or started yet."""
        folder = PurePath(options.folder)
        self._global, self._pods = folder / encode.GLOBAL_FILE, folder / encode.POD_FILE
        super().__init__(context, (self._global, self._pods), settle_s=settle_s)
        self.steers = frozenset({self._global})
        self.watched = tuple(folder / name for name in findings.FOREIGN)
        self._counting = Counting(context)
        self._lock = threading.RLock()
        self._writer: CeilingWriter | None = None
        self._in_force: Rows | None = None
        self._memo: Memo | None = None

    async def probe(self) -> Capabilities:
        """Whether there is a net_cls hierarchy; nft, to count with, is no condition."""
        self._counting.open()
        has_net_cls = await asyncio.to_thread(self._has_net_cls)
        return Capabilities(
            available=has_net_cls,
            enforces=frozenset(Direction),
            lends=False,
            findings=() if has_net_cls else (findings.NO_NET_CLS,),
        )

    def _has_net_cls(self) -> bool:
        """Whether terway-qos finds classids where it looks: in the folder net_cls, or a link of that name."""
        return (Path(self.context.cgroup_root) / "net_cls" / "net_cls.classid").is_file()

    # ------------------------------------------------------------ the files

    def encode(self, desired: DesiredState) -> Mapping[PurePath, bytes]:
        """The files for a state; which ceilings are lowered is up to the writer later, L2's here."""
        rows, pods = asked(desired), encode.pods_text(desired)
        lowered = nearest_rows(rows) if rows is not None else None
        contents: dict[PurePath, bytes] = {}
        if lowered is not None:
            contents[self._global] = encode.global_text(lowered)
        if pods is not None:
            contents[self._pods] = pods
        return contents

    def refused(self, desired: DesiredState) -> frozenset[PurePath]:
        """The global file when the reader would take none."""
        rows = asked(desired)
        return frozenset({self._global}) if rows is not None and nearest_rows(rows) is None else frozenset()

    def accepts(self, desired: DesiredState, path: PurePath, found: FileSpec) -> bool:
        """A global file with the promised guarantees, whose ceilings the writer may have moved."""
        rows, written = asked(desired), encode.parse_global(found.content)
        if path != self._global or found.edited or rows is None or written is None:
            return False
        return _belongs(written, rows)

    def merge(self, path: PurePath, wanted: bytes, found: bytes) -> bytes:
        """A pod that nobody has told of yet keeps its entry; limits in force stay as they are."""
        if path == self._pods:
            return merge_json_tables(found, wanted)
        rows = encode.parse_global(found)
        return found if rows is not None and is_taken(rows.tx) and is_taken(rows.rx) else wanted

    def parting(self, path: PurePath) -> bytes | None:
        """The reader keeps its limits when a file is merely missing, so it is told first."""
        return encode.NO_LIMITS_TEXT if path == self._global else encode.NO_PODS_TEXT

    def findings(self, desired: DesiredState, observed: ObservedState) -> tuple[Finding, ...]:
        """What terway-qos does not keep, what is lowered, who else writes here."""
        rows = asked(desired)
        return (
            *findings.foreign(observed.foreign),
            *findings.not_enforced(desired, rows),
            *self._lowered(desired, rows, observed),
            *(observed.findings if rows is not None else ()),
        )

    def _lowered(
        self, desired: DesiredState, rows: Rows | None, observed: ObservedState
    ) -> Iterator[Finding]:
        """Asked against written: the file found when it stays, else the one that will be written."""
        there = observed.ours.get(self._global)
        if rows is None:
            return
        stays = isinstance(there, FileSpec) and self.accepts(desired, self._global, there)
        found = encode.parse_global(there.content) if isinstance(there, FileSpec) and stays else None
        written = found or nearest_rows(rows)
        if written is not None:
            yield from findings.lowered(rows, written)

    # ------------------------------------------------------------ observing and planning

    def look(self) -> ObservedState:
        """The files, the meter, the memo, and files of others that change what ours do."""
        with self._lock:
            observed = super().look()
            there = observed.ours.get(self._global)
            self._in_force = encode.parse_global(there.content) if isinstance(there, FileSpec) else None
            self._memo = self._memo or from_document(self.context.state.load(DOCUMENT))
            found = {METER: self._counting.find(), MEMO: self._memo}
        present = [path.name for path in self.watched if self.context.files.signature(path) is not None]
        return ObservedState(
            ours={**observed.ours, **{key: spec for key, spec in found.items() if spec is not None}},
            foreign={**observed.foreign, **{name: findings.FOREIGN[name].message for name in present}},
            findings=self._counting.findings,
        )

    async def is_untouched(self) -> bool:
        """Also false when the table that counts has gone."""
        if self._counting.is_lost:
            return False
        return await super().is_untouched() or await asyncio.to_thread(self._is_untouched_after_all)

    def _is_untouched_after_all(self) -> bool:
        """The same question when no write of the writer is under way."""
        with self._lock:
            return self.has_seen_all()

    def plan(self, desired: DesiredState, observed: ObservedState) -> Plan:
        """The files' plan, with the meter and the memo made before the files and removed after them."""
        files = super().plan(desired, observed)
        others = extras.operations(desired, observed)
        first = tuple(one for one in others if one.verb is not Verb.DELETE)
        last = tuple(one for one in others if one.verb is Verb.DELETE)
        touches_memo = any(one.subject == MEMO for one in others)
        return replace(
            files,
            operations=(*first, *files.operations, *last),
            disturbs_loop=files.disturbs_loop or touches_memo,
        )

    # ------------------------------------------------------------ applying

    async def perform(self, operation: Operation) -> None:
        """A file, the meter or the memo."""
        if isinstance(operation.payload, FileChange):
            await super().perform(operation)
            return
        assert isinstance(operation.payload, ExtraChange)
        spec = operation.payload.spec
        if operation.subject == METER:
            await asyncio.to_thread(self._counting.change, spec if isinstance(spec, MeterSpec) else None)
        else:
            await asyncio.to_thread(self._change_memo, spec if isinstance(spec, Memo) else None)

    def write(self, path: PurePath, content: bytes) -> bool:
        """As the base, and the writer of ceilings that knew the file before is retired."""
        with self._lock:
            if path == self._global:
                self._retire()
                self._in_force = encode.parse_global(content)
            return super().write(path, content)

    def remove(self, path: PurePath) -> None:
        """As the base, alone with the file."""
        with self._lock:
            if path == self._global:
                self._retire()
                self._in_force = None
            super().remove(path)

    def _change_memo(self, memo: Memo | None) -> None:
        with self._lock:
            self._retire()
            self._memo = memo
            if memo is None:
                self.context.state.delete(DOCUMENT)
            else:
                self.context.state.save(DOCUMENT, to_document(memo))

    # ------------------------------------------------------------ steering

    def fast_path(self) -> FastPath | None:
        """The writer of ceilings, where the file in force is one of the policy remembered."""
        with self._lock:
            self._retire()
            memo, rows = self._memo, self._in_force
            if memo is None or rows is None or not _belongs(rows, memo.asked):
                return None
            self._writer = CeilingWriter(
                memo,
                rows,
                Outside(
                    write=self._steer,
                    count=self._counting.count if self._counting.is_possible else None,
                    lost=self._counting.lose,
                    log=self.context.log,
                    monotonic=self.context.monotonic,
                ),
            )
            self._writer.start()
            return self._writer

    def _steer(self, writer: CeilingWriter, content: bytes) -> bool:
        """A write of the writer's: only while the file is as it was left; a stranger's edit is the reconciler's."""
        with self._lock:
            seen = self.last_seen(self._global)
            if (
                self._writer is not writer
                or seen is None
                or self.context.files.signature(self._global) != seen
            ):
                return False
            super().write(self._global, content)
            self._in_force = encode.parse_global(content)
            return True

    def _retire(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    async def close(self) -> None:
        """Let readers let go, and the thread end."""
        await super().close()
        writer = self._writer
        self._retire()
        if writer is not None:
            await asyncio.to_thread(writer.join, JOIN_S)


def _belongs(rows: Rows, wanted: Rows) -> bool:
    return keeps(rows.tx, wanted.tx) and keeps(rows.rx, wanted.rx)
