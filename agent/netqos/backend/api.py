"""Protocols between the agent and its enforcement backends.

A backend answers three questions: what is there (`observe`), what would have to change (`plan`, pure), and it makes
the change (`apply`). The agent calls the async methods from one task, never two at once for one backend. `FastPath`
is the optional other half: synchronous, called only from the fast loop's own thread, and it must never wait.

An entry point of the group `netqos.backends` names a factory `create(context: BackendContext) -> Backend`. It does no
I/O; wrong options raise `Rejected`, one error that lists every problem.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Protocol

from netqos.model.desired import DesiredState
from netqos.model.health import Finding
from netqos.model.ids import PodUid
from netqos.model.levels import Direction, PerLevel
from netqos.model.plan import ApplyResult, ObservedState, Plan
from netqos.model.traffic import Glance, Unit, UnitSample

API_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a backend can do on this host, as probed.

    `available` False: it can do nothing here; `findings` names every missing piece and the next step. `enforces` holds
    the directions that it shapes; `lends` says that unused bandwidth is lent by the mechanism itself (contract 3: h =
    0, only L0's ceiling is moved). `apart` names the directions that it shapes on a device of its own: an error about
    an uplink says nothing of those.
    """

    available: bool
    enforces: frozenset[Direction] = frozenset()
    apart: frozenset[Direction] = frozenset()
    lends: bool = False
    limits: bool = True
    rules: bool = False
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class PacketWay:
    """The steps from where packets come to where they go, and what tells whose they are, as the kernel has it."""

    steps: tuple[str, ...]
    claims: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafCounters:
    """Counters of one pod in one direction: bytes and packets sent, packets dropped, bytes waiting.

    `rule` is the place of the rule inside the pod (contract 1.3) whose packets are counted apart, None for the rest.
    `where` names the object that counts. `way` tells the way of the pod's packets by it, None where that is not known;
    it is asked only where it is shown.
    """

    direction: Direction
    sent_bytes: int
    sent_packets: int
    drops: int
    backlog_bytes: int
    where: str = ""
    rule: int | None = None
    way: Callable[[], PacketWay] | None = field(default=None, compare=False)


class FastPath(Protocol):
    """The loop's grip on the units of one backend. Every method returns within microseconds and never blocks.

    It is valid for the objects that were there when it was made; `Retryable` from any method says that they are gone
    (device removed, tree replaced), and the reconciler will make a new one.
    """

    @property
    def units(self) -> tuple[Unit, ...]:
        """What can be steered: a direction of an uplink, or of another device that stands for all of them (an IFB)."""
        ...

    @property
    def lends(self) -> bool:
        """As `Capabilities.lends`."""
        ...

    def pace_s(self, unit: Unit) -> float:
        """The shortest time between two looks at the unit that makes sense; 0 where only the loop's own counts."""
        ...

    def glance(self, units: Collection[Unit]) -> tuple[Glance, ...]:
        """One counter of each of these units, for a fraction of a sample's cost; none where nothing is cheaper."""
        ...

    def sample(self, units: Collection[Unit] | None = None) -> tuple[UnitSample, ...]:
        """Counters of these units (None: of every one), each with the time at which they were read."""
        ...

    def current_ceilings(self, unit: Unit) -> PerLevel[int] | None:
        """The ceilings in force in bits per second, None if they cannot be read."""
        ...

    def current_room(self, unit: Unit) -> int | None:
        """What the unit may pass in all at this moment, None where its total is not moved or cannot be read."""
        ...

    def adjust(
        self,
        unit: Unit,
        ceilings_bps: PerLevel[int],
        *,
        room_bps: int | None = None,
        guarantees_bps: PerLevel[int] | None = None,
    ) -> int:
        """Put ceilings in force and return the number of writes made. A lending backend applies L0's only.

        `room_bps` is what the unit may pass in all from now on, None for a unit whose total is not moved. Where
        guarantees are rates that ask no parent (HTB), L0's follows it: the room less the guarantees of L1 and L2, at
        most its own. What is in force already is no write.

        `guarantees_bps` comes for an uplink that shares a total with others (`DesiredUplink.pool_bps`): room,
        guarantees and all three ceilings are those of its part, for a lending backend too.
        """
        ...

    def close(self) -> None:
        """Release sockets and descriptors; what is in force stays in force."""
        ...


class Backend(Protocol):
    """One way of enforcing a desired state."""

    @property
    def name(self) -> str:
        """The entry point's name."""
        ...

    async def probe(self) -> Capabilities:
        """Find out what this host can do, without changing anything that outlives the call."""
        ...

    async def observe(self) -> ObservedState:
        """Read back everything of ours, exactly, and what stands in its way."""
        ...

    def plan(self, desired: DesiredState, observed: ObservedState) -> Plan:
        """The smallest safe ordered change from observed to desired. Pure; empty when nothing is to do.

        With `desired.complete` False nothing of ours is deleted. `netqos.model.desired.NOTHING` removes all of ours
        and puts back what was there before.
        """
        ...

    async def apply(self, plan: Plan) -> ApplyResult:
        """Make the change, operation by operation; a failure stops only what depends on it."""
        ...

    async def is_untouched(self) -> bool:
        """Cheap check, several times a second: False when anything may have changed since the last observe or apply."""
        ...

    def fast_path(self) -> FastPath | None:
        """A grip for the fast loop on what the last apply or observe left, None when there is nothing to steer."""
        ...

    async def counters(self) -> Mapping[PodUid, tuple[LeafCounters, ...]]:
        """Per-pod counters where the mechanism has them, else an empty mapping."""
        ...

    async def close(self) -> None:
        """Release what the backend holds in this process; enforcement stays."""
        ...


class StateStore(Protocol):
    """Small JSON documents that survive a restart, in a folder of the backend's own."""

    def load(self, name: str) -> object | None:
        """The document, None when there is none or it is unreadable (which is logged)."""
        ...

    def save(self, name: str, document: object) -> None:
        """Replace the document atomically and durably; equal content is not written again."""
        ...

    def delete(self, name: str) -> None:
        """Forget the document; no error when there is none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSignature:
    """What `stat` tells of a file: equal signatures mean that nobody wrote it, replaced it or changed its mode."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    mode: int


class FileStore(Protocol):
    """Whole files shared with other programs, replaced atomically, never through a foreign symlink (contract 2).

    Every method may be called from any thread. `Rejected`: something stands at the path that must not be touched;
    `Retryable`: the file system refuses (full, read-only, no rights). Both name the path and the next step.
    """

    def read(self, path: PurePath) -> bytes | None:
        """The content, None when there is no such file."""
        ...

    def replace(self, path: PurePath, content: bytes) -> bool:
        """Write content unless the file already has it; True when written. Parents are made, 0755; the file 0644."""
        ...

    def delete(self, path: PurePath) -> bool:
        """Remove the file; True when there was one."""
        ...

    def signature(self, path: PurePath) -> FileSignature | None:
        """The file's signature without reading it, None when there is nothing at the path."""
        ...


class NftRunner(Protocol):
    """Commands for nftables in this network namespace."""

    def run(self, commands: str) -> None:
        """Execute a script as one transaction; a refused one changes nothing and raises `Rejected` or `Retryable`."""
        ...

    def check(self, commands: str) -> None:
        """Whether `run` would succeed, as far as the kernel can tell; it raises the same, and changes nothing."""
        ...

    def query(self, command: str) -> dict[str, object]:
        """The JSON answer of a `list` command; `Retryable` when the object is not there."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendContext:
    """What a backend is given. `options` is its own section of the configuration (`backendOptions.NAME`).

    `nft()` raises `Unsupported` where libnftables is missing. `log(event, **key_values)` writes one structured log
    line.
    """

    name: str
    options: Mapping[str, object]
    state: StateStore
    files: FileStore
    nft: Callable[[], NftRunner]
    log: Callable[..., None]
    monotonic: Callable[[], float]
    cgroup_root: PurePath
    proc_root: PurePath = field(default=PurePath("/proc"))
    sys_root: PurePath = field(default=PurePath("/sys"))
