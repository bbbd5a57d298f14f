from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.sources.kube import coming
from netqos.sources.kube.answers import (
    Broken,
    EventType,
    Failure,
    Kind,
    ListMeta,
    WatchEvent,
    read_event,
    read_object,
    read_page,
    refusal,
    refusal_of_event,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def named(rest: object, **metadata: object) -> dict[str, object]:
    """An object as every list has it."""
    return {"metadata": {"name": "x", "uid": "1", **metadata}, "spec": rest}


def read(data: bytes, piece: int = 1 << 20) -> tuple[ListMeta, list[object]]:
    items: list[object] = []
    pieces = (data[at : at + piece] for at in range(0, len(data), piece))
    return read_page(pieces, "Pod", items.append), items


@given(
    items=st.lists(st.builds(named, JSON), max_size=5),
    more=st.dictionaries(
        st.text(max_size=5).filter(lambda key: key not in {"items", "metadata", "kind"}), JSON, max_size=3
    ),
    is_last=st.booleans(),
    form=st.tuples(st.sampled_from([None, 1, "\t"]), st.integers(1, 80), st.sampled_from([1, 1 << 16])),
)
def test_a_list_is_read_item_by_item_as_a_whole_one_would_be(
    items: list[object],
    more: dict[str, object],
    is_last: bool,
    form: tuple[str | int | None, int, int],
) -> None:
    metadata = {"resourceVersion": "12", **({} if is_last else {"continue": "next"})}
    document = {"kind": "PodList", **more, "metadata": metadata, "items": items}
    indent, piece, least = form
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coming, "_LEAST", least)
        meta, found = read(json.dumps(document, indent=indent, ensure_ascii=False).encode() + b"\n", piece)
    assert found == items
    assert meta == ListMeta(version="12", token="" if is_last else "next")


def test_an_item_is_handed_on_before_the_next_one_has_come() -> None:
    items: list[object] = []
    first, second = (json.dumps(named(rest)).encode() for rest in ("x" * 100_000, 2))

    def pieces() -> Iterator[bytes]:
        yield (b'{"kind": "PodList", "metadata": {"resourceVersion": "3"}, "items": [' + first + b",")
        yield b" " * (1 << 16)
        assert len(items) == 1
        yield second + b"]}"

    assert read_page(pieces(), "Pod", items.append) == ListMeta(version="3", token="")
    assert items == [named("x" * 100_000), named(2)]


def test_a_value_without_an_end_is_given_up() -> None:
    given = 0

    def pieces() -> Iterator[bytes]:
        nonlocal given
        yield b'{"kind": "PodList", "metadata": {}, "items": ["'
        while True:
            given += 1
            yield b"x" * (1 << 20)

    with pytest.raises(Broken) as caught:
        read_page(pieces(), "Pod", lambda _item: None)
    assert caught.value.failure.kind is Kind.GARBLED
    assert given < 40


@pytest.mark.parametrize("items", ["null", "[]"])
def test_a_list_without_items_is_empty(items: str) -> None:
    data = b'{"items": %s, "metadata": {"resourceVersion": "3"}, "kind": "PodList"}' % items.encode()
    assert read(data) == (ListMeta(version="3", token=""), [])


def test_only_the_kubelet_has_lists_without_a_version() -> None:
    data = b'{"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": null}'
    assert read_page([data], "Pod", lambda _item: None, has_version=False) == ListMeta(version="", token="")
    with pytest.raises(Broken, match="no resourceVersion"):
        read(data)


WHOLE = {"kind": "PodList", "metadata": {"resourceVersion": "3"}, "items": []}
"""All that a list must have."""

NO_OBJECTS: list[object] = [
    *("x", 7, None, [], {}, {"metadata": None}, {"metadata": []}, {"metadata": {}}),
    *(named(1, name=""), named(1, name=7), named(1, uid=None), {"metadata": {"name": "x"}}),
]


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "Status", "items": None},
        *(
            {"kind": kind}
            for kind in ("Status", "Pod", "NodeList", "List", "podlist", "PodListList", "", None, 7)
        ),
        *({"items": {}}, {"items": ""}, {"items": 0}, {"items": False}),
        *({"items": [named(1), item]} for item in NO_OBJECTS),
        *({"metadata": None}, {"metadata": []}, {"metadata": {}}, {"metadata": {"resourceVersion": ""}}),
        *({"metadata": {"resourceVersion": version}} for version in (7, None, ["3"])),
        {"metadata": {"resourceVersion": "3", "continue": 7}},
    ],
)
def test_json_that_is_no_list_is_garbled(wrong: dict[str, object]) -> None:
    assert read(json.dumps(WHOLE).encode())
    with pytest.raises(Broken) as caught:
        read(json.dumps({**WHOLE, **wrong}).encode())
    assert caught.value.failure.kind is Kind.GARBLED


@pytest.mark.parametrize("key", list(WHOLE))
def test_a_list_lacks_none_of_its_parts(key: str) -> None:
    with pytest.raises(Broken):
        read(json.dumps({name: value for name, value in WHOLE.items() if name != key}).encode())


def test_the_answer_to_a_write_is_the_object() -> None:
    event = {"kind": "Event", "metadata": {"name": "x"}}
    assert read_object(json.dumps(event).encode(), "Event") == event


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"<html>", b"null", b"[]", b'{"kind": "Status", "metadata": {"name": "x"}}'),
        *(b'{"kind": "Event"}', b'{"kind": "Event", "metadata": {}}', b"\xff", b"[" * 200_000),
    ],
)
def test_another_answer_to_a_write_is_garbled(data: bytes) -> None:
    with pytest.raises(Broken) as caught:
        read_object(data, "Event")
    assert caught.value.failure.kind is Kind.GARBLED


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"<html>bad gateway</html>",
        b'{"metadata": {}, "items": [{"a": 1}',
        b'{"metadata": {}, "items": [1 2]}',
        b'{"metadata": {}, "items": []} x',
        b'{"metadata": {}, "items": []',
        b'{"metadata": "x", "items": []}',
        b'{"metadata" {}}',
        b"\xff\xfe",
        b'{"metadata": ' + b"[" * 200_000,
    ],
)
def test_what_is_no_list_is_garbled(data: bytes) -> None:
    with pytest.raises(Broken) as caught:
        read(data)
    assert caught.value.failure.kind is Kind.GARBLED


@given(st.binary(max_size=60))
def test_any_bytes_are_a_list_or_garbled(data: bytes) -> None:
    with contextlib.suppress(Broken):
        read(data)


def test_an_event() -> None:
    content = {"kind": "Pod", "metadata": {"resourceVersion": "7", "x": 1}}
    line = json.dumps({"type": "MODIFIED", "object": content}).encode()
    assert read_event(line, "Pod") == WatchEvent(type=EventType.MODIFIED, object=content, version="7")


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"{", b"[]", b"7", b'{"type": "ADDED"}', b'{"type": "ADDED", "object": []}'),
        *(b'{"type": "NEWS", "object": {}}', b'{"type": {}, "object": {}}', b'{"object": {}}', b"\xff"),
        b"[" * 200_000,
        b'{"type": "MODIFIED", "object": {"metadata": {"resourceVersion": "7"}}}',
        b'{"type": "DELETED", "object": {"kind": "Pod", "metadata": {}}}',
        b'{"type": "BOOKMARK", "object": {"kind": "Pod"}}',
        b'{"type": "ADDED", "object": {"kind": "Status", "metadata": {"resourceVersion": "7"}}}',
        b'{"type": "DELETED", "object": {"kind": "Node", "metadata": {"resourceVersion": "7"}}}',
        b'{"type": "ADDED", "object": {"kind": 7, "metadata": {"resourceVersion": "7"}}}',
    ],
)
def test_what_is_no_event_is_garbled(line: bytes) -> None:
    with pytest.raises(Broken) as caught:
        read_event(line, "Pod")
    assert caught.value.failure.kind is Kind.GARBLED


@pytest.mark.parametrize(
    ("code", "body", "header", "expected"),
    [
        (
            429,
            b'{"message": "slow"}',
            "3",
            Failure(kind=Kind.REFUSED, detail="429: slow", code=429, retry_after_s=3),
        ),
        (
            429,
            b'{"message": "slow", "details": {"retryAfterSeconds": 2}}',
            None,
            Failure(kind=Kind.REFUSED, detail="429: slow", code=429, retry_after_s=2),
        ),
        (
            *(401, b"no", None),
            Failure(kind=Kind.REFUSED, detail="401: no reason given", code=401, is_stale_login=True),
        ),
        (503, b"", "Wed, 21 Oct", Failure(kind=Kind.REFUSED, detail="503: no reason given", code=503)),
        (500, b"[]", "-1", Failure(kind=Kind.REFUSED, detail="500: no reason given", code=500)),
    ],
)
def test_a_refusal(code: int, body: bytes, header: str | None, expected: Failure) -> None:
    assert refusal(code, body, header) == expected


def test_an_error_event_is_a_refusal() -> None:
    line = b'{"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}'
    assert refusal_of_event(read_event(line, "Pod")) == Failure(
        kind=Kind.REFUSED, detail="410: too old", code=410
    )
