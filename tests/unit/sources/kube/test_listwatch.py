from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from netqos.model.inputs import Freshness, SourceState
from netqos.sources.kube.answers import Failure, Kind, ListMeta, WatchEvent, read_event
from netqos.sources.kube.asking import AskVersion, ListPage, OpenWatch, Pace, Rest
from netqos.sources.kube.listwatch import ListWatch

LOST = Failure(kind=Kind.LOST, detail="refused")
GARBLED = Failure(kind=Kind.GARBLED, detail="no JSON")


def code(number: int, **more: Any) -> Failure:
    return Failure(kind=Kind.REFUSED, detail=f"{number}: no", code=number, **more)


def parse(document: object) -> tuple[str, str | None] | None:
    """{"n": key, "v": value}; a value of "finished" is of no interest."""
    if not isinstance(document, dict) or "n" not in document:
        return None
    value = document.get("v", "")
    return document["n"], None if value == "finished" else value


def event(kind: str, name: str, value: str = "", version: str = "") -> WatchEvent:
    content = {"kind": "One", "n": name, "v": value, "metadata": {"resourceVersion": version}}
    return read_event(json.dumps({"type": kind, "object": content}).encode(), "One")


def bookmark(version: str) -> WatchEvent:
    content = {"kind": "One", "metadata": {"resourceVersion": version}}
    return read_event(json.dumps({"type": "BOOKMARK", "object": content}).encode(), "One")


def gone(number: int = 410) -> WatchEvent:
    return read_event(
        json.dumps({"type": "ERROR", "object": {"code": number, "message": "old"}}).encode(), "Pod"
    )


@dataclass
class Case:
    chance: float = 0.0
    may_be_absent: bool = False
    now_s: float = 100.0
    core: ListWatch[str] = field(init=False)

    def __post_init__(self) -> None:
        self.core = ListWatch(parse, chance=lambda: self.chance, may_be_absent=self.may_be_absent)

    def list(self, *names: str, version: str = "5", token: str = "") -> bool:
        assert isinstance(self.core.next(self.now_s), ListPage)
        for name in names:
            self.core.take({"n": name, "v": "1"})
        meta = ListMeta(version=version, token=token)
        return self.core.page_read(meta, items=len(names), size_bytes=1000 * len(names), now_s=self.now_s)

    def ask(self, version: str) -> None:
        assert self.core.next(self.now_s) == AskVersion()
        self.core.answered(version)

    def lose(self) -> None:
        """The connection, and the rest after it."""
        self.core.failed(LOST, self.now_s)
        assert isinstance(self.core.next(self.now_s), Rest)

    def watch(self) -> OpenWatch:
        action = self.core.next(self.now_s)
        assert isinstance(action, OpenWatch)
        self.core.opened(self.now_s)
        return action


def test_a_list_is_followed_by_a_watch_from_its_version() -> None:
    case = Case()
    assert case.core.state == SourceState(freshness=Freshness.WAITING, detail="not listed yet")
    assert case.core.next(0) == ListPage(token="", limit=20)
    assert case.list("a", "b", version="7")
    assert case.core.items == {"a": "1", "b": "1"}
    assert case.core.state == SourceState(freshness=Freshness.FRESH, since_s=100)
    assert case.core.next(100) == OpenWatch(version="7", timeout_s=600)


def test_what_is_remembered_is_no_answer_and_gives_equal_items_their_memory() -> None:
    held = "".join(["val", "ue"])
    core = ListWatch(parse, chance=lambda: 0.0, remembered={"a": held, "gone": "x"})
    assert core.state.freshness is Freshness.WAITING
    assert core.next(0) == ListPage(token="", limit=20)
    core.take({"n": "a", "v": "".join(["va", "lue"])})
    core.page_read(ListMeta(version="7", token=""), items=1, size_bytes=9, now_s=1)
    assert core.items == {"a": "value"}
    assert core.items["a"] is held


def test_a_failure_is_the_end_of_what_was_known_to_be_good() -> None:
    case = Case()
    case.list("a")
    case.watch()
    case.core.failed(LOST, 130)
    assert (case.core.state.since_s, case.core.state.freshness) == (130, Freshness.STALE)
    case.core.failed(LOST, 2_000)
    assert case.core.state.since_s == 130


def test_pages_join_and_only_the_last_one_counts() -> None:
    case = Case()
    assert not case.list("a", token="t1", version="7")
    assert (case.core.items, case.core.state.freshness) == ({}, Freshness.WAITING)
    assert case.core.next(100) == ListPage(token="t1", limit=500)
    assert case.list("b", version="7")
    assert list(case.core.items) == ["a", "b"]


@pytest.mark.parametrize(
    ("items", "size", "limit"), [(20, 1 << 20, 20), (20, 40 << 20, 1), (20, 2000, 500), (0, 9, 20)]
)
def test_pages_are_as_large_as_their_objects_allow(items: int, size: int, limit: int) -> None:
    case = Case()
    case.core.page_read(ListMeta(version="7", token="t"), items=items, size_bytes=size, now_s=0)
    assert case.core.next(0) == ListPage(token="t", limit=limit)


def test_events_change_items_and_move_the_version() -> None:
    case = Case()
    case.list("a", "b")
    case.watch()
    assert case.core.event(event("ADDED", "c", "1", "6"), 101)
    assert case.core.event(event("MODIFIED", "a", "2", "7"), 102)
    assert not case.core.event(event("MODIFIED", "a", "2", "8"), 103)
    assert case.core.event(event("DELETED", "b", "1", "9"), 104)
    assert not case.core.event(event("DELETED", "b", "1", "10"), 104)
    assert case.core.event(event("MODIFIED", "c", "finished", "11"), 104)
    assert not case.core.event(bookmark("20"), 110)
    assert case.core.items == {"a": "2"}
    assert case.core.state == SourceState(freshness=Freshness.FRESH, since_s=110)
    case.core.ended(800)
    assert case.core.next(800) == OpenWatch(version="20", timeout_s=600)


def test_a_broken_watch_goes_on_from_the_last_version_and_loses_nothing() -> None:
    case = Case()
    case.list("a")
    case.watch()
    case.core.event(event("ADDED", "b", "1", "6"), 101)
    assert not case.core.failed(LOST, 102)
    assert case.core.state == SourceState(freshness=Freshness.STALE, since_s=102, detail="refused")
    assert case.core.items == {"a": "1", "b": "1"}
    assert case.core.next(102) == Rest(seconds=0.025)
    case.ask("8")
    assert case.watch() == OpenWatch(version="6", timeout_s=600)
    assert case.core.state.freshness is Freshness.FRESH


@pytest.mark.parametrize("is_event", [True, False])
def test_410_in_either_form_lists_again_and_finds_what_was_missed(is_event: bool) -> None:
    case = Case()
    case.list("a", "b")
    case.watch()
    case.now_s = 130
    if is_event:
        case.core.event(gone(), case.now_s)
    else:
        case.core.failed(code(410), case.now_s)
    assert case.core.is_broken
    assert case.core.items == {"a": "1", "b": "1"}
    assert case.list("b", "c", version="50")
    assert case.core.items == {"b": "1", "c": "1"}
    assert case.watch().version == "50"


def test_410_again_and_again_backs_off_and_asks_for_larger_pages() -> None:
    case = Case(chance=0.5)
    rests = []
    for _ in range(6):
        case.list("a")
        case.watch()
        case.core.event(gone(), case.now_s)
        action = case.core.next(case.now_s)
        if isinstance(action, Rest):
            rests.append(action.seconds)
    assert rests == [pytest.approx(0.75 * wait) for wait in (0.1, 0.2, 0.4, 0.8, 1.6)]


def test_an_expired_list_starts_over() -> None:
    case = Case()
    case.list("a", token="t1")
    case.core.failed(code(410), 100)
    action = case.core.next(100)
    assert isinstance(action, ListPage)
    assert action.token == ""
    case.list("b", version="9")
    assert case.core.items == {"b": "1"}


@pytest.mark.parametrize("failure", [LOST, GARBLED, code(403), code(500), code(429), code(404), code(410)])
def test_a_failed_list_is_never_an_empty_node(failure: Failure) -> None:
    case = Case()
    case.list("a", "b")
    case.core.failed(code(410), 101)
    case.core.take({"n": "c", "v": "1"})
    case.core.failed(failure, 102)
    case.core.failed(failure, 103)
    assert case.core.items == {"a": "1", "b": "1"}
    assert case.core.state.freshness is Freshness.STALE


def test_before_the_first_list_a_failure_says_why() -> None:
    case = Case()
    case.core.failed(code(403), 1)
    assert case.core.state == SourceState(freshness=Freshness.WAITING, detail="403: no")


def rests(failure: Failure, count: int, chance: float = 0.999999) -> list[float]:
    case = Case(chance=chance)
    found = []
    for _ in range(count):
        case.core.failed(failure, 1)
        action = case.core.next(1)
        assert isinstance(action, Rest)
        found.append(round(action.seconds, 3))
    return found


def test_back_off_has_a_ceiling_low_where_nobody_answers() -> None:
    assert rests(LOST, 8) == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0]
    assert rests(code(500), 10) == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
    assert rests(LOST, 8, chance=0.0)[-1] == 0.5
    assert rests(LOST, 2000)[-1] == 1.0


def test_a_server_that_comes_up_is_asked_soon_again() -> None:
    case = Case(chance=0.0)
    for _ in range(20):
        case.core.failed(LOST, 1)
    case.core.next(1)
    case.core.failed(code(503), 1)
    assert case.core.next(1) == Rest(seconds=0.025)


def test_retry_after_is_a_floor_with_a_bound() -> None:
    assert rests(code(429, retry_after_s=4.0), 1, chance=0) == [4.0]
    assert rests(code(429, retry_after_s=4.0), 1, chance=0.8) == [4.8]
    assert rests(code(429, retry_after_s=86400.0), 1, chance=0) == [60.0]


def test_401_reads_the_credentials_anew() -> None:
    case = Case()
    case.core.failed(code(401, is_stale_login=True), 1)
    assert case.core.next(1) == Rest(seconds=0.025, reload=True)


def test_a_kind_that_the_server_does_not_know_is_none_of_it() -> None:
    case = Case(may_be_absent=True)
    assert case.core.failed(code(404), 3)
    assert case.core.state == SourceState(freshness=Freshness.FRESH, since_s=3, detail="absent (404)")
    assert case.core.next(3) == Rest(seconds=240)
    assert isinstance(case.core.next(303), ListPage)
    assert not case.core.failed(code(404), 303)
    case.core.next(303)
    case.list("slo")
    assert case.core.items == {"slo": "1"}
    assert case.core.failed(code(404), 400)
    assert case.core.items == {}


def test_a_watch_that_ends_at_once_is_a_failure() -> None:
    case = Case()
    case.list("a")
    case.watch()
    case.core.ended(100.2)
    assert case.core.next(100.2) == Rest(seconds=0.025)


def test_garbage_in_a_watch_lists_again() -> None:
    case = Case()
    case.list("a")
    case.watch()
    case.core.failed(GARBLED, 101)
    assert isinstance(case.core.next(101), Rest)
    assert isinstance(case.core.next(101), ListPage)


def test_the_list_is_repeated_now_and_then() -> None:
    case = Case()
    case.list("a")
    assert isinstance(case.core.next(100 + 2699), OpenWatch)
    assert isinstance(case.core.next(100 + 2700), ListPage)


@pytest.mark.parametrize("version", ["4", "x", "", "05 "])
def test_a_server_whose_version_is_below_ours_has_another_history(version: str) -> None:
    case = Case()
    case.list("a", "b")
    case.watch()
    case.lose()
    case.ask(version)
    assert case.core.items == {"a": "1", "b": "1"}
    assert case.list("b", version="4")
    assert case.core.items == {"b": "1"}
    assert case.watch() == OpenWatch(version="4", timeout_s=600)


@pytest.mark.parametrize("version", ["5", "6", "10"])
def test_a_server_that_has_our_version_is_watched_from_it(version: str) -> None:
    case = Case()
    case.list("a")
    case.watch()
    case.lose()
    case.ask(version)
    assert case.watch() == OpenWatch(version="5", timeout_s=600)


def test_a_doubt_stays_until_there_is_an_answer() -> None:
    case = Case()
    case.list("a")
    case.watch()
    case.lose()
    case.now_s = 110
    case.core.failed(code(503), 110)
    assert isinstance(case.core.next(110), Rest)
    assert case.core.next(129.9) == AskVersion()
    assert isinstance(case.core.next(130), ListPage), (
        "away for so long that another history may have our version"
    )


@pytest.mark.parametrize(("end_s", "is_doubted"), [(180, True), (594, True), (596, False), (600, False)])
def test_a_watch_that_ends_before_its_time_is_doubted(end_s: float, is_doubted: bool) -> None:
    case = Case()
    case.list("a")
    case.watch()
    case.core.ended(100 + end_s)
    assert isinstance(case.core.next(100 + end_s), AskVersion if is_doubted else OpenWatch)


def test_a_version_that_is_refused_is_dropped() -> None:
    case = Case()
    case.list("a", version="x")
    case.core.next(100)
    case.core.failed(code(400), 100)
    assert isinstance(case.core.next(100), Rest)
    assert isinstance(case.core.next(100), ListPage)


def test_a_watch_that_is_silent_from_its_start_is_checked_by_a_list() -> None:
    case = Case()
    case.list("a")
    assert case.core.patience_s(case.watch()) == 90
    assert not case.core.failed(LOST, 190)
    assert case.core.state == SourceState(freshness=Freshness.FRESH, since_s=100)
    case.now_s = 190
    case.list("b", version="9")
    assert case.core.items == {"b": "1"}
    assert case.core.patience_s(case.watch()) == 90, "it was deaf: the next one is looked into as soon"


def test_where_silence_is_right_it_is_looked_into_ever_more_seldom_until_a_bookmark_comes() -> None:
    case = Case()
    case.list("a")
    found = []
    for _ in range(4):
        patience_s = case.core.patience_s(case.watch())
        found.append(patience_s)
        case.now_s += patience_s
        case.core.failed(LOST, case.now_s)
        case.list("a")
    assert found == [90, 360, 615, 615]
    watch = case.watch()
    case.core.event(bookmark("9"), case.now_s + 60)
    assert case.core.patience_s(watch) == 90


def test_equal_values_stay_the_same_object() -> None:
    def as_tuple(document: object) -> tuple[str, tuple[object, ...]]:
        assert isinstance(document, list)
        return "k", tuple(document)

    core: ListWatch[tuple[object, ...]] = ListWatch(as_tuple, chance=lambda: 0.0)
    for _ in range(2):
        core.take([1, 2])
        core.page_read(ListMeta(version="1", token=""), items=1, size_bytes=9, now_s=0)
    first = core.items["k"]
    core.take([1, 2])
    core.page_read(ListMeta(version="2", token=""), items=1, size_bytes=9, now_s=0)
    assert core.items["k"] is first


class Server(RuleBasedStateMachine):
    """Any order of changes, faults and compactions: once all is well, what is known is what is there."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.version = 1
        self.oldest = 1
        self.log: list[tuple[int, WatchEvent]] = []
        self.objects: dict[str, str] = {}
        self.core: ListWatch[str] = ListWatch(
            parse, chance=lambda: 0.5, pace=Pace(first_page=2, page_bytes=10)
        )
        self.pages: list[tuple[dict[str, str], int]] = []
        self.known_s = 0.0
        self.backup: tuple[dict[str, str], int] = ({}, 1)

    @rule(name=st.sampled_from("abcd"), value=st.sampled_from(["1", "2", "finished"]))
    def write(self, name: str, value: str) -> None:
        self.version += 1
        kind = "MODIFIED" if name in self.objects else "ADDED"
        self.objects[name] = value
        self.log.append((self.version, event(kind, name, value, str(self.version))))

    @rule(name=st.sampled_from("abcd"))
    def delete(self, name: str) -> None:
        if self.objects.pop(name, None) is not None:
            self.version += 1
            self.log.append((self.version, event("DELETED", name, "", str(self.version))))

    @rule()
    def compact(self) -> None:
        self.oldest = self.version

    @rule()
    def back_up(self) -> None:
        self.backup = (dict(self.objects), self.version)

    @rule(is_quick=st.booleans())
    def restore(self, is_quick: bool) -> None:
        """The store of an earlier time. Where it is quick nothing is written before we are there again."""
        self.core.failed(LOST, self.now_s)
        self.objects, self.version = dict(self.backup[0]), self.backup[1]
        self.oldest = min(self.oldest, self.version)
        self.log = [pair for pair in self.log if pair[0] <= self.version]
        if is_quick:
            while not isinstance(self.act(0), ListPage | AskVersion):
                pass
        else:
            self.now_s += 30

    @rule(
        failure=st.sampled_from(
            [LOST, GARBLED, code(500), code(410), code(401), code(429, retry_after_s=1.0)]
        )
    )
    def fail(self, failure: Failure) -> None:
        self.core.next(self.now_s)
        self.core.failed(failure, self.now_s)

    @rule(cut=st.integers(0, 3))
    def step(self, cut: int) -> None:
        self.act(cut)

    def act(self, cut: int = 100) -> object:
        action = self.core.next(self.now_s)
        match action:
            case Rest():
                self.now_s += action.seconds
            case AskVersion():
                self.core.answered(str(self.version))
            case ListPage():
                self.list(action)
            case OpenWatch():
                self.watch(int(action.version), cut)
        return action

    def list(self, page: ListPage) -> None:
        if not page.token:
            self.pages = [(dict(self.objects), self.version)]
        objects, version = self.pages[0]
        if page.token and version < self.oldest:
            self.core.failed(code(410), self.now_s)
            return
        names = sorted(objects)
        start = int(page.token or 0)
        end = start + page.limit if page.limit else len(names)
        for name in names[start:end]:
            self.core.take({"n": name, "v": objects[name]})
        token = str(end) if end < len(names) else ""
        meta = ListMeta(version=str(version), token=token)
        self.core.page_read(meta, items=len(names[start:end]), size_bytes=5, now_s=self.now_s)

    def watch(self, version: int, cut: int) -> None:
        if version < self.oldest:
            self.core.failed(code(410), self.now_s)
            return
        self.core.opened(self.now_s)
        for at, one in [pair for pair in self.log if pair[0] > version][:cut]:
            self.core.event(one, self.now_s)
            assert at > version
        self.now_s += 2
        self.core.ended(self.now_s)

    @invariant()
    def a_failure_is_never_an_empty_node(self) -> None:
        assert set(self.core.items.values()) <= {"1", "2"}

    def teardown(self) -> None:
        for _ in range(60):
            self.act()
        assert self.core.items == {name: one for name, one in self.objects.items() if one != "finished"}
        assert self.core.state.freshness is Freshness.FRESH


TestServer = Server.TestCase
