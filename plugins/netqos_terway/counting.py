"""The table of `meter` in this host's nft: finding it, changing it, reading it, doing without it."""

from __future__ import annotations

from netqos.backend import BackendContext, NftRunner
from netqos.errors import Rejected, Retryable, Unsupported
from netqos.model.health import Finding
from netqos_terway import findings, meter
from netqos_terway.meter import MeterSpec

MOST_TRIES = 3
"""After so many refusals of the table in a row, nft is taken to be unable: a kernel that lacks a part of it says only
"no such file or directory", which may also be a table that somebody else removed meanwhile."""


class Counting:
    """Holds the connection to nft. What nft or the kernel cannot do costs the counting and nothing else."""

    def __init__(self, context: BackendContext) -> None:
        """Nothing is opened yet."""
        self._context = context
        self._nft: NftRunner | None = None
        self._problem = ""
        self._tries = 0
        self.is_lost = False

    @property
    def is_possible(self) -> bool:
        """Whether this host can count."""
        return self._nft is not None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Why this host cannot count."""
        return () if self._nft is not None else (findings.no_meter(self._problem),)

    def open(self) -> None:
        """Connect to nft in the calling thread's network namespace, once."""
        if self._nft is None:
            try:
                self._nft = self._context.nft()
            except Unsupported as problem:
                self._give_up(problem)

    def find(self) -> MeterSpec | None:
        """The table as it is, None when there is none."""
        self.is_lost = False
        if self._nft is None:
            return None
        try:
            return meter.parse_table(self._nft.query(meter.LIST_TABLE))
        except Retryable:  # the table is not there
            return None
        except (Rejected, Unsupported) as problem:
            self._give_up(problem)
            return None

    def change(self, spec: MeterSpec | None) -> None:
        """Make the table or bring it to `spec`; None removes it."""
        assert self._nft is not None
        try:
            self._nft.run(meter.script(spec) if spec is not None else meter.DELETE)
            self._tries = 0
        except (Rejected, Unsupported) as problem:
            self._give_up(problem)
        except Retryable as problem:
            self._tries += 1
            if self._tries < MOST_TRIES:
                raise
            self._give_up(problem)

    def count(self) -> meter.Counts:
        """Bytes by direction and level; raises when the table has gone."""
        if self._nft is None:
            raise Unsupported(self._problem)
        return meter.parse_counters(self._nft.query(meter.LIST_COUNTERS))

    def lose(self) -> None:
        """Remember that the table could not be read, so that the agent looks again."""
        self.is_lost = True

    def _give_up(self, problem: Exception) -> None:
        self._nft, self._problem = None, str(problem)
        self._context.log("terway_cannot_count", problem=self._problem)
