"""What to ask next of a list and its watch, and what is known from the answers. Pure: time and chance are passed in.

List in pages, then watch from the list's version; after 410, in either form, list again. After a break watch again from
the last version seen, but ask for the server's version first: one below ours is of another history (a restored store),
of which a watch from ours would never say a word. A snapshot is replaced only by a whole list or by an event: a list
that fails, however often, changes nothing but the state (case G8).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from netqos.model.inputs import Freshness, SourceState
from netqos.sources.kube.answers import (
    EventType,
    Failure,
    Kind,
    ListMeta,
    WatchEvent,
    lost,
    refusal_of_event,
)
from netqos.sources.kube.asking import Action, AskVersion, ListPage, OpenWatch, Pace, Rest, has_reached

T = TypeVar("T")

NOT_YET = "not listed yet"
"""What a state says before the first answer, or the first failure."""

_SHORT_S, _LONG_S, _EARLY_S = 1.0, 5.0, 5.0
"""A watch that ends sooner was refused in effect; one that lasted longer has shown that all is well; and one that ends
by so much before its time was ended for another reason."""

_LATE_S = 15.0
"""How long after its time a watch is waited for."""

Parse = Callable[[object], tuple[str, T | None] | None]
"""(key, value) of one object; the value None: not of interest any more; None: not to be understood."""


@dataclass(slots=True)
class _Listing(Generic[T]):
    """A list that is under way."""

    items: dict[str, T] = field(default_factory=dict)
    token: str = ""


class ListWatch(Generic[T]):
    """One list and its watch. `items` are by key, in the order in which they were first seen."""

    def __init__(
        self,
        parse: Parse[T],
        *,
        chance: Callable[[], float],
        pace: Pace | None = None,
        may_be_absent: bool = False,
        remembered: Mapping[str, T] | None = None,
    ) -> None:
        """`chance()` is in [0, 1). `may_be_absent`: 404 means that there are none, and is no failure.

        `remembered` are the items of before a restart, whose memory the first list shares where they are the same.
        """
        self.items: dict[str, T] = dict(remembered or {})
        self.state = SourceState(freshness=Freshness.WAITING, detail=NOT_YET)
        self.unread = 0
        self._parse = parse
        self._chance = chance
        self._pace = pace or Pace()
        self._may_be_absent = may_be_absent
        self._listing: _Listing[T] = _Listing()
        self._limit = self._pace.first_page
        self._version = ""
        self._rest: Rest | None = None
        self._failures = 0
        self._kind: Kind | None = None
        self._expired = 0
        self._relist_at_s = 0.0
        self._opened_s: float | None = None
        self._asked_s = 0.0
        self._doubted_s: float | None = None
        self._quiet_s = self._pace.quiet_s
        self._is_checked = False

    # -------------------------------------------------------------- asking

    def next(self, now_s: float) -> Action:
        """What to do now."""
        if self._rest is not None:
            rest, self._rest = self._rest, None
            return rest
        if not self._version or self._listing.token or now_s >= self._relist_at_s:
            return ListPage(token=self._listing.token, limit=self._limit)
        if self._doubted_s is not None:
            is_long = now_s - self._doubted_s >= self._pace.trust_s
            return ListPage(token="", limit=self._limit) if is_long else AskVersion()
        watch = OpenWatch(version=self._version, timeout_s=int(self._spread(self._pace.watch_s)))
        self._asked_s = watch.timeout_s
        return watch

    def patience_s(self, watch: OpenWatch) -> float:
        """How long a watch may say nothing at all before it is looked into."""
        return min(self._quiet_s, watch.timeout_s + _LATE_S)

    @property
    def is_broken(self) -> bool:
        """Whether there is no watch to go on with: it was not opened, or has failed."""
        return self._opened_s is None

    # -------------------------------------------------------------- answers

    def take(self, document: object) -> None:
        """One item of the page that is being read."""
        parsed = self._parse(document)
        if parsed is None:
            self.unread += 1
        elif parsed[1] is not None:
            self._listing.items[parsed[0]] = self._same(parsed[0], parsed[1])

    def page_read(self, meta: ListMeta, *, items: int, size_bytes: int, now_s: float) -> bool:
        """A page came to its end; True when with it the list did, and `items` are new."""
        self._listing.token = meta.token
        if items and self._limit:
            fits = self._pace.page_bytes * items // max(size_bytes, 1)
            self._limit = max(1, min(fits, self._pace.largest_page))
        if meta.token:
            return False
        self._end_list(meta.version, now_s)
        return True

    def answered(self, version: str) -> None:
        """The version that the list has now. One below ours: nothing that we have is of this server."""
        self._doubted_s = None
        if not has_reached(version, self._version):
            self._version = ""

    def opened(self, now_s: float) -> None:
        """The server took the watch."""
        self._opened_s = now_s
        self._fresh(now_s)

    def event(self, event: WatchEvent, now_s: float) -> bool:
        """One event; True when `items` changed. An ERROR is as the failure of the watch that it is."""
        if event.type is EventType.ERROR:
            self.failed(refusal_of_event(event), now_s)
            return False
        self._works()
        self._version = event.version or self._version
        self._fresh(now_s)
        if event.type is EventType.BOOKMARK:
            self._quiet_s = self._pace.quiet_s
            return False
        parsed = self._parse(event.object)
        if parsed is None:
            self.unread += 1
            return False
        key, value = parsed
        return self._put(key, None if event.type is EventType.DELETED else value)

    def ended(self, now_s: float) -> None:
        """The server ended the watch in good order; one that ends at once, again and again, is a failure.

        One that ends before its time may be the last word of a server whose store is replaced.
        """
        lived_s = self._lived_s(now_s)
        if lived_s < _SHORT_S:
            self.failed(lost("the watch ended at once").failure, now_s)
            return
        self._works()
        self._opened_s = None
        if lived_s < self._asked_s - _EARLY_S:
            self._doubt(now_s)

    def failed(self, failure: Failure, now_s: float) -> bool:
        """A request failed; True when this says that there are no items (any more)."""
        self._listing = _Listing()
        if self._lived_s(now_s) >= _LONG_S:
            self._works()
        good_s = self._good_until_s(now_s)
        if self._was_quiet(now_s):
            self._check()
            return False
        self._doubt(now_s)
        self._opened_s = None
        if failure.code == 404 and self._may_be_absent:
            return self._absent(failure, now_s)
        if failure.code == 410:
            self._expire()
        elif failure.kind is Kind.GARBLED or failure.code == 400:
            self._version = ""
        is_first = self._failures == 0
        if failure.kind is not self._kind:
            # A server that comes up again refuses for a while before it serves: it is asked soon again.
            self._kind, self._failures = failure.kind, 0
        self._failures += 1
        if failure.code == 410 and is_first:
            # Once in a while this is usual; again and again it is not.
            return False
        self._rest = Rest(seconds=self._wait_s(failure), reload=failure.is_stale_login)
        stale = Freshness.WAITING if self.state.freshness is Freshness.WAITING else Freshness.STALE
        self.state = SourceState(freshness=stale, since_s=good_s, detail=failure.detail)
        return False

    # -------------------------------------------------------------- inside

    def _end_list(self, version: str, now_s: float) -> None:
        if self._is_checked:
            # Where nothing was missed it may be that nothing at all changes in this cluster.
            is_right = self._listing.items == self.items
            self._quiet_s = min(4 * self._quiet_s, 2 * self._pace.watch_s) if is_right else self._pace.quiet_s
        self.items = self._listing.items
        self._listing = _Listing()
        self._doubted_s, self._is_checked = None, False
        self._version = version
        self._limit = self._limit or self._pace.first_page
        self._relist_at_s = now_s + self._spread(self._pace.relist_s)
        self._fresh(now_s)

    def _works(self) -> None:
        """A watch that gives events, or lasts. A list alone is no proof: its watch may fail each time."""
        self._failures = self._expired = 0

    def _lived_s(self, now_s: float) -> float:
        return now_s - self._opened_s if self._opened_s is not None else 0.0

    def _good_until_s(self, now_s: float) -> float | None:
        """Until when all was well, as far as one can tell: a watch that just broke was well until then."""
        is_known = self.state.freshness is not Freshness.FRESH or self._is_checked or self._was_quiet(now_s)
        return self.state.since_s if is_known else now_s

    def _was_quiet(self, now_s: float) -> bool:
        """Whether the watch that fails was given up for its silence."""
        heard_s = self.state.since_s
        patience_s = min(self._quiet_s, self._asked_s + _LATE_S)
        return self._opened_s is not None and heard_s is not None and now_s - heard_s >= patience_s

    def _check(self) -> None:
        """A watch that was silent for too long is no failure yet: the list says what it should have said."""
        self._opened_s, self._version, self._is_checked = None, "", True

    def _doubt(self, now_s: float) -> None:
        self._doubted_s = now_s if self._doubted_s is None else self._doubted_s

    def _expire(self) -> None:
        """The version, or a list's token, is too old. Lists that expire are asked for in larger pages."""
        self._version = ""
        self._expired += 1
        if self._expired > 1:
            self._limit = 0 if self._expired > 3 else min(self._limit * 4, self._pace.largest_page)

    def _absent(self, failure: Failure, now_s: float) -> bool:
        changed = bool(self.items) or self.state.freshness is Freshness.WAITING
        self.items, self._version = {}, ""
        self._works()
        self.state = SourceState(freshness=Freshness.FRESH, since_s=now_s, detail=f"absent ({failure.code})")
        self._rest = Rest(seconds=self._pace.absent_s * (1 + self._chance() / 4))
        return changed

    def _wait_s(self, failure: Failure) -> float:
        is_lost = failure.kind is Kind.LOST
        most_s = self._pace.lost_most_s if is_lost else self._pace.refused_most_s
        wait_s: float = min(self._pace.first_s * 2.0 ** min(self._failures - 1, 20), most_s)
        wait_s *= 0.5 + self._chance() / 2
        asked_s = min(failure.retry_after_s or 0.0, 60.0)
        return max(wait_s, asked_s * (1 + self._chance() / 4))

    def _fresh(self, now_s: float) -> None:
        if self._version or self.state.freshness is not Freshness.WAITING:
            self.state = SourceState(freshness=Freshness.FRESH, since_s=now_s)

    def _put(self, key: str, value: T | None) -> bool:
        if value is None:
            return self.items.pop(key, None) is not None
        if self.items.get(key) == value:
            return False
        self.items[key] = value
        return True

    def _same(self, key: str, value: T) -> T:
        """The value held already where it is equal, so that equal lists share their memory and compare quickly."""
        held = self.items.get(key)
        return held if held is not None and held == value else value

    def _spread(self, seconds: float) -> float:
        return seconds * (1 + self._chance())
