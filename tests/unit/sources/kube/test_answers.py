from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netqos.sources.kube.answers import (
    Broken,
    EventType,
    Failure,
    Kind,
    ListMeta,
    WatchEvent,
    read_event,
    read_page,
    refusal,
    refusal_of_event,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def read(data: bytes) -> tuple[ListMeta, list[object]]:
    items: list[object] = []
    return read_page(data, items.append), items


@given(
    items=st.lists(JSON, max_size=5),
    more=st.dictionaries(
        st.text(max_size=5).filter(lambda key: key not in {"items", "metadata"}), JSON, max_size=3
    ),
    indent=st.sampled_from([None, 1, "\t"]),
    is_last=st.booleans(),
)
def test_a_list_is_read_item_by_item_as_a_whole_one_would_be(
    items: list[object], more: dict[str, object], indent: str | int | None, is_last: bool
) -> None:
    metadata = {"resourceVersion": "12", **({} if is_last else {"continue": "next"})}
    document = {"kind": "PodList", **more, "metadata": metadata, "items": items}
    meta, found = read(json.dumps(document, indent=indent).encode() + b"\n")
    assert found == items
    assert meta == ListMeta(version="12", token="" if is_last else "next")


@pytest.mark.parametrize("items", ["null", "{}", "[]"])
def test_a_list_without_items_is_empty(items: str) -> None:
    assert read(b'{"items": %s, "metadata": {}}' % items.encode()) == (ListMeta(version="", token=""), [])


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
    line = b'{"type": "MODIFIED", "object": {"metadata": {"resourceVersion": "7", "x": 1}}}'
    assert read_event(line) == WatchEvent(
        type=EventType.MODIFIED, object={"metadata": {"resourceVersion": "7", "x": 1}}, version="7"
    )


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"{", b"[]", b"7", b'{"type": "ADDED"}', b'{"type": "ADDED", "object": []}'),
        *(b'{"type": "NEWS", "object": {}}', b'{"type": {}, "object": {}}', b'{"object": {}}', b"\xff"),
        b"[" * 200_000,
    ],
)
def test_what_is_no_event_is_garbled(line: bytes) -> None:
    with pytest.raises(Broken) as caught:
        read_event(line)
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
    assert refusal_of_event(read_event(line)) == Failure(kind=Kind.REFUSED, detail="410: too old", code=410)
