"""What a source of inputs gives: whole snapshots, the newest only, each with whether it may be trusted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from netqos.model.health import Finding
from netqos.model.inputs import SourceState

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(Generic[T_co]):
    """Everything that a source says at one moment. `findings` are about the source itself, and live as it says."""

    value: T_co
    state: SourceState
    findings: tuple[Finding, ...] = ()


class Source(Protocol[T_co]):
    """One source of inputs. A source isolates its faults: it goes on with the last good value and says so."""

    @property
    def state(self) -> SourceState:
        """Whether it is current, as of now; `since_s` is when that was last found to be true."""
        ...

    def snapshots(self) -> AsyncIterator[Snapshot[T_co]]:
        """A snapshot at once, and one after each change; what changed while the reader was busy comes as one."""
        ...

    def wake(self) -> None:
        """Look again now; an event only says this. May be called from any task of the event loop."""
        ...
